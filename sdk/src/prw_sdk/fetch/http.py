"""The network that an adapter is given: GET over httpx, guarded, polite, bounded, and retried where that may help."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import MappingProxyType
from typing import TypeVar
from urllib.parse import urldefrag, urljoin

import httpx
import stamina

from prw_sdk.adapter import NO_RESPONSES
from prw_sdk.evidence import Part
from prw_sdk.fetch import body, charset
from prw_sdk.fetch.guard import AddressRules, Guard, PrivateAddress, Resolve, system_resolve
from prw_sdk.fetch.outcome import FetchFailed, Outcome, Recovery, of_status
from prw_sdk.fetch.polite import HostBusy, HostGates, Robots, RobotsAnswer
from prw_sdk.fetch.redact import Redactor
from prw_sdk.fetch.rendering import Renders
from prw_sdk.fetch.retry import Backoff, RetryPolicy, retry_after
from prw_sdk.fetch.transport import GuardedTransport

KEPT_HEADERS = (
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "date",
    "etag",
    "expires",
    "last-modified",
    "link",
    "x-robots-tag",
)
T = TypeVar("T")

_LONGEST_HEADER = 8192
_LONGEST_MEDIA_TYPE = 255
_LONGEST_URL = 4096
_ROBOTS_HOPS = 5


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Bounds of one page: seconds to connect, seconds in all, decoded bytes, redirects followed."""

    connect: float = 10.0
    total: float = 30.0
    max_bytes: int = 20 * 1024 * 1024
    max_redirects: int = 8


@dataclass(frozen=True, slots=True)
class NetConfig:
    """How one source is fetched. `credentials` holds headers by host; they go to that host alone."""

    user_agent: str
    rules: AddressRules = AddressRules()
    limits: FetchLimits = FetchLimits()
    retry: RetryPolicy = RetryPolicy()
    credentials: Mapping[str, Mapping[str, str]] = field(
        default_factory=lambda: MappingProxyType({})
    )

    def redactor(self) -> Redactor:
        """Knows every secret of this source."""
        values = (value for headers in self.credentials.values() for value in headers.values())
        words = {word for value in values for word in (value, *value.split()) if len(word) >= 6}
        return Redactor(frozenset(words))


@dataclass(frozen=True, slots=True)
class _Answer:
    url: str
    status: int
    headers: httpx.Headers
    body: bytes = b""
    fetched_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def redirect(self) -> str | None:
        location: str | None = self.headers.get("location")
        if self.status not in (301, 302, 303, 307, 308) or location is None:
            return None
        try:
            return urldefrag(urljoin(self.url, location)).url
        except ValueError:
            # no address at all, which the next hop says
            return location


