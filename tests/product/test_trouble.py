"""What an operator is told of a follower in trouble, and what ends it without a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from prw.changes.v1 import change_pb2 as pb
from prw.errors import Code, PrwError
from prw_base.client import open_channel
from prw_base.server.database import Database
from prw_product.apply.model import Delivery
from prw_product.apply.service import Applied, Applier
from prw_product.follow.client import connector
from prw_product.follow.model import Waits
from prw_product.follow.service import Follower, FollowSettings
from prw_product.serve.status import COLUMNS, read_status
from tests.product import looking
from tests.product.conftest import SCOPE
from tests.product.events import change, deliveries, item, mapping, release, story
from tests.product.rpc import Resolver
from tests.support.waiting import until

_QUICK = Waits(timedelta(milliseconds=20), timedelta(milliseconds=100))


@asynccontextmanager
async def _following(
    database: Database,
    resolver: Resolver,
    read_token: Callable[[], str] | None = None,
    *,
    patient: bool = False,
) -> AsyncIterator[Follower]:
    channel = partial(open_channel, f"127.0.0.1:{resolver.port}", read_token or "token")
    settings = FollowSettings(SCOPE, 3, _QUICK, read_token, patient)
    follower = Follower(database, connector(channel, "product"), settings)
    task = asyncio.create_task(follower.run())
    try:
        yield follower
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, PrwError):
            await task


async def _status(database: Database) -> dict[str, Any]:
    (row,) = await read_status(database, SCOPE)
    return dict(zip(COLUMNS, row, strict=True))


async def _told_that_it_stopped(database: Database) -> dict[str, Any]:
    async def told() -> dict[str, Any]:
        status = await _status(database)
        return status if status["following"] == "stopped" else {}

    return await until(told)


async def test_a_revoked_token_is_waited_for_until_it_is_another(
    database: Database, resolver: Resolver, product_database: dict[str, str]
) -> None:
    """The refused token is not sent again; a new one in its file is taken up without a restart."""
    dsn, tokens, read = product_database["superuser"], ["first"], list[str]()
    resolver.changes = story()[:5]

    def read_token() -> str:
        read.append(tokens[-1])
        return read[-1]

    async with _following(database, resolver, read_token) as follower:
        await until(lambda: looking.progress(dsn) == 5)
        resolver.revoked = {"first"}
        await resolver.stop()
        resolver.changes = story()
        await resolver.start()
        status = await _told_that_it_stopped(database)
        assert status["trouble"].startswith("CREDENTIAL_REVOKED: revoked (progress 5; provision")
        looked = len(read)
        await until(lambda: len(read) >= looked + 4)
        tokens.append("second")
        await until(lambda: looking.progress(dsn) == 12)
        assert follower.standing.stopped is None
        assert (await _status(database))["following"] == "following"
    assert resolver.tokens == ["first", "first", "second"]


async def test_a_first_token_that_is_refused_ends_a_program_but_not_a_patient_one(
    database: Database, resolver: Resolver, product_database: dict[str, str]
) -> None:
    """``follow`` says at once what is wrong; beside ``serve`` it waits for a better token."""
    refusal = PrwError(Code.INVALID_TOKEN, "no")
    resolver.changes, resolver.refusals["register"] = story(), [refusal]
    channel = partial(open_channel, f"127.0.0.1:{resolver.port}", "token")
    settings = FollowSettings(SCOPE, 3, _QUICK, lambda: "token")
    with pytest.raises(PrwError, match="provision"):
        await Follower(database, connector(channel, "product"), settings).run()
    resolver.refusals["register"], tokens = [refusal], ["first"]
    async with _following(database, resolver, lambda: tokens[-1], patient=True) as follower:
        await until(lambda: follower.standing.stopped is not None)
        tokens.append("second")
        await until(lambda: looking.progress(product_database["superuser"]) == 12)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (Code.CURSOR_AHEAD, "prw product rebuild"),
        (Code.CURSOR_PRUNED, "prw product rebuild"),
        (Code.EPOCH_FENCED, "prw product rebuild"),
    ],
)
async def test_status_tells_what_ended_following(
    database: Database, resolver: Resolver, code: Code, advice: str
) -> None:
    """The stop is on record after the program has ended, with what an operator must do."""
    resolver.changes = story()[:2]
    async with _following(database, resolver):
        await until(lambda: resolver.reported == 2)
    resolver.refusals["stream"] = [PrwError(code, "no")]
    if code is Code.EPOCH_FENCED:
        resolver.epoch += 1
    async with _following(database, resolver):
        status = await _told_that_it_stopped(database)
    assert status["trouble"].split(":")[0] == code.value
    assert advice in status["trouble"]


@pytest.mark.parametrize(
    ("last", "held"),
    [
        (change(2, b"\xff\xff"), "position 2: SCHEMA_INVALID, "),
        (change(2, mapping("lst_1", "itm_9")), "position 2 waits for catalog_item itm_9 at 1"),
        (
            change(2, release("itm_1", {"lst_1": 4})),
            "position 2 waits for listing_mapping lst_1 at 4",
        ),
        (change(3, item("itm_3")), "position 2 has not come"),
        (change(2, item("itm_2")), None),
    ],
    ids=["poison", "parked", "parked release", "gap", "nothing"],
)
async def test_status_tells_what_holds_progress(
    applier: Applier, database: Database, last: pb.Change, held: str | None
) -> None:
    """The first position that is not processed, and why."""
    await applier.apply(deliveries([change(1, item("itm_1")), last]))
    told = (await _status(database))["held_by"]
    assert told == held or (held is not None and told is not None and told.startswith(held))


async def test_a_batch_that_takes_too_long_is_halved(
    database: Database,
    resolver: Resolver,
    product_database: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A statement timeout of the whole costs smaller transactions, not an endless repetition."""
    dsn, sizes = product_database["superuser"], list[int]()
    whole = Applier.apply

    async def slow(applier: Applier, given: tuple[Delivery, ...]) -> Applied:
        sizes.append(len(given))
        if len(given) > 1:
            raise psycopg.errors.QueryCanceled("canceling statement due to statement timeout")
        return await whole(applier, given)

    monkeypatch.setattr(Applier, "apply", slow)
    resolver.changes = story()
    async with _following(database, resolver) as follower:
        await until(lambda: looking.progress(dsn) == 12)
        assert follower.standing.failures == 0
    assert sorted(set(sizes)) == [1, 2, 3]


async def test_a_change_that_is_none_is_an_alarm_and_no_crash(
    database: Database, resolver: Resolver, product_database: dict[str, str]
) -> None:
    """A position beyond all numbers or a time beyond all calendars is asked for again."""
    late = change(1, item("itm_1"))
    late.committed_at.seconds = 2**62
    beyond = pb.Change(position=2**64 - 1, event=b"x")
    spoilt = [[late], [beyond]]
    resolver.changes = story()
    resolver.deliver = lambda batch: spoilt.pop() if spoilt else batch
    async with _following(database, resolver):
        await until(lambda: looking.progress(product_database["superuser"]) == 12)
    assert spoilt == []
