"""kill -9 of the serving process at each fault point of intake, then a retry: one capture, whole."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from prw.errors import Code
from prw_base.client import open_channel
from prw_resolver.access.model import COLLECTOR_SCOPES, ClientGrant
from prw_resolver.access.service import provision_client
from prw_resolver.bootstrap import build_issuer, open_parts
from tests.resolver.collecting import (
    CATALOG,
    PAGE,
    Caller,
    capture,
    digest,
    found,
    refusal,
    settings_for,
)
from tests.support.waiting import until

Rows = psycopg.Connection[dict[str, Any]]


class Served:
    """A resolver in a process of its own, which may be killed and started again."""

    def __init__(self, dsns: dict[str, str], state: Path) -> None:
        self._environment = os.environ | {
            "PRW_RESOLVER_DATABASE_DSN": dsns["resolver_app"],
            "PRW_RESOLVER_STATE_FOLDER": str(state),
            "PRW_RESOLVER_ADDRESS": "127.0.0.1:0",
            "PRW_RESOLVER_WORKERS_IN_PROCESS": "false",
        }
        self._ready = state / "ready.json"
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, faults: str = "") -> str:
        """Start with these faults armed; where it serves."""
        self._ready.unlink(missing_ok=True)
        command = ("resolver", "serve", "--ready-file", str(self._ready))
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "from prw_base.cli import main; main()",
            *command,
            env=self._environment | {"PRW_FAULTS": faults},
            stderr=asyncio.subprocess.DEVNULL,
        )
        await until(self._ready.exists)
        return str(json.loads(self._ready.read_text("utf-8"))["address"])

    async def stop(self) -> None:
        """End it as an operator would, where it still runs."""
        if self.process is not None and self.process.returncode is None:
            self.process.terminate()
            await self.process.wait()


@pytest.fixture
async def token(resolver_database: dict[str, str], tmp_path: Path) -> str:
    """A collector's token, in a resolver that is set up and not running."""
    settings = settings_for(resolver_database, tmp_path)
    async with open_parts(settings, resolver_database["resolver_app"]) as parts:
        await found(parts, "ten_synth_a")
        sources = ("ten_synth_a.src_one",)
        grant = ClientGrant("ten_synth_a", CATALOG, "ci_one", COLLECTOR_SCOPES, "cw_one", sources)
        return (await provision_client(build_issuer(settings, parts.db), grant)).token


@pytest.fixture
async def served(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Served]:
    """A resolver that is stopped at the end."""
    process = Served(resolver_database, tmp_path)
    try:
        yield process
    finally:
        await process.stop()


@asynccontextmanager
async def calling(address: str, token: str) -> AsyncIterator[Caller]:
    """A collector of the resolver at `address`."""
    async with AsyncExitStack() as stack:
        yield Caller(await stack.enter_async_context(open_channel(address, token)))


@pytest.mark.parametrize(
    ("point", "kept"), [("intake.before_commit", 0), ("intake.after_commit", 1)]
)
async def test_a_killed_submission_is_kept_whole_or_not_at_all_and_may_be_repeated(
    served: Served, token: str, superuser: Rows, point: str, kept: int
) -> None:
    """Capture, receipt and job are one transaction; the retry converges to one of each."""
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


async def test_a_resolver_that_is_told_to_stop_ends_in_order(served: Served, token: str) -> None:
    """SIGTERM drains and ends with status 0."""
    async with calling(await served.start(), token) as collector:
        await collector.put()
    await served.stop()
    assert served.process is not None
    assert served.process.returncode == 0


def _counts(superuser: Rows) -> list[int]:
    tables = ("capture", "capture_part", "receipt", "procrastinate_jobs")
    return [len(superuser.execute(f"select from {table}").fetchall()) for table in tables]
