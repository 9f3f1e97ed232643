"""kill -9 of each program in turn while the walk goes on: it ends as if nothing had happened (T8)."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from prw_base.server.postgres import Cluster, start
from tests.support import kills
from tests.support.endstate import end_state
from tests.support.kills import Kills
from tests.support.programs import KILLED
from tests.support.soundness import assert_sound
from tests.support.undisturbed import Undisturbed
from tests.support.waiting import until
from tests.support.walk import PATIENCE, Walk, walking

QUICK = {
    "PRW_COLLECT_RESOLVER__RETRY__BASE": "0.2",
    "PRW_COLLECT_RESOLVER__RETRY__CAP": "1",
    "PRW_PRODUCT_BATCH_SIZE": "7",
}
"""The collector asks a resolver that is away again soon; the product has many batches to be killed in."""


@pytest.fixture
async def walk(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Walk]:
    """A walk about to begin."""
    async with walking(cluster, tmp_path / "walk", environment=QUICK) as started:
        yield started


@pytest.fixture
def choice() -> random.Random:
    """Chooses by the run's seed."""
    return random.Random(kills.seed())


async def assert_undisturbed(walk: Walk, undisturbed: Undisturbed) -> None:
    """The same items by their keys, mappings, cases and public pages; no gap, and nothing twice."""
    await walk.collect_all()
    await walk.at_rest()
    assert await end_state(walk) == undisturbed.state
    await assert_sound(walk)


async def collect_killed(walk: Walk, faults: tuple[str, ...]) -> list[str]:
    """Run the collector with each kill armed in turn; those that struck."""
    return [fault for fault in faults if await walk.collect(faults=fault) == KILLED]


async def test_the_collector_is_killed_again_and_again(
    walk: Walk, undisturbed: Undisturbed, choice: random.Random
) -> None:
    """What was kept is kept, and what was sent is sent once (T8)."""
    faults = kills.choose("collector", 10, 8, choice)
    struck = await collect_killed(walk, faults)
    # A point that the collector has behind it when it is armed strikes no more.
    assert len(struck) >= 4, struck
    await assert_undisturbed(walk, undisturbed)


async def test_the_resolver_is_killed_again_and_again(
    walk: Walk, undisturbed: Undisturbed, choice: random.Random
) -> None:
    """Intake, workers and the stream go on where they were: one capture, one decision, one position (T8)."""
    killed = Kills(walk.resolver, kills.choose("resolver", 7, 4, choice))
    async with killed.going_on():
        await walk.collect_all()
        await walk.at_rest()
    assert len(killed.struck) >= 4, killed.struck
    await assert_undisturbed(walk, undisturbed)


async def test_the_product_is_killed_again_and_again(
    walk: Walk, undisturbed: Undisturbed, choice: random.Random
) -> None:
    """The projection is the fold of the stream, whatever happens on the way (T4, T8)."""
    killed = Kills(walk.product, kills.choose("product", 5, 4, choice))
    async with killed.going_on():
        await walk.collect_all()
        await walk.at_rest()
    assert len(killed.struck) >= 4, killed.struck
    await assert_undisturbed(walk, undisturbed)


async def test_postgresql_is_killed_while_everything_works(
    tmp_path: Path, undisturbed: Undisturbed
) -> None:
    """Every program wakes by itself when it is back, and what was acknowledged is there (T8).

    A server of its own, which flushes as it does in earnest.
    """
    cluster = start(tmp_path / "state")
    try:
        async with walking(cluster, tmp_path / "walk", environment=QUICK) as walk:
            collecting = asyncio.create_task(walk.collect_all())
            await until(lambda: captures(walk) > 20, PATIENCE)
            kill_server(cluster)
            await until(lambda: both_miss_it(walk), PATIENCE)
            assert start(tmp_path / "state").dsn == cluster.dsn
            await collecting
            await walk.at_rest()
            await assert_undisturbed(walk, undisturbed)
    finally:
        cluster.stop()


def both_miss_it(walk: Walk) -> bool:
    """Whether resolver and product have found the database away."""
    return all(
        word in program.log.read_text("utf-8")
        for program, word in ((walk.resolver, "database_away"), (walk.product, "following again"))
    )


def captures(walk: Walk) -> int:
    """How many captures the resolver has."""
    with psycopg.connect(walk.resolver_dsns["superuser"]) as conn:
        row = conn.execute("select count(*) from resolver.capture").fetchone()
    return 0 if row is None else int(row[0])


def kill_server(cluster: Cluster) -> None:
    """SIGKILL to the postmaster; its sessions end when they find it gone."""
    assert cluster.pid is not None
    os.kill(cluster.pid, signal.SIGKILL)


# All of them, and all at once: `make soak`


@pytest.mark.soak
@pytest.mark.parametrize("hit", [1, 2, 9])
@pytest.mark.parametrize("point", kills.points("collector"))
async def test_the_collector_is_killed_at_each_point(
    walk: Walk, undisturbed: Undisturbed, point: str, hit: int
) -> None:
    """Each point of the collector, early and in the middle."""
    status = await walk.collect(faults=f"{point}=kill@{hit}")
    assert hit > 2 or status == KILLED
    await assert_undisturbed(walk, undisturbed)


@pytest.mark.soak
@pytest.mark.parametrize("hit", [1, 2, 9])
@pytest.mark.parametrize("point", [*kills.points("resolver"), *kills.points("product")])
async def test_a_server_is_killed_at_each_point(
    walk: Walk, undisturbed: Undisturbed, point: str, hit: int
) -> None:
    """Each point of the resolver and of the product, early and in the middle."""
    program = walk.resolver if point in kills.points("resolver") else walk.product
    killed = Kills(program, [f"{point}=kill@{hit}"])
    async with killed.going_on():
        await walk.collect_all()
        await walk.at_rest()
    assert killed.struck
    await assert_undisturbed(walk, undisturbed)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("turn", range(12))
async def test_everything_is_killed_at_once(
    walk: Walk, undisturbed: Undisturbed, turn: int
) -> None:
    """Collector, resolver and product die at points of the seed's choice, none waiting for another."""
    choice = random.Random(f"{kills.seed()}.{turn}")
    resolver = Kills(walk.resolver, kills.choose("resolver", 5, 12, choice))
    product = Kills(walk.product, kills.choose("product", 5, 6, choice))
    async with resolver.going_on(), product.going_on():
        await collect_killed(walk, kills.choose("collector", 6, 12, choice))
        await walk.collect_all()
        await walk.at_rest()
    await assert_undisturbed(walk, undisturbed)
