"""One attempt at one target: fetch it, see what it is, and say what the ledger should hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urldefrag

from prw_base.faults import fault
from prw_sdk.adapter import Adapter, Fetched, Net, NotARecord, Source, Target
from prw_sdk.evidence import AdapterVersion, Capture, Egress, Part, Presence, Region
from prw_sdk.fetch.outcome import FetchFailed, Recovery
from prw_sdk.spool import codec
from prw_sdk.spool.blobs import Blobs
from prw_sdk.spool.model import (
    NewCapture,
    Outcome,
    Verdict,
    after_failure,
    sanitised,
    unfit_id,
)

ADAPTER_ERROR = "ADAPTER_ERROR"
BAD_TARGET = "BAD_TARGET"
NOT_A_RECORD = "NOT_A_RECORD"
READ_FAILED = "READ_FAILED"


def utc_now() -> datetime:
    """The present, in UTC."""
    return datetime.now(UTC)


class AdapterFailed(Exception):
    """An adapter's code raised something that is no part of its contract; the message says what."""


@contextmanager
def foreign(what: str) -> Iterator[None]:
    """Run an adapter's code: whatever it raises beyond its contract becomes `AdapterFailed`."""
    try:
        yield
    except (FetchFailed, NotARecord):
        raise
    except Exception as error:
        raise AdapterFailed(sanitised(f"{what} raised {type(error).__name__}: {error}")) from error


@dataclass(frozen=True, slots=True)
class Settlement:
    """A verdict, with the capture to keep where there is something new to keep."""

    verdict: Verdict
    capture: NewCapture | None = None


@dataclass(frozen=True, slots=True)
class Maker:
    """What every capture of one source's run has in common."""

    source: Source
    adapter: Adapter
    region: Region = Region()
    egress: Egress = Egress()

    def config(self) -> Mapping[str, object]:
        """What the adapter pins of its settings; raises `AdapterFailed` where it is not plain JSON."""
        with foreign("config"):
            config = dict(self.adapter.config(self.source))
            codec.config_digest(config)
        return config

    def capture(
        self, target: Target, at: datetime, parts: tuple[Part, ...], presence: Presence
    ) -> Capture:
        """The capture of a target."""
        return Capture(
            source_id=self.source.source_id,
            native_record_id=target.native_id,
            captured_at=at,
            adapter=AdapterVersion(self.adapter.name, self.adapter.version),
            parts=parts,
            config=self.config(),
            presence=presence,
            execution_region=self.region,
            egress=self.egress,
        )


@dataclass(frozen=True, slots=True)
class Attempt:
    """Makes one attempt. Bytes are kept before it returns, and nothing else is written."""

    maker: Maker
    blobs: Blobs
    budget: int
    clock: Callable[[], datetime] = utc_now

    async def at(self, target: Target, net: Net, earlier: Verdict | None) -> Settlement:
        """Fetch the target and judge it; `earlier` is the verdict that it had before."""
        began = self.clock()
        complaint = unfit_id(target.native_id)
        if complaint is not None:
            return Settlement(Verdict(Outcome.REJECTED, BAD_TARGET, complaint))
        try:
            with foreign("fetch"):
                fetched = await self.maker.adapter.fetch(target, net)
            parts = _checked(fetched)
        except FetchFailed as failed:
            return await self._after_no_part(failed, target, began, earlier)
        except AdapterFailed as broken:
            return self._put_off(ADAPTER_ERROR, str(broken), None, earlier)
        fault("collect.after_fetch")
        capture = self.maker.capture(target, began, parts, Presence.PRESENT)
        return await asyncio.to_thread(self._judge, capture, earlier)

    async def _after_no_part(
        self, failed: FetchFailed, target: Target, began: datetime, earlier: Verdict | None
    ) -> Settlement:
        error = f"{failed.url}: {failed.message}"
        if failed.recovery in (Recovery.RETRY, Recovery.LATER):
            return self._put_off(failed.code, error, failed, earlier)
        # only the target's own address can say that the target is gone
        if failed.part is not None and failed.part.url_asked == urldefrag(target.url).url:
            capture = self.maker.capture(target, began, (failed.part,), Presence.ABSENT)
            return await asyncio.to_thread(self._absent, capture, failed, earlier)
        fingerprint = None if earlier is None else earlier.fingerprint
        verdict = Verdict(Outcome.REJECTED, failed.code, sanitised(error), fingerprint=fingerprint)
        return Settlement(verdict)

    def _put_off(
        self, code: str, error: str, failed: FetchFailed | None, earlier: Verdict | None
    ) -> Settlement:
        wait = None if failed is None else failed.retry_after
        verdict = Verdict(Outcome.RETRY_AT, code, sanitised(error))
        asked = failed is None or not failed.outcome.is_of_host
        now = self.clock()
        return Settlement(after_failure(verdict, earlier, self.budget, wait, now, asked=asked))

    def _absent(self, capture: Capture, failed: FetchFailed, earlier: Verdict | None) -> Settlement:
        print_ = codec.fingerprint(capture)
        verdict = Verdict(Outcome.ABSENT, failed.code, failed.message, fingerprint=print_)
        return Settlement(verdict, self._keep(capture, print_, earlier))

    def _judge(self, capture: Capture, earlier: Verdict | None) -> Settlement:
        print_ = codec.fingerprint(capture)
        kept = self._keep(capture, print_, earlier)
        fine = Outcome.UNCHANGED if kept is None else Outcome.STORED
        code, error = read_trouble(self.maker.adapter, capture)
        verdict = Verdict(Outcome.REJECTED if code else fine, code, error, fingerprint=print_)
        return Settlement(verdict, kept)

    def _keep(self, capture: Capture, print_: str, earlier: Verdict | None) -> NewCapture | None:
        known = earlier is not None and earlier.fingerprint == print_
        # bytes that are known are put all the same, which mends a file that was damaged meanwhile
        for part in () if known and capture.presence is Presence.ABSENT else capture.parts:
            self.blobs.put(part.body)
        if known:
            return None
        fault("collect.after_blob")
        return NewCapture(capture.captured_at, codec.encode(capture))


def read_trouble(adapter: Adapter, capture: Capture) -> tuple[str | None, str | None]:
    """Why a capture gives no record, as code and sentence; (None, None) where it gives some.

    The capture is kept either way: a mended `read` can be run over it later.
    """
    try:
        with foreign("read"):
            records = list(adapter.read(capture))
    except NotARecord as other:
        return NOT_A_RECORD, sanitised(str(other))
    except AdapterFailed as broken:
        return READ_FAILED, str(broken)
    return (None, None) if records else (NOT_A_RECORD, "it holds no record")


def _checked(fetched: Fetched) -> tuple[Part, ...]:
    roles = [part.role for part in fetched.parts]
    if not roles or len(set(roles)) != len(roles):
        raise AdapterFailed(f"fetch returned parts with the roles {roles}: each needs its own")
    return fetched.parts
