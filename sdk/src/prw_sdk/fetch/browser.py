"""One Chromium for a run, which can reach nothing by itself: all that its pages ask for goes through the network.

Chromium is started with a proxy that has no address, so whatever it would ask for behind our back (redirects,
prefetches, sockets, WebRTC) leads nowhere; every request of a page is taken from it and answered by the source's own
guarded network (`prw_sdk.fetch.rendering.Fetches`), under the rules of `prw_sdk.fetch.browser_rules`. Each page has a
context of its own, with no cookies and no storage from before, and each start a profile of its own.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, cast

from prw_sdk.evidence import Part
from prw_sdk.fetch.browser_rules import PAGES, VisitLimits, Wish
from prw_sdk.fetch.outcome import Outcome
from prw_sdk.fetch.rendering import Document, Fetches

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
"""What Chromium is called, where no setting says where it is."""


@dataclass(frozen=True, slots=True)
class BrowserConfig:
    """The Chromium to drive (found by its usual names where none is given), and how many pages are open at once.

    `sandbox` is Chromium's own; root has none, since Chromium does not start with it there.
    """

    executable: Path | None = None
    pages_at_once: int = 2
    sandbox: bool = True
    limits: VisitLimits = VisitLimits()

    def program(self) -> str | None:
        """Where Chromium is; None where it is nowhere."""
        if self.executable is not None:
            return str(self.executable) if os.access(self.executable, os.X_OK) else None
        return next((found for name in NAMES if (found := shutil.which(name))), None)


def missing(config: BrowserConfig | None = None) -> str | None:
    """What has to be installed before a page can be opened; None where all is there."""
    config = config or BrowserConfig()
    if find_spec("playwright") is None:
        return "Playwright is not installed: install prw-sdk[browser]"
    if config.program() is None:
        where = ", ".join(NAMES) if config.executable is None else str(config.executable)
        return f"no Chromium found ({where}): install it, or name it in browser.executable"
    return None


class Engine(Protocol):
    """What drives Chromium (`prw_sdk.fetch.browser_chromium.Engine`), which needs Playwright to be imported."""

    async def visit(self, wish: Wish, document: Document, through: Fetches) -> tuple[Part, ...]:
        """Open the page and take its parts; raises `FetchFailed`."""
        ...

    async def aclose(self) -> None:
        """End Chromium."""
        ...


class Browser:
    """The browser of one run (`prw_sdk.fetch.rendering.Renders`); started at the first page, closed at the end.

    A Chromium that ends by itself fails the pages that it had open, which may be tried again; the next page gets a
    fresh one. Used within one event loop.
    """

    def __init__(self, config: BrowserConfig | None = None) -> None:
        self._config = config or BrowserConfig()
        self._places = asyncio.Semaphore(self._config.pages_at_once)
        self._engine: Engine | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End Chromium; a later page would start another one."""
        if self._engine is not None:
            await self._engine.aclose()

    async def render(
        self,
        url: str,
        *,
        role: str,
        responses: Mapping[str, str],
        wait_for: str | None,
        through: Fetches,
    ) -> tuple[Part, ...]:
        """Open the page and return its parts (`prw_sdk.adapter.Net.render`); raises `FetchFailed`. One attempt."""
        lacking = missing(self._config)
        if lacking is not None:
            raise through.failed(Outcome.NO_BROWSER, lacking, url)
        document = await through.document(url, role=f"{role}.source")
        if not is_page(document.part):
            kind = document.part.media_type.partition(";")[0]
            raise through.failed(Outcome.REFUSED, f"no page but {kind}", url)
        async with self._places:
            wish = Wish(url, role, responses, wait_for)
            return await self._driven().visit(wish, document, through)

    def _driven(self) -> Engine:
        if self._engine is None:
            # here, since Playwright is an extra that most collectors do without
            found = import_module("prw_sdk.fetch.browser_chromium")
            self._engine = cast(Engine, found.Engine(self._config))
        return self._engine


def is_page(part: Part) -> bool:
    """Whether a browser shows the part as a document."""
    return part.media_type.partition(";")[0].strip().lower() in PAGES
