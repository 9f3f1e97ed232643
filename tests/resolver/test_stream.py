"""The one way of writing a stream (AW-01): positions, groups, commands, epochs, and connections that die."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from prw.errors import Code, PrwError
from prw_base import faults
from prw_base.server.database import Database
from prw_resolver.stream.committer import CONNECTION_TRIES, Committer
from prw_resolver.stream.epoch import EpochFile
from prw_resolver.stream.model import Change, Committed, KeyLookup, Stream
from prw_resolver.stream.signal import Signal
from tests.resolver.catalogue import Rooms, rooms
from tests.resolver.writing import CATALOG, TENANT, introduction, owner
from tests.support.cutting import cutting
from tests.support.invariants import assert_stream_holds
from tests.support.waiting import until

STREAM = Stream(TENANT, CATALOG, 1)
KILL_ONE = """
select pg_terminate_backend(pid) as killed from pg_stat_activity
 where datname = current_database() and usename = 'resolver_app' and state = 'active' limit 1
"""


@pytest.fixture
async def held(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Rooms]:
    """Rooms over an empty catalogue."""
    async with rooms(resolver_database["resolver_app"], tmp_path) as opened:
        yield opened


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    """No fault point stays armed after a test."""
    faults.disarm()
    yield
    faults.disarm()


def failing(held: Rooms, name: str, code: Code = Code.KEY_TAKEN) -> Change:
    """A change that the database refuses."""
    change = introduction(held.vocabulary, name)
    if code is Code.KEY_TAKEN:
        taken = tuple(replace(lookup, item_id="itm_other") for lookup in change.lookups)
        return replace(change, lookups=taken)
    return replace(change, facts=tuple(replace(fact, revision=7) for fact in change.facts))


async def commit_all(held: Rooms, changes: list[Change]) -> list[Committed | BaseException]:
    """Commit them at once; what each ended with."""
    commits = [held.committer.commit(change) for change in changes]
    return await asyncio.gather(*commits, return_exceptions=True)


async def test_positions_have_no_gap_and_the_bad_one_fails_alone(
    held: Rooms, resolver_database: dict[str, str]
) -> None:
    """T3, I1, I2: sixty callers at once, every fifth of which fails; nobody else notices."""
    changes = [
        failing(held, str(number), (Code.KEY_TAKEN, Code.STALE_FACT_REVISION)[number % 2])
        if number % 5 == 0
        else introduction(held.vocabulary, str(number))
        for number in range(60)
    ]
    answers = await commit_all(held, changes)
    for number, answer in enumerate(answers):
        if number % 5:
            assert isinstance(answer, Committed), answer
            assert answer.answer == {"name": str(number)}
            assert answer.last_position - answer.first_position == 2
        else:
            assert isinstance(answer, PrwError), answer
            assert answer.code in (Code.KEY_TAKEN, Code.STALE_FACT_REVISION)
    good = sorted(answer.first_position for answer in answers if isinstance(answer, Committed))
    assert good == list(range(1, 48 * 3, 3))
    assert (await held.feed.page(STREAM, 0)).cursor_position == 144
    assert_stream_holds(resolver_database["superuser"])


async def test_writers_of_several_processes_take_turns(
    held: Rooms,
    tmp_path: Path,
    resolver_database: dict[str, str],
    superuser: psycopg.Connection[dict[str, Any]],
) -> None:
    """T1: 64 writers through four committers, backends killed meanwhile: every change is committed once.

    Seen to fail when the cursor is read without its lock.
    """
    async with await Database.open(resolver_database["resolver_app"], 1, 8) as database:
        committers = [
            Committer(database, EpochFile(tmp_path / "epoch.json"), Signal()) for _ in range(4)
        ]
        changes = [introduction(held.vocabulary, str(number)) for number in range(64)]
        writing = asyncio.gather(
            *(committers[number % 4].commit(change) for number, change in enumerate(changes))
        )
        # One fewer than a group is tried, since all of them may hit the same committer.
        for _ in range(CONNECTION_TRIES - 1):
            await until(lambda: superuser.execute(KILL_ONE).fetchone())
        answers = await writing
    assert sorted(answer.first_position for answer in answers) == list(range(1, 64 * 3, 3))
    assert_stream_holds(resolver_database["superuser"])


async def test_callers_that_wait_share_one_transaction(
    held: Rooms, superuser: psycopg.Connection[dict[str, Any]]
) -> None:
    """What has queued up while a group commits becomes the next group."""
    await commit_all(held, [introduction(held.vocabulary, str(number)) for number in range(40)])
    row = superuser.execute("select count(distinct xmin::text) as groups from outbox").fetchone()
    assert row is not None
    assert row["groups"] < 10


async def test_a_command_asked_again_gives_its_former_answer(
    held: Rooms, resolver_database: dict[str, str]
) -> None:
    """The same command id and digest: one decision, one set of positions, replayed; also within one group."""
    change = introduction(held.vocabulary, "one")
    first, twin = await commit_all(held, [change, change])
    again = await held.committer.commit(change)
    assert isinstance(first, Committed)
    assert isinstance(twin, Committed)
    assert (first.replayed, twin.replayed, again.replayed) == (False, True, True)
    assert replace(again, replayed=False) == replace(twin, replayed=False) == first
    assert (await held.feed.page(STREAM, 0)).cursor_position == 3
    assert_stream_holds(resolver_database["superuser"])


async def test_another_command_under_a_used_id_is_refused(held: Rooms) -> None:
    """IDEMPOTENCY_CONFLICT, and nothing of it is written."""
    await held.committer.commit(introduction(held.vocabulary, "one", command_id="c"))
    other = introduction(held.vocabulary, "two", command_id="c", digest="other")
    with pytest.raises(PrwError) as refused:
        await held.committer.commit(other)
    assert refused.value.code is Code.IDEMPOTENCY_CONFLICT
    assert (await held.feed.page(STREAM, 0)).cursor_position == 3


async def test_a_stream_of_another_catalogue_counts_for_itself(held: Rooms) -> None:
    """A stream is (tenant, catalogue, epoch)."""
    await held.committer.commit(introduction(held.vocabulary, "one"))
    empty = Change("c", TENANT, "cat_other", "d")
    assert (await held.committer.commit(empty)).last_position == 0
    other = await held.feed.stream(TENANT, "cat_other")
    assert (await held.feed.page(other, 0)).cursor_position == 0


def fence(folder: Path) -> None:
    """What the operator's fencing does to the control plane."""
    file = folder / "epoch.json"
    identity = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps(identity | {"history_epoch": 2}), "utf-8")


