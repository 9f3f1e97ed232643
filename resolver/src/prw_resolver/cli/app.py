"""The group's commands put together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prw_resolver.cli import callers, collectors, places, programs, retention
from prw_resolver.cli.doctor import doctor
from prw_resolver.cli.jobs import jobs
from prw_resolver.cli.restore import restore
from prw_resolver.cli.review import review
from prw_resolver.cli.session import load_settings
from prw_resolver.cli.vocabulary import vocabulary

app = typer.Typer(
    name="resolver",
    help="Turn evidence into accepted facts: run the resolver and administer it.",
    no_args_is_help=True,
)


@app.callback()
def options(
    context: typer.Context,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FOLDER",
            help="Folder of PostgreSQL, objects and keys; wins over PRW_RESOLVER_STATE_FOLDER.",
        ),
    ] = None,
) -> None:
    """Turn evidence into accepted facts: run the resolver and administer it.

    Settings come from PRW_RESOLVER_… in the environment and from the table [resolver] of prw.toml.
    """
    context.obj = load_settings(state)


app.command("migrate")(programs.migrate)
app.command("serve")(programs.serve)
app.command("work")(programs.work)
app.add_typer(places.catalog, name="catalog")
app.add_typer(places.source, name="source")
app.add_typer(vocabulary, name="vocabulary")
app.add_typer(callers.client, name="client")
app.add_typer(callers.operator, name="operator")
app.command("collectors")(collectors.collectors)
app.command("checkpoints")(collectors.checkpoints)
app.add_typer(review, name="review")
app.add_typer(jobs, name="jobs")
app.command("doctor")(doctor)
app.add_typer(restore, name="restore")
app.command("retention")(retention.retention)
app.add_typer(retention.consumer, name="consumer")
