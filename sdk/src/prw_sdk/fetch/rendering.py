"""What a browser is to the network: something that opens a page and gives back its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from prw_sdk.evidence import Part


class Renders(Protocol):
    """A browser of one run (`prw_sdk.fetch.browser.Browser`), as `HttpNet` needs it."""

    async def render(
        self, url: str, *, role: str, responses: Mapping[str, str]
    ) -> tuple[Part, ...]:
        """Open the page and return its parts; raises `FetchFailed`."""
        ...
