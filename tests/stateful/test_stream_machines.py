"""The stream's protocols against an oracle, step by step on PostgreSQL: allocating, retention, epochs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.database import ExampleDatabase
from hypothesis.stateful import run_state_machine_as_test

from prw_base.server.database import Database
from tests.stateful.retention import EpochMachine, RetentionMachine
from tests.stateful.streaming import StreamMachine, World
from tests.support import kills

FOLLOWED = {
    "committed",
    "two writers at once",
    "rolled back",
    "asked again",
    "relayed",
    "read",
    "reported",
}
PRUNED = {"pruned", "held by a lease", "renewed", "renewed too late", "paused", "retired", "live"}
FENCED = {"refused as fenced"}
NO_DATABASE: ExampleDatabase | None = None


@pytest.fixture
def world(resolver_database: dict[str, str], tmp_path: Path) -> Iterator[World]:
    """A database for all examples of a test, which runs them in a loop of its own."""
    with (
        asyncio.Runner() as runner,
        psycopg.connect(resolver_database["superuser"], autocommit=True) as superuser,
    ):
        relay = runner.run(Database.open(resolver_database["resolver_relay"], 1, 1))
        pruner = runner.run(Database.open(resolver_database["resolver_pruner"], 1, 1))
        yield World(resolver_database, tmp_path, runner, superuser, relay, pruner)
        for database in (relay, pruner):
            runner.run(database.close())


def run(
    machine: type[StreamMachine], world: World, examples: int, steps: int, chosen: int | None = None
) -> None:
    """Run a machine; always the same examples, or those of the seed in a soak."""

    class Bound(machine):  # type: ignore[misc, valid-type]
        pass

    Bound.world = world
    if chosen is not None:
        seed(chosen)(Bound)
    run_state_machine_as_test(
        Bound,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=chosen is None,
            deadline=None,
            database=NO_DATABASE,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


MACHINES = pytest.mark.parametrize(
    ("machine", "wanted"),
    [(RetentionMachine, FOLLOWED | PRUNED), (EpochMachine, FENCED)],
    ids=["retention", "epochs"],
)


@MACHINES
def test_the_stream_does_what_its_oracle_says(
    world: World, machine: type[StreamMachine], wanted: set[str]
) -> None:
    """I1, I4, I5, I6 and I7 after each step; and the run has been through all that is interesting."""
    run(machine, world, 6, 25)
    assert {name for name in wanted if not world.met[name]} == set(), world.met


@pytest.mark.soak
@pytest.mark.timeout(1800)
@MACHINES
def test_the_stream_does_what_its_oracle_says_at_length(
    world: World, machine: type[StreamMachine], wanted: set[str]
) -> None:
    """The same by the seed's choice, a hundred times as long."""
    run(machine, world, 400, 80, kills.seed())
    assert {name for name in wanted if world.met[name] < 20} == set(), world.met


BROKEN = {
    "the cursor is ahead of what was written": (
        "stream_commit",
        r"set position = v_position\b",
        "set position = v_position + 1",
    ),
    "a command is forgotten": ("stream_commit", r"\bs\.command_id = ", "s.command_id <> "),
    "a late report moves progress back": (
        "stream_report_progress",
        r"greatest\(c\.reported_position, p_position\)",
        "p_position",
    ),
    "pins hold nothing": ("stream_prune", r"min\(l\.pin\)", "max(null::bigint)"),
    "consumers hold nothing": ("stream_prune", r"min\(c\.reported_position\)", "max(null::bigint)"),
    "what is not published goes": ("stream_prune", r"b\.published_at is not null and", ""),
    "a pin moves back": ("stream_renew_lease", r"greatest\(l\.pin, least\(p_pin,", "(least(p_pin,"),
    "a lease comes back": (
        "stream_renew_lease",
        r"v_lease\.ended_at is not null or v_lease\.expires_at <= clock_timestamp\(\)",
        "false",
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_stream_is_not_what_its_oracle_says(world: World, broken: str) -> None:
    """The machine fails where a function of the database is broken in this way, so that it does not hold vacuously."""
    function, right, wrong = BROKEN[broken]
    _replace(world.superuser, function, right, wrong)
    with pytest.raises(AssertionError):
        run(RetentionMachine, world, 3, 10)


def _replace(superuser: psycopg.Connection[Any], function: str, right: str, wrong: str) -> None:
    """Another body for a function of this database; its rights stay."""
    named = superuser.execute(
        "select pg_get_functiondef(p.oid) from pg_proc p"
        " where p.pronamespace = 'resolver'::regnamespace and p.proname = %s",
        (function,),
    )
    ((source,),) = named.fetchall()
    changed, times = re.subn(right, wrong, source)
    assert times == 1
    superuser.execute(changed)
