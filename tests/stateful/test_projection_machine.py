"""The product's consumer beside an oracle, step by step on PostgreSQL (T4)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from prw_base.server.database import Database
from prw_product.apply import service
from prw_product.apply.plan import Known, Plan, plan
from tests.stateful.consuming import ConsumerMachine, World
from tests.support import kills


@pytest.fixture
def world(product_database: dict[str, str]) -> Iterator[World]:
    """A database for all examples of a test."""
    with (
        asyncio.Runner() as runner,
        psycopg.connect(product_database["superuser"], autocommit=True) as superuser,
    ):
        database = runner.run(Database.open(product_database["product_app"], 1, 2))
        yield World(database, runner, superuser)
        runner.run(database.close())


def run(world: World, examples: int, steps: int, chosen: int | None = None) -> None:
    """Run the machine; always the same examples, or those of the seed in a soak."""

    class Bound(ConsumerMachine):
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
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


WANTED = ("repeated", "parked", "released", "crashed", "gaps")


def test_t4_a_consumer_does_what_its_oracle_says(world: World) -> None:
    """T4, I3, I8: after each delivery and crash; and the run has been through all that is interesting."""
    run(world, 6, 12)
    assert {name for name in WANTED if not world.met[name]} == set(), world.met


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_t4_a_consumer_does_what_its_oracle_says_at_length(world: World) -> None:
    """The same by the seed's choice, for long."""
    run(world, 500, 60, kills.seed())
    assert {name for name in WANTED if world.met[name] < 50} == set(), world.met


def test_t4_a_consumer_that_forgets_what_waits_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine fails where a plan passes what it should park, so that it does not hold vacuously."""

    def careless(*given: object) -> Plan:
        fresh, waiting, known = given
        made = plan(fresh, waiting, known)  # type: ignore[arg-type]
        assert isinstance(known, Known)
        return Plan(made.applied, (*made.stale, *made.parked), (), made.released)

    monkeypatch.setattr(service, "plan", careless)
    with pytest.raises(AssertionError):
        run(world, 3, 10)
