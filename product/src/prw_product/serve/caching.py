"""Validators for caches: an answer may be kept, but is asked about before it is shown again.

The tag is of the content, not of the publication alone: a price is observed, and a listing may move
to another item, without a new publication of the item that is asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_KEPT_ON_304 = frozenset({"etag", "cache-control", "vary", "content-security-policy"})


class Tagged:
    """Adds ``ETag`` and ``Cache-Control`` to answers of GET, and answers 304 where nothing changed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, as ASGI has it."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        answer = _Answer()
        await self._app(scope, receive, answer.take)
        for message in answer.messages(Headers(scope=scope).get("if-none-match", "")):
            await send(message)


class _Answer:
    """One whole answer; a page is bounded, so it may be held."""

    def __init__(self) -> None:
        self._start: Message = {}
        self._body = bytearray()

    async def take(self, message: Message) -> None:
        """A part of it, as the application sends it."""
        if message["type"] == "http.response.start":
            self._start = message
        else:
            self._body += message.get("body", b"")

    def messages(self, known: str) -> Iterable[Message]:
        """What is sent to a caller that has the answers with the tags of ``known``."""
        headers = MutableHeaders(raw=self._start["headers"])
        body = bytes(self._body)
        if self._start["status"] != 200:
            headers.setdefault("cache-control", "no-store")
        elif headers.get("cache-control") != "no-store":
            headers.setdefault("cache-control", "public, no-cache")
            headers["etag"] = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            if _matches(known, headers["etag"]):
                kept = [(n, v) for n, v in headers.raw if n.decode() in _KEPT_ON_304]
                self._start, body = {**self._start, "status": 304, "headers": kept}, b""
        return self._start, {"type": "http.response.body", "body": body}


def _matches(known: str, tag: str) -> bool:
    """RFC 9110, section 13.1.2: weakly compared, or any."""
    return known.strip() == "*" or tag in {
        one.strip().removeprefix("W/") for one in known.split(",")
    }
