"""Checkpoints of collectors that keep nothing between runs (replay rules 4 and 7)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from prw.collector.v1 import checkpoint_service_pb2 as pb
from prw.errors import Code, PrwError
from tests.resolver.collecting import AT, Running, gathered, refusal, timestamp

Rows = psycopg.Connection[dict[str, Any]]

POISON = pb.DeferredItem(
    native_record_id="p/2",
    url="https://shop.example/p/2",
    outcome=pb.DEFERRED_OUTCOME_POISON,
    code="NOT_A_RECORD",
    error="no product markup",
    attempts=5,
)
RETRY = pb.DeferredItem(
    native_record_id="p/1",
    url="https://shop.example/p/1",
    outcome=pb.DEFERRED_OUTCOME_RETRY_AT,
    code="UPSTREAM_503",
    attempts=1,
    retry_at=timestamp(AT + timedelta(hours=1)),
)


async def test_a_checkpoint_that_is_not_there_has_revision_0(resolver: Running) -> None:
    """A first run starts from nothing, and that is an answer."""
    collector = await resolver.collector()
    held = await collector.checkpoint()
    assert (held.revision, held.state, list(held.deferred)) == (0, "{}", [])
    assert not held.HasField("updated_at")


async def test_state_and_what_was_put_off_come_back_as_they_were(resolver: Running) -> None:
    """To the letter and the microsecond; each advance replaces what was put off before."""
    collector = await resolver.collector()
    state = '{"page": 2,  "Käse": [1.50, null]}'
    advanced = await collector.advance(0, state, [RETRY, POISON])
    assert await collector.checkpoint() == advanced
    assert (advanced.revision, advanced.state, list(advanced.deferred)) == (
        1,
        state,
        [RETRY, POISON],
    )
    assert (await collector.advance(1, "{}", [POISON])).revision == 2
    assert list((await collector.checkpoint()).deferred) == [POISON]


async def test_a_stale_run_is_told_the_winner(resolver: Running) -> None:
    """CHECKPOINT_CONFLICT with the persisted revision and state; nothing newer is overwritten (replay rule 7)."""
    collector = await resolver.collector()
    await collector.advance(0, '{"page": 1}')
    await collector.advance(1, '{"page": 2}')
    for expected in (0, 1, 3):
        refused = await refusal(collector.advance(expected, '{"page": 9}'))
        assert refused.code is Code.CHECKPOINT_CONFLICT
        assert refused.details == {"revision": "2", "state": '{"page": 2}'}
    assert (await collector.checkpoint()).state == '{"page": 2}'


@pytest.mark.parametrize("letter", ["x", "ä", "\U0001f9c0"])
async def test_a_winner_s_long_state_is_left_out_of_the_error(
    resolver: Running, letter: str
) -> None:
    """An error has room for 8 KiB; the revision is always told, the state is asked for."""
    collector = await resolver.collector()
    for length in (500, 2000, 16000):
        state = json.dumps({"at": letter * length}, ensure_ascii=False)
        at = (await collector.checkpoint()).revision
        await collector.advance(at, state)
        refused = await refusal(collector.advance(at, "{}"))
        assert (refused.code, refused.details["revision"]) == (
            Code.CHECKPOINT_CONFLICT,
            str(at + 1),
        )
        assert refused.details.get("state", state) == state


async def test_of_runs_that_advance_at_once_one_wins(resolver: Running) -> None:
    """From nothing and from a revision: one is answered, the others are told the winner."""
    collectors = [await resolver.collector(instance=f"ci_{number}") for number in range(6)]
    for expected in range(3):
        told = await gathered(
            *(
                collector.advance(expected, json.dumps({"run": number, "from": expected}))
                for number, collector in enumerate(collectors)
            )
        )
        [winner] = [one for one in told if not isinstance(one, PrwError)]
        losers = [one for one in told if isinstance(one, PrwError)]
        assert {one.code for one in losers} == {Code.CHECKPOINT_CONFLICT}
        assert {one.details["state"] for one in losers} == {winner.state}
        assert await collectors[0].checkpoint() == winner


async def test_the_very_same_step_again_is_answered_as_before(resolver: Running) -> None:
    """Whose answer was lost may ask again; a step with other deferred items is another one."""
    collector = await resolver.collector()
    first = await collector.advance(0, '{"page": 1}', [RETRY])
    assert await collector.advance(0, '{"page": 1}', [RETRY]) == first
    refused = await refusal(collector.advance(0, '{"page": 1}', [POISON]))
    assert refused.code is Code.CHECKPOINT_CONFLICT


async def test_each_source_adapter_and_partition_has_its_own(resolver: Running) -> None:
    """And each tenant: the same names of another are another checkpoint."""
    collector = await resolver.collector(sources=("src_one", "src_two"))
    keys: list[dict[str, Any]] = [
        {},
        {"partition": "de"},
        {"adapter": "shop2"},
        {"source_id": "ten_synth_a.src_two"},
    ]
    for number, key in enumerate(keys):
        assert (await collector.checkpoint(**key)).revision == 0
        await collector.advance(0, json.dumps({"n": number}), **key)
    for number, key in enumerate(keys):
        held = await collector.checkpoint(**key)
        assert (held.revision, held.state) == (1, json.dumps({"n": number}))
    assert len({(await collector.checkpoint(**key)).key.SerializeToString() for key in keys}) == 4


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("ten_synth_a.src_two", Code.SOURCE_SCOPE_DENIED),
        ("ten_synth_b.src_one", Code.TENANT_SCOPE_DENIED),
        ("src_none", Code.SOURCE_SCOPE_DENIED),
    ],
)
async def test_only_granted_sources_have_checkpoints(
    resolver: Running, superuser: Rows, source: str, code: Code
) -> None:
    """Reading and advancing alike."""
    collector = await resolver.collector()
    for call in (
        collector.checkpoint(source_id=source),
        collector.advance(0, "{}", source_id=source),
    ):
        refused = await refusal(call)
        assert (refused.code, refused.field) == (code, "key.source_id")
    assert superuser.execute("select from collector_checkpoint").fetchall() == []


@pytest.mark.parametrize(
    ("state", "deferred", "field"),
    [
        ("[]", [], "state"),
        ("page 2", [], "state"),
        ('{"at": NaN}', [], "state"),
        ('{"at": ' + "[" * 20_000 + "]" * 20_000 + "}", [], "state"),
        ('{"at": ' + "9" * 60_000 + "}", [], "state"),
        ("{" + " " * 65_536 + "}", [], "state"),
        ("", [], "state"),
        ("{}", [RETRY, RETRY], "deferred"),
        ("{}", [pb.DeferredItem()], "deferred[0].native_record_id"),
        (
            "{}",
            [
                POISON,
                pb.DeferredItem(
                    native_record_id="a", url="b", outcome=pb.DEFERRED_OUTCOME_RETRY_AT
                ),
            ],
            "deferred[1].retry_at",
        ),
    ],
    ids=["list", "words", "nan", "deep", "number", "long", "blank", "twice", "empty", "no time"],
)
async def test_what_could_not_be_taken_up_again_is_refused(
    resolver: Running, superuser: Rows, state: str, deferred: list[Any], field: str
) -> None:
    """A state is a JSON object of at most 64 KiB, an item is put off once; the field is named."""
    collector = await resolver.collector()
    refused = await refusal(collector.advance(0, state, deferred))
    assert (refused.code, refused.field) == (Code.VALIDATION_FAILED, field)
    assert superuser.execute("select from collector_checkpoint").fetchall() == []


async def test_what_is_persisted_can_be_read_back(resolver: Running) -> None:
    """The longest step fits into the message that gives it back; one that would not is refused by its field."""
    collector = await resolver.collector()
    items = [
        pb.DeferredItem(
            native_record_id=f"{number}-{'x' * 900}",
            url="https://shop.example/" + "y" * 2000,
            outcome=pb.DEFERRED_OUTCOME_POISON,
        )
        for number in range(1050)
    ]
    await collector.advance(0, "{}", items)
    assert list((await collector.checkpoint()).deferred) == items
    refused = await refusal(collector.advance(1, "{}", items + items[:1] * 100))
    assert (refused.code, refused.field) == (Code.VALIDATION_FAILED, "deferred")


async def test_another_instance_goes_on_where_the_first_one_was(resolver: Running) -> None:
    """A checkpoint belongs to the source, not to who collects it."""
    await (await resolver.collector()).advance(0, '{"page": 1}', [POISON])
    other = await resolver.collector(instance="ci_two", worker="cw_two")
    assert list((await other.checkpoint()).deferred) == [POISON]
    assert (await other.advance(1, '{"page": 2}')).revision == 2
