"""Bytes that were damaged are mended by the next run, and where others come the item is captured anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from prw_sdk.collect import SourceJob, collect
from prw_sdk.operate.doctor import examine
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CaptureState, KeptCapture
from tests.sdk.commanding import invoke
from tests.sdk.jobs import QUICK, page
from tests.sdk.misbehaving import answer

Shop = Callable[..., None]
GONE = answer(b"gone", status=404)
GONE_OTHERWISE = answer(b"gone, said another way", status=404)


def damage(spool: Path) -> None:
    """Cut every kept file short."""
    for path in (spool / "blobs").glob("*/*"):
        path.write_bytes(b"?")


def captures(spool: Spool) -> list[KeptCapture]:
    """Every capture, oldest first."""
    return list(spool.ledger.captures())


@pytest.mark.parametrize("again", [GONE, GONE_OTHERWISE], ids=["the-same", "others"])
def test_a_known_absence_whose_bytes_are_damaged_is_mended_by_retry_and_run(
    shop: Shop, config: Path, tmp_path: Path, again: bytes
) -> None:
    """As `doctor` says, whether the error page comes with the same bytes or with others."""
    folder = tmp_path / "spool"
    shop(a=page("A"), gone=GONE)
    invoke("run", "-c", config, "--local", folder)
    damage(folder)
    shop(a=page("A"), gone=again)
    assert invoke("doctor", folder).exit_code == 1
    invoke("retry", folder)
    invoke("run", "-c", config, "--local", folder)
    result = invoke("doctor", folder, "--json")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(invoke("status", folder, "--json", "--verify").stdout)
    assert row["damaged"] == (again is GONE_OTHERWISE)


async def test_a_damaged_absence_is_captured_anew_once_and_no_file_is_left_over(
    shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """A whole one stays the one that is known, whatever its error page looks like."""
    shop(gone=GONE)
    await collect([job], spool, QUICK)
    damage(spool.folder)
    for body in (b"second", b"third", b"fourth"):
        shop(gone=answer(body, status=404))
        await collect([job], spool, QUICK)
    first, second = captures(spool)
    assert spool.capture(second).parts[0].body == b"second"
    assert first.key == second.key
    assert len(list(spool.folder.glob("blobs/*/*"))) == 2


async def test_an_absence_that_was_sent_is_no_news_although_its_bytes_are_damaged(
    shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """The resolver has them; they are mended where they come again, and nothing is sent twice."""
    shop(gone=GONE)
    await collect([job], spool, QUICK)
    spool.ledger.mark_submitted(captures(spool)[0].row, "rcp_1")
    damage(spool.folder)
    for served in (GONE_OTHERWISE, GONE):
        shop(gone=served)
        await collect([job], spool, QUICK)
    (kept,) = captures(spool)
    assert (kept.state, spool.capture(kept).parts[0].body) == (CaptureState.SUBMITTED, b"gone")


@pytest.mark.parametrize("kinds", [(page("A"), page("B")), (GONE, GONE_OTHERWISE)])
async def test_damage_that_a_newer_capture_has_made_good_is_told_and_not_serious(
    shop: Shop, job: SourceJob, spool: Spool, kinds: tuple[bytes, bytes]
) -> None:
    """Nothing can bring the old bytes back, so nothing is left to do; refused ones count as little."""
    before, now = kinds
    shop(a=before, other=page("other"))
    await collect([job], spool, QUICK)
    damage(spool.folder)
    for one in captures(spool):
        spool.ledger.mark_refused(one.row, "EVIDENCE_DAMAGED", "gone")
    found = await examine(spool, datetime.now(UTC))
    assert {(one.trouble, one.count) for one in found if one.serious} == {
        ("lost_bytes", 1),
        ("refused", 2),
    }
    shop(a=now, other=page("other"))
    await collect([job], spool, QUICK)
    spool.mend()
    found = await examine(spool, datetime.now(UTC))
    assert [one.said for one in found if one.serious] == []
    assert [one.remedy for one in found] == ["nothing: a newer capture of the item is whole"]
