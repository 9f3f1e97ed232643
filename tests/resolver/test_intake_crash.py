"""kill -9 of the serving process at each fault point of intake, then a retry: one capture, whole."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from prw.errors import Code, PrwError
from tests.resolver.collecting import (
    PAGE,
    capture,
    digest,
    refusal,
)
from tests.resolver.serving import Served, calling
from tests.resolver.storing import chunks, declaration, store, stream

Rows = psycopg.Connection[dict[str, Any]]

BODIES = [b"<html>%d</html>" % number for number in range(20)]


@pytest.fixture
async def served(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Served]:
    """A resolver that is stopped at the end."""
    process = Served(resolver_database, tmp_path)
    try:
        yield process
    finally:
        await process.stop()


@pytest.mark.parametrize(
    ("point", "kept"), [("intake.before_commit", 0), ("intake.after_commit", 1)]
)
async def test_a_killed_submission_is_kept_whole_or_not_at_all_and_may_be_repeated(
    served: Served, token: str, superuser: Rows, point: str, kept: int
) -> None:
    """AW-02: capture, receipt and job are one transaction; the retry converges to one of each."""
    async with calling(await served.start(f"{point}=kill"), token) as collector:
        await collector.put()
        refused = await refusal(collector.submit(capture()))
        assert (refused.code, refused.retryable) == (Code.UNAVAILABLE, True)
    assert served.process is not None
    assert await served.process.wait() == -signal.SIGKILL
    assert _counts(superuser) == [kept] * 4
    async with calling(await served.start(), token) as collector:
        receipt = await collector.submit(capture())
        assert receipt.replayed == bool(kept)
    assert _counts(superuser) == [1] * 4


@pytest.mark.parametrize("point", ["objects.after_fsync", "objects.after_link"])
async def test_a_killed_upload_may_be_repeated(
    served: Served, token: str, superuser: Rows, point: str
) -> None:
    """Bytes that are linked and not yet recorded are found by the same put."""
    async with calling(await served.start(f"{point}=kill"), token) as collector:
        declared = await collector.declare()
        refused = await refusal(collector.send(declared.upload_id, PAGE))
        assert refused.retryable
    assert superuser.execute("select from artifact").fetchall() == []
    async with calling(await served.start(), token) as collector:
        assert (await collector.send(declared.upload_id, PAGE)).sha256 == digest(PAGE)
        assert not (await collector.submit(capture())).replayed


@pytest.mark.parametrize(
    ("point", "kept"),
    [
        ("objects.after_fsync", 0),
        # a slow stream is written in several groups: what came before the fifth may be on record or not
        ("objects.after_link@5", None),
        ("intake.before_artifact_rows", 0),
        ("intake.after_artifact_rows", 1),
    ],
)
async def test_a_stream_of_artifacts_that_is_killed_may_be_sent_again(
    served: Served, token: str, superuser: Rows, point: str, kept: int | None
) -> None:
    """What is on record is durable, whatever was answered; the same stream again ends with everything stored."""
    name, _, hit = point.partition("@")
    target = await served.start(f"{name}=kill@{hit or 1}")
    async with stream(target, token) as held:
        with pytest.raises(PrwError) as cut:
            await store(held, BODIES)
        assert cut.value.retryable
    assert served.process is not None
    assert await served.process.wait() == -signal.SIGKILL
    recorded = len(superuser.execute("select from artifact").fetchall())
    assert kept is None or bool(recorded) == bool(kept)
    async with stream(await served.start(), token) as held:
        await held.send(*(declaration(at, body) for at, body in enumerate(BODIES, 1)))
        awaited = [at for at, status in await held.answers(len(BODIES)) if status == "PENDING"]
        for at in awaited:
            await held.send(*chunks(at, BODIES[at - 1]))
        assert len(BODIES) - len(awaited) == recorded, "what is on record is not asked for again"
        assert await held.done() == [(at, "STORED") for at in awaited]
    assert len(superuser.execute("select from artifact").fetchall()) == len(BODIES)


@pytest.mark.parametrize(
    ("point", "kept"), [("checkpoints.before_commit", 0), ("checkpoints.after_commit", 1)]
)
async def test_a_killed_advance_is_kept_whole_or_not_at_all_and_may_be_repeated(
    served: Served, token: str, superuser: Rows, point: str, kept: int
) -> None:
    """The same step again is answered alike, so that a lost answer is no conflict (replay rule 7)."""
    step = (0, '{"page": 1}')
    async with calling(await served.start(f"{point}=kill"), token) as collector:
        assert (await refusal(collector.advance(*step))).retryable
    assert len(superuser.execute("select from collector_checkpoint").fetchall()) == kept
    async with calling(await served.start(), token) as collector:
        assert (await collector.advance(*step)).revision == 1
        assert (await collector.checkpoint()).revision == 1


async def test_a_resolver_that_is_told_to_stop_ends_in_order(served: Served, token: str) -> None:
    """SIGTERM drains and ends with status 0, an open stream of artifacts or not."""
    target = await served.start()
    async with calling(target, token) as collector, stream(target, token) as held:
        await collector.put()
        await store(held, BODIES[:2])
        await served.stop()
        assert (await held.refusal()).code is Code.UNAVAILABLE
    assert served.process is not None
    assert served.process.returncode == 0


def _counts(superuser: Rows) -> list[int]:
    tables = ("capture", "capture_part", "receipt", "procrastinate_jobs")
    return [len(superuser.execute(f"select from {table}").fetchall()) for table in tables]
