"""The plan, where ``fixtures/plan.json`` keeps the lists that it walks: what it names, and what it passes over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from pydantic import SecretStr

from prw_base.canonical import canonical_json
from prw_sdk.adapter import Batch, Checkpoint, NetFailed, Target
from prw_sdk.spool.model import unfit_id
from prw_sdk.testing.bench import Bench, fail, fail_with
from prw_sdk.testing.plans import PLAN, PlanFixture, load_plan

MOST_BATCHES = 1000


@pytest.fixture
def planned(bench: Bench) -> PlanFixture:
    """The recorded lists."""
    found = load_plan(bench.subject.fixtures, bench.fresh())
    if found is None:
        pytest.skip(f"there is no {bench.subject.fixtures / PLAN}")
    return found


def test_plan_names_what_the_lists_hold(planned: PlanFixture, bench: Bench) -> None:
    """Every target that was expected, and no other, each once."""
    found = [(one.native_id, one.url) for one in _targets(_walk(planned, bench))]
    expected = [(one.native_id, one.url) for one in planned.targets]
    missing = [f"not planned: {one}" for one in expected if one not in found]
    strange = [f"planned, and not expected: {one}" for one in found if one not in expected]
    ids = [native_id for native_id, _ in found]
    twice = [f"planned twice: {one!r}" for one in sorted({i for i in ids if ids.count(i) > 1})]
    fail_with([*missing, *strange, *twice], f"let plan yield it, or mend targets in {PLAN}")


def test_planned_targets_can_be_kept(planned: PlanFixture, bench: Bench) -> None:
    """Ids and addresses that a ledger can hold (rule 1)."""
    wrong = [
        f"{one}: {complaint}"
        for one in _targets(_walk(planned, bench))
        if (complaint := unfit_id(one.native_id) or _unfit_url(one.url))
    ]
    fail_with(wrong, "make native_id of what the source calls the record, and url absolute")


def test_planning_twice_names_the_same(planned: PlanFixture, bench: Bench) -> None:
    """A plan over unchanged lists is the same plan."""
    if _walk(planned, bench) != _walk(planned, bench):
        fail("planning again gave something else", "→ sort what is a set; ask no clock")


def test_a_plan_taken_up_at_any_checkpoint_passes_over_nothing(
    planned: PlanFixture, bench: Bench
) -> None:
    """Rule 4: what was not named up to a checkpoint is named after it."""
    batches = _walk(planned, bench)
    everything = {one.native_id for one in _targets(batches)}
    before: set[str] = set()
    for batch in batches:
        before |= {one.native_id for one in batch.targets}
        # the last checkpoint of a whole plan is where the next plan begins anew
        if batch.then is None or batch.then.partition or before >= everything:
            continue
        after = {one.native_id for one in _targets(_walk(planned, bench, batch.then))}
        lost = sorted(everything - before - after)
        fail_with(
            (
                f"{one!r} is planned neither before nor after {dict(batch.then.state)}"
                for one in lost
            ),
            "let the checkpoint say how far the plan is, and nothing that it has yet to name",
        )


def test_what_is_pinned_of_the_settings_holds_no_secret(planned: PlanFixture, bench: Bench) -> None:
    """`config` of the recorded source is plain JSON, and holds the value of no secret of the settings."""
    try:
        text = canonical_json(bench.fresh().config(planned.source)).decode()
    except TypeError as wrong:
        fail(f"config is not plain JSON: {wrong}", "→ pin texts, whole numbers, booleans, lists")
        return
    told = [
        f"config pins the secret {name!r}"
        for name, value in planned.source.settings
        if isinstance(value, SecretStr) and value.get_secret_value() in text
    ]
    fail_with(told, "leave it out of config: read has no use for a credential")


def _walk(planned: PlanFixture, bench: Bench, checkpoint: Checkpoint | None = None) -> list[Batch]:
    async def all_batches() -> list[Batch]:
        found = []
        async for batch in bench.fresh().plan(planned.source, checkpoint, planned.net()):
            found.append(batch)
            if len(found) > MOST_BATCHES:
                fail("the plan does not end", "→ stop where a list repeats itself")
        return found

    try:
        return asyncio.run(all_batches())
    except NetFailed as failed:
        fail(f"plan asked for what {PLAN} does not hold: {failed}", "→ add it to its pages")
    return []


def _targets(batches: Sequence[Batch]) -> list[Target]:
    return [target for batch in batches for target in batch.targets]


def _unfit_url(url: str) -> str | None:
    return None if url.startswith(("http://", "https://")) else f"{url!r} is no absolute address"
