"""Two resolvers that serve and work over one database, and several collectors at one street, all at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from prw_base.server.postgres import Cluster
from tests.support import invariants
from tests.support.endstate import end_state
from tests.support.programs import Program
from tests.support.undisturbed import Undisturbed
from tests.support.walk import Walk, walking


async def test_two_of_everything_end_as_one_of_each(
    cluster: Cluster, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    """Two collectors share one spool and a third has its own; the catalogue is that of a single walk, with no twin."""
    async with AsyncExitStack() as stack:
        walk = await stack.enter_async_context(walking(cluster, tmp_path / "walk"))
        twin = second_resolver(walk)
        stack.push_async_callback(twin.kill)
        assert await twin.start()
        own = with_settings(walk, spool=tmp_path / "spool", address=twin.told["address"])
        shared = with_settings(walk, spool=walk.layout.spool, address=twin.told["address"])
        await asyncio.gather(*(to_the_end(one) for one in (walk, shared, own)))
        await walk.at_rest()
        figures = await walk.figures()
        assert figures.faults == {}
        assert figures.submitted > undisturbed.figures.submitted
        invariants.assert_stream_holds(walk.resolver_dsns["superuser"])
        assert await end_state(walk) == undisturbed.state


def second_resolver(walk: Walk) -> Program:
    """Another process on the same databases, objects and control plane."""
    command: Sequence[str] = walk.resolver.command
    at = command.index("--address")
    elsewhere = (*command[: at + 1], "127.0.0.1:0", *command[at + 2 :])
    return Program("twin", elsewhere, walk.environment, walk.layout.logs)


def with_settings(walk: Walk, spool: Path, address: str) -> Walk:
    """The same walk for a collector with another spool and another resolver."""
    settings = {"PRW_COLLECT_SPOOL": str(spool), "PRW_COLLECT_RESOLVER__ADDRESS": address}
    return replace(walk, environment={**walk.environment, **settings})


async def to_the_end(walk: Walk) -> None:
    """Run a collector until nothing is left to do."""
    while await walk.collect() not in (0, 1):
        continue