class _Budget:
    """The seconds of one page, spent only while the network is used and not while waiting for a turn."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def spend_since(self, start: float) -> None:
        self.left -= time.monotonic() - start


class HttpNet:
    """`prw_sdk.adapter.Net` over HTTP; one for each source, closed with `aclose`.

    `answers` counts the responses that came from the source's pages, whatever their status.
    """

    def __init__(
        self,
        config: NetConfig,
        gates: HostGates,
        *,
        resolve: Resolve = system_resolve,
        browser: Renders | None = None,
    ) -> None:
        self._config = config
        self._browser = browser
        self._gates = gates
        self._redact = config.redactor()
        self._robots = Robots(self._ask_robots, gates)
        self._client = httpx.AsyncClient(
            transport=GuardedTransport(Guard(config.rules, resolve), httpx.create_ssl_context()),
            headers={"user-agent": config.user_agent, "accept-encoding": body.ACCEPTED_ENCODINGS},
            timeout=httpx.Timeout(config.limits.total, connect=config.limits.connect),
            follow_redirects=False,
            trust_env=False,
            # no page sees what another one set: each is fetched as anybody would get it
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )
        self.answers = 0

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def get(self, url: str, *, role: str, accept: str | None = None) -> Part:
        """Fetch with GET and return the complete answer as a part; raises `FetchFailed`."""
        return await self._persist(lambda: self._follow(_whole(url), role, accept))

    async def render(
        self, url: str, *, role: str = "page", responses: Mapping[str, str] = NO_RESPONSES
    ) -> tuple[Part, ...]:
        """Open the page in the run's browser (`prw_sdk.adapter.Net.render`); raises `FetchFailed`."""
        if self._browser is None:
            raise self._failed(
                Outcome.NO_BROWSER,
                "no browser to open the page with: install prw-sdk[browser] and Chromium",
                url,
            )
        return await self._browser.render(url, role=role, responses=responses)

    async def _persist(self, once: Callable[[], Awaitable[T]]) -> T:
        policy = self._config.retry
        async for attempt in stamina.retry_context(
            on=Backoff(policy), attempts=policy.attempts, timeout=None
        ):
            with attempt:
                return await once()
        raise AssertionError("a retry loop ends by returning or raising")

    async def _follow(self, url: str, role: str, accept: str | None) -> Part:
        budget = _Budget(self._config.limits.total)
        hop = url
        for _ in range(self._config.limits.max_redirects + 1):
            await self._robots.permit(str(self._checked_url(hop)))
            answer = await self._exchange(hop, accept, budget)
            self.answers += 1
            if answer.redirect is None:
                return self._judge(answer, url, role)
            hop = answer.redirect
        raise self._failed(Outcome.TOO_MANY_REDIRECTS, "the redirects do not end", url)

    async def _exchange(self, url: str, accept: str | None, budget: _Budget) -> _Answer:
        target = self._checked_url(url)
        async with self._turn(_host(target), url):
            start = time.monotonic()
            try:
                async with asyncio.timeout(max(budget.left, 0.001)):
                    return await self._send(target, accept)
            except (TimeoutError, httpx.TimeoutException) as late:
                raise self._failed(Outcome.TIMEOUT, f"no complete answer: {late!r}", url) from late
            except PrivateAddress as private:
                raise self._failed(Outcome.PRIVATE_ADDRESS, str(private), url) from private
            except (httpx.InvalidURL, ValueError) as bad:
                raise self._failed(Outcome.BAD_URL, f"leads to no address: {bad}", url) from bad
            except (httpx.TransportError, OSError) as broken:
                raise self._failed(Outcome.NETWORK, f"{broken!r}", url) from broken
            except body.BadBody as bad:
                raise self._failed(bad.outcome, bad.message, url) from bad
            finally:
                budget.spend_since(start)

    @asynccontextmanager
    async def _turn(self, host: str, url: str) -> AsyncIterator[None]:
        async with AsyncExitStack() as held:
            try:
                await held.enter_async_context(self._gates.turn(host, self._config.retry.patience))
            except HostBusy as busy:
                raise FetchFailed(
                    Outcome.HOST_BUSY,
                    str(busy),
                    url=self._redact.url(url),
                    retry_after=timedelta(seconds=busy.seconds),
                ) from busy
            yield

    async def _send(self, target: httpx.URL, accept: str | None) -> _Answer:
        headers = dict(self._config.credentials.get(target.host, {}))
        headers["accept"] = accept or "*/*"
        async with self._client.stream("GET", target, headers=headers) as response:
            answer = _Answer(str(target), response.status_code, response.headers)
            if answer.redirect is not None or _is_no_evidence(response.status_code):
                return answer
            content = await body.read(response, self._config.limits.max_bytes)
        return replace(answer, body=content, fetched_at=datetime.now(UTC))

    def _checked_url(self, url: str) -> httpx.URL:
        try:
            target = httpx.URL(url)
            host = target.host
        except (httpx.InvalidURL, ValueError) as bad:
            raise self._failed(Outcome.BAD_URL, f"not a URL: {bad}", url) from bad
        if max(len(url), len(str(target))) > _LONGEST_URL:
            raise self._failed(Outcome.BAD_URL, f"longer than {_LONGEST_URL} characters", url)
        if target.scheme not in ("http", "https") or not host or "%" in host:
            raise self._failed(
                Outcome.BAD_URL, "only absolute http and https URLs are fetched", url
            )
        return target.copy_with(userinfo=b"")

    def _judge(self, answer: _Answer, asked: str, role: str) -> Part:
        outcome = of_status(answer.status)
        if outcome is None:
            return self._part(answer, asked, role)
        part = self._part(answer, asked, role) if outcome.recovery is Recovery.ABSENT else None
        raise self._bad_status(outcome, answer, asked, part)

    def _bad_status(
        self, outcome: Outcome, answer: _Answer, asked: str, part: Part | None = None
    ) -> FetchFailed:
        wait = retry_after(answer.headers.get("retry-after"), answer.fetched_at)
        if wait is not None and outcome.recovery is Recovery.RETRY:
            # what one page was told holds for every page of its host
            self._gates.pause(_host(httpx.URL(answer.url)), wait.total_seconds())
        return FetchFailed(
            outcome,
            f"the source answered {answer.status}",
            url=self._redact.url(asked),
            status=answer.status,
            retry_after=wait,
            part=part,
        )

    def _part(self, answer: _Answer, asked: str, role: str) -> Part:
        served = answer.headers.get("content-type", "application/octet-stream")
        kind = served.partition(";")[0].strip().lower()
        label = charset.declared(served, answer.body, kind)
        return Part(
            role=role,
            sha256=hashlib.sha256(answer.body).hexdigest(),
            body=answer.body,
            media_type=self._redact.text(served)[:_LONGEST_MEDIA_TYPE],
            url_asked=self._redact.url(asked),
            url_reached=self._redact.url(answer.url),
            http_status=answer.status,
            fetched_at=answer.fetched_at,
            charset_declared=label,
            charset_used=charset.used(label, answer.body, kind),
            headers=self._kept(answer.headers),
        )

    def _kept(self, headers: httpx.Headers) -> tuple[tuple[str, str], ...]:
        return tuple(
            (name, self._redact.text(headers[name])[:_LONGEST_HEADER])
            for name in KEPT_HEADERS
            if name in headers
        )

    def _failed(self, outcome: Outcome, message: str, url: str) -> FetchFailed:
        return FetchFailed(outcome, self._redact.text(message), url=self._redact.url(url))

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
            answer = await self._exchange(hop, "text/plain", budget)
            if answer.redirect is None:
                return self._robots_answer(answer)
            hop = answer.redirect
        return RobotsAnswer(404)

    def _robots_answer(self, answer: _Answer) -> RobotsAnswer:
        outcome = of_status(answer.status)
        if outcome is not None and outcome.recovery is Recovery.RETRY:
            raise self._bad_status(outcome, answer, answer.url)
        return RobotsAnswer(answer.status, answer.body)


def _host(url: httpx.URL) -> str:
    return url.netloc.decode("ascii")


def _whole(url: str) -> str:
    """The address of the whole document; as it stands where it is none."""
    try:
        return urldefrag(url).url
    except ValueError:
        return url


def _is_no_evidence(status: int) -> bool:
    outcome = of_status(status)
    return outcome is not None and outcome.recovery is not Recovery.ABSENT
