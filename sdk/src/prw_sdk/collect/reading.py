"""What a capture gives: its records, and what became of every name that it states."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prw_sdk.account import Account, account
from prw_sdk.adapter import Adapter, NotARecord
from prw_sdk.evidence import Capture, Record
from prw_sdk.fetch.outcome import FetchFailed
from prw_sdk.spool.model import sanitised

NOT_A_RECORD = "NOT_A_RECORD"
READ_FAILED = "READ_FAILED"
_NOTHING = Account()


class AdapterFailed(Exception):
    """An adapter's code raised something that is no part of its contract; the message says what."""


@contextmanager
def foreign(what: str) -> Iterator[None]:
    """Run an adapter's code: whatever it raises beyond its contract becomes `AdapterFailed`.

    A wish to end the process (`SystemExit`) is no part of it either; only a stop of the run itself passes.
    """
    try:
        yield
    except (FetchFailed, NotARecord, KeyboardInterrupt, CancelledError, GeneratorExit):
        raise
    except BaseException as error:
        raise AdapterFailed(sanitised(f"{what} raised {type(error).__name__}: {error}")) from error


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading a capture came to; `code` and `error` say why it gave no record."""

    records: tuple[Record, ...] = ()
    account: Account = _NOTHING
    code: str | None = None
    error: str | None = None


def read(adapter: Adapter, capture: Capture) -> Reading:
    """Read a capture and account for what it states (rule 14).

    The capture is kept whatever comes of it: a mended `read` can be run over it later.
    """
    try:
        with foreign("read"):
            records = tuple(adapter.read(capture))
        with foreign("stated"):
            accounted = account(adapter, capture, records)
    except NotARecord as other:
        return Reading(code=NOT_A_RECORD, error=sanitised(str(other)))
    except AdapterFailed as broken:
        return Reading(code=READ_FAILED, error=str(broken))
    if not records:
        return Reading((), accounted, NOT_A_RECORD, "it holds no record")
    return Reading(records, accounted)
