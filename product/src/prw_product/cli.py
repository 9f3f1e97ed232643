"""``prw product``: migrate, serve, follow, rebuild, status, doctor, verify."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import structlog
import typer

from prw.errors import PrwError
from prw_base.findings import COLUMNS as COLUMNS_OF_FINDINGS
from prw_base.findings import Finding, print_findings
from prw_base.logs import configure
from prw_base.options import JsonOption
from prw_base.server.migrations import migrate as apply_migrations
from prw_base.server.ready import ReadyFileOption, tell_ready
from prw_base.server.termination import terminated
from prw_base.tables import print_table
from prw_product.bootstrap import (
    HttpServer,
    build_catalogue,
    build_follower,
    build_rebuilder,
    build_rpc_server,
    connect_exports,
    databases,
    open_database,
    scope_of,
)
from prw_product.doctor.service import CHECKS, examine
from prw_product.doctor.verify import Verified
from prw_product.doctor.verify import verify as compare
from prw_product.follow.service import Follower
from prw_product.rebuild.model import Rebuilt, Watch
from prw_product.rebuild.view import ending, shown
from prw_product.serve.status import COLUMNS, read_status
from prw_product.settings import ProductSettings

MIGRATIONS = "prw_product.migrations"
_log = structlog.get_logger(__name__)

app = typer.Typer(
    name="product",
    help="Follow accepted changes and serve the public catalogue.",
    no_args_is_help=True,
)

ResolverOption = Annotated[
    str | None, typer.Option("--resolver", metavar="HOST:PORT", help="Where the resolver serves.")
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option("--token-file", help="File with the token of the product's machine client."),
]


@app.callback()
def options(
    context: typer.Context,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FOLDER",
            help="Folder of the embedded PostgreSQL; wins over PRW_PRODUCT_STATE_FOLDER.",
        ),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="The tenant that is projected here.")
    ] = None,
    catalog: Annotated[
        str | None, typer.Option("--catalog", help="The catalogue that is projected here.")
    ] = None,
) -> None:
    """Follow accepted changes and serve the public catalogue.

    Settings come from PRW_PRODUCT_… in the environment and from the table [product] of prw.toml.
    """
    given = {"state_folder": state, "tenant_id": tenant, "catalog_id": catalog}
    context.obj = ProductSettings(**_chosen(given))


def _chosen(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _settings(context: typer.Context, **given: Any) -> ProductSettings:
    settings: ProductSettings = context.obj
    return settings.model_copy(update=_chosen(given))


@app.command()
def migrate(context: typer.Context, json: JsonOption = False) -> None:
    """Bring the database's schema up to this version; a second run changes nothing."""
    with databases(_settings(context)) as dsns:
        applied = apply_migrations(dsns.migrator, MIGRATIONS)
    print_table("Applied migrations", ("migration",), [(name,) for name in applied], json)


