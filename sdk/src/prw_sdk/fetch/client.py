"""One request and its whole answer, over checked addresses only.

HTTP/1.1 is spoken by aiohttp. It knows no HTTP/2, so the first request to an https origin goes through httpcore,
which asks for both; an origin that answered in HTTP/2 stays there, every other one is asked by aiohttp from then on.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping

import aiohttp
import certifi
from yarl import URL

from prw_sdk.fetch.address import Address
from prw_sdk.fetch.answer import Answer, Bound, Headers, Unanswered
from prw_sdk.fetch.body import BadBody, too_large
from prw_sdk.fetch.connector import GuardedConnector
from prw_sdk.fetch.guard import Guard
from prw_sdk.fetch.http2 import Http2
from prw_sdk.fetch.outcome import Outcome

_LONGEST_HEADER = 64 * 1024
_MOST_HEADERS = 512


class Client:
    """GET and nothing else: no cookies, no proxies, no redirects, no decoding. Used within one event loop.

    `headers` go with every request; `connect` bounds a connection (name, TCP and TLS) in seconds.
    """

    def __init__(self, guard: Guard, headers: Mapping[str, str], connect: float) -> None:
        self._guard = guard
        self._headers = dict(headers)
        self._connect = connect
        self._session: aiohttp.ClientSession | None = None
        self._http2: Http2 | None = None
        self._http1: set[str] = set()

    async def get(self, address: Address, headers: Mapping[str, str], bound: Bound) -> Answer:
        """The answer; raises `Unanswered`, and `PrivateAddress` from the guard."""
        try:
            if address.scheme == "https" and address.origin not in self._http1:
                return await self._get_either(address, headers, bound)
            return await self._get_http1(address, headers, bound)
        except (TimeoutError, aiohttp.ServerTimeoutError) as late:
            raise Unanswered(Outcome.TIMEOUT, f"no answer in time: {late!r}") from late
        except aiohttp.ClientResponseError as malformed:
            message = f"the answer is not valid HTTP: {malformed.message}"
            raise Unanswered(Outcome.UNDECODABLE, message) from malformed
        except aiohttp.InvalidURL as bad:
            raise Unanswered(Outcome.BAD_URL, f"leads to no address: {bad!r}") from bad
        except (aiohttp.ClientError, OSError) as broken:
            raise Unanswered(Outcome.NETWORK, f"{broken!r}") from broken
        except ValueError as bad:
            raise Unanswered(Outcome.BAD_URL, f"leads to no address: {bad}") from bad

    async def aclose(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
        if self._http2 is not None:
            await self._http2.aclose()

    async def _get_either(
        self, address: Address, headers: Mapping[str, str], bound: Bound
    ) -> Answer:
        if self._http2 is None:
            self._http2 = Http2(self._guard, trusted(), self._headers, self._connect)
        spoken, answer = await self._http2.get(address, headers, bound)
        if spoken != b"HTTP/2":
            self._http1.add(address.origin)
        return answer

    async def _get_http1(
        self, address: Address, headers: Mapping[str, str], bound: Bound
    ) -> Answer:
        session = self._session or self._opened()
        async with session.get(
            URL(address.text, encoded=True), headers=headers, allow_redirects=False
        ) as response:
            found = Headers(response.raw_headers)
            limit = bound(response.status, found)
            if not limit:
                return Answer(response.status, found)
            raw, cut = await _read(response, limit)
            return Answer(response.status, found, raw, cut)

    def _opened(self) -> aiohttp.ClientSession:
        self._session = aiohttp.ClientSession(
            connector=GuardedConnector(self._guard, trusted()),
            headers=self._headers,
            # no page sees what another one set: each is fetched as anybody would get it
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, connect=self._connect),
            auto_decompress=False,
            trust_env=False,
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
            max_headers=_MOST_HEADERS,
        )
        return self._session


async def _read(response: aiohttp.ClientResponse, limit: int) -> tuple[bytes, BadBody | None]:
    """The body as far as it came, and what is wrong with it."""
    connection = response.connection
    protocol = None if connection is None else connection.protocol
    out = bytearray()
    try:
        async for chunk in response.content.iter_any():
            out += chunk
            if len(out) > limit:
                return bytes(out), too_large(limit)
    except aiohttp.ClientPayloadError as cut:
        return bytes(out), BadBody(Outcome.TRUNCATED, f"the body was cut short: {cut}")
    # a body that only the end of its connection ends is whole if that end was an orderly one
    broken = None if protocol is None else protocol.exception()
    if isinstance(broken, OSError) and not isinstance(broken, aiohttp.ServerDisconnectedError):
        return bytes(out), BadBody(Outcome.TRUNCATED, f"the body was cut short: {broken!r}")
    return bytes(out), None


def trusted() -> ssl.SSLContext:
    """Whom to trust, as the operator says it by SSL_CERT_FILE and SSL_CERT_DIR; certifi's authorities otherwise."""
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file or folder:
        return ssl.create_default_context(cafile=file or None, capath=folder or None)
    return ssl.create_default_context(cafile=certifi.where())
