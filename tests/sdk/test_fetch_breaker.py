"""A source in trouble is left alone for a while, and its items keep their attempts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from prw_sdk.fetch.breaker import Breaker, BreakerPolicy, CircuitOpen
from prw_sdk.fetch.http import HttpNet
from prw_sdk.fetch.outcome import FetchFailed, Outcome, Recovery
from prw_sdk.fetch.polite import HostGates, Politeness
from prw_sdk.fetch.retry import RetryPolicy
from tests.sdk.jobs import net_config
from tests.sdk.misbehaving import Site, answer


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now


def opened(clock: Clock) -> Breaker:
    """A breaker that three failures have opened, for ten seconds."""
    breaker = Breaker(BreakerPolicy(3, 10.0), clock)
    for _ in range(3):
        assert not breaker.enter()
        breaker.failed()
    return breaker


def test_failures_in_a_row_open_it_and_one_page_tries_again_after_the_cool_down() -> None:
    """Closed, open, half open."""
    clock = Clock()
    breaker = opened(clock)
    with pytest.raises(CircuitOpen) as still:
        breaker.enter()
    assert still.value.seconds == 10
    clock.now = 10
    assert breaker.enter()
    with pytest.raises(CircuitOpen):
        breaker.enter()
    breaker.succeeded()
    assert not breaker.enter()


def test_a_try_that_fails_opens_it_again_for_as_long() -> None:
    """One page is enough to know."""
    clock = Clock()
    breaker = opened(clock)
    clock.now = 10
    assert breaker.enter()
    breaker.failed()
    with pytest.raises(CircuitOpen) as still:
        breaker.enter()
    assert still.value.seconds == 10


def test_a_try_that_says_nothing_leaves_the_next_one_to_try() -> None:
    """It was stopped, or robots rules forbid that page; a page begun earlier decides nothing here."""
    clock = Clock()
    breaker = opened(clock)
    clock.now = 10
    assert breaker.enter()
    breaker.gave_up(is_probe=False)
    with pytest.raises(CircuitOpen):
        breaker.enter()
    breaker.gave_up(is_probe=True)
    assert breaker.enter()


def test_an_answer_in_between_begins_the_count_anew() -> None:
    """Only failures in a row are the source's."""
    breaker = Breaker(BreakerPolicy(2, 10.0), Clock())
    for _ in range(5):
        breaker.failed()
        breaker.succeeded()
        assert not breaker.enter()


def test_a_policy_of_no_failures_never_opens() -> None:
    """Zero switches it off."""
    breaker = Breaker(BreakerPolicy(0), Clock())
    for _ in range(100):
        breaker.failed()
    assert not breaker.enter()


@asynccontextmanager
async def fetching(site: Site, cool_down: float = 60.0) -> AsyncIterator[HttpNet]:
    """A net that gives a source up after three failures, and asks for each page once."""
    config = replace(
        net_config(site), retry=RetryPolicy(1), breaker=BreakerPolicy(3, cool_down=cool_down)
    )
    net = HttpNet(config, HostGates(Politeness(1000, 16)))
    try:
        yield net
    finally:
        await net.aclose()


async def outcome(net: HttpNet, url: str) -> Outcome | None:
    """How a fetch ends."""
    try:
        await net.get(url, role="page")
    except FetchFailed as failed:
        return failed.outcome
    return None


async def test_a_source_that_is_down_is_not_asked_for_page_after_page(site: Site) -> None:
    """Its items are put off without a question, and without spending their budget (replay rule 12)."""
    url = site.serve("/a", answer(status=503))
    async with fetching(site) as net:
        ends = [await outcome(net, url) for _ in range(5)]
        with pytest.raises(FetchFailed) as open_:
            await net.get(url, role="page")
    assert open_.value.outcome.is_of_host
    assert open_.value.recovery is Recovery.LATER
    assert open_.value.retry_after is not None
    assert ends == [Outcome.UPSTREAM] * 3 + [Outcome.CIRCUIT_OPEN] * 2
    assert site.asked["/a"] == 3


async def test_a_source_that_is_up_again_is_asked_again(site: Site) -> None:
    """After the cool-down."""
    url = site.serve("/a", *[answer(status=503)] * 3, answer(b"up"))
    async with fetching(site, cool_down=0.0) as net:
        ends = [await outcome(net, url) for _ in range(5)]
    assert ends == [Outcome.UPSTREAM] * 3 + [None, None]


@pytest.mark.parametrize("status", [404, 403, 410])
async def test_pages_that_are_gone_or_refused_say_that_the_source_is_there(
    site: Site, status: int
) -> None:
    """They are about the page."""
    url = site.serve("/a", answer(status=status))
    async with fetching(site) as net:
        ends = {await outcome(net, url) for _ in range(6)}
    assert Outcome.CIRCUIT_OPEN not in ends
    assert site.asked["/a"] == 6


async def test_sources_do_not_open_each_others_circuits(site: Site) -> None:
    """One breaker a source."""
    url = site.serve("/a", answer(status=503))
    async with fetching(site) as net, fetching(site) as other:
        for _ in range(4):
            await outcome(net, url)
        assert await outcome(other, url) is Outcome.UPSTREAM
