"""Many artifacts over one stream: declared ahead, answered one by one, and taken up after any break."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from prw.errors import Code, PrwError
from prw_sdk.cli.run import push
from prw_sdk.collect import SourceJob, collect
from prw_sdk.report import unwatched
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CaptureState
from prw_sdk.uplink import Drained
from tests.sdk.jobs import QUICK, page
from tests.sdk.resolver_double import Intake
from tests.sdk.sending import resolver, states

ROOT = Path(__file__).parents[2]
Shop = Callable[..., None]


@pytest.fixture
async def many(shop: Shop, job: SourceJob, spool: Spool) -> Spool:
    """A spool with 40 captures, more than a window of declarations."""
    shop(**{f"p{number:02}": page(f"page {number}") for number in range(40)})
    await collect([job], spool, QUICK)
    return spool


async def test_all_artifacts_travel_over_one_stream(many: Spool, intake: Intake) -> None:
    """Each is declared once and sent once, and none of the unary calls is made."""
    assert await push(many, resolver(intake), unwatched) == Drained(submitted=40)
    assert (intake.calls["StoreArtifacts"], intake.calls["DeclareUpload"]) == (1, 0)
    assert (intake.calls["Declaration"], intake.calls["Bytes"]) == (40, 40)


async def test_declarations_run_ahead_of_the_bytes(many: Spool, intake: Intake) -> None:
    """So that a round trip is paid once for many; the oldest capture's come first."""
    await push(many, resolver(intake), unwatched)
    first_sent = next(at for at, (what, _) in enumerate(intake.sequences) if what == "sent")
    assert first_sent > 1
    assert [n for what, n in intake.sequences if what == "sent"] == list(range(1, 41))


async def test_a_capture_is_submitted_as_soon_as_its_parts_are_stored(
    many: Spool, intake: Intake
) -> None:
    """Not only once everything else is."""
    seen: list[int] = []
    submit = intake.enter

    async def enter(method: str, context: object) -> None:
        if method == "SubmitCapture":
            seen.append(len(intake.stored))
        await submit(method, context)  # type: ignore[arg-type]  # as it was given

    intake.enter = enter  # type: ignore[method-assign]  # this one looks on
    await push(many, resolver(intake), unwatched)
    assert seen[0] < 40


async def test_bytes_that_two_captures_share_are_sent_once(
    shop: Shop, job: SourceJob, spool: Spool, intake: Intake
) -> None:
    """Also where both are on their way together."""
    shop(**{f"p{number}": page("the same") for number in range(8)})
    await collect([job], spool, QUICK)
    assert await push(spool, resolver(intake), unwatched) == Drained(submitted=8)
    assert (intake.calls["Bytes"], len(intake.stored)) == (1, 1)


async def test_bytes_that_two_sources_share_are_sent_once_and_declared_for_each(
    shop: Shop, job: SourceJob, spool: Spool, intake: Intake
) -> None:
    """Whom they may be attributed to is asked of each source."""
    intake.granted |= {"src_other"}
    shop(**{f"p{number}": page("the same") for number in range(8)})
    other = replace(job, source=replace(job.source, source_id="src_other"))
    await collect([job, other], spool, QUICK)
    assert await push(spool, resolver(intake), unwatched) == Drained(submitted=16)
    assert (intake.calls["Bytes"], len(intake.stored)) == (1, 1)
    assert intake.declared_for == {"src_list", "src_other"}


@pytest.mark.parametrize("step", ["Declaration", "Bytes"])
async def test_a_stream_that_breaks_is_opened_again_and_sends_nothing_twice(
    many: Spool, intake: Intake, step: str
) -> None:
    """What was answered as stored before stays so."""
    broken = PrwError(Code.UNAVAILABLE, "break")
    intake.fail(step, *[None] * 10, broken, *[None] * 15, broken)
    assert await push(many, resolver(intake), unwatched) == Drained(submitted=40)
    assert intake.calls["StoreArtifacts"] == 3
    assert intake.calls["Bytes"] - 2 * (step == "Bytes") == len(intake.stored) == 40


async def test_a_refused_artifact_ends_nothing_but_its_own_capture(
    many: Spool, intake: Intake
) -> None:
    """The stream goes on."""
    intake.fail("Declaration", None, PrwError(Code.ARTIFACT_TOO_LARGE, "too large"))
    assert await push(many, resolver(intake), unwatched) == Drained(submitted=39, refused=1)
    assert intake.calls["StoreArtifacts"] == 1
    (refused,) = [one for one in many.ledger.captures() if one.state is CaptureState.REFUSED]
    assert refused.code == "ARTIFACT_TOO_LARGE"


