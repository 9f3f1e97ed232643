"""The demo ends when everything is at rest, and says what is stuck where it is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prw_examples.demo.audit.store import ProductStanding, ResolverStanding
from prw_examples.demo.children import DemoFailed
from prw_examples.demo.rest import Standing, until_at_rest

RESOLVER = ResolverStanding(
    captures=3,
    unresolved=0,
    jobs=0,
    dead_letters=(),
    wakes=0,
    releases_due=0,
    submitted=3,
    accepted=3,
    in_review=0,
    history_epoch=1,
    position=9,
)
PRODUCT = ProductStanding(generation=1, progress=9, parked=0, dead_letters=())
REST = Standing(RESOLVER, PRODUCT, public_items=1)


async def wait(*standings: Standing) -> list[Standing]:
    """Wait over standings that follow each other, the last one for ever; what was told."""
    coming, told = list(standings), list[Standing]()

    async def look() -> Standing:
        return coming.pop(0) if len(coming) > 1 else coming[0]

    await until_at_rest(look, told.append, patience=0)
    return told


async def test_it_waits_as_long_as_something_moves() -> None:
    """Each change is told, and rest ends the waiting."""
    following = replace(REST, product=replace(PRODUCT, progress=4))
    assert await wait(following, REST) == [following, REST]


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (replace(RESOLVER, unresolved=1), "1 captures not resolved"),
        (replace(RESOLVER, jobs=2), "2 jobs waiting"),
        (replace(RESOLVER, wakes=1), "1 cases to be identified again"),
        (replace(RESOLVER, releases_due=3), "3 items to be released"),
        (replace(RESOLVER, position=12), "3 changes not applied"),
    ],
)
async def test_what_is_stuck_is_named(left: ResolverStanding, said: str) -> None:
    """Where nothing moves any more, the failure says what is left to be done."""
    with pytest.raises(DemoFailed, match=said):
        await wait(replace(REST, resolver=left))


async def test_a_dead_letter_ends_the_waiting_at_once() -> None:
    """What needs a person is told in its own words."""
    broken = replace(RESOLVER, dead_letters=("cap_1 at extract: SCHEMA_INVALID: no record",))
    with pytest.raises(DemoFailed, match="dead letter of the resolver: cap_1 at extract"):
        await wait(replace(REST, resolver=broken))
