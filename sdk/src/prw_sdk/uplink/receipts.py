"""Asking what became of submitted captures, and noting it (if_receipt_get)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

import structlog

from prw.collector.v1.capture_service_pb2 import BatchGetReceiptsRequest
from prw.collector.v1.capture_service_pb2_grpc import CaptureServiceStub
from prw.collector.v1.evidence_pb2 import Receipt, ReceiptStatus
from prw.errors import Code, PrwError
from prw_base.client import Retry, call
from prw_sdk.spool.folder import Spool

INTERVAL = timedelta(seconds=30)
"""The least time between two questions about one receipt (if_receipt_get)."""
UNREADABLE = "unreadable"
"""What is noted of a receipt that the resolver does not let this instance read; only a `retry` has it asked again."""
REFUSED = frozenset({Code.NOT_FOUND, Code.TENANT_SCOPE_DENIED, Code.INSTANCE_SCOPE_DENIED})
"""How a question is refused for one of its receipts."""
_TIMEOUT = timedelta(seconds=5)
_AT_ONCE = 500

_log = structlog.get_logger(__name__)


class Receipts:
    """The receipts of a spool's captures."""

    def __init__(self, spool: Spool, captures: CaptureServiceStub) -> None:
        self._ledger = spool.ledger
        self._captures = captures

    async def to_ask(self, now: datetime, after: int) -> dict[int, str]:
        """The next receipts that may be asked for, by their captures' rows, which are above `after`."""
        question = partial(self._ledger.receipts_to_ask, after, now - INTERVAL, _AT_ONCE)
        return dict(await asyncio.to_thread(question))

    async def ask(self, rows: Mapping[int, str], now: datetime, retry: Retry) -> None:
        """Ask for receipts and note them; where they are refused, ask for each half.

        One that is unreadable fails all that are asked for with it; alone it is noted as `UNREADABLE`.
        """
        names = sorted(set(rows.values()))
        request = BatchGetReceiptsRequest(receipt_ids=names)
        try:
            answer = await call(self._captures.BatchGetReceipts, request, _TIMEOUT, retry)
        except PrwError as error:
            if error.code not in REFUSED:
                raise
            if len(names) == 1:
                await self._set_aside(rows, now, error)
                return
            for half in (names[: len(names) // 2], names[len(names) // 2 :]):
                part = {row: name for row, name in rows.items() if name in half}
                await self.ask(part, now, retry)
        else:
            await self.note(rows, answer.receipts, now)

    async def note(
        self, rows: Mapping[int, str], receipts: Sequence[Receipt], now: datetime
    ) -> None:
        """Note what the resolver said of the receipts of those rows."""
        said = {one.receipt_id: _status(one.status) for one in receipts}
        statuses = {row: said[receipt] for row, receipt in rows.items() if receipt in said}
        await asyncio.to_thread(self._ledger.note_receipts, statuses, now)

    async def _set_aside(self, rows: Mapping[int, str], now: datetime, error: PrwError) -> None:
        for receipt_id in set(rows.values()):
            _log.warning("a receipt is unreadable", receipt_id=receipt_id, code=error.code.value)
        await asyncio.to_thread(self._ledger.note_receipts, dict.fromkeys(rows, UNREADABLE), now)


def _status(status: ReceiptStatus.ValueType) -> str:
    return ReceiptStatus.Name(status).removeprefix("RECEIPT_STATUS_").lower()
