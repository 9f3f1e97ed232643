"""An httpx transport whose every connection goes through the guard."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterable, AsyncIterator

import httpcore
import httpx

from prw_sdk.fetch.guard import Guard, GuardedBackend
from prw_sdk.fetch.order import OrderedStream

_ERRORS: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (httpcore.ConnectTimeout, httpx.ConnectTimeout),
    (httpcore.TimeoutException, httpx.ReadTimeout),
    (httpcore.ConnectError, httpx.ConnectError),
    (httpcore.NetworkError, httpx.ReadError),
    (httpcore.RemoteProtocolError, httpx.RemoteProtocolError),
    (httpcore.ProtocolError, httpx.LocalProtocolError),
)
_CORE = tuple(core for core, _ in _ERRORS)


def _translated(error: Exception) -> httpx.TransportError:
    found = next(public for core, public in _ERRORS if isinstance(error, core))
    return found(str(error) or type(error).__name__)


class _Stream(httpx.AsyncByteStream):
    def __init__(self, inner: AsyncIterable[bytes]) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._inner:
                yield chunk
        except _CORE as error:
            raise _translated(error) from error

    async def aclose(self) -> None:
        close = getattr(self._inner, "aclose", None)
        if close is not None:
            await close()


class GuardedTransport(httpx.AsyncBaseTransport):
    """HTTP/1.1 and HTTP/2 over checked addresses; proxies of the environment are not used."""

    def __init__(self, guard: Guard, tls: ssl.SSLContext | None = None) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls,
            http1=True,
            http2=True,
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=5.0,
            network_backend=GuardedBackend(guard),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; raises httpx's transport errors, and `PrivateAddress` from the guard."""
        try:
            answer = await self._pool.handle_async_request(_core_request(request))
        except _CORE as error:
            raise _translated(error) from error
        if not isinstance(answer.stream, AsyncIterable):
            raise TypeError("an asynchronous pool answers with an asynchronous stream")
        if _came_unasked(answer):
            await answer.aclose()
            raise httpx.RemoteProtocolError("the answer was there before its question")
        return httpx.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Stream(answer.stream),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


def _came_unasked(answer: httpcore.Response) -> bool:
    stream = answer.extensions.get("network_stream")
    alone = answer.extensions.get("http_version") != b"HTTP/2"
    return alone and isinstance(stream, OrderedStream) and not stream.is_answered


def _core_request(request: httpx.Request) -> httpcore.Request:
    url = request.url
    return httpcore.Request(
        method=request.method,
        url=httpcore.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        ),
        headers=request.headers.raw,
        content=request.stream,
        extensions=request.extensions,
    )
