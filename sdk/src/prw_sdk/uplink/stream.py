"""Many artifacts over one two-way stream: declared ahead, sent one after the other, each answered for itself.

What is stored already is never sent. A stream that breaks fails those that were on their way; the next artifact opens
another one.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterable, AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta

import grpc

from prw.collector.v1.artifact_service_pb2 import (
    ARTIFACT_STATUS_PENDING,
    ARTIFACT_STATUS_STORED,
    ArtifactChunk,
    ArtifactDeclaration,
    ArtifactRefusal,
    StoreArtifactsRequest,
    StoreArtifactsResponse,
)
from prw.errors import Code, PrwError
from prw.grpc_errors import from_rpc_error
from prw_base.faults import fault
from prw_sdk.spool.blobs import BlobDamaged, BlobMissing, Blobs

CHUNK = 256 * 1024
"""Bytes of one message."""
WINDOW = 32
"""Artifacts that are declared and not yet answered."""
SILENCE = timedelta(seconds=120)
"""A stream on which nothing moves for so long, although something is awaited, is broken off (if_artifact_upload)."""
_GRACE, _LONG_GRACE = 0.1, 2.0
"""Seconds in which a resolver may refuse a stream before anything is written to it.

A stream that is refused while it is being written loses the reason (grpc.aio says "Internal error from Core"); so a
stream that was broken off without a word is given the longer one when it is opened again.
"""

Requests = AsyncIterator[StoreArtifactsRequest]
Open = Callable[[Requests], AsyncIterable[StoreArtifactsResponse]]


@dataclass(frozen=True, slots=True)
class Artifact:
    """Bytes of the spool, as they are to be stored: normalised media type, length in bytes."""

    source_id: str
    sha256: str
    bytes: int
    media_type: str


class StreamUnsupported(Exception):
    """The resolver knows no such stream."""


class ArtifactRefused(Exception):
    """The resolver answered that it does not take this artifact; the stream goes on."""

    def __init__(self, error: PrwError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class _UnderWay:
    source_id: str
    future: asyncio.Future[None]

    def is_for(self, source_id: str) -> bool:
        """Whether it has ended well, for that source."""
        ended_well = not self.future.cancelled() and self.future.exception() is None
        return ended_well and self.source_id == source_id


class ArtifactStream:
    """Stores artifacts of a spool over a stream that is opened when it is first needed."""

    def __init__(self, open_call: Open, blobs: Blobs, window: int = WINDOW) -> None:
        self._open = open_call
        self._blobs = blobs
        self._window = asyncio.Semaphore(window)
        self._connection: _Connection | None = None
        self._under_way: dict[str, _UnderWay] = {}

    async def store(self, artifact: Artifact) -> None:
        """Bring the bytes, or learn that they are there; one attempt.

        Raises `ArtifactRefused`, `PrwError` where the stream broke, `BlobMissing`, `BlobDamaged`, and
        `StreamUnsupported` where the resolver is an older one.
        """
        while (other := self._under_way.get(artifact.sha256)) is not None:
            # another capture has the same bytes: they are sent once, and declared for each source
            await asyncio.wait([other.future])
            if other.is_for(artifact.source_id):
                return
        future = asyncio.ensure_future(self._in_turn(artifact))
        self._under_way[artifact.sha256] = _UnderWay(artifact.source_id, future)
        try:
            await future
        finally:
            self._under_way.pop(artifact.sha256, None)

    async def _in_turn(self, artifact: Artifact) -> None:
        async with self._window:
            await self._store(artifact)

    async def _store(self, artifact: Artifact) -> None:
        if not self._blobs.has(artifact.sha256, artifact.bytes):
            raise BlobMissing(f"{self._blobs.path(artifact.sha256)}: missing or cut short")
        if self._connection is None or self._connection.ended:
            broke_off = self._connection is not None and not self._connection.was_answered
            grace = _LONG_GRACE if broke_off else _GRACE
            self._connection = _Connection(self._open, self._blobs, grace)
        await self._connection.store(artifact)

    async def aclose(self) -> None:
        """End the stream in order; what is on its way fails."""
        if self._connection is not None:
            await self._connection.aclose()


@dataclass(slots=True)
class _Awaited:
    artifact: Artifact
    answer: asyncio.Future[None]


class _Connection:
    """One stream, from its opening to its end."""

    def __init__(self, open_call: Open, blobs: Blobs, grace: float) -> None:
        self._blobs = blobs
        self._grace = grace
        self._sequences = itertools.count(1)
        self._awaited: dict[int, _Awaited] = {}
        # what is to be written: a declaration, the number of an artifact whose bytes are asked for, None for the end
        self._jobs: asyncio.Queue[StoreArtifactsRequest | int | None] = asyncio.Queue()
        self._moved = 0
        self.ended = False
        self.was_answered = False
        self._reading = asyncio.create_task(self._read(open_call(self._requests())))

    async def store(self, artifact: Artifact) -> None:
        sequence = next(self._sequences)
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited[sequence] = _Awaited(artifact, answer)
        declaration = ArtifactDeclaration(
            sequence=sequence,
            source_id=artifact.source_id,
            sha256=artifact.sha256,
            bytes=artifact.bytes,
            media_type=artifact.media_type,
        )
        self._jobs.put_nowait(StoreArtifactsRequest(declaration=declaration))
        await answer

    async def aclose(self) -> None:
        self._jobs.put_nowait(None)
        await asyncio.wait([self._reading], timeout=2)
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _requests(self) -> Requests:
        """One writer, so that the chunks of different artifacts never mix."""
        await asyncio.wait([self._reading], timeout=self._grace)
        while (job := await self._jobs.get()) is not None:
            if isinstance(job, StoreArtifactsRequest):
                yield job
                fault("uplink.after_declare")
                continue
            body = await self._body(job)
            if body is None:
                return
            async for chunk in _chunks(job, body):
                yield chunk
                self._moved += 1
                fault("uplink.mid_artifact")

    async def _body(self, sequence: int) -> bytes | None:
        """The bytes of an artifact; None where they are not whole: the stream ends, since it awaits them."""
        awaited = self._awaited[sequence]
        try:
            return await asyncio.to_thread(self._blobs.get, awaited.artifact.sha256)
        except (BlobMissing, BlobDamaged) as damaged:
            self._awaited.pop(sequence)
            _fail(awaited, damaged)
            self.ended = True
            return None

    async def _read(self, answers: AsyncIterable[StoreArtifactsResponse]) -> None:
        broken: Exception = PrwError(Code.UNAVAILABLE, "the stream of artifacts ended")
        try:
            await self._follow(aiter(answers))
        except grpc.RpcError as error:
            broken = _typed(error)
        except PrwError as error:
            broken = error
        finally:
            self.ended = True
            self._jobs.put_nowait(None)
            for awaited in self._awaited.values():
                _fail(awaited, broken)
            self._awaited.clear()

    async def _follow(self, answers: AsyncIterator[StoreArtifactsResponse]) -> None:
        """Take every answer; raises `PrwError` UNAVAILABLE where nothing moves although something is awaited."""
        while True:
            reading = asyncio.ensure_future(anext(answers, None))
            try:
                answer = await self._patiently(reading)
            finally:
                reading.cancel()
            if answer is None:
                return
            self._take(answer)

    async def _patiently(
        self, reading: asyncio.Future[StoreArtifactsResponse | None]
    ) -> StoreArtifactsResponse | None:
        while True:
            before = self._moved
            await asyncio.wait([reading], timeout=SILENCE.total_seconds())
            if reading.done():
                return reading.result()
            if self._awaited and before == self._moved:
                raise PrwError(Code.UNAVAILABLE, "the resolver has gone silent")

    def _take(self, answer: StoreArtifactsResponse) -> None:
        self._moved += 1
        self.was_answered = True
        awaited = self._awaited.get(answer.sequence)
        if awaited is None:
            return
        if answer.status == ARTIFACT_STATUS_PENDING:
            self._jobs.put_nowait(answer.sequence)
            return
        self._awaited.pop(answer.sequence)
        if answer.status != ARTIFACT_STATUS_STORED:
            _fail(awaited, ArtifactRefused(refusal(answer.error)))
        elif not awaited.answer.done():
            awaited.answer.set_result(None)


async def _chunks(sequence: int, body: bytes) -> Requests:
    for start in range(0, max(len(body), 1), CHUNK):
        data = body[start : start + CHUNK]
        last = start + CHUNK >= len(body)
        yield StoreArtifactsRequest(chunk=ArtifactChunk(sequence=sequence, data=data, last=last))


def _fail(awaited: _Awaited, error: Exception) -> None:
    if not awaited.answer.done():
        awaited.answer.set_exception(error)


def _typed(error: grpc.RpcError) -> Exception:
    code = getattr(error, "code", None)
    if code is not None and code() is grpc.StatusCode.UNIMPLEMENTED:
        return StreamUnsupported("the resolver knows no stream of artifacts")
    return from_rpc_error(error)


def refusal(said: ArtifactRefusal) -> PrwError:
    """Why one artifact was refused; a code that is not known here counts as UNAVAILABLE where it may be sent again."""
    known = said.code in Code.__members__
    unknown = Code.UNAVAILABLE if said.retryable else Code.INTERNAL
    code = Code(said.code) if known else unknown
    named = said.field or None
    return PrwError(code, said.message or said.code, field=named, details=dict(said.details))
