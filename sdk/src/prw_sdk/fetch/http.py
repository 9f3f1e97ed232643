"""The network that an adapter is given: GET, guarded, polite, bounded, and retried where that may help."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TypeVar

from prw_sdk.adapter import NO_RESPONSES
from prw_sdk.evidence import Part
from prw_sdk.fetch import address, body, revalidate
from prw_sdk.fetch.address import Address, BadAddress
from prw_sdk.fetch.answer import Answer, Headers, Unanswered
from prw_sdk.fetch.body import BadBody
from prw_sdk.fetch.breaker import OF_THE_HOST, Breaker, CircuitOpen
from prw_sdk.fetch.classify import Classifier
from prw_sdk.fetch.client import Client
from prw_sdk.fetch.config import FetchLimits, NetConfig
from prw_sdk.fetch.guard import Guard, PrivateAddress, Resolve, system_resolve
from prw_sdk.fetch.outcome import FetchFailed, Outcome, Recovery, of_status
from prw_sdk.fetch.parting import KEPT_HEADERS, Page, citing, to_page, to_part
from prw_sdk.fetch.polite import HostBusy, HostGates, Robots, RobotsAnswer
from prw_sdk.fetch.rendering import Document, Pages, Renders, Resource
from prw_sdk.fetch.retry import Backoff, retry_after

__all__ = ["KEPT_HEADERS", "FetchLimits", "HttpNet", "NetConfig"]

T = TypeVar("T")
Paused = Callable[[str, float, float], None]
"""Told of a host, the seconds of the pause that it asked for, and those for which it is asked nothing now."""


def unheard(host: str, asked: float, heeded: float) -> None:
    """Nobody listens."""


_ROBOTS_HOPS = 5
_DOCUMENTS = "text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8"
_AS_ANYBODY: Mapping[str, str] = MappingProxyType({})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_LARGE = 256 * 1024
_MOST_OF_AN_ERROR = 256 * 1024
_NEUTRAL = frozenset(
    {
        Outcome.ROBOTS_FORBIDDEN,
        Outcome.ROBOTS_UNREACHABLE,
        Outcome.PRIVATE_ADDRESS,
        Outcome.BAD_URL,
        Outcome.HOST_BUSY,
        Outcome.CIRCUIT_OPEN,
        Outcome.TRUNCATED,
        Outcome.UNDECODABLE,
        Outcome.NO_BROWSER,
        Outcome.BROWSER_FAILED,
    }
)


class _Budget:
    """The seconds of one page, spent only while the network is used and not while waiting for a turn."""

    __slots__ = ("left",)

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def spend_since(self, start: float) -> None:
        self.left -= time.monotonic() - start


class HttpNet:
    """`prw_sdk.adapter.Net` over HTTP; one for each source, closed with `aclose`.

    `answers` counts the responses that came from the source's pages, whatever their status. `paused` is told of each
    pause of a host as it begins. Made and used within one
    event loop.
    """

    def __init__(
        self,
        config: NetConfig,
        gates: HostGates,
        *,
        resolve: Resolve = system_resolve,
        browser: Renders | None = None,
        paused: Paused = unheard,
    ) -> None:
        self._config = config
        self._browser = browser
        self._gates = gates
        self._paused = paused
        self._redact = config.redactor()
        self._robots = Robots(self._ask_robots, gates, self.failed)
        self._breaker = Breaker(config.breaker)
        self._classifier = Classifier(config.rules_off)
        self._client = Client(
            Guard(config.rules, resolve),
            {"User-Agent": config.user_agent, "Accept-Encoding": body.ACCEPTED_ENCODINGS},
            config.limits.connect,
        )
        self.answers = 0

    async def aclose(self) -> None:
        """Close the connections, and give back what places at hosts are still kept."""
        self._gates.close()
        await self._client.aclose()

    @property
    def user_agent(self) -> str:
        """The honest name that sources see."""
        return self._config.user_agent

    @property
    def pages(self) -> Pages:
        """How the source's pages are opened in a browser."""
        return self._config.pages

    async def get(
        self, url: str, *, role: str, accept: str | None = None, earlier: Part | None = None
    ) -> Part:
        """Fetch with GET and return the complete answer as a part; raises `FetchFailed`.

        With `earlier`, the part that the same address gave before, the source is asked whether it still holds. Where it
        does the part has `http_status` 304, the earlier bytes, and in `cites` what they are cited from:
        ``earlier.cites``, or where that is None the moment that `earlier` was fetched.
        """
        asked = address.whole(url)
        return await self._counted(asked, lambda: self._get(asked, role, accept, earlier))

    async def render(
        self,
        url: str,
        *,
        role: str = "page",
        responses: Mapping[str, str] = NO_RESPONSES,
        wait_for: str | None = None,
    ) -> tuple[Part, ...]:
        """Open the page in the run's browser (`prw_sdk.adapter.Net.render`); raises `FetchFailed`."""
        asked, browser = address.whole(url), self._browser
        if browser is None:
            message = "no browser to open the page with: install prw-sdk[browser] and Chromium"
            raise self.failed(Outcome.NO_BROWSER, message, url)
        return await self._counted(
            asked,
            lambda: browser.render(
                asked, role=role, responses=responses, wait_for=wait_for, through=self
            ),
        )

    async def document(self, url: str, *, role: str) -> Document:
        """Ask once for a page that a browser will make something of (`rendering.Fetches`)."""
        language = self.pages.language
        asking = {"accept": _DOCUMENTS, **({"accept-language": language} if language else {})}
        page = await self._reach(url, None, asking=asking)
        part = self._judged(page, role, is_raw=True)
        return Document(part, page.reached, page.headers.items())

    async def resource(self, url: str, headers: Mapping[str, str], *, ask_robots: bool) -> Resource:
        """Ask once for what a page needs (`rendering.Fetches`)."""
        budget, hop = _Budget(self._config.limits.total), url
        for _ in range(self._config.limits.max_redirects + 1):
            target = self._parsed(hop)
            if ask_robots:
                await self._robots.permit(target)
            page = await self._ask(target, url, headers, budget)
            onward = _redirect(page)
            if onward is None:
                found = page.headers.items()
                return Resource(page.reached, page.status, found, page.body, page.fetched_at)
            hop = onward
        raise self._endless(url)

    def part(self, resource: Resource, *, role: str, url_asked: str) -> Part:
        """An answer to a page's own request as a part (`rendering.Fetches`)."""
        headers = Headers.of(resource.headers)
        page = Page(
            url_asked, resource.url, resource.status, headers, resource.body, resource.fetched_at
        )
        return to_part(page, role, self._redact)

    def judge(self, part: Part) -> None:
        """Raise `FetchFailed` where a page is none of the source's (`rendering.Fetches`)."""
        outcome = self._classifier.outcome(to_page(part))
        if outcome is not None:
            failed = self.failed(outcome, f"a {outcome.value} page", part.url_asked)
            failed.status, failed.part = part.http_status, part
            raise failed

    def failed(self, outcome: Outcome, message: str, url: str) -> FetchFailed:
        """A failure without the source's secrets in it."""
        return FetchFailed(outcome, self._redact.text(message), url=self._redact.url(url))

    async def _counted(self, url: str, once: Callable[[], Awaitable[T]]) -> T:
        is_probe = self._enter(url)
        try:
            found = await self._persist(once)
        except FetchFailed as failed:
            self._count(failed.outcome, is_probe)
            raise
        except BaseException:
            self._breaker.gave_up(is_probe)
            raise
        self._breaker.succeeded()
        return found

    def _enter(self, url: str) -> bool:
        try:
            return self._breaker.enter()
        except CircuitOpen as still:
            failed = self.failed(Outcome.CIRCUIT_OPEN, str(still), url)
            failed.retry_after = timedelta(seconds=still.seconds)
            raise failed from still

    def _count(self, outcome: Outcome, is_probe: bool) -> None:
        if outcome in OF_THE_HOST:
            self._breaker.failed()
        elif outcome in _NEUTRAL:
            self._breaker.gave_up(is_probe)
        else:
            self._breaker.succeeded()

    async def _persist(self, once: Callable[[], Awaitable[T]]) -> T:
        backoff: Backoff | None = None
        for left in reversed(range(self._config.retry.attempts)):
            try:
                return await once()
            except FetchFailed as failed:
                backoff = backoff or Backoff(self._config.retry)
                wait = backoff(failed)
                if wait is False or not left:
                    raise
            await asyncio.sleep(wait)
        raise AssertionError("a retry loop ends by returning or raising")

    async def _get(self, url: str, role: str, accept: str | None, earlier: Part | None) -> Part:
        page = await self._reach(url, accept, earlier)
        if earlier is None or page.status != revalidate.NOT_MODIFIED:
            return self._judged(page, role)
        if revalidate.is_about(earlier, page.headers) and revalidate.question(
            earlier, self._redact.url(page.reached)
        ):
            return citing(page, role, earlier, self._redact)
        # it confirms bytes that are not ours: asked again, as if nothing were known
        return self._judged(await self._reach(url, accept), role)

    async def _reach(
        self,
        url: str,
        accept: str | None,
        earlier: Part | None = None,
        asking: Mapping[str, str] = _AS_ANYBODY,
    ) -> Page:
        """The answer at the end of the redirects; `asking` are headers of every request."""
        budget, hop = _Budget(self._config.limits.total), url
        for _ in range(self._config.limits.max_redirects + 1):
            target = self._parsed(hop)
            await self._robots.permit(target)
            headers = {"accept": accept or "*/*", **asking}
            if earlier is not None:
                headers |= revalidate.question(earlier, self._redact.url(target.text))
            page = await self._in_turn(target, url, headers, budget)
            self.answers += 1
            onward = _redirect(page)
            if onward is None:
                return page
            hop = onward
        raise self._endless(url)

    def _endless(self, url: str) -> FetchFailed:
        return self.failed(Outcome.TOO_MANY_REDIRECTS, "the redirects do not end", url)

    async def _in_turn(
        self, target: Address, asked: str, headers: Mapping[str, str], budget: _Budget
    ) -> Page:
        try:
            async with self._gates.turn(target.netloc, self._config.retry.patience):
                return await self._ask(target, asked, headers, budget)
        except HostBusy as busy:
            failed = self.failed(Outcome.HOST_BUSY, str(busy), asked)
            failed.retry_after = timedelta(seconds=busy.seconds)
            raise failed from busy

    async def _ask(
        self, target: Address, asked: str, headers: Mapping[str, str], budget: _Budget
    ) -> Page:
        secret = self._config.credentials.get(target.host)
        start = time.monotonic()
        try:
            async with asyncio.timeout(max(budget.left, 0.001)):
                sent = headers if secret is None else {**headers, **secret}
                answer = await self._client.get(target, sent, self._bound)
                return await self._page(answer, target, asked)
        except TimeoutError as late:
            raise self.failed(Outcome.TIMEOUT, "no complete answer in time", asked) from late
        except PrivateAddress as private:
            raise self.failed(Outcome.PRIVATE_ADDRESS, str(private), asked) from private
        except (Unanswered, BadBody) as bad:
            raise self.failed(bad.outcome, bad.message, asked) from bad
        finally:
            budget.spend_since(start)

    def _bound(self, status: int, headers: Headers) -> int:
        if status == revalidate.NOT_MODIFIED or (status in _REDIRECTS and "location" in headers):
            return 0
        most = self._config.limits.max_bytes
        return min(most, _MOST_OF_AN_ERROR) if _is_no_evidence(status) else most

    async def _page(self, answer: Answer, target: Address, asked: str) -> Page:
        try:
            content = await self._whole(answer)
        except BadBody:
            # the status says enough; its words only tell more about it
            if not _is_no_evidence(answer.status):
                raise
            content = b""
        return Page(asked, target.text, answer.status, answer.headers, content, datetime.now(UTC))

    async def _whole(self, answer: Answer) -> bytes:
        if answer.cut is not None:
            raise answer.cut
        coding, most = answer.headers.get("content-encoding"), self._config.limits.max_bytes
        if coding is None or len(answer.raw) < _LARGE:
            return body.decoded(answer.raw, coding, most)
        return await asyncio.to_thread(body.decoded, answer.raw, coding, most)

    def _parsed(self, url: str) -> Address:
        try:
            return address.parse(url)
        except BadAddress as bad:
            raise self.failed(Outcome.BAD_URL, str(bad), url) from bad

    def _judged(self, page: Page, role: str, *, is_raw: bool = False) -> Part:
        stated = of_status(page.status)
        outcome = self._classifier.outcome(page, is_raw=is_raw) or stated
        if outcome is None:
            return to_part(page, role, self._redact)
        tells = outcome is not stated or outcome.recovery is Recovery.ABSENT
        raise self._bad_status(outcome, page, to_part(page, role, self._redact) if tells else None)

    def _bad_status(self, outcome: Outcome, page: Page, part: Part | None = None) -> FetchFailed:
        wait = retry_after(page.headers.all("retry-after"), page.fetched_at)
        if wait is not None and outcome.recovery in (Recovery.RETRY, Recovery.LATER):
            # what one page was told holds for every page of its host
            self._pause(address.parse(page.reached).netloc, wait.total_seconds())
        what = "" if outcome is of_status(page.status) else f", which is a {outcome.value} page"
        failed = self.failed(outcome, f"the source answered {page.status}{what}", page.asked)
        failed.status, failed.retry_after, failed.part = page.status, wait, part
        return failed

    def _pause(self, host: str, seconds: float) -> None:
        heeded = self._gates.pause(host, seconds)
        if heeded:
            self._paused(host, seconds, heeded)

    async def _ask_robots(self, url: str) -> RobotsAnswer:
        try:
            return await self._persist(lambda: self._robots_once(url))
        except FetchFailed as failed:
            if failed.outcome in (Outcome.PRIVATE_ADDRESS, Outcome.BAD_URL):
                raise
            return RobotsAnswer(None)

    async def _robots_once(self, url: str) -> RobotsAnswer:
        budget = _Budget(self._config.limits.total)
        hop = url
        for _ in range(_ROBOTS_HOPS + 1):
            target = self._parsed(hop)
            page = await self._in_turn(target, hop, {"accept": "text/plain"}, budget)
            onward = _redirect(page)
            if onward is None:
                return self._robots_answer(page)
            hop = onward
        return RobotsAnswer(404)

    def _robots_answer(self, page: Page) -> RobotsAnswer:
        outcome = of_status(page.status)
        if outcome is not None and outcome.recovery is Recovery.RETRY:
            raise self._bad_status(outcome, page)
        return RobotsAnswer(page.status, page.body)


def _redirect(page: Page) -> str | None:
    location = page.headers.get("location") if page.status in _REDIRECTS else None
    return None if location is None else address.joined(page.reached, location)


def _is_no_evidence(status: int) -> bool:
    outcome = of_status(status)
    return outcome is not None and outcome.recovery is not Recovery.ABSENT