@app.command()
def serve(
    context: typer.Context,
    http: Annotated[
        str | None,
        typer.Option(
            "--http", metavar="HOST:PORT", help="HTTP and pages; port 0 takes a free one."
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option("--address", metavar="HOST:PORT", help="gRPC; port 0 takes a free one."),
    ] = None,
    follow_too: Annotated[
        bool | None,
        typer.Option(
            "--follow/--no-follow", help="Whether this process also follows, for one machine."
        ),
    ] = None,
    resolver: ResolverOption = None,
    token_file: TokenFileOption = None,
    ready_file: ReadyFileOption = None,
) -> None:
    """Serve the catalogue by HTTP and gRPC until SIGTERM or Ctrl-C, then let open calls end."""
    settings = _settings(
        context,
        http_address=http,
        address=address,
        follow_in_process=follow_too,
        resolver_address=resolver,
        token_file=token_file,
    )
    configure(json=settings.json_logs)
    with databases(settings) as dsns:
        asyncio.run(_serve(settings, dsns.app, ready_file))


async def _serve(settings: ProductSettings, dsn: str, ready_file: Path | None) -> None:
    stop = terminated()
    async with open_database(settings, dsn) as database:
        catalogue = build_catalogue(settings, database)
        # A database without our tables is told of here, before anything is said to serve.
        await catalogue.count()
        follower = (
            build_follower(settings, database, patient=True) if settings.follow_in_process else None
        )
        http = HttpServer(settings, catalogue, follower.standing if follower else None)
        async with build_rpc_server(settings, catalogue) as rpc, asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(http.run_until_stopped())
            following = tasks.create_task(_follow_beside(follower)) if follower else None
            line = f"product serves {http.url}/ and gRPC on {rpc.address}"
            tell_ready(line, ready_file, url=http.url, address=rpc.address)
            await _either(stop, serving)
            http.should_exit = True
            if following is not None:
                following.cancel()


async def _either(stop: asyncio.Event, serving: asyncio.Task[None]) -> None:
    """Until told to stop, or the server ends by itself."""
    waiting = asyncio.create_task(stop.wait())
    await asyncio.wait({waiting, serving}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()


async def _follow_beside(follower: Follower) -> None:
    """Follow; where that is no use any more, what is there goes on being served."""
    try:
        await follower.run()
    except PrwError as error:
        _log.error("serving goes on without following", code=error.code.value)


@app.command()
def follow(
    context: typer.Context, resolver: ResolverOption = None, token_file: TokenFileOption = None
) -> None:
    """Follow the resolver's changes until SIGTERM or Ctrl-C.

    Ends by itself only where asking again changes nothing, and says what an operator must do.
    """
    settings = _settings(context, resolver_address=resolver, token_file=token_file)
    configure(json=settings.json_logs)
    with databases(settings) as dsns:
        asyncio.run(_follow(settings, dsns.app))


async def _follow(settings: ProductSettings, dsn: str) -> None:
    stop = terminated()
    async with open_database(settings, dsn) as database:
        await build_catalogue(settings, database).count()
        following = asyncio.create_task(build_follower(settings, database).run())
        await _either(stop, following)
        if following.done():
            await following
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


@app.command()
def rebuild(
    context: typer.Context,
    resolver: ResolverOption = None,
    token_file: TokenFileOption = None,
    json: JsonOption = False,
) -> None:
    """Build the projection anew from an export of the resolver's, and cut over to it.

    What serves goes on serving, and a follower goes on following, until the new one is as far; then it is swapped in,
    and the old one is dropped. A rebuild that ends before has changed nothing. Exit status 0 when it serves.
    """
    settings = _settings(context, resolver_address=resolver, token_file=token_file)
    configure(json=settings.json_logs)

    async def run(dsn: str, watch: Watch) -> Rebuilt:
        async with open_database(settings, dsn) as database:
            await build_catalogue(settings, database).count()
            return await ending(build_rebuilder(settings, database, watch).run())

    with databases(settings) as dsns, shown(json) as watch:
        made = asyncio.run(run(dsns.app, watch))
    columns = ("generation", "history_epoch", "exported_at", "served_at", "rows")
    row = (made.generation, made.history_epoch, made.exported_at, made.served_at, made.rows)
    print_table("Rebuilt", columns, [row], json)


@app.command()
def status(context: typer.Context, json: JsonOption = False) -> None:
    """Show progress, what holds it, and how much is public."""
    settings = _settings(context)

    async def read(dsn: str) -> list[tuple[object, ...]]:
        async with open_database(settings, dsn) as database:
            return await read_status(database, scope_of(settings))

    with databases(settings) as dsns:
        rows = asyncio.run(read(dsns.app))
    print_table("Projection", COLUMNS, rows, json)


@app.command()
def doctor(context: typer.Context, json: JsonOption = False) -> None:
    """Look whether the invariants of the serving projection hold: inbox, progress, what waits, what is public.

    Reads as one moment and changes nothing; it may run beside a server. Exit status 0: nothing found; 1: something is.
    """
    settings = _settings(context)

    async def run(dsn: str) -> list[Finding]:
        async with open_database(settings, dsn) as database:
            return await examine(database, scope_of(settings))

    with databases(settings) as dsns:
        found = asyncio.run(run(dsns.app))
    if json:
        print_findings(list(CHECKS), found)
    else:
        print_table("Findings", COLUMNS_OF_FINDINGS, [finding.row for finding in found])
    raise typer.Exit(1 if found else 0)


@app.command()
def verify(
    context: typer.Context,
    resolver: ResolverOption = None,
    token_file: TokenFileOption = None,
    json: JsonOption = False,
) -> None:
    """Compare the projection with what the resolver has accepted, by digests as of the projection's progress.

    Nothing is rebuilt or changed, and both sides go on. Exit status 0: the same; 1: something differs.
    """
    settings = _settings(context, resolver_address=resolver, token_file=token_file)

    async def run(dsn: str) -> Verified:
        async with open_database(settings, dsn) as database, connect_exports(settings)() as client:
            return await compare(database, scope_of(settings), client)

    with databases(settings) as dsns:
        found = asyncio.run(run(dsns.app))
    rows = [
        (
            one.type,
            found.position,
            one.ours.aggregates if one.ours else 0,
            one.theirs.aggregates if one.theirs else 0,
            "same" if one.same else "different",
        )
        for one in found.types
    ]
    print_table("Compared", ("type", "position", "here", "accepted", "state"), rows, json)
    raise typer.Exit(0 if all(one.same for one in found.types) else 1)
