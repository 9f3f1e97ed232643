"""Takes turns at a host as a process of its own: ``python -m tests.sdk.turns_program DO HOST RATE AT_ONCE TURNS``."""

from __future__ import annotations

import asyncio
import sys

from prw_sdk.fetch.gates import HostGates, Politeness
from prw_sdk.fetch.guard import AddressRules
from prw_sdk.fetch.http import HttpNet, NetConfig
from prw_sdk.fetch.places import now
from prw_sdk.fetch.polite import user_agent


def say(word: object) -> None:
    """Say it to whoever started this."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


async def hold(gates: HostGates, host: str, turns: int) -> None:
    """Take so many turns and keep them until killed."""
    async with asyncio.TaskGroup() as group:
        for _ in range(turns):
            group.create_task(_held(gates, host))


async def _held(gates: HostGates, host: str) -> None:
    async with gates.turn(host):
        say("held")
        await asyncio.Event().wait()


async def take(gates: HostGates, host: str, turns: int) -> None:
    """Take turns, and say when each began."""

    async def one() -> None:
        async with gates.turn(host):
            say(now())

    async with asyncio.TaskGroup() as group:
        for _ in range(turns):
            group.create_task(one())


async def pause(gates: HostGates, host: str, turns: int) -> None:
    """Have the host left alone for an hour."""
    gates.pause(host, 3600.0)
    say("paused")


async def get(gates: HostGates, host: str, turns: int) -> None:
    """Fetch so many pages of the host."""
    rules = AddressRules(frozenset({host}))
    net = HttpNet(NetConfig(user_agent("ops@example.org"), rules), gates)
    async with asyncio.TaskGroup() as group:
        for number in range(turns):
            group.create_task(net.get(f"http://{host}/{number}", role="page"))
    await net.aclose()
    say("done")


def main() -> None:
    """Do as told."""
    what, host, rate, at_once, turns = sys.argv[1:]
    gates = HostGates(Politeness(float(rate), int(at_once)))
    doing = {"hold": hold, "take": take, "pause": pause, "get": get}[what]
    asyncio.run(doing(gates, host, int(turns)))


if __name__ == "__main__":
    main()
