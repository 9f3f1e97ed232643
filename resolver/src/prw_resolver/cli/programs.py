"""``prw resolver migrate``, ``serve`` and ``work``: the programs that run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import structlog
import typer

from prw_base.logs import configure
from prw_base.options import JsonOption
from prw_base.server.migrations import migrate as apply_migrations
from prw_base.server.ready import ReadyFileOption, tell_ready
from prw_base.server.settings import Dsns
from prw_base.server.termination import terminated
from prw_base.tables import print_table
from prw_resolver.bootstrap import (
    Parts,
    build_server,
    databases,
    open_parts,
    open_pruner,
    open_relay,
    open_worker,
)
from prw_resolver.cli.session import settings_of
from prw_resolver.settings import ResolverSettings
from prw_resolver.stream.pruner import Pruner
from prw_resolver.stream.relay import Relay
from prw_resolver.stream.watch import Watch
from prw_resolver.worker.service import Worker

MIGRATIONS = "prw_resolver.migrations"

log = structlog.get_logger("prw_resolver")


def migrate(context: typer.Context, json: JsonOption = False) -> None:
    """Bring the database's schema up to this version; a second run changes nothing."""
    with databases(settings_of(context)) as dsns:
        applied = apply_migrations(dsns.migrator, MIGRATIONS)
    print_table("Applied migrations", ("migration",), [(name,) for name in applied], json)


def serve(
    context: typer.Context,
    address: Annotated[
        str | None,
        typer.Option("--address", help="host:port to serve gRPC on; port 0 takes a free one."),
    ] = None,
    ready_file: ReadyFileOption = None,
    workers_in_process: Annotated[
        bool | None,
        typer.Option(
            "--workers-in-process/--no-workers-in-process",
            help="Whether this process also works the jobs; the default for one machine.",
        ),
    ] = None,
) -> None:
    """Serve gRPC until SIGTERM or Ctrl-C, then let open calls end."""
    given = {"address": address, "workers_in_process": workers_in_process}
    chosen = {name: value for name, value in given.items() if value is not None}
    settings = settings_of(context).model_copy(update=chosen)
    configure(json=settings.json_logs)
    with databases(settings) as dsns:
        asyncio.run(_serve(settings, dsns, ready_file))


def work(
    context: typer.Context,
    ready_file: ReadyFileOption = None,
) -> None:
    """Work the jobs until SIGTERM or Ctrl-C, then let those in hand end; for hosts of a fleet."""
    settings = settings_of(context)
    configure(json=settings.json_logs)
    with databases(settings) as dsns:
        asyncio.run(_work(settings, dsns.app, ready_file))


async def _serve(settings: ResolverSettings, dsns: Dsns, ready_file: Path | None) -> None:
    stop = terminated()
    async with open_parts(settings, dsns.app) as parts, AsyncExitStack() as stack:
        workers: list[Worker] = []
        if settings.workers_in_process:
            workers.append(await stack.enter_async_context(open_worker(parts, dsns.app)))
        beside = await _open_beside(stack, parts, dsns)
        server = await stack.enter_async_context(build_server(parts))
        line = f"resolver serves gRPC on {server.address}"
        tell_ready(line, ready_file, address=server.address)
        await _until(stop, workers, beside)


async def _open_beside(
    stack: AsyncExitStack, parts: Parts, dsns: Dsns
) -> list[Relay | Pruner | Watch]:
    """What runs beside the server under logins of its own; what has no login is left out, aloud."""
    relay = await stack.enter_async_context(open_relay(parts.settings, dsns))
    pruner = await stack.enter_async_context(open_pruner(parts, dsns))
    for name, part in (("relay", relay), ("pruner", pruner)):
        if part is None:
            remedy = f"set PRW_RESOLVER_{name.upper()}_DSN, or nothing is ever pruned"
            log.warning(f"{name}.absent", remedy=remedy)
    return [Watch(parts.db, parts.epoch), *(one for one in (relay, pruner) if one is not None)]


async def _work(settings: ResolverSettings, dsn: str, ready_file: Path | None) -> None:
    stop = terminated()
    async with open_parts(settings, dsn) as parts, open_worker(parts, dsn) as worker:
        tell_ready("resolver works the jobs", ready_file, address=None)
        await _until(stop, [worker], [Watch(parts.db, parts.epoch)])


async def _until(
    stop: asyncio.Event, workers: Sequence[Worker], beside: Sequence[Relay | Pruner | Watch] = ()
) -> None:
    """Run all of it until the stop; a part that ends by a defect ends the program with it."""
    running = [asyncio.create_task(worker.run()) for worker in workers]
    running += [asyncio.create_task(part.run(stop)) for part in beside]
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([stopping, *running], return_when=asyncio.FIRST_COMPLETED)
    stop.set()
    for worker in workers:
        worker.stop()
    await asyncio.gather(*running, stopping)
