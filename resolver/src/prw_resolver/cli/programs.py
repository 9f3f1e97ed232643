"""``prw resolver migrate`` and ``serve``: the programs that run."""

from __future__ import annotations

import asyncio
import json as jsonlib
import os
from pathlib import Path
from typing import Annotated

import typer

from prw_base.logs import configure
from prw_base.server.migrations import migrate as apply_migrations
from prw_base.server.rpc import RpcServer
from prw_base.server.secrets import write_private
from prw_base.server.termination import terminated
from prw_base.tables import print_table
from prw_resolver.bootstrap import build_server, databases, open_parts
from prw_resolver.cli.session import JsonOption, settings_of
from prw_resolver.settings import ResolverSettings

MIGRATIONS = "prw_resolver.migrations"


def migrate(context: typer.Context, json: JsonOption = False) -> None:
    """Bring the database's schema up to this version; a second run changes nothing."""
    with databases(settings_of(context)) as dsns:
        applied = apply_migrations(dsns.owner, MIGRATIONS)
    print_table("Applied migrations", ("migration",), [(name,) for name in applied], json)


def serve(
    context: typer.Context,
    address: Annotated[
        str | None,
        typer.Option("--address", help="host:port to serve gRPC on; port 0 takes a free one."),
    ] = None,
    ready_file: Annotated[
        Path | None,
        typer.Option(
            "--ready-file", help="Write address and process id here, as JSON, once it serves."
        ),
    ] = None,
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
        asyncio.run(_serve(settings, dsns.app, ready_file))


async def _serve(settings: ResolverSettings, dsn: str, ready_file: Path | None) -> None:
    stop = terminated()
    async with open_parts(settings, dsn) as parts:
        server = build_server(parts)
        async with server:
            _tell_ready(server, ready_file)
            await stop.wait()


def _tell_ready(server: RpcServer, ready_file: Path | None) -> None:
    host = server.settings.address.rsplit(":", 1)[0]
    address = f"{host}:{server.port}"
    typer.echo(f"resolver serves gRPC on {address}", err=True)
    if ready_file is not None:
        ready = {"address": address, "pid": os.getpid()}
        write_private(ready_file, jsonlib.dumps(ready).encode())
