"""``prw resolver collectors`` and ``checkpoints``: what an operator sees of those who collect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from prw.collector.v1 import checkpoint_service_pb2 as checkpoints_pb
from prw.collector.v1 import collector_service_pb2 as pb
from prw_resolver.cli import app
from tests.resolver.collecting import AT, running
from tests.resolver.test_heartbeats import FAILED, SCHEDULED, SUCCEEDED, registered, report

Prw = Callable[..., Any]
TENANT = ("--tenant", "ten_synth_a")


@pytest.fixture
def prw(resolver_database: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prw:
    """Runs ``prw resolver …`` over a database in which four instances have been heard of."""
    monkeypatch.setenv("PRW_RESOLVER_DATABASE_DSN", resolver_database["resolver_app"])
    monkeypatch.setenv("PRW_RESOLVER_STATE_FOLDER", str(tmp_path))
    asyncio.run(_collect(resolver_database, tmp_path))

    def run(*arguments: str) -> Any:
        result = CliRunner().invoke(app, [*arguments, *TENANT, "--json"], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return json.loads(result.output)

    return run


async def _collect(dsns: dict[str, str], state: Path) -> None:
    async with running(dsns, state) as resolver:
        lives = await registered(resolver, instance="ci_lives")
        await lives.beat(AT, report(SUCCEEDED), instance_id="ci_lives")
        await registered(resolver, instance="ci_silent")
        fails = await registered(resolver, SCHEDULED, instance="ci_fails")
        source = pb.SourceRun(
            source_id="ten_synth_a.src_one", error=pb.RunError(code="UPSTREAM_503")
        )
        await fails.beat(AT, report(FAILED, sources=[source]), instance_id="ci_fails")
        await registered(resolver, tenant="ten_synth_b", instance="ci_theirs")
        item = checkpoints_pb.DeferredItem(
            native_record_id="a", url="b", outcome=checkpoints_pb.DEFERRED_OUTCOME_POISON
        )
        await lives.advance(0, '{"page": 3}', [item], partition="de")


def test_instances_are_listed_as_they_stand(prw: Prw) -> None:
    """Lease, failures in a row and the last error; of the own tenant only."""
    listed = {one["instance_id"]: one for one in prw("collectors")}
    assert {name: one["lease"] for name, one in listed.items()} == {
        "ci_fails": "none",
        "ci_lives": "live",
        "ci_silent": "silent",
    }
    failed = listed["ci_fails"]
    assert (failed["failures"], failed["last_outcome"]) == (1, "failed")
    assert (failed["last_error"], failed["last_success"]) == ("UPSTREAM_503", None)
    assert (listed["ci_lives"]["version"], listed["ci_lives"]["last_error"]) == ("1.2.3", None)


def test_only_those_that_need_a_look(prw: Prw, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed runs, and a lease that is over: its length is a setting."""
    assert [one["instance_id"] for one in prw("collectors", "--failing")] == ["ci_fails"]
    monkeypatch.setenv("PRW_RESOLVER_LEASE", "PT0S")
    found = prw("collectors", "--failing")
    assert [(one["instance_id"], one["lease"]) for one in found] == [
        ("ci_fails", "none"),
        ("ci_lives", "expired"),
    ]


def test_checkpoints_are_listed_with_what_they_put_off(prw: Prw) -> None:
    """Key, revision, state and how many items wait."""
    [one] = prw("checkpoints")
    assert (one["source_id"], one["adapter"], one["partition"]) == (
        "ten_synth_a.src_one",
        "shop",
        "de",
    )
    assert (one["revision"], one["deferred"], one["state"]) == (1, 1, '{"page": 3}')
    assert prw("checkpoints", "--source", "src_none") == []
