"""The programs of the demo: how each is started, and when it is ready."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
from grpc_health.v1 import health_pb2

from prw_examples.demo.children import Child, Children, DemoFailed, prw
from prw_examples.demo.layout import PRODUCT, SCOPE, Layout
from prw_examples.demo.setup import Databases

READY_SECONDS = 60.0
_STEP_SECONDS = 0.05
_STREET = re.compile(r"on 127\.0\.0\.1:(\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where everything serves, on loopback."""

    street: int
    resolver_grpc: str
    product_grpc: str
    catalogue: str

    def as_json(self) -> dict[str, str]:
        """The addresses by name."""
        return {
            "catalogue_page": f"{self.catalogue}/",
            "catalogue_http": f"{self.catalogue}/v1/items",
            "catalogue_grpc": self.product_grpc,
            "resolver_grpc": self.resolver_grpc,
            "street": f"http://127.0.0.1:{self.street}",
        }


async def migrate(children: Children, layout: Layout, databases: Databases) -> None:
    """Bring both schemas up to date, each by its own program."""
    _to_children(databases)
    started = [
        await children.start(
            f"{name}-migrate",
            prw(name, "--state", str(layout.root), "migrate", "--json"),
            serves=False,
        )
        for name in ("resolver", "product")
    ]
    for child in started:
        if await children.finish(child) != 0:
            raise DemoFailed(child.describe_end())


def _to_children(databases: Databases) -> None:
    """Give the children their databases; the environment is seen by nobody but their user."""
    os.environ |= {
        "PRW_RESOLVER_DATABASE_DSN": databases.resolver["resolver_app"],
        "PRW_RESOLVER_RELAY_DSN": databases.resolver["resolver_relay"],
        "PRW_RESOLVER_OWNER_DSN": databases.resolver["owner"],
        "PRW_PRODUCT_DATABASE_DSN": databases.product["product_app"],
        "PRW_PRODUCT_OWNER_DSN": databases.product["owner"],
    }


async def start_street(children: Children) -> int:
    """Start the example street on a free port; returns the port once it answers."""
    command = (sys.executable, "-m", "prw_examples.street", "--port", "0")
    street = await children.start("street", command)
    port = int(await _ready(children, street, lambda: _street_port(street.log)))
    await children.while_running(_answering(f"http://127.0.0.1:{port}/served"))
    return port


async def start_resolver(children: Children, layout: Layout) -> str:
    """Start the resolver, with its workers in process; returns its address once it serves."""
    ready = layout.ready_file("resolver")
    ready.unlink(missing_ok=True)
    command = prw(
        *("resolver", "--state", str(layout.root), "serve", "--address", "127.0.0.1:0"),
        *("--workers-in-process", "--ready-file", str(ready)),
    )
    child = await children.start("resolver", command)
    address = str((await _ready(children, child, lambda: _told(ready)))["address"])
    await children.while_running(_serving(address))
    return address


async def start_product(children: Children, layout: Layout, resolver: str) -> tuple[str, str]:
    """Start the product, which follows the resolver; returns its URL and its gRPC address once both serve."""
    ready = layout.ready_file("product")
    ready.unlink(missing_ok=True)
    os.environ["PRW_PRODUCT_CONSUMER_ID"] = PRODUCT
    command = prw(
        *("product", "--tenant", SCOPE.tenant_id, "--catalog", SCOPE.catalog_id),
        *("--state", str(layout.root), "serve", "--http", "127.0.0.1:0"),
        *("--address", "127.0.0.1:0", "--follow", "--resolver", resolver),
        *("--token-file", str(layout.token("product")), "--ready-file", str(ready)),
    )
    child = await children.start("product", command)
    told = await _ready(children, child, lambda: _told(ready))
    await children.while_running(_serving(told["address"]))
    await children.while_running(_answering(f"{told['url']}/healthz"))
    return str(told["url"]), str(told["address"])


async def _ready(children: Children, child: Child, ask: Callable[[], Any]) -> Any:
    """What `ask` says as soon as it says something."""

    async def asking() -> Any:
        async for _ in _ticks():
            if answer := ask():
                return answer
        raise DemoFailed(f"{child.name} is not ready after {READY_SECONDS:g} s; see {child.log}")

    return await children.while_running(asking())


async def _ticks() -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    end = loop.time() + READY_SECONDS
    while loop.time() < end:
        yield
        # Only asking again finds out when another process is ready.
        await asyncio.sleep(_STEP_SECONDS)


def _told(ready: Path) -> Any:
    try:
        return json.loads(ready.read_text("utf-8"))
    except FileNotFoundError:
        return None


def _street_port(log: Path) -> str | None:
    said = _STREET.search(log.read_text("utf-8", "replace"))
    return said and said[1]


async def _answering(url: str) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
        async for _ in _ticks():
            try:
                if (await client.get(url)).is_success:
                    return
            except httpx.TransportError:
                continue
    raise DemoFailed(f"{url} does not answer")


async def _serving(address: str) -> None:
    async with grpc.aio.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        answer = await check(
            health_pb2.HealthCheckRequest(), timeout=READY_SECONDS, wait_for_ready=True
        )
    if answer.status != health_pb2.HealthCheckResponse.SERVING:
        raise DemoFailed(f"the server at {address} is not healthy")
