"""One page, open in a browser: its requests answered through the guarded network, and what it came to as parts."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from playwright.async_api import (
    BrowserContext,
    Dialog,
    Page,
    Request,
    Route,
    WebSocketRoute,
)
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from prw_sdk.evidence import Part
from prw_sdk.fetch.browser_rules import (
    Asked,
    VisitLimits,
    Wish,
    refusal,
    to_page,
    to_send,
)
from prw_sdk.fetch.browser_shelf import Shelf
from prw_sdk.fetch.outcome import FetchFailed, Outcome, Recovery, of_status
from prw_sdk.fetch.rendering import Document, Fetches, Resource

WIDTH, HEIGHT = 1280, 960
_MOST_REPORTED = 3
_STEP = 0.05


class Visit:
    """One visit of one page, made once."""

    def __init__(
        self,
        wish: Wish,
        document: Document,
        through: Fetches,
        limits: VisitLimits,
        shelf: Shelf | None = None,
    ) -> None:
        self._shelf = shelf or Shelf(0)
        self._wish = wish
        self._through = through
        self._limits = limits
        self._document: Document = document
        self._asked = document.part.url_asked
        self._documents = 0
        self._answers: dict[str, Part] = {}
        self._requests = self._bytes = self._under_way = 0
        self._moved = time.monotonic()
        self._at_once = asyncio.Semaphore(limits.at_once)
        self._refused: dict[str, str] = {}
        self._failure: asyncio.Future[FetchFailed] = asyncio.get_running_loop().create_future()
        self._page: Page | None = None

    async def within(self, context: BrowserContext) -> tuple[Part, ...]:
        """Open the page in a fresh context and take its parts; raises `FetchFailed` and Playwright's errors."""
        await context.route("**/*", self._serve)
        await context.route_web_socket("**/*", _hang_up)
        page = self._page = await context.new_page()
        context.on("page", lambda other: None if other is page else _later(other.close()))
        page.on("dialog", _dismiss)
        page.on("download", lambda download: _later(download.cancel()))
        page.on("crash", lambda _: self._fail(Outcome.BROWSER_FAILED, "the page crashed"))
        steps = asyncio.ensure_future(self._taken(page))
        try:
            either: set[asyncio.Future[Any]] = {steps, self._failure}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if self._failure.done():
                raise self._failure.result()
            return steps.result()
        finally:
            steps.cancel()
            await asyncio.gather(steps, return_exceptions=True)

    async def _taken(self, page: Page) -> tuple[Part, ...]:
        await page.goto(
            self._document.url,
            wait_until="commit",
            timeout=self._limits.document * 1000,
        )
        await self._loaded(page)
        await self._quiet()
        if self._wish.wait_for is not None:
            await self._shown(page, self._wish.wait_for)
        rendered = await self._rendered(page)
        self._through.judge(rendered)
        screenshot = await self._screenshot(page)
        source = replace(self._document.part, url_asked=self._asked)
        return (rendered, source, screenshot, *self._answers.values())

    async def _loaded(self, page: Page) -> None:
        """Wait until the document stands. Playwright's own wait does not end where a page tries to go elsewhere."""
        end = time.monotonic() + self._limits.document
        while time.monotonic() < end:
            # the document may be another one by now, which has to be asked again
            with suppress(PlaywrightError):
                if await page.evaluate("() => document.readyState") != "loading":
                    return
            if page.is_closed():
                raise self._through.failed(
                    Outcome.BROWSER_FAILED, "the page closed", self._wish.url
                )
            await asyncio.sleep(_STEP)
        raise self._through.failed(
            Outcome.TIMEOUT,
            f"the page was not there within {self._limits.document:g} s",
            self._wish.url,
        )

    async def _quiet(self) -> None:
        """Wait until nothing has been under way for a moment; no longer than a page may take to settle."""
        end = time.monotonic() + self._limits.settle
        while (now := time.monotonic()) < end:
            calm = 0.0 if self._under_way else now - self._moved
            if calm >= self._limits.calm:
                return
            await asyncio.sleep(_STEP if self._under_way else self._limits.calm - calm)

    async def _shown(self, page: Page, selector: str) -> None:
        try:
            await page.wait_for_selector(
                selector, state="attached", timeout=self._limits.settle * 2000
            )
        except PlaywrightTimeout as late:
            told = "; ".join(f"{url}: {why}" for url, why in self._refused.items())
            raise self._through.failed(
                Outcome.TIMEOUT,
                f"the page never showed {selector!r}" + (f" ({told})" if told else ""),
                self._wish.url,
            ) from late
        await self._quiet()

    async def _rendered(self, page: Page) -> Part:
        most = self._limits.rendered
        if await page.evaluate("() => document.documentElement.outerHTML.length") > most:
            raise self._through.failed(
                Outcome.TOO_LARGE, f"the page grew beyond {most} bytes", self._wish.url
            )
        body = (await page.content()).encode("utf-8", errors="replace")
        return self._made(self._wish.role, body, "text/html; charset=utf-8", "utf-8")

    async def _screenshot(self, page: Page) -> Part:
        height = await page.evaluate("() => document.documentElement.scrollHeight")
        is_long = not isinstance(height, int) or height > self._limits.height
        body = await page.screenshot(
            full_page=True,
            animations="disabled",
            scale="css",
            clip={"x": 0, "y": 0, "width": WIDTH, "height": self._limits.height}
            if is_long
            else None,
        )
        return self._made(f"{self._wish.role}.screenshot", body, "image/png", None)

    def _made(self, role: str, body: bytes, media_type: str, charset: str | None) -> Part:
        """What the browser made of the page, under the page's own address and status."""
        source = self._document.part
        return Part(
            role=role,
            sha256=hashlib.sha256(body).hexdigest(),
            body=body,
            media_type=media_type,
            url_asked=self._asked,
            url_reached=source.url_reached,
            http_status=source.http_status,
            fetched_at=datetime.now(UTC),
            charset_declared=charset,
            charset_used=charset,
        )

    # --- the page's own requests ---

    async def _serve(self, route: Route) -> None:
        self._under_way += 1
        try:
            # the page may go away while it is being answered
            with suppress(PlaywrightError):
                await self._answer(route, route.request)
        except FetchFailed as failed:
            await _quietly(route.abort("failed"))
            self._refuse(route.request.url, failed.message)
        finally:
            self._under_way -= 1
            self._moved = time.monotonic()

    async def _answer(self, route: Route, request: Request) -> None:
        asked = Asked(request.method, request.url, request.resource_type)
        is_main = request.is_navigation_request() and self._is_main(request)
        why = self._refusal(asked, request, is_main)
        if why is not None:
            self._refuse(asked.url, why)
            # a page that may not go elsewhere stays where it is
            await route.abort("aborted" if request.is_navigation_request() else "blockedbyclient")
        elif is_main:
            await self._go(route, asked.url)
        else:
            await self._get(route, request, asked)

    def _is_main(self, request: Request) -> bool:
        try:
            return self._page is not None and request.frame == self._page.main_frame
        except PlaywrightError:
            return False  # a window of the page's own has no frame yet

    def _refusal(self, asked: Asked, request: Request, is_main: bool) -> str | None:
        if is_main and not self._documents:
            return None
        self._requests += 1
        if self._requests > self._limits.requests or self._bytes > self._limits.bytes:
            return "the page has asked for too much"
        if request.is_navigation_request() and not is_main and not self._is_framed(request):
            return "a page opens no window of its own"
        return refusal(asked, self._document.url, self._through.pages.third_parties)

    def _is_framed(self, request: Request) -> bool:
        try:
            return request.frame.page == self._page
        except PlaywrightError:
            return False

    async def _go(self, route: Route, url: str) -> None:
        """Give the page its document: the one that was fetched for it, then those that it goes to by itself."""
        self._documents += 1
        if self._documents > self._limits.documents:
            self._fail(Outcome.TOO_MANY_REDIRECTS, "the page goes from one address to the next")
        if self._documents > 1 and not await self._moved_on(url):
            await route.abort("aborted")
            return
        part = self._document.part
        headers = to_page(self._document.headers) | {"content-type": part.media_type}
        await route.fulfill(status=part.http_status, headers=headers, body=part.body)

    async def _moved_on(self, url: str) -> bool:
        try:
            role = self._document.part.role
            self._document = await self._through.document(url, role=role)
        except FetchFailed as failed:
            if failed.recovery is Recovery.REJECTED:
                # a page that may not go elsewhere stays where it is
                self._refuse(url, failed.message)
            else:
                self._end(failed)
            return False
        return True

    async def _get(self, route: Route, request: Request, asked: Asked) -> None:
        role = self._wanted(asked)
        headers = to_send(await request.all_headers())
        try:
            found = await self._found(asked, headers)
        except FetchFailed as failed:
            if role is not None and failed.recovery is not Recovery.REJECTED:
                self._end(failed)
            raise
        self._bytes += len(found.body)
        if role is not None:
            self._keep(role, self._through.part(found, role=role, url_asked=asked.url))
        await route.fulfill(status=found.status, headers=to_page(found.headers), body=found.body)

    async def _found(self, asked: Asked, headers: Mapping[str, str]) -> Resource:
        kept = self._shelf.find(self._through, asked)
        if kept is not None:
            return kept
        async with self._at_once:
            found = await self._through.resource(asked.url, headers, ask_robots=asked.is_data)
        self._shelf.put(self._through, asked, found)
        return found

    def _wanted(self, asked: Asked) -> str | None:
        """The role that the answer is to be kept under; the first answer that fits is the one."""
        for role, glob in self._wish.responses.items():
            if role not in self._answers and fnmatchcase(asked.url, glob):
                return role
        return None

    def _keep(self, role: str, part: Part) -> None:
        outcome = of_status(part.http_status)
        if outcome is None:
            self._answers.setdefault(role, part)
        elif outcome.recovery is Recovery.RETRY:
            self._fail(outcome, f"{part.url_asked} answered {part.http_status}")

    def _refuse(self, url: str, why: str) -> None:
        if len(self._refused) < _MOST_REPORTED:
            self._refused[url] = why

    def _fail(self, outcome: Outcome, message: str) -> None:
        self._end(self._through.failed(outcome, message, self._wish.url))

    def _end(self, failed: FetchFailed) -> None:
        if not self._failure.done():
            self._failure.set_result(failed)


_LATER: set[asyncio.Task[None]] = set()


def _later(action: Awaitable[object]) -> None:
    """Let something happen that nobody waits for and whose failure is of no account (the page may be gone)."""
    task = asyncio.ensure_future(_quietly(action))
    _LATER.add(task)
    task.add_done_callback(_LATER.discard)


async def _quietly(action: Awaitable[object]) -> None:
    with suppress(PlaywrightError):
        await action


async def _hang_up(socket: WebSocketRoute) -> None:
    await socket.close()


def _dismiss(dialog: Dialog) -> None:
    _later(dialog.dismiss())
