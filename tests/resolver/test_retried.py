"""What the database takes back is done again by the resolver, before any caller hears of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from psycopg.errors import SerializationFailure

from prw.errors import Code
from prw_base.server.database import Database
from tests.resolver.collecting import PAGE, Running, capture, refusal


class TakingBack:
    """Lets each transaction but every n-th fail at its end, as PostgreSQL does for want of a serial order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, out_of: int) -> None:
        self.begun = 0
        real = Database.transaction
        outer = self

        @asynccontextmanager
        async def transaction(self: Database, *how: Any, **more: Any) -> AsyncIterator[Any]:
            outer.begun += 1
            fails = outer.begun % out_of != 0
            async with real(self, *how, **more) as conn:
                yield conn
                if fails:
                    raise SerializationFailure("no serial order")

        monkeypatch.setattr(Database, "transaction", transaction)


async def test_a_collector_never_hears_of_a_transaction_that_was_taken_back(
    resolver: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every method's transactions are tried up to three times (if_db): here each succeeds at the third."""
    collector = await resolver.collector()
    TakingBack(monkeypatch, out_of=3)
    fields: dict[str, Any] = {"worker_id": "cw_one", "instance_id": "ci_one"}
    answer = await collector.register(targets=["ten_synth_a.src_one"], **fields)
    assert answer.tenant_id == "ten_synth_a"
    declared = await collector.declare()
    await collector.send(declared.upload_id, PAGE)
    receipt = await collector.submit(capture())
    assert (await collector.receipt(receipt.receipt_id)).capture_id == receipt.capture_id


async def test_what_is_taken_back_three_times_is_told(
    resolver: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UNAVAILABLE, to be sent again; not a fourth try, and no INTERNAL."""
    collector = await resolver.collector()
    held = TakingBack(monkeypatch, out_of=100)
    refused = await refusal(collector.declare())
    assert (refused.code, refused.retryable) == (Code.UNAVAILABLE, True)
    assert held.begun == 3
