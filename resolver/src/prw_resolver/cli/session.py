"""What the commands share: settings, a connection for one command, and the options that many of them have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from prw_base.server.database import Database
from prw_resolver.bootstrap import databases
from prw_resolver.settings import ResolverSettings

T = TypeVar("T")

TenantOption = Annotated[str, typer.Option("--tenant", help="The tenant's id.")]
CatalogOption = Annotated[str, typer.Option("--catalog", help="The catalogue's id.")]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        help="Write the token to this file, which only you may read, instead of printing it.",
    ),
]


def load_settings(state: Path | None) -> ResolverSettings:
    """The settings of this run; `state` wins over the environment and the file."""
    return ResolverSettings() if state is None else ResolverSettings(state_folder=state)


def settings_of(context: typer.Context) -> ResolverSettings:
    """The settings that the group was given."""
    settings: ResolverSettings = context.obj
    return settings


def with_database(settings: ResolverSettings, work: Callable[[Database], Awaitable[T]]) -> T:
    """Run `work` on a small pool, as the login that the server uses."""

    async def run(dsn: str) -> T:
        async with await Database.open(dsn, max_size=2) as db:
            return await work(db)

    with databases(settings) as dsns:
        return asyncio.run(run(dsns.app))
