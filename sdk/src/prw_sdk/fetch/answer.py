"""One answer as it came, whichever client received it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prw_sdk.fetch.body import BadBody
from prw_sdk.fetch.outcome import Outcome


class Headers:
    """Names are case-insensitive; values are text whatever bytes they were sent as (UTF-8, else Latin-1)."""

    __slots__ = ("_values",)

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, list[bytes]] = {}
        for name, value in raw:
            self._values.setdefault(name.decode("latin-1").lower(), []).append(value)

    @classmethod
    def of(cls, values: Iterable[tuple[str, str]]) -> Headers:
        """From text."""
        return cls((name.encode("latin-1", "replace"), value.encode()) for name, value in values)

    def items(self) -> tuple[tuple[str, str], ...]:
        """Every header as it came, names in lower case."""
        return tuple(
            (name, _text(value)) for name, values in self._values.items() for value in values
        )

    def get(self, name: str) -> str | None:
        """The value, all of them with commas between where there are several; None where there is none."""
        found = self._values.get(name)
        return None if found is None else _text(b", ".join(found))

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of that name, in its order."""
        return tuple(_text(value) for value in self._values.get(name, ()))

    def __contains__(self, name: str) -> bool:
        return name in self._values


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8").strip()
    except UnicodeDecodeError:
        return value.decode("latin-1").strip()


Bound = Callable[[int, Headers], int]
"""How many bytes of a body to read, told from status and headers: 0 reads none, and more than that is too large."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came: status, headers, and the body as it was sent (still encoded). `cut` says why it is not whole."""

    status: int
    headers: Headers
    raw: bytes = b""
    cut: BadBody | None = None


class Unanswered(Exception):
    """No answer came, or none that is HTTP; `outcome` says how that counts."""

    def __init__(self, outcome: Outcome, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.message = message
