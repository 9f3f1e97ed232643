"""A resolver that is busy, slow, forgetful, or grants less than it did: what it costs, and what it never costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from prw.errors import Code, PrwError
from prw_sdk.cli.run import push
from prw_sdk.collect import SourceJob, collect
from prw_sdk.report import unwatched
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CaptureState
from prw_sdk.uplink import Drained
from tests.sdk.jobs import QUICK, page
from tests.sdk.resolver_double import Intake, receiving
from tests.sdk.sending import resolver, states

Shop = Callable[..., None]


@pytest.mark.parametrize("code", [Code.OVERLOADED, Code.RATE_LIMITED])
async def test_a_resolver_that_is_out_of_breath_is_given_the_time_it_asks_for(
    filled: Spool, intake: Intake, code: Code
) -> None:
    """RetryInfo is a floor under the jitter, for bytes as for captures."""
    wait = timedelta(milliseconds=300)
    intake.streams = False
    intake.fail("PutArtifact", PrwError(code, "busy", retry_after=wait))
    intake.fail("SubmitCapture", PrwError(code, "busy", retry_after=wait))
    started = time.monotonic()
    one_by_one = replace(resolver(intake), at_once=1)
    assert await push(filled, one_by_one, unwatched) == Drained(submitted=3)
    assert time.monotonic() - started >= 0.3


async def test_a_resolver_that_is_too_slow_is_asked_again_and_keeps_one_capture(
    filled: Spool, intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It did the work; only its answer came too late."""
    monkeypatch.setattr("prw_sdk.uplink.carry._SUBMIT", timedelta(milliseconds=200))
    intake.late["SubmitCapture"] = 2
    assert await push(filled, resolver(intake), unwatched) == Drained(submitted=3)
    assert (intake.calls["SubmitCapture"], len(intake.captures)) == (5, 3)


async def test_an_upload_that_expired_on_the_way_is_declared_again(
    filled: Spool, intake: Intake
) -> None:
    """It is the upload that is unknown by then, not the capture that is refused (if_artifact_upload)."""
    intake.streams = False
    intake.fail("PutArtifact", PrwError(Code.NOT_FOUND, "the upload has expired"))
    one_by_one = replace(resolver(intake), at_once=1)
    assert await push(filled, one_by_one, unwatched) == Drained(submitted=3)
    assert intake.calls["DeclareUpload"] == 4


async def test_a_grant_withdrawn_in_the_middle_holds_up_no_other_source(
    filled: Spool, job: SourceJob, intake: Intake
) -> None:
    """What is left of the source waits; nothing of it is asked again in this push."""
    other = replace(job, source=replace(job.source, source_id="src_other"))
    await collect([other], filled, QUICK)
    intake.granted |= {"src_other"}
    intake.streams = False
    intake.fail("DeclareUpload", *[PrwError(Code.SOURCE_SCOPE_DENIED, "withdrawn")] * 3)
    drained = await push(filled, replace(resolver(intake), at_once=1), unwatched)
    assert (drained.submitted, drained.refused, list(drained.denied)) == (3, 0, ["src_list"])
    assert {key[0] for key in intake.captures} == {"src_other"}
    assert states(filled) == {CaptureState.KEPT: 3, CaptureState.SUBMITTED: 3}


async def test_a_spool_of_no_tenant_is_sent_to_one_tenant_only(
    shop: Shop, job: SourceJob, spool: Spool, intake: Intake
) -> None:
    """A second resolver, or a credential of another tenant, would divide it without a word."""
    shop(a=page("A"))
    local = replace(job, tenant="local")
    await collect([local], spool, QUICK)
    await push(spool, resolver(intake), unwatched)
    shop(b=page("B"))
    await collect([local], spool, QUICK)
    async with receiving(intake=Intake(tenant="ten_synth_b")) as second:
        with pytest.raises(PrwError, match="sent to tenant ten_synth_a") as caught:
            await push(spool, resolver(second), unwatched)
        assert caught.value.code is Code.TENANT_SCOPE_DENIED
        assert second.calls["DeclareUpload"] == 0
    assert await push(spool, resolver(intake), unwatched) == Drained(submitted=1)
