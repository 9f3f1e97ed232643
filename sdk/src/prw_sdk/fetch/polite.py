"""Good manners: robots.txt (RFC 9309), an honest name, and the limits of each host (`gates`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import version

from protego import Protego

from prw_sdk.fetch.address import Address
from prw_sdk.fetch.gates import HostBusy, HostGates, Politeness, clear_pause
from prw_sdk.fetch.outcome import FetchFailed, Outcome

__all__ = [
    "HostBusy",
    "HostGates",
    "Politeness",
    "Robots",
    "RobotsAnswer",
    "clear_pause",
    "parse",
    "user_agent",
]

PRODUCT = "PRW-collector"
ROBOTS_LIMIT = 500 * 1024


def user_agent(contact: str) -> str:
    """The name that sources see: product, version, and whom to ask."""
    return f"{PRODUCT}/{version('prw-sdk')} (+{contact})"


@dataclass(frozen=True, slots=True)
class RobotsAnswer:
    """What asking for robots.txt gave: a status and a body, or None for no answer at all."""

    status: int | None
    body: bytes = b""


AskRobots = Callable[[str], Awaitable[RobotsAnswer]]


class Robots:
    """The robots rules of each origin, asked for once a run.

    `failed` makes the error for an outcome, a message and an address, without anything secret in it.
    """

    def __init__(
        self, ask: AskRobots, gates: HostGates, failed: Callable[[Outcome, str, str], FetchFailed]
    ) -> None:
        self._ask = ask
        self._gates = gates
        self._failed = failed
        self._rules: dict[str, asyncio.Task[Protego | None]] = {}

    async def permit(self, target: Address) -> None:
        """Return if the address may be fetched; raises `FetchFailed` if rules forbid it or cannot be read."""
        if target.path == "/robots.txt":
            # implicitly allowed (RFC 9309, section 2.2.2)
            return
        known = self._rules.get(target.origin)
        rules = known.result() if known and known.done() else await self._of(target)
        if rules is None:
            # RFC 9309 section 2.3.1.4: unreachable rules are taken as forbidding everything, for now
            raise self._failed(
                Outcome.ROBOTS_UNREACHABLE, "robots.txt could not be read", target.text
            )
        if not rules.can_fetch(target.text, PRODUCT):
            raise self._failed(
                Outcome.ROBOTS_FORBIDDEN, "robots.txt forbids this address", target.text
            )

    async def _of(self, target: Address) -> Protego | None:
        origin = target.origin
        if origin not in self._rules:
            self._rules[origin] = asyncio.create_task(self._load(origin, target.netloc))
        # shielded: one impatient caller must not cancel the answer that others wait for
        return await asyncio.shield(self._rules[origin])

    async def _load(self, origin: str, host: str) -> Protego | None:
        rules = parse(await self._ask(f"{origin}/robots.txt"))
        delay = None if rules is None else _delay(rules)
        if delay is not None:
            self._gates.follow_crawl_delay(host, delay)
        return rules


def _delay(rules: Protego) -> float | None:
    """Seconds between two requests, by Crawl-delay or by Request-rate, whichever is longer."""
    rate, delay = rules.request_rate(PRODUCT), rules.crawl_delay(PRODUCT)
    spaced = None if rate is None or not rate.requests else rate.seconds / rate.requests
    return max((one for one in (delay, spaced) if one is not None), default=None)


def parse(answer: RobotsAnswer) -> Protego | None:
    """The rules of an answer (RFC 9309 section 2.3.1); None when they are unreachable.

    A 4xx means that there are none. A 429 is the exception: a host that is out of breath has not said yes.
    """
    if answer.status is None or answer.status == 429 or answer.status >= 500:
        return None
    if 200 <= answer.status < 300:
        return Protego.parse(answer.body[:ROBOTS_LIMIT].decode("utf-8-sig", errors="replace"))
    return Protego.parse("")
