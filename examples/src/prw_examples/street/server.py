"""The street's server: three storefronts on one loopback port, told apart by the Host header."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import socket
import threading
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from prw_examples.street.catalogue import load_catalogue
from prw_examples.street.site import Address, Answer, missing, resources

LOOPBACK = "127.0.0.1"
STOP_SECONDS = 10.0


class Shopfronts:
    """Answers requests and counts them; what was asked is remembered until the process ends."""

    def __init__(self) -> None:
        catalogue = load_catalogue()
        self._resources = resources(catalogue)
        self._shops = {shop.host: shop for shop in catalogue.shops}
        self._served: Counter[Address] = Counter()
        self._lock = threading.Lock()

    def application(self) -> Starlette:
        """The ASGI application."""
        return Starlette(routes=[Route("/{path:path}", self._respond)])

    def served(self) -> Mapping[Address, int]:
        """How many answers each (host, path) gave since the start or the last `reset`."""
        with self._lock:
            return dict(self._served)

    def reset(self) -> None:
        """Forget what was asked: counts start at 0, and the page that fails once fails again."""
        with self._lock:
            self._served.clear()

    def answer(self, host: str, path: str) -> Answer | None:
        """The answer of a storefront, counted; None for a host that is none of them."""
        if host not in self._shops:
            return None
        with self._lock:
            self._served[host, path] += 1
            first = self._served[host, path] == 1
        resource = self._resources.get((host, path))
        if resource is None:
            return missing(self._shops[host])
        return resource.first if first and resource.first else resource.answer

    async def _respond(self, request: Request) -> Response:
        host = request.headers.get("host", "").partition(":")[0]
        answer = self.answer(host, request.url.path)
        if answer is None:
            return self._own(host, request.url.path)
        return _response(answer, request.headers.get("if-none-match"))

    def _own(self, host: str, path: str) -> Response:
        if host in (LOOPBACK, "localhost") and path == "/served":
            counts = {f"{shop}{asked}": count for (shop, asked), count in self.served().items()}
            return JSONResponse({"requests": sum(counts.values()), "served": counts})
        return Response("No such storefront here.\n", 421, media_type="text/plain")


def _response(answer: Answer, known: str | None) -> Response:
    headers = dict(answer.headers)
    if answer.status == 200:
        headers["ETag"] = f'"{hashlib.sha256(answer.body).hexdigest()[:32]}"'
        if known == headers["ETag"]:
            return Response(status_code=304, headers=headers)
    return Response(answer.body, answer.status, headers | {"Content-Type": answer.media_type})


class _Server(uvicorn.Server):
    """Uvicorn's server, which says when it answers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.settled = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.settled.set()


class Street:
    """The running street; a context manager, plain or async, that stops it at the end.

    Made by `Street.start`. Every storefront answers on `127.0.0.1:port` and nowhere else.
    """

    def __init__(self, shopfronts: Shopfronts, listener: socket.socket) -> None:
        self.port: int = listener.getsockname()[1]
        self._shopfronts = shopfronts
        self._listener = listener
        self._server = _Server(_config(shopfronts))
        self._thread = threading.Thread(target=self._run, name="example-street", daemon=True)

    @classmethod
    def start(
        cls, port: int = 0, address: str = LOOPBACK, shopfronts: Shopfronts | None = None
    ) -> Self:
        """Serve in a thread of this process; port 0 takes a free one, `shopfronts` are ours unless given.

        Raises ValueError for an address that is not loopback, OSError when the port is taken, and
        RuntimeError when the server does not come up.
        """
        street = cls(shopfronts or Shopfronts(), listen(port, address))
        street._thread.start()
        street._server.settled.wait(STOP_SECONDS)
        if not street._server.started:
            street.stop()
            raise RuntimeError("the example street did not start")
        return street

    @property
    def requests(self) -> int:
        """How many requests the storefronts answered since the start or the last `reset`."""
        return sum(self.served.values())

    @property
    def served(self) -> Mapping[Address, int]:
        """How many answers each (host, path) gave since the start or the last `reset`."""
        return self._shopfronts.served()

    def reset(self) -> None:
        """Forget what was asked: counts start at 0, and the page that fails once fails again."""
        self._shopfronts.reset()

    def stop(self) -> None:
        """Stop serving and free the port; calling it again does nothing."""
        self._server.should_exit = True
        self._thread.join(STOP_SECONDS)
        self._listener.close()

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._listener])
        finally:
            self._server.settled.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)


def listen(port: int, address: str = LOOPBACK) -> socket.socket:
    """A listening socket; ValueError for an address that is not loopback."""
    if not ipaddress.ip_address(address).is_loopback:
        raise ValueError(f"the example street serves on loopback only, not on {address}")
    return socket.create_server((address, port))


def serve(listener: socket.socket) -> None:
    """Serve in this process until SIGINT or SIGTERM."""
    uvicorn.Server(_config(Shopfronts())).run(sockets=[listener])


def _config(shopfronts: Shopfronts) -> uvicorn.Config:
    return uvicorn.Config(
        shopfronts.application(),
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=1,
    )
