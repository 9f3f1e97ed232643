"""The whole walk as processes: street, collector, resolver and product over databases of a test's own."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from prw_base.server.postgres import Cluster
from prw_examples.demo import setup
from prw_examples.demo.audit.model import Figures
from prw_examples.demo.audit.service import Collected, audit
from prw_examples.demo.audit.store import Books, open_books
from prw_examples.demo.children import prw, tail
from prw_examples.demo.collector import spooled, write_settings
from prw_examples.demo.layout import SCOPE, Layout, occupied
from prw_examples.demo.rest import Standing, stand, until_at_rest
from prw_examples.street import Street, load_truth
from tests.support import postgres
from tests.support.programs import KILLED, Program, run

PATIENCE = timedelta(seconds=60)
"""How long nothing may move: a killed worker's jobs wait ten seconds, and longer each time they are lost again."""

DONE, SET_ASIDE, UNAVAILABLE = 0, 1, 3
"""Exit statuses of the collector: all done; done but for what a person must see to; the resolver was away."""

Dsns = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Walk:
    """A system and its street; made by `walking`."""

    layout: Layout
    resolver_dsns: Dsns
    product_dsns: Dsns
    street: Street
    environment: Mapping[str, str]
    resolver: Program
    product: Program

    async def collect(self, *arguments: str, faults: str = "") -> int:
        """Run the collector once; its exit status."""
        return (await self.prw("collect", "run", *arguments, faults=faults)).status

    async def collect_all(self, *arguments: str) -> None:
        """Run the collector until it has nothing left to do, as whoever restarts it would."""
        while await self.collect(*arguments) not in (DONE, SET_ASIDE):
            continue
        assert spooled(self.layout).unsent == 0

    async def prw(self, *command: str, faults: str = "") -> Ran:
        """Run a command of ours to its end; one that fails in another way than it may is an error."""
        ran = await self._run(command, faults)
        may = (DONE, SET_ASIDE, UNAVAILABLE, KILLED) if command[0] == "collect" else (DONE,)
        told = tail(self._log(command))
        assert ran.status in may, f"{' '.join(command)} ended with {ran.status}:\n{told}"
        return ran

    async def refused(self, *command: str) -> str:
        """What a command says that must fail."""
        ran = await self._run(command)
        assert ran.status not in (DONE, KILLED)
        return tail(self._log(command), 1)

    async def review(self, *command: str) -> Any:
        """Ask or decide about cases as the demo's operator."""
        return (await self.prw(*self.reviewing(*command))).data

    def reviewing(self, *command: str) -> tuple[str, ...]:
        """The command line of a person who reviews."""
        address = self.resolver.told["address"]
        return ("resolver", "review", *command, "--address", address, "--json")

    async def _run(self, command: Sequence[str], faults: str = "") -> Ran:
        return Ran(*await run(prw(*command), self.environment, self._log(command), faults))

    def _log(self, command: Sequence[str]) -> Path:
        return self.layout.logs / f"{command[0]}-{command[1]}.log"

    async def at_rest(self) -> Standing:
        """Wait until nothing is left to do; raises DemoFailed where nothing moves, or something is broken."""
        async with self.books() as books:
            return await until_at_rest(
                lambda: stand(books), lambda _: None, PATIENCE.total_seconds()
            )

    async def figures(self) -> Figures:
        """The demo's audit of the catalogue as it stands."""
        kept = spooled(self.layout).kept
        async with self.books() as books:
            return await audit(books, self.layout.objects, load_truth(), Collected(0, kept))

    @asynccontextmanager
    async def books(self) -> AsyncIterator[Books]:
        """Both databases, for reading."""
        dsns = (self.resolver_dsns["superuser"], self.product_dsns["superuser"])
        async with open_books(*dsns, SCOPE) as books:
            yield books


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended, and what it printed."""

    status: int
    printed: str

    @property
    def data(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.printed)


@asynccontextmanager
async def walking(
    cluster: Cluster,
    folder: Path,
    street: Street | None = None,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[Walk]:
    """Everything up and waiting for a collector; ended, whatever happens.

    `street` is the caller's own to stop; `environment` adds settings of the programs.
    """
    async with AsyncExitStack() as stack:
        resolver = stack.enter_context(postgres.fresh_database(cluster, postgres.RESOLVER))
        product = stack.enter_context(postgres.fresh_database(cluster, postgres.PRODUCT))
        if street is None:
            street = await stack.enter_async_context(Street.start())
        layout = stack.enter_context(occupied(folder, fresh=False))
        layout.logs.mkdir()
        await setup.found(layout, resolver)
        walk = _walk(layout, resolver, product, street, environment or {})
        stack.push_async_callback(walk.resolver.kill)
        stack.push_async_callback(walk.product.kill)
        await start_servers(walk)
        yield walk


async def start_servers(walk: Walk) -> None:
    """Start both; from then on the resolver comes up where the others look for it."""
    assert await walk.resolver.start()
    address = str(walk.resolver.told["address"])
    walk.resolver.command = _resolver(walk.layout, address)
    walk.product.command = _product(walk.layout, address)
    write_settings(walk.layout, address, walk.street.port)
    assert await walk.product.start()


def _walk(
    layout: Layout, resolver: Dsns, product: Dsns, street: Street, more: Mapping[str, str]
) -> Walk:
    environment = {
        "PRW_CONFIG": os.devnull,
        "PRW_COLLECT_CONFIG": str(layout.sources),
        "PRW_OPERATOR_TOKEN_FILE": str(layout.token("operator")),
        "PRW_RESOLVER_DATABASE_DSN": resolver["resolver_app"],
        "PRW_RESOLVER_RELAY_DSN": resolver["resolver_relay"],
        "PRW_PRODUCT_DATABASE_DSN": product["product_app"],
        **more,
    }
    return Walk(
        layout,
        resolver,
        product,
        street,
        environment,
        Program("resolver", _resolver(layout, "127.0.0.1:0"), environment, layout.logs),
        Program("product", (), environment, layout.logs),
    )


def _resolver(layout: Layout, address: str) -> tuple[str, ...]:
    serve = ("serve", "--address", address, "--workers-in-process")
    return ("resolver", "--state", str(layout.root), *serve)


def _product(layout: Layout, resolver: str) -> tuple[str, ...]:
    return (
        *("product", "--tenant", SCOPE.tenant_id, "--catalog", SCOPE.catalog_id, "serve"),
        *("--http", "127.0.0.1:0", "--address", "127.0.0.1:0", "--follow"),
        *("--resolver", resolver, "--token-file", str(layout.token("product"))),
    )
