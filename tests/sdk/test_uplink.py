"""Sending a spool to a resolver over real gRPC."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from prw.errors import Code, PrwError
from prw_sdk.cli.run import push, run_sending
from prw_sdk.collect import SourceJob, collect
from prw_sdk.report import Event, EventKind, unwatched
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CaptureState
from prw_sdk.uplink import Drained, ResolverAddress, Uplink
from prw_sdk.uplink.identity import identity
from prw_sdk.uplink.messages import normal_type
from prw_sdk.uplink.stream import CHUNK
from tests.sdk.jobs import QUICK, page
from tests.sdk.misbehaving import Site, answer
from tests.sdk.resolver_double import TOKEN, Intake
from tests.sdk.sending import resolver, states

ROOT = Path(__file__).parents[2]
Shop = Callable[..., None]


async def test_a_push_registers_stores_and_submits_everything(
    filled: Spool, intake: Intake
) -> None:
    """And notes each receipt."""
    assert await push(filled, resolver(intake), unwatched) == Drained(submitted=3)
    (request,) = intake.registered
    assert (request.worker_id, request.instance_id) == ("cw_list", "ci_list_01")
    assert list(request.targets) == ["src_list"]
    assert len(intake.stored) == 3
    assert sorted(key[1] for key in intake.captures) == ["a", "b", "gone"]
    assert states(filled) == {CaptureState.SUBMITTED: 3}
    assert all(one.receipt_id for one in filled.ledger.captures())


async def test_a_second_push_changes_and_sends_nothing(filled: Spool, intake: Intake) -> None:
    """Not even a registration."""
    await push(filled, resolver(intake), unwatched)
    before, calls = dict(intake.captures), dict(intake.calls)
    assert await push(filled, resolver(intake), unwatched) == Drained()
    assert (intake.captures, intake.calls) == (before, calls)


async def test_what_arrives_is_what_was_kept(filled: Spool, intake: Intake) -> None:
    """Every field of the capture and of its part, and the bytes."""
    await push(filled, resolver(intake), unwatched)
    kept = {one.key.native_id: filled.capture(one) for one in filled.ledger.captures()}
    sent = {key[1]: capture for key, capture in intake.captures.items()}
    for name, capture in kept.items():
        (part,), message = capture.parts, sent[name]
        assert message.captured_at.ToDatetime(part.fetched_at.tzinfo) == capture.captured_at
        assert dict(message.config) == capture.config
        assert message.parts[0].url_reached == part.url_reached
        assert message.parts[0].charset_used == (part.charset_used or "")
        assert [(one.name, one.value) for one in message.parts[0].headers] == list(part.headers)
        assert intake.stored[message.parts[0].sha256] == part.body
        assert message.parts[0].media_type == part.media_type
        assert intake.declared[part.sha256].media_type == "text/html"
    assert sent["gone"].presence != sent["a"].presence


async def test_bytes_that_are_stored_under_another_media_type_are_stored(
    filled: Spool, intake: Intake
) -> None:
    """The same bytes served as two types are one artifact; nothing of the capture is lost for it."""
    held = {"media_type": "application/xhtml+xml", "bytes": "1"}
    conflict = PrwError(Code.IMMUTABLE_METADATA_CONFLICT, "another type", details=held)
    intake.streams = False
    intake.fail("DeclareUpload", conflict)
    intake.fail("PutArtifact", None, conflict)
    # One at a time, or both conflicts may meet one artifact.
    one_by_one = replace(resolver(intake), at_once=1)
    assert await push(filled, one_by_one, unwatched) == Drained(submitted=3)
    types = {request.media_type for request in intake.declared.values()}
    assert types == {"text/html", "application/xhtml+xml"}


async def test_bytes_that_are_stored_are_not_sent_again(filled: Spool, intake: Intake) -> None:
    """Declared, and skipped."""
    for one in filled.ledger.captures():
        (part,) = filled.capture(one).parts
        intake.stored[part.sha256] = part.body
    await push(filled, resolver(intake), unwatched)
    assert (intake.calls["Declaration"], intake.calls["Bytes"]) == (3, 0)


async def test_large_bytes_travel_in_chunks(
    shop: Shop, job: SourceJob, spool: Spool, intake: Intake
) -> None:
    """Each far below the limit of a message."""
    body = b"<title>A</title>" + os.urandom(600_000)
    shop(a=answer(body))
    await collect([job], spool, QUICK)
    await push(spool, resolver(intake), unwatched)
    assert intake.chunks == [CHUNK, CHUNK, len(body) - 2 * CHUNK]
    assert list(intake.stored.values()) == [body]


@pytest.mark.parametrize(
    "method",
    [
        *("Register", "StoreArtifacts", "DeclareUpload", "PutArtifact", "SubmitCapture"),
        *("AdvanceCheckpoint", "GetCheckpoint"),
    ],
)
async def test_a_passing_trouble_of_the_resolver_is_tried_again(
    filled: Spool, intake: Intake, method: str
) -> None:
    """And what it asks us to wait is waited."""
    wait = timedelta(milliseconds=20)
    intake.streams = method not in ("DeclareUpload", "PutArtifact")
    intake.fail(method, *[PrwError(Code.STORAGE_UNAVAILABLE, "wait", retry_after=wait)] * 3)
    assert await push(filled, resolver(intake), unwatched) == Drained(submitted=3)


async def test_a_resolver_that_stays_away_loses_nothing(filled: Spool, intake: Intake) -> None:
    """The captures wait in the spool for the next push."""
    intake.fail("SubmitCapture", *[PrwError(Code.UNAVAILABLE, "down")] * 99)
    with pytest.raises(PrwError) as caught:
        await push(filled, resolver(intake), unwatched)
    assert caught.value.code is Code.UNAVAILABLE
    assert states(filled) == {CaptureState.KEPT: 3}
    intake.fail("SubmitCapture")
    assert await push(filled, resolver(intake), unwatched) == Drained(submitted=3)


async def test_nobody_at_the_address_is_unavailable(filled: Spool) -> None:
    """After as many attempts as the contract says."""
    with pytest.raises(PrwError) as caught:
        await push(filled, resolver(Intake(address="127.0.0.1:1")), unwatched)
    assert caught.value.retryable


async def test_what_a_capture_is_refused_for_is_told_with_its_field_and_details(
    filled: Spool, intake: Intake
) -> None:
    """An operator sees which field is wrong, and what the resolver says beside it."""
    wrong = PrwError(
        Code.VALIDATION_FAILED, "too long", field="parts[0].role", details={"max": "9"}
    )
    intake.fail("SubmitCapture", wrong)
    events: list[Event] = []
    await push(filled, replace(resolver(intake), at_once=1), events.append)
    (refused,) = [one for one in filled.ledger.captures() if one.state is CaptureState.REFUSED]
    assert refused.error == "too long (parts[0].role; max=9)"
    assert [one.error for one in events if one.kind is EventKind.REFUSED] == [refused.error]


@pytest.mark.parametrize(
    "code", [Code.VALIDATION_FAILED, Code.IDEMPOTENCY_CONFLICT, Code.IMMUTABLE_METADATA_CONFLICT]
)
async def test_a_capture_that_is_refused_is_set_aside_and_later_ones_go_on(
    filled: Spool, intake: Intake, code: Code
) -> None:
    """409 and 422 are never retried; `retry` sends it once more."""
    one_by_one = replace(resolver(intake), at_once=1)
    intake.fail("SubmitCapture", PrwError(code, "no"))
    assert await push(filled, one_by_one, unwatched) == Drained(submitted=2, refused=1)
    (refused,) = [one for one in filled.ledger.captures() if one.state is CaptureState.REFUSED]
    assert (refused.code, refused.error) == (code.value, "no")
    assert intake.calls["SubmitCapture"] == 3


@pytest.mark.parametrize("code", [Code.CREDENTIAL_REVOKED, Code.MISSING_SCOPE, Code.INVALID_TOKEN])
async def test_a_denied_collector_stops_at_once(filled: Spool, intake: Intake, code: Code) -> None:
    """And nothing is marked as refused: the captures are not at fault."""
    intake.streams = False
    intake.fail("DeclareUpload", *[PrwError(code, "no")] * 9)
    with pytest.raises(PrwError) as caught:
        await push(filled, replace(resolver(intake), at_once=1), unwatched)
    assert caught.value.code is code
    assert intake.calls["DeclareUpload"] == 1
    assert states(filled) == {CaptureState.KEPT: 3}


async def test_bytes_that_the_resolver_lost_are_given_to_it_again(
    filled: Spool, intake: Intake
) -> None:
    """Declared as stored, yet missing at the submission: once more, then it is refused."""
    lost = PrwError(Code.ARTIFACT_NOT_STORED, "lost")
    intake.fail("SubmitCapture", lost, None, lost, lost, None)
    one_by_one = replace(resolver(intake), at_once=1)
    assert await push(filled, one_by_one, unwatched) == Drained(submitted=2, refused=1)


async def test_damaged_evidence_is_never_sent(filled: Spool, intake: Intake) -> None:
    """It is refused here, with a code of its own."""
    first = next(filled.ledger.captures())
    filled.blobs.path(filled.capture(first).parts[0].sha256).write_bytes(b"something else")
    assert await push(filled, resolver(intake), unwatched) == Drained(submitted=2, refused=1)
    (refused,) = [one for one in filled.ledger.captures() if one.state is CaptureState.REFUSED]
    assert refused.code == "EVIDENCE_DAMAGED"


async def test_a_source_that_is_not_granted_stops_the_push(filled: Spool, intake: Intake) -> None:
    """Before anything is sent."""
    intake.granted = frozenset({"src_other"})
    with pytest.raises(PrwError) as caught:
        await push(filled, resolver(intake), unwatched)
    assert caught.value.code is Code.SOURCE_SCOPE_DENIED
    assert intake.calls["StoreArtifacts"] == 0


async def test_another_tenants_credential_sends_nothing(filled: Spool, intake: Intake) -> None:
    """The captures of one tenant never reach another."""
    intake.tenant = "ten_synth_b"
    with pytest.raises(PrwError) as caught:
        await push(filled, resolver(intake), unwatched)
    assert caught.value.code is Code.TENANT_SCOPE_DENIED
    assert intake.captures == {}


async def test_a_run_sends_while_it_collects_and_waits_until_all_is_submitted(
    shop: Shop, job: SourceJob, spool: Spool, intake: Intake
) -> None:
    """Local mode is the same run with nobody draining."""
    shop(**{name: page(name) for name in "abcdef"})
    result = await run_sending([job], spool, QUICK, resolver(intake), unwatched)
    assert result.is_clean
    assert result.drained == Drained(submitted=6)
    assert states(spool) == {CaptureState.SUBMITTED: 6}


async def test_a_run_whose_resolver_goes_away_still_keeps_everything(
    shop: Shop, job: SourceJob, spool: Spool, intake: Intake
) -> None:
    """And says why sending stopped."""
    shop(**{name: page(name) for name in "abcdef"})
    intake.fail("SubmitCapture", *[PrwError(Code.UNAVAILABLE, "down")] * 99)
    result = await run_sending([job], spool, QUICK, resolver(intake), unwatched)
    assert result.refused is not None
    assert result.refused.code is Code.UNAVAILABLE
    assert result.sources[0].kept == 6
    assert states(spool) == {CaptureState.KEPT: 6}


async def test_a_collector_that_may_not_register_fetches_nothing(
    site: Site, shop: Shop, job: SourceJob, spool: Spool, intake: Intake
) -> None:
    """Only granted sources are fetched."""
    shop(a=page("A"))
    intake.granted = frozenset()
    with pytest.raises(PrwError):
        await run_sending([job], spool, QUICK, resolver(intake), unwatched)
    assert site.requests == []


async def test_a_credential_revoked_during_a_run_ends_it(
    shop: Shop, job: SourceJob, spool: Spool, intake: Intake
) -> None:
    """A revoked collector has no business at the sources."""
    shop(**{name: page(name) for name in "abcdefghijkl"})
    intake.fail("StoreArtifacts", *[PrwError(Code.CREDENTIAL_REVOKED, "revoked")] * 99)
    result = await run_sending([job], spool, QUICK, resolver(intake), unwatched)
    assert result.refused is not None
    assert result.refused.code is Code.CREDENTIAL_REVOKED


async def test_two_pushes_at_once_have_one_effect(filled: Spool, intake: Intake) -> None:
    """Each capture is there once, with one receipt."""
    second = Spool(filled.folder)
    await asyncio.gather(*(push(one, resolver(intake), unwatched) for one in (filled, second)))
    second.close()
    assert len(intake.captures) == 3
    assert states(filled) == {CaptureState.SUBMITTED: 3}


@pytest.mark.parametrize(
    "point",
    [
        "uplink.after_put=kill@1",
        "uplink.after_put=kill@2",
        "uplink.after_submit=kill@1",
        "uplink.after_submit=kill@3",
        "uplink.after_mark=kill@2",
    ],
)
async def test_a_killed_push_is_taken_up_by_the_next(
    filled: Spool, intake: Intake, point: str
) -> None:
    """Crash after the remote side effect and before its note, then replay: one effect."""
    program = (
        "import asyncio, sys; from pathlib import Path\n"
        "from prw_sdk.cli.run import push; from prw_sdk.report import Event, EventKind, unwatched\n"
        "from prw_sdk.spool.folder import Spool; from tests.sdk.resolver_double import Intake\n"
        "from tests.sdk.sending import resolver\n"
        "intake = Intake(address=sys.argv[2])\n"
        "asyncio.run(push(Spool(Path(sys.argv[1])), resolver(intake), unwatched))\n"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, str(filled.folder), intake.address),
        cwd=ROOT,
        env=os.environ | {"PRW_FAULTS": point},
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await process.communicate()
    assert process.returncode == -signal.SIGKILL, err.decode()
    await push(filled, resolver(intake), unwatched)
    assert len(intake.captures) == 3
    assert states(filled) == {CaptureState.SUBMITTED: 3}


def test_worker_and_instance_come_from_the_settings_or_the_token() -> None:
    """The token is read for convenience, and trusted for nothing."""
    claims = base64.urlsafe_b64encode(json.dumps({"sub": "ci_1", "worker_id": "cw_1"}).encode())
    token = f"x.{claims.decode().rstrip('=')}.y"
    bare = ResolverAddress("127.0.0.1:1", lambda: token)
    assert (identity(bare).worker, identity(bare).instance) == ("cw_1", "ci_1")
    assert identity(replace(bare, worker="cw_2")).worker == "cw_2"
    with pytest.raises(PrwError, match="worker"):
        identity(ResolverAddress("127.0.0.1:1", lambda: "opaque"))


def test_the_token_is_in_no_representation() -> None:
    """Of the address that carries it."""
    assert "a-token" not in repr(ResolverAddress("x:1", lambda: TOKEN))


@pytest.mark.parametrize(
    ("served", "normal"),
    [
        ("Text/HTML; charset=utf-8", "text/html"),
        ("application/ld+json", "application/ld+json"),
        ("nonsense", "application/octet-stream"),
        ("", "application/octet-stream"),
        ("text/" + "x" * 200, "application/octet-stream"),
    ],
)
def test_media_types_are_normalised_for_the_object_store(served: str, normal: str) -> None:
    """Lower case, without parameters."""
    assert normal_type(served) == normal


async def test_nothing_is_sent_until_an_uplink_is_used(spool: Spool, intake: Intake) -> None:
    """Opening a channel is no call."""
    async with Uplink(resolver(intake), spool) as uplink:
        assert await uplink.drain() == Drained()
    assert intake.calls == {}