async def test_a_fenced_epoch_writes_nothing(held: Rooms, tmp_path: Path) -> None:
    """EPOCH_FENCED for every caller in the group, and no position is taken."""
    await held.committer.commit(introduction(held.vocabulary, "one"))
    fence(tmp_path)
    changes = [introduction(held.vocabulary, name) for name in ("two", "three")]
    for answer in await commit_all(held, changes):
        assert isinstance(answer, PrwError)
        assert answer.code is Code.EPOCH_FENCED
    with pytest.raises(PrwError) as refused:
        await held.feed.page(STREAM, 0)
    assert refused.value.code is Code.EPOCH_FENCED
    async with held.database.transaction(TENANT) as conn:
        row = await (await conn.execute("select max(position) from resolver.outbox")).fetchone()
    assert row == (3,)


async def test_an_epoch_that_is_fenced_within_the_transaction_writes_nothing(
    held: Rooms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The committer checks its lease again before COMMIT."""
    await held.committer.commit(introduction(held.vocabulary, "one"))

    def at(point: str) -> None:
        if point == "stream.in_transaction":
            fence(tmp_path)

    monkeypatch.setattr("prw_resolver.stream.committer.fault", at)
    with pytest.raises(PrwError) as refused:
        await held.committer.commit(introduction(held.vocabulary, "two"))
    assert refused.value.code is Code.EPOCH_FENCED
    async with held.database.transaction(TENANT) as conn:
        row = await (await conn.execute("select max(position) from resolver.outbox")).fetchone()
    assert row == (3,)


async def test_a_closed_cursor_refuses_writers(
    held: Rooms, resolver_database: dict[str, str]
) -> None:
    """The database refuses too, whatever the control plane says."""
    await held.committer.commit(introduction(held.vocabulary, "one"))
    with owner(resolver_database) as conn:
        conn.execute("update resolver.stream_cursor set status = 'fenced'")
    with pytest.raises(PrwError) as refused:
        await held.committer.commit(introduction(held.vocabulary, "two"))
    assert refused.value.code is Code.EPOCH_FENCED


async def test_the_queue_is_bounded(held: Rooms, tmp_path: Path) -> None:
    """OVERLOADED with a time to retry after, and the others are served."""
    committer = Committer(
        held.database, EpochFile(tmp_path / "epoch.json"), Signal(), queue_limit=3
    )
    await committer.commit(introduction(held.vocabulary, "first"))
    names = [str(number) for number in range(8)]
    answers = await asyncio.gather(
        *(committer.commit(introduction(held.vocabulary, name)) for name in names),
        return_exceptions=True,
    )
    refused = [answer for answer in answers if isinstance(answer, PrwError)]
    assert {error.code for error in refused} == {Code.OVERLOADED}
    assert all(error.retry_after is not None for error in refused)
    assert 0 < len(refused) < len(names)
    assert sum(isinstance(answer, Committed) for answer in answers) == len(names) - len(refused)


@pytest.mark.parametrize(
    "point", ["stream.before_commit", "stream.in_transaction", "stream.after_commit"]
)
async def test_a_fault_around_the_commit_leaves_one_position_per_command(
    held: Rooms, resolver_database: dict[str, str], point: str
) -> None:
    """T3: the caller asks again with the same command, wherever it was struck."""
    change = introduction(held.vocabulary, "one")
    faults.arm(f"{point}=raise@1")
    with pytest.raises(faults.InjectedFault):
        await held.committer.commit(change)
    answer = await held.committer.commit(change)
    assert (answer.first_position, answer.last_position) == (1, 3)
    assert answer.replayed is (point == "stream.after_commit")
    assert_stream_holds(resolver_database["superuser"])


@pytest.mark.parametrize("before", [True, False], ids=["before the server sees it", "after it"])
@pytest.mark.parametrize("word", [b"stream_commit", b"COMMIT"])
async def test_a_connection_cut_around_the_commit_leaves_one_position_per_command(
    held: Rooms, resolver_database: dict[str, str], tmp_path: Path, word: bytes, before: bool
) -> None:
    """T3: the committer asks again by command id; its callers never notice.

    Seen to fail when the command id is not looked up.
    """
    async with (
        cutting(resolver_database["resolver_app"]) as (cutter, dsn),
        await Database.open(dsn, 1, 2) as database,
    ):
        committer = Committer(database, EpochFile(tmp_path / "epoch.json"), Signal())
        await committer.commit(Change("warm", TENANT, CATALOG, "d"))
        cutter.arm(word, before=before)
        changes = [introduction(held.vocabulary, str(number)) for number in range(5)]
        answers = await asyncio.gather(*(committer.commit(change) for change in changes))
        await committer.close()
    assert cutter.cuts == 1
    assert sorted(answer.first_position for answer in answers) == [1, 4, 7, 10, 13]
    assert_stream_holds(resolver_database["superuser"])


async def test_a_backend_that_is_killed_under_the_lock_leaves_no_hole(
    held: Rooms, resolver_database: dict[str, str], superuser: psycopg.Connection[dict[str, Any]]
) -> None:
    """T1: the writer waits for the cursor, loses its backend, and commits on another one."""
    await held.committer.commit(introduction(held.vocabulary, "one"))
    with psycopg.connect(resolver_database["superuser"]) as sleeper:
        sleeper.execute("select * from resolver.stream_cursor for update")
        writer = asyncio.create_task(held.committer.commit(introduction(held.vocabulary, "two")))
        waiting = "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        victim = await until(lambda: superuser.execute(waiting).fetchone())
        assert victim is not None
        superuser.execute("select pg_terminate_backend(%s)", (victim["pid"],))
    assert (await writer).first_position == 4
    assert_stream_holds(resolver_database["superuser"])


async def test_a_callers_deadline_never_cuts_off_its_group(
    held: Rooms, resolver_database: dict[str, str]
) -> None:
    """A caller that gives up leaves its change to be committed with the others."""
    with psycopg.connect(resolver_database["superuser"]) as sleeper:
        await held.committer.commit(introduction(held.vocabulary, "one"))
        sleeper.execute("select * from resolver.stream_cursor for update")
        hasty = asyncio.create_task(held.committer.commit(introduction(held.vocabulary, "two")))
        patient = asyncio.create_task(held.committer.commit(introduction(held.vocabulary, "three")))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(hasty, 0.2)
    assert (await patient).last_position == 9
    assert_stream_holds(resolver_database["superuser"])


async def test_a_delayed_writer_blocks_its_own_stream_only(
    held: Rooms, resolver_database: dict[str, str]
) -> None:
    """SPK-05: the cursor's row is the lock, and each stream has its own."""
    await held.committer.commit(introduction(held.vocabulary, "one"))
    with psycopg.connect(resolver_database["superuser"]) as sleeper:
        sleeper.execute(
            "select * from resolver.stream_cursor where catalog_id = %s for update", (CATALOG,)
        )
        blocked = asyncio.create_task(held.committer.commit(introduction(held.vocabulary, "two")))
        await held.committer.commit(Change("c", TENANT, "cat_other", "d"))
        assert not blocked.done()
    assert (await blocked).last_position == 6


async def test_what_was_looked_up_must_still_hold(held: Rooms) -> None:
    """A key that somebody else got meanwhile is KEY_TAKEN; so is one whose owner was expected and is gone."""
    first = introduction(held.vocabulary, "one")
    await held.committer.commit(first)
    (lookup,) = first.lookups
    for expected in (None, "itm_other"):
        late = Change(
            f"c-{expected}", TENANT, CATALOG, "d", lookups=(replace(lookup, item_id=expected),)
        )
        with pytest.raises(PrwError) as refused:
            await held.committer.commit(late)
        assert refused.value.code is Code.KEY_TAKEN
    owner = KeyLookup(lookup.class_id, lookup.generation, lookup.identity_hash, first.facts[0].id)
    await held.committer.commit(Change("c", TENANT, CATALOG, "d", lookups=(owner,)))


def test_a_change_with_facts_needs_a_decision(held: Rooms) -> None:
    """INV-05, before anything is sent."""
    with pytest.raises(ValueError, match="INV-05"):
        replace(introduction(held.vocabulary, "one"), decision=None)
