"""The street with pages that a test has changed."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

from prw_examples.street.server import Shopfronts
from prw_examples.street.site import Answer, missing


class Doctored(Shopfronts):
    """Shopfronts some of whose pages say something else, or are gone, from now on."""

    def __init__(self) -> None:
        super().__init__()
        self._changes: dict[tuple[str, str], tuple[bytes, bytes]] = {}
        self._gone: set[tuple[str, str]] = set()

    def rewrite(self, url: str, old: str, new: str) -> None:
        """Have the page say `new` wherever it said `old`."""
        self._changes[_address(url)] = (old.encode(), new.encode())

    def remove(self, url: str) -> None:
        """Have the page gone."""
        self._gone.add(_address(url))

    def answer(self, host: str, path: str) -> Answer | None:
        """The answer of a storefront, as changed."""
        answer = super().answer(host, path)
        if (host, path) in self._gone:
            return missing(self._shops[host])
        if answer is None or (host, path) not in self._changes:
            return answer
        old, new = self._changes[host, path]
        assert old in answer.body, f"{host}{path} does not say {old!r}"
        return replace(answer, body=answer.body.replace(old, new))


def _address(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.netloc, parts.path
