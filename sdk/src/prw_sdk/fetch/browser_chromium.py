"""Chromium, driven through Playwright: started when it is needed, replaced when it died, ended at the end."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass

from playwright.async_api import Browser as Chromium
from playwright.async_api import BrowserContext, Playwright, async_playwright
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from prw_sdk.evidence import Part
from prw_sdk.fetch.browser import BrowserConfig
from prw_sdk.fetch.browser_processes import Process, children_of_mine, kill, trees
from prw_sdk.fetch.browser_rules import Wish
from prw_sdk.fetch.browser_shelf import Shelf
from prw_sdk.fetch.browser_visit import HEIGHT, WIDTH, Visit
from prw_sdk.fetch.outcome import FetchFailed, Outcome
from prw_sdk.fetch.rendering import Document, Fetches

FLAGS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--dns-prefetch-disable",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--no-first-run",
    "--no-pings",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    # nothing has an address, the proxy that everything has to go through least of all
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-bypass-list=<-loopback>",
    "--proxy-server=http://nowhere.invalid:1",
)
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
_DRIVER = b"run-driver"
_CLOSING = 10.0
_ANSWERING = 10.0


@dataclass(frozen=True, slots=True)
class _Running:
    playwright: Playwright
    chromium: Chromium
    drivers: frozenset[Process]


class Engine:
    """At most one Chromium at a time; it ends with this process whatever happens, since it is driven over a pipe."""

    def __init__(self, config: BrowserConfig) -> None:
        self._config = config
        self._starting = asyncio.Lock()
        self._running: _Running | None = None
        self._shelf = Shelf()

    async def aclose(self) -> None:
        """End Chromium; a later page would start another one."""
        async with self._starting:
            running, self._running = self._running, None
        if running is not None:
            await _end(running)

    async def visit(self, wish: Wish, document: Document, through: Fetches) -> tuple[Part, ...]:
        """Open the page and take its parts; raises `FetchFailed`."""
        limits = self._config.limits
        visit = Visit(wish, document, through, limits, self._shelf)
        try:
            async with asyncio.timeout(limits.total):
                return await self._in_context(visit, through)
        except TimeoutError as late:
            message = f"the page took longer than {limits.total:g} s"
            raise through.failed(Outcome.TIMEOUT, message, wish.url) from late
        except PlaywrightError as broken:
            raise _failure(broken, wish.url, through) from broken

    async def _in_context(self, visit: Visit, through: Fetches) -> tuple[Part, ...]:
        chromium = await self._chromium()
        context = await self._opened(chromium, through)
        try:
            return await visit.within(context)
        finally:
            await self._leave(chromium, context)

    async def _opened(self, chromium: Chromium, through: Fetches) -> BrowserContext:
        try:
            async with asyncio.timeout(_ANSWERING):
                return await chromium.new_context(
                    accept_downloads=False,
                    color_scheme="light",
                    locale=through.pages.language or None,
                    reduced_motion="reduce",
                    service_workers="block",
                    user_agent=through.user_agent,
                    viewport={"width": WIDTH, "height": HEIGHT},
                )
        except (PlaywrightError, TimeoutError) as broken:
            # it died or hangs without a word: the next attempt gets a fresh one
            await self._give_up(chromium)
            raise PlaywrightError("it does not answer any more") from broken

    async def _leave(self, chromium: Chromium, context: BrowserContext) -> None:
        """Close a page's context; a Chromium that does not even do that is given up."""
        try:
            async with asyncio.timeout(_CLOSING):
                with suppress(PlaywrightError):
                    await context.close()
        except TimeoutError:
            await self._give_up(chromium)

    async def _chromium(self) -> Chromium:
        async with self._starting:
            if self._running is not None and not self._running.chromium.is_connected():
                stale, self._running = self._running, None
                await _end(stale)
            if self._running is None:
                self._running = await self._started()
            return self._running.chromium

    async def _started(self) -> _Running:
        before = children_of_mine(_DRIVER)
        playwright = await async_playwright().start()
        try:
            chromium = await playwright.chromium.launch(
                executable_path=self._config.program(),
                args=list(FLAGS),
                chromium_sandbox=self._config.sandbox and os.geteuid() != 0,
                # what the collector was told is not for pages to find
                env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
                # a run that is stopped finishes the pages that are open
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except BaseException:
            await playwright.stop()
            raise
        return _Running(playwright, chromium, children_of_mine(_DRIVER) - before)

    async def _give_up(self, chromium: Chromium) -> None:
        async with self._starting:
            running = self._running
            if running is None or running.chromium is not chromium:
                return
            self._running = None
        await _end(running)


def _failure(error: PlaywrightError, url: str, through: Fetches) -> FetchFailed:
    words = error.message.partition("\n")[0]
    if isinstance(error, PlaywrightTimeout):
        return through.failed(Outcome.TIMEOUT, words, url)
    return through.failed(Outcome.BROWSER_FAILED, f"the browser failed: {words}", url)


async def _end(running: _Running) -> None:
    """End Chromium and Playwright's own process, whatever state they are in."""
    processes = trees(running.drivers)
    for close in (running.chromium.close, running.playwright.stop):
        with suppress(PlaywrightError, TimeoutError):
            async with asyncio.timeout(_CLOSING):
                await close()
    kill(processes)
