"""What network and browser are to each other: a browser opens a page, and asks for nothing but through the network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from prw_sdk.evidence import Part
from prw_sdk.fetch.outcome import FetchFailed, Outcome


@dataclass(frozen=True, slots=True)
class Pages:
    """How a source's pages are opened: the language asked for (BCP 47), and hosts besides the page's own.

    A page may ask its own host, and hosts under the same name, for anything; `third_parties` are further names that
    it may ask for data and frames.
    """

    language: str = ""
    third_parties: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Document:
    """A page as it was served; `url` is the address reached, not redacted, `headers` all of its last answer."""

    part: Part
    url: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Resource:
    """One answer to a request of a page's own, of whatever status. `url` is the address reached, not redacted."""

    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    fetched_at: datetime


class Fetches(Protocol):
    """The network of one source (`prw_sdk.fetch.http.HttpNet`), as a browser needs it."""

    @property
    def user_agent(self) -> str:
        """The honest name that sources see."""
        ...

    @property
    def pages(self) -> Pages:
        """How the source's pages are opened."""
        ...

    async def document(self, url: str, *, role: str) -> Document:
        """Ask once for a page: robots rules, turn, limits and judgement as for `get`; raises `FetchFailed`."""
        ...

    async def resource(self, url: str, headers: Mapping[str, str], *, ask_robots: bool) -> Resource:
        """Ask once for what a page needs, following redirects; raises `FetchFailed`, but for no status.

        It goes through guard and limits, and takes no turn: it belongs to the visit that the page has its turn for.
        """
        ...

    def part(self, resource: Resource, *, role: str, url_asked: str) -> Part:
        """An answer as a part, like any other."""
        ...

    def judge(self, part: Part) -> None:
        """Raise `FetchFailed` where a page is none of the source's (soft 404, consent wall, challenge, login)."""
        ...

    def failed(self, outcome: Outcome, message: str, url: str) -> FetchFailed:
        """A failure without the source's secrets in it."""
        ...


class Renders(Protocol):
    """A browser of one run (`prw_sdk.fetch.browser.Browser`), as `HttpNet` needs it."""

    async def render(
        self,
        url: str,
        *,
        role: str,
        responses: Mapping[str, str],
        wait_for: str | None,
        through: Fetches,
    ) -> tuple[Part, ...]:
        """Open the page and return its parts; raises `FetchFailed`. One attempt: who calls it asks again."""
        ...
