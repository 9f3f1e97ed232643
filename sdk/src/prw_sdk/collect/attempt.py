"""One attempt at one target: fetch it, see what it is, and say what the ledger should hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from urllib.parse import urldefrag

from prw_base.faults import fault
from prw_sdk.adapter import Adapter, Net, Source, Target
from prw_sdk.collect.reading import AdapterFailed, Reading, foreign, read
from prw_sdk.collect.returned import parts_of
from prw_sdk.evidence import AdapterVersion, Capture, Egress, Part, Presence, Region
from prw_sdk.fetch.outcome import FetchFailed, Recovery
from prw_sdk.fetch.redact import Redactor
from prw_sdk.spool import codec, readings
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
_ABSENCE = Reading()


def nothing(coming: Set[str]) -> Set[str]:
    """No bytes are wanted again (`Wanting`)."""
    return frozenset()


def utc_now() -> datetime:
    """The present, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Settlement:
    """A verdict, with the capture to keep where there is something new, the bytes to keep, and what was read."""

    verdict: Verdict
    capture: NewCapture | None = None
    bodies: tuple[bytes, ...] = ()
    reading: Reading | None = None


Wanting = Callable[[Set[str]], Set[str]]
"""Which bytes that the last capture of an item names are wanted again, asked with those that come now."""

Judge = Callable[[], Settlement]
"""What is left to do of an attempt once nothing more is fetched; plain Python that may be slow."""


@dataclass(frozen=True, slots=True)
class Maker:
    """What every capture of one source's run has in common; `redact` knows what no error of an adapter may show."""

    source: Source
    adapter: Adapter
    region: Region = Region()
    egress: Egress = Egress()
    redact: Redactor = Redactor()

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
    """Makes one attempt; writes nothing."""

    maker: Maker
    budget: int
    clock: Callable[[], datetime] = utc_now

    async def at(
        self, target: Target, net: Net, earlier: Verdict | None, wanting: Wanting = nothing
    ) -> Judge:
        """Fetch the target; `earlier` is the verdict that it had before. What is returned judges it.

        That asks the network nothing; `wanting` is asked about a known absence.
        """
        began = self.clock()
        complaint = unfit_id(target.native_id)
        if complaint is not None:
            return _already(Verdict(Outcome.REJECTED, BAD_TARGET, complaint))
        try:
            with foreign("fetch"):
                fetched = await self.maker.adapter.fetch(target, net)
            parts = parts_of(fetched)
        except FetchFailed as failed:
            return self._after_no_part(failed, target, began, earlier, wanting)
        except AdapterFailed as broken:
            return _already(self._put_off(ADAPTER_ERROR, str(broken), None, earlier))
        fault("collect.after_fetch")
        return partial(self._judge, target, began, parts, earlier)

    def _after_no_part(
        self,
        failed: FetchFailed,
        target: Target,
        began: datetime,
        earlier: Verdict | None,
        wanting: Wanting,
    ) -> Judge:
        error = self.maker.redact.text(f"{failed.url}: {failed.message}")
        if failed.recovery in (Recovery.RETRY, Recovery.LATER):
            return _already(self._put_off(failed.code, error, failed, earlier))
        # only a real 404 or 410 of the target's own address says that the target is gone
        told = failed.part if failed.recovery is Recovery.ABSENT else None
        if told is not None and told.url_asked == urldefrag(target.url).url:
            return partial(self._absent, target, began, failed, earlier, wanting)
        fingerprint = None if earlier is None else earlier.fingerprint
        rejected = Verdict(Outcome.REJECTED, failed.code, sanitised(error), fingerprint=fingerprint)
        return _already(rejected)

    def _put_off(
        self, code: str, error: str, failed: FetchFailed | None, earlier: Verdict | None
    ) -> Verdict:
        wait = None if failed is None else failed.retry_after
        verdict = Verdict(Outcome.RETRY_AT, code, sanitised(self.maker.redact.text(error)))
        asked = failed is None or not failed.outcome.is_of_host
        now = self.clock()
        return after_failure(verdict, earlier, self.budget, wait, now, asked=asked)

    def _absent(
        self,
        target: Target,
        began: datetime,
        failed: FetchFailed,
        earlier: Verdict | None,
        wanting: Wanting,
    ) -> Settlement:
        parts = () if failed.part is None else (failed.part,)
        capture = self.maker.capture(target, began, parts, Presence.ABSENT)
        print_ = codec.fingerprint(capture)
        verdict = Verdict(Outcome.ABSENT, failed.code, failed.message, fingerprint=print_)
        if not _is_known(earlier, print_):
            return self._settlement(verdict, capture, _ABSENCE)
        # an absence that is known is no news, whatever its error page looks like, while the bytes of it are whole
        coming = {part.sha256: part.body for part in parts}
        wanted = wanting(coming.keys())
        if wanted <= coming.keys():
            return Settlement(verdict, None, tuple(coming[one] for one in wanted), _ABSENCE)
        return self._settlement(verdict, capture, _ABSENCE)

    def _judge(
        self, target: Target, began: datetime, parts: tuple[Part, ...], earlier: Verdict | None
    ) -> Settlement:
        capture = self.maker.capture(target, began, parts, Presence.PRESENT)
        print_ = codec.fingerprint(capture)
        reading = read(self.maker.adapter, capture)
        if reading.error is not None:
            # an adapter quotes the page in what it raises, and the page may show what it was asked with
            reading = replace(reading, error=self.maker.redact.text(reading.error))
        known = _is_known(earlier, print_)
        fine = Outcome.UNCHANGED if known else Outcome.STORED
        outcome = Outcome.REJECTED if reading.code else fine
        verdict = Verdict(outcome, reading.code, reading.error, fingerprint=print_)
        if not known:
            return self._settlement(verdict, capture, reading)
        # bytes that came again are put all the same, which mends a file that was damaged meanwhile
        again = tuple(part.body for part in capture.parts if part.cites is None)
        return Settlement(verdict, None, again, reading)

    def _settlement(self, verdict: Verdict, capture: Capture, reading: Reading) -> Settlement:
        read_of_it = readings.encode(reading.records, reading.code, reading.error)
        version = self.maker.adapter.version
        kept = NewCapture(capture.captured_at, codec.encode(capture), read_of_it, version)
        return Settlement(verdict, kept, tuple(part.body for part in capture.parts), reading)


def _already(verdict: Verdict) -> Judge:
    settlement = Settlement(verdict)
    return lambda: settlement


def _is_known(earlier: Verdict | None, print_: str) -> bool:
    return earlier is not None and earlier.fingerprint == print_