async def test_an_artifact_that_may_be_sent_again_is(many: Spool, intake: Intake) -> None:
    """A refusal that the table calls retryable, over the same stream."""
    intake.fail("Bytes", *[PrwError(Code.STORAGE_UNAVAILABLE, "full")] * 2)
    assert await push(many, resolver(intake), unwatched) == Drained(submitted=40)


async def test_bytes_stored_under_another_type_are_stored(many: Spool, intake: Intake) -> None:
    """The refusal's details name the type that is held."""
    held = {"media_type": "application/xhtml+xml"}
    intake.fail("Declaration", PrwError(Code.IMMUTABLE_METADATA_CONFLICT, "no", details=held))
    assert await push(many, resolver(intake), unwatched) == Drained(submitted=40)
    types = {one.media_type for one in intake.declared.values()}
    assert types == {"text/html", "application/xhtml+xml"}


async def test_a_stream_that_ends_over_one_artifact_refuses_no_other(
    many: Spool, intake: Intake
) -> None:
    """Those that were on their way are brought alone, where each is answered for itself."""
    intake.fail("Declaration", None, None, PrwError(Code.VALIDATION_FAILED, "break"))
    assert await push(many, resolver(intake), unwatched) == Drained(submitted=40)
    assert states(many) == {CaptureState.SUBMITTED: 40}


async def test_an_older_resolver_is_sent_each_artifact_by_itself(
    many: Spool, intake: Intake
) -> None:
    """Where it answers UNIMPLEMENTED, the two unary calls do it."""
    intake.streams = False
    assert await push(many, resolver(intake), unwatched) == Drained(submitted=40)
    assert intake.calls["PutArtifact"] == 40


@pytest.mark.parametrize("code", [Code.CREDENTIAL_REVOKED, Code.INVALID_TOKEN])
async def test_a_revoked_collector_opens_no_second_stream(
    many: Spool, intake: Intake, code: Code
) -> None:
    """Nothing is refused for it: the captures are not at fault."""
    intake.fail("StoreArtifacts", *[PrwError(code, "revoked")] * 9)
    with pytest.raises(PrwError) as caught:
        await push(many, resolver(intake), unwatched)
    assert (caught.value.code, intake.calls["StoreArtifacts"]) == (code, 1)
    assert states(many) == {CaptureState.KEPT: 40}


async def test_bytes_that_are_damaged_are_never_sent(many: Spool, intake: Intake) -> None:
    """Of the declared length, yet others: the file is found out as it is read, and the stream begun anew."""
    first = next(many.ledger.captures())
    part = many.capture(first).parts[0]
    many.blobs.path(part.sha256).write_bytes(b"x" * len(part.body))
    assert await push(many, resolver(intake), unwatched) == Drained(submitted=39, refused=1)
    assert part.sha256 not in intake.stored


async def test_a_resolver_that_goes_silent_is_given_up_and_asked_again(
    filled: Spool, intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing moves although something is awaited."""
    monkeypatch.setattr("prw_sdk.uplink.stream.SILENCE", timedelta(milliseconds=300))
    intake.late["Bytes"] = 1
    assert await push(filled, resolver(intake), unwatched) == Drained(submitted=3)
    assert intake.calls["StoreArtifacts"] == 2


@pytest.mark.parametrize(
    "point",
    [
        "uplink.after_declare=kill@1",
        "uplink.after_declare=kill@20",
        "uplink.mid_artifact=kill@1",
        "uplink.mid_artifact=kill@17",
        "uplink.after_put=kill@5",
        "uplink.after_submit=kill@9",
        "uplink.after_mark=kill@30",
    ],
)
async def test_a_push_killed_on_the_stream_is_taken_up_by_the_next(
    many: Spool, intake: Intake, point: str
) -> None:
    """Every capture once, every artifact stored, whatever was under way."""
    program = (
        "import asyncio, sys; from pathlib import Path\n"
        "from prw_sdk.cli.run import push; from prw_sdk.report import unwatched\n"
        "from prw_sdk.spool.folder import Spool; from tests.sdk.resolver_double import Intake\n"
        "from tests.sdk.sending import resolver\n"
        "intake = Intake(address=sys.argv[2])\n"
        "asyncio.run(push(Spool(Path(sys.argv[1])), resolver(intake), unwatched))\n"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, str(many.folder), intake.address),
        cwd=ROOT,
        env=os.environ | {"PRW_FAULTS": point},
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await process.communicate()
    assert process.returncode == -signal.SIGKILL, err.decode()
    await push(many, replace(resolver(intake), at_once=2), unwatched)
    assert len(intake.captures) == 40
    assert states(many) == {CaptureState.SUBMITTED: 40}
