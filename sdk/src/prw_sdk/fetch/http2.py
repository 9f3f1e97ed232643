"""HTTP/2 where an origin offers it, by httpcore over the guarded backend."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterable, Mapping

import httpcore

from prw_sdk.fetch.address import Address
from prw_sdk.fetch.answer import Answer, Bound, Headers, Unanswered
from prw_sdk.fetch.body import BadBody, too_large
from prw_sdk.fetch.guard import Guard, GuardedBackend
from prw_sdk.fetch.order import OrderedStream
from prw_sdk.fetch.outcome import Outcome

_PAST_ANY = 3600.0
_HTTP_2 = b"HTTP/2"


class Http2:
    """Asks for HTTP/2 and takes HTTP/1.1 where that is all there is; `connect` is in seconds."""

    def __init__(
        self, guard: Guard, tls: ssl.SSLContext, headers: Mapping[str, str], connect: float
    ) -> None:
        self._headers = dict(headers)
        # the caller bounds a page as a whole; only connecting has a time of its own
        self._timeouts = {
            "connect": connect,
            "read": _PAST_ANY,
            "write": _PAST_ANY,
            "pool": _PAST_ANY,
        }
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls,
            http1=True,
            http2=True,
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=5.0,
            network_backend=GuardedBackend(guard),
        )

    async def get(
        self, address: Address, headers: Mapping[str, str], bound: Bound
    ) -> tuple[bytes, Answer]:
        """The protocol that was spoken (``HTTP/2``, ``HTTP/1.1``), and the answer; raises `Unanswered`."""
        try:
            return await self._get(address, headers, bound)
        except httpcore.TimeoutException as late:
            raise Unanswered(Outcome.TIMEOUT, f"no answer in time: {late!r}") from late
        except (httpcore.NetworkError, httpcore.ProtocolError) as broken:
            raise Unanswered(Outcome.NETWORK, f"{broken!r}") from broken

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()

    async def _get(
        self, address: Address, headers: Mapping[str, str], bound: Bound
    ) -> tuple[bytes, Answer]:
        sent = {"host": address.netloc, **self._headers, **headers}
        answer = await self._pool.handle_async_request(
            httpcore.Request(
                "GET",
                httpcore.URL(
                    scheme=address.scheme,
                    host=address.host,
                    port=address.port,
                    target=address.path,
                ),
                headers=list(sent.items()),
                extensions={"timeout": self._timeouts},
            )
        )
        try:
            spoken = answer.extensions.get("http_version", b"")
            if spoken != _HTTP_2 and _came_unasked(answer):
                raise Unanswered(Outcome.NETWORK, "the answer was there before its question")
            return spoken, await _whole(answer, bound)
        finally:
            await answer.aclose()


def _came_unasked(answer: httpcore.Response) -> bool:
    stream = answer.extensions.get("network_stream")
    return isinstance(stream, OrderedStream) and not stream.is_answered


async def _whole(answer: httpcore.Response, bound: Bound) -> Answer:
    found = Headers(answer.headers)
    limit = bound(answer.status, found)
    if not limit:
        return Answer(answer.status, found)
    raw, cut = await _read(answer, limit)
    if cut is None and _is_short(found, len(raw)):
        cut = BadBody(Outcome.TRUNCATED, f"{len(raw)} bytes came, other than were stated")
    return Answer(answer.status, found, raw, cut)


async def _read(answer: httpcore.Response, limit: int) -> tuple[bytes, BadBody | None]:
    if not isinstance(answer.stream, AsyncIterable):
        raise TypeError("an asynchronous pool answers with an asynchronous stream")
    out = bytearray()
    try:
        async for chunk in answer.stream:
            out += chunk
            if len(out) > limit:
                return bytes(out), too_large(limit)
    except httpcore.RemoteProtocolError as cut:
        return bytes(out), BadBody(Outcome.TRUNCATED, f"the body was cut short: {cut}")
    return bytes(out), None


def _is_short(headers: Headers, received: int) -> bool:
    stated = headers.get("content-length") or ""
    if "transfer-encoding" in headers or not stated.isdecimal():
        return False
    return stated.lstrip("0") != str(received).lstrip("0")
