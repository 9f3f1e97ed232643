"""A small HTTP server on loopback that answers with exactly the bytes that a test gives it: one that may misbehave."""

from __future__ import annotations

import gzip
import http
import socketserver
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field


def answer(
    body: bytes = b"",
    *,
    status: int = 200,
    content_type: str | None = "text/html; charset=utf-8",
    headers: Mapping[str, str] | None = None,
    stated_length: int | None = None,
) -> bytes:
    """A whole HTTP/1.1 answer; `stated_length` lets Content-Length lie."""
    lines = [f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}", "Connection: close"]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if not any(name.lower() == "transfer-encoding" for name in headers or {}):
        lines.append(f"Content-Length: {len(body) if stated_length is None else stated_length}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def redirect(to: str, status: int = 302) -> bytes:
    """A redirect."""
    return answer(status=status, headers={"Location": to})


def zipped(body: bytes, *, cut: int = 0) -> bytes:
    """A gzip answer, with its last `cut` bytes missing although its length is stated right."""
    packed = gzip.compress(body)
    packed = packed[: len(packed) - cut]
    return answer(packed, headers={"Content-Encoding": "gzip"})


@dataclass
class Site:
    """What the server answers, path by path (the last answer repeats), and what it was asked.

    A page named with its host (``shop.example/p/1``) is for that host alone, and wins over one named by path.
    """

    port: int = 0
    pages: dict[str, list[bytes]] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    gate: threading.Event | None = None
    slowness: float = 0.0
    """Seconds that every answer takes."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def origin(self) -> str:
        """Where the site is."""
        return f"http://127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        """The address of a page."""
        return self.origin + path

    def serve(self, path: str, *answers: bytes) -> str:
        """Answer that path with these, one after another; its address."""
        self.pages[path] = list(answers)
        return self.url(path)

    def take(self, path: str, host: str = "") -> bytes:
        """The next answer of a path, or of that host's page of this path."""
        with self.lock:
            page = f"{host}{path}" if f"{host}{path}" in self.pages else path
            answers = self.pages.get(page)
            number = self.asked[page]
            self.asked[page] += 1
        if answers is None:
            return answer(b"nothing here", status=404)
        return answers[min(number, len(answers) - 1)]


class _Handler(socketserver.StreamRequestHandler):
    site: Site

    def handle(self) -> None:
        line = self.rfile.readline().decode("latin-1")
        headers = dict(self._headers())
        if not line:
            return
        path = line.split(" ")[1]
        self._enter(path, headers)
        try:
            if self.site.gate is not None:
                self.site.gate.wait(10)
            time.sleep(self.site.slowness)
            whole = self.site.take(path, headers.get("host", "").partition(":")[0])
        finally:
            # before the answer goes out: whoever has it may ask again while this thread still waits for its turn
            with self.site.lock:
                self.site.at_once -= 1
        self.wfile.write(whole)

    def _headers(self) -> Iterator[tuple[str, str]]:
        while line := self.rfile.readline().decode("latin-1").strip():
            name, _, value = line.partition(":")
            yield name.strip().lower(), value.strip()

    def _enter(self, path: str, headers: dict[str, str]) -> None:
        with self.site.lock:
            self.site.requests.append((path, headers))
            self.site.at_once += 1
            self.site.most_at_once = max(self.site.most_at_once, self.site.at_once)


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


@contextmanager
def serving() -> Iterator[Site]:
    """A running site with a robots.txt that allows everything."""
    site = Site()
    handler = type("Handler", (_Handler,), {"site": site})
    with _Server(("127.0.0.1", 0), handler) as server:
        site.port = server.server_address[1]
        site.serve("/robots.txt", answer(b"User-agent: *\nAllow: /\n", content_type="text/plain"))
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join(5)
