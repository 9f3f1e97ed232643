"""``prw resolver collectors`` and ``checkpoints``: which instances there are and live, and how far plans have come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from prw_base.options import JsonOption
from prw_base.tables import print_table
from prw_resolver.cli.session import TenantOption, settings_of, with_database
from prw_resolver.intake.checkpoints import service as kept
from prw_resolver.intake.collectors import service as heard
from prw_resolver.intake.model import Standing

_COLUMNS = (
    "instance_id",
    "worker_id",
    "version",
    "lease",
    "last_heartbeat",
    "lease_expires_at",
    "failures",
    "last_success",
    "last_run",
    "last_outcome",
    "last_error",
)


def collectors(
    context: typer.Context,
    tenant: TenantOption,
    failing: Annotated[
        bool,
        typer.Option("--failing", help="Only those whose last runs failed or whose lease is over."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """List the collector instances that have registered: lease, last heartbeat, failed runs in a row, last error.

    A lease is live or expired; `none` for one that is started for each run, `silent` before the first heartbeat.
    """
    settings = settings_of(context)
    found = with_database(settings, lambda db: heard.look(db, tenant, settings.lease))
    shown = [one for one in found if not failing or _needs_a_look(one)]
    print_table("Collectors", _COLUMNS, [_row(one) for one in shown], json)


def checkpoints(
    context: typer.Context,
    tenant: TenantOption,
    source: Annotated[
        str | None, typer.Option("--source", help="Only this source's; all without.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the checkpoints of collectors that keep nothing: how far each plan has come, and how much it put off."""
    found = with_database(settings_of(context), lambda db: kept.look(db, tenant))
    columns = ("source_id", "adapter", "partition", "revision", "deferred", "updated_at", "state")
    shown = [one for one in found if source is None or one["source_id"] == source]
    print_table("Checkpoints", columns, [[one[name] for name in columns] for one in shown], json)


def _needs_a_look(one: Standing) -> bool:
    return one.consecutive_failures > 0 or _lease(one) == "expired"


def _row(one: Standing) -> tuple[object, ...]:
    report: Mapping[str, Any] = one.last_report or {}
    return (
        one.instance_id,
        one.worker_id,
        one.version,
        _lease(one),
        one.heard_at,
        one.lease_expires_at,
        one.consecutive_failures,
        one.last_success,
        one.last_run,
        report.get("outcome"),
        _error(report),
    )


def _lease(one: Standing) -> str:
    if one.heard_at is None:
        return "silent"
    if one.lease_expires_at is None:
        return "none"
    return "live" if one.is_live else "expired"


def _error(report: Mapping[str, Any]) -> str | None:
    """The code of the run's failure, or of the first source's that failed."""
    errors = [report.get("error"), *(source["error"] for source in report.get("sources", ()))]
    return next((error["code"] for error in errors if error), None)
