"""Sending what the spool holds: register, store artifacts, submit captures, note receipts, send heartbeats.

Every step may be repeated: bytes that are stored are not sent again, the same capture gets the same receipt, and a
receipt is noted once. So a crash anywhere, a second push, or two at once change nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from types import MappingProxyType, TracebackType

from prw.collector.v1.artifact_service_pb2_grpc import ArtifactServiceStub
from prw.collector.v1.capture_service_pb2_grpc import CaptureServiceStub
from prw.collector.v1.checkpoint_service_pb2_grpc import CheckpointServiceStub
from prw.collector.v1.collector_service_pb2 import (
    RUNTIME_KIND_LONG_RUNNING,
    RUNTIME_KIND_SCHEDULED,
    RegisterRequest,
    RegisterResponse,
)
from prw.collector.v1.collector_service_pb2_grpc import CollectorServiceStub
from prw.collector.v1.evidence_pb2 import Egress, Region
from prw.errors import Code, PrwError
from prw_base.client import NEVER, call
from prw_base.faults import fault
from prw_sdk import evidence
from prw_sdk.report import Event, EventKind, RunSummary, Watch, unwatched
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CaptureState, KeptCapture
from prw_sdk.spool.sqlite import SpoolUnusable
from prw_sdk.uplink import heartbeat
from prw_sdk.uplink.address import ResolverAddress
from prw_sdk.uplink.carry import NOT_GRANTED, Carrier, Refused
from prw_sdk.uplink.checkpoints import ResolverCheckpoints
from prw_sdk.uplink.identity import identity
from prw_sdk.uplink.receipts import REFUSED, Receipts

_REGISTER = timedelta(seconds=10)
_TARGET = re.compile(r"targets\[(\d+)\]")
# an older resolver keeps no checkpoints, nor does one whose operator granted no scope for them
_KEEPS_NONE = frozenset({Code.INTERNAL, Code.MISSING_SCOPE})

Denials = Mapping[str, PrwError]
"""Why the resolver does not grant a source, source by source."""

NOBODY: Denials = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Binding:
    """What the resolver binds this instance to, and the sources that it was asked for and does not grant.

    `lease` is how long a heartbeat keeps the instance live.
    """

    tenant_id: str
    sources: frozenset[str]
    denied: Denials = field(default_factory=lambda: NOBODY)
    lease: timedelta = heartbeat.LEASE


@dataclass(frozen=True, slots=True)
class Drained:
    """What one walk over the spool came to: captures with a new receipt, and captures refused for good.

    `denied` says why nothing of a source was sent; its captures wait in the spool.
    """

    submitted: int = 0
    refused: int = 0
    denied: Denials = field(default_factory=lambda: NOBODY)

    def __add__(self, other: Drained) -> Drained:
        return Drained(
            self.submitted + other.submitted,
            self.refused + other.refused,
            MappingProxyType({**self.denied, **other.denied}),
        )


class Uplink:
    """Sends the captures of a spool to one resolver. An asynchronous context manager."""

    def __init__(
        self,
        resolver: ResolverAddress,
        spool: Spool,
        watch: Watch = unwatched,
        *,
        long_running: bool = False,
    ) -> None:
        self._resolver = resolver
        self._spool = spool
        self._watch = watch
        self._kind = RUNTIME_KIND_LONG_RUNNING if long_running else RUNTIME_KIND_SCHEDULED
        self._denied: dict[str, PrwError] = {}
        self._total = Drained()
        # two walks at once would submit the same captures
        self._draining = asyncio.Lock()

    async def __aenter__(self) -> Uplink:
        self._channel = self._resolver.open()
        self._collectors = CollectorServiceStub(self._channel)
        self._captures = CaptureServiceStub(self._channel)
        self._receipts = Receipts(self._spool, self._captures)
        self._carrier = Carrier(
            ArtifactServiceStub(self._channel), self._captures, self._spool.blobs, self._resolver
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._carrier.aclose()
        await self._channel.close()

    # --- who we are ---

    async def register(
        self,
        targets: Sequence[str],
        region: evidence.Region = evidence.Region(),  # noqa: B008  # frozen, so shared safely
        egress: evidence.Egress = evidence.Egress(),  # noqa: B008  # frozen, so shared safely
    ) -> Binding:
        """Record this instance with the sources it will send; raises `PrwError` where none of them is granted.

        Those that are not granted are in `Binding.denied`, and nothing of them is sent.
        """
        wanted = sorted(set(targets))
        while True:
            try:
                answer = await self._register(wanted, region, egress)
            except PrwError as error:
                wanted = self._without_denied(wanted, error)
            else:
                lease = answer.lease.ToTimedelta() or heartbeat.LEASE
                granted = frozenset(answer.granted_sources)
                return Binding(answer.tenant_id, granted, dict(self._denied), lease)

    def _without_denied(self, wanted: Sequence[str], error: PrwError) -> list[str]:
        named = _TARGET.fullmatch(error.field or "")
        if error.code not in NOT_GRANTED or named is None or len(wanted) == 1:
            raise error
        denied = wanted[int(named[1])]
        self._denied[denied] = error
        return [source for source in wanted if source != denied]

    async def _register(
        self, targets: Sequence[str], region: evidence.Region, egress: evidence.Egress
    ) -> RegisterResponse:
        who = identity(self._resolver)
        request = RegisterRequest(
            worker_id=who.worker,
            instance_id=who.instance,
            version=version("prw-sdk"),
            runtime="local-process",
            runtime_kind=self._kind,
            execution_region=Region(**asdict(region)),
            egress=Egress(**asdict(egress)),
            targets=targets,
            capabilities=["html"],
        )
        return await call(self._collectors.Register, request, _REGISTER, self._resolver.retry)

    # --- captures ---

    async def drain(self) -> Drained:
        """Send every capture that is kept and not submitted; raises `PrwError` when sending must stop.

        A capture that the resolver will not take is marked as refused, and later ones go on; so do the other sources
        where one is denied. A denial of the caller itself, or a resolver that stays unreachable, stops everything and
        loses nothing.
        """
        async with self._draining:
            await asyncio.to_thread(self._spool.mend)
            total, after = Drained(denied=dict(self._denied)), 0
            while page := await asyncio.to_thread(self._spool.ledger.kept, after):
                total += await self._send_page(page)
                after = page[-1].row
            return total

    async def follow(self, more: asyncio.Event, ended: asyncio.Event) -> None:
        """Drain again whenever `more` is set, until `ended` is set and nothing is left."""
        while True:
            more.clear()
            last = ended.is_set()
            await self.drain()
            if last:
                return
            await more.wait()

    @property
    def total(self) -> Drained:
        """What all walks together came to."""
        return self._total + Drained(denied=dict(self._denied))

    async def submit_all(self, source_id: str) -> None:
        """Send everything that is kept; raises `PrwError` where captures of that source are still not sent."""
        await self.drain()
        waiting = await asyncio.to_thread(self._spool.ledger.states)
        if not waiting.get((source_id, CaptureState.KEPT), 0):
            return
        raise self._denied.get(source_id) or PrwError(
            Code.UNAVAILABLE, f"captures of {source_id} are not submitted yet"
        )

    async def _send_page(self, page: Sequence[KeptCapture]) -> Drained:
        """Oldest first: parts of the oldest capture are declared first, and it is submitted once they are stored."""
        waiting = iter(page)

        async def work() -> Drained:
            total = Drained()
            for kept in waiting:
                if kept.key.source_id not in self._denied:
                    total += await self._send(kept)
            return total

        workers = [
            asyncio.create_task(work()) for _ in range(min(self._carrier.at_once, len(page)))
        ]
        try:
            done = await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            # what a worker has begun to note is noted before anybody closes the spool
            await asyncio.gather(*workers, return_exceptions=True)
        return sum(done, Drained())

    async def _send(self, kept: KeptCapture) -> Drained:
        try:
            receipt_id = await self._carrier.carry(kept)
        except Refused as refused:
            done = await self._refused(kept, refused.code, str(refused))
        except PrwError as error:
            if error.code in NOT_GRANTED:
                return self._deny(kept.key.source_id, error)
            if error.retryable or error.entry.http in (401, 403):
                raise
            done = await self._refused(kept, error.code.value, _said(error))
        else:
            done = await self._submitted(kept, receipt_id)
        self._total += done
        return done

    async def _submitted(self, kept: KeptCapture, receipt_id: str) -> Drained:
        fault("uplink.after_submit")
        await asyncio.to_thread(self._spool.ledger.mark_submitted, kept.row, receipt_id)
        fault("uplink.after_mark")
        self._watch(Event(EventKind.SUBMITTED, kept.key.source_id, kept.key.native_id))
        return Drained(submitted=1)

    async def _refused(self, kept: KeptCapture, code: str, message: str) -> Drained:
        await asyncio.to_thread(self._spool.ledger.mark_refused, kept.row, code, message)
        key = kept.key
        self._watch(
            Event(EventKind.REFUSED, key.source_id, key.native_id, code=code, error=message)
        )
        return Drained(refused=1)

    def _deny(self, source_id: str, error: PrwError) -> Drained:
        if source_id not in self._denied:
            self._denied[source_id] = error
            self._watch(
                Event(EventKind.FAILED, source_id, code=error.code.value, error=error.message)
            )
        return Drained(denied={source_id: error})

    # --- checkpoints ---

    def checkpoints(self) -> ResolverCheckpoints:
        """Checkpoints that the resolver keeps, each advanced once everything before it is submitted."""
        stub = CheckpointServiceStub(self._channel)
        return ResolverCheckpoints(stub, self._spool, self.submit_all, self._resolver.retry)

    async def sync_checkpoints(self, sources: Sequence[tuple[str, str]]) -> None:
        """After a push: the resolver's checkpoints count (adapters.md, "The runner").

        It is given those of this spool, unless somebody else has advanced its own meanwhile: then the spool takes
        these, and what they pass is fetched again at worst. Sources of which captures wait are left as they are.
        """
        store, local = self.checkpoints(), self._spool.checkpoints
        states = await asyncio.to_thread(self._spool.ledger.states)
        waits = {source for source, state in states if state is not CaptureState.SUBMITTED}
        for tenant, source_id in sources:
            keys = () if source_id in waits | set(self._denied) else local.keys(tenant, source_id)
            for key in keys:
                try:
                    await store.sync(key)
                except PrwError as error:
                    if error.code not in _KEEPS_NONE:
                        raise
                    return

    # --- receipts and heartbeats ---

    async def heartbeat(self, run: RunSummary | None = None) -> heartbeat.Pulse | None:
        """Say that this instance lives, or what its run came to, and note the receipts that come back.

        Best effort: once more after 5 s, then None (if_heartbeat). Raises `PrwError` CREDENTIAL_REVOKED only.
        """
        now = datetime.now(UTC)
        try:
            rows = await self._receipts.to_ask(now, 0)
        except SpoolUnusable:
            # it is told all the same that there is a run to worry about
            rows = {}
        who = identity(self._resolver)
        request = heartbeat.request(who.instance, now, run, sorted(set(rows.values())))
        refused = False
        for attempt in (1, 2):
            try:
                method = self._collectors.Heartbeat
                answer = heartbeat.pulse(await call(method, request, heartbeat.TIMEOUT, NEVER))
            except PrwError as error:
                if not heartbeat.is_skipped(error):
                    raise
                # a receipt that the resolver does not know must not silence the heartbeat
                del request.receipt_ids[:]
                refused = error.code in REFUSED
                if attempt == 1 and error.retryable:
                    await asyncio.sleep(heartbeat.AGAIN.total_seconds())
            else:
                await self._receipts.note(rows, answer.receipts, now)
                if refused and rows:
                    await self._ask_apart(rows, now)
                return answer
        return None

    async def _ask_apart(self, rows: Mapping[int, str], now: datetime) -> None:
        """Find what a heartbeat was refused for, so that the next ones bring receipts again."""
        try:
            await self._receipts.ask(rows, now, NEVER)
        except PrwError as error:
            if not heartbeat.is_skipped(error):
                raise

    async def ask_receipts(self, now: datetime) -> int:
        """Ask what became of the submitted captures, in batches; how many were asked for.

        A receipt is not asked for more often than every 30 s, nor once its capture is resolved or rejected.
        """
        after, asked = 0, 0
        while rows := await self._receipts.to_ask(now, after):
            await self._receipts.ask(rows, now, self._resolver.retry)
            after, asked = max(rows), asked + len(rows)
        return asked


def _said(error: PrwError) -> str:
    """The message of a refusal with what an operator needs beside it: the field that is wrong, and the details."""
    beside = [error.field] if error.field else []
    beside += [f"{name}={value}" for name, value in sorted(error.details.items())]
    return f"{error.message} ({'; '.join(beside)})" if beside else error.message
