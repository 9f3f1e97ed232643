"""A stream of artifacts as a collector has it: messages out by hand, answers in one by one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc

from prw.collector.v1 import artifact_service_pb2 as pb
from prw.collector.v1 import artifact_service_pb2_grpc as pb_grpc
from prw.errors import PrwError
from prw.grpc_errors import from_rpc_error
from prw_base.client import open_channel
from tests.resolver.collecting import CHUNK, PAGE, digest

SOURCE = "ten_synth_a.src_one"
STATUS = {
    pb.ARTIFACT_STATUS_PENDING: "PENDING",
    pb.ARTIFACT_STATUS_STORED: "STORED",
}


def declaration(sequence: int, body: bytes = PAGE, **other: Any) -> pb.StoreArtifactsRequest:
    """Say that `body` will be sent."""
    fields: dict[str, Any] = {
        "sequence": sequence,
        "source_id": SOURCE,
        "sha256": digest(body),
        "bytes": len(body),
        "media_type": "text/html",
    }
    return pb.StoreArtifactsRequest(declaration=pb.ArtifactDeclaration(**(fields | other)))


def chunk(sequence: int, data: bytes, last: bool = True) -> pb.StoreArtifactsRequest:
    """The next bytes of an artifact."""
    return pb.StoreArtifactsRequest(chunk=pb.ArtifactChunk(sequence=sequence, data=data, last=last))


def chunks(sequence: int, body: bytes, size: int = CHUNK) -> list[pb.StoreArtifactsRequest]:
    """All bytes of an artifact, the last message marked."""
    starts = range(0, max(len(body), 1), size)
    return [chunk(sequence, body[at : at + size], at + size >= len(body)) for at in starts]


def said(answer: pb.StoreArtifactsResponse) -> tuple[int, str]:
    """An answer's artifact, and its status or the code it was refused with."""
    return answer.sequence, STATUS.get(answer.status, answer.error.code)


class Stream:
    """One open stream."""

    def __init__(self, call: Any) -> None:
        self.call = call

    async def send(self, *messages: pb.StoreArtifactsRequest) -> None:
        """Write messages."""
        try:
            for message in messages:
                await self.call.write(message)
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error
        except asyncio.InvalidStateError:
            raise await self.refusal() from None

    async def answers(self, number: int) -> list[tuple[int, str]]:
        """The next answers; raises the PrwError that the stream ended with instead."""
        return [said(await self._read()) for _ in range(number)]

    async def _read(self) -> pb.StoreArtifactsResponse:
        try:
            answer: Any = await self.call.read()
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error
        if answer is grpc.aio.EOF:
            await self._raise()
            raise AssertionError("the stream ended in order")
        read: pb.StoreArtifactsResponse = answer
        return read

    async def _raise(self) -> None:
        if await self.call.code() is not grpc.StatusCode.OK:
            try:
                await self.call.read()
            except grpc.RpcError as error:
                raise from_rpc_error(error) from error

    async def refusal(self) -> PrwError:
        """What the stream ends with, once all answers are read."""
        try:
            while True:
                await self._read()
        except PrwError as ended:
            return ended

    async def done(self) -> list[tuple[int, str]]:
        """Half-close, and read the remaining answers; raises PrwError where the stream ended otherwise."""
        await self.call.done_writing()
        rest = []
        try:
            while (answer := await self.call.read()) is not grpc.aio.EOF:
                rest.append(said(answer))
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error
        await self._raise()
        return rest


@asynccontextmanager
async def stream(target: str, token: str) -> AsyncIterator[Stream]:
    """Open a stream; it is cancelled at the end where it still is."""
    async with open_channel(target, token) as channel:
        stub: Any = pb_grpc.ArtifactServiceStub(channel)
        call = stub.StoreArtifacts()
        try:
            yield Stream(call)
        finally:
            call.cancel()


async def store(held: Stream, bodies: Sequence[bytes], first: int = 1) -> list[tuple[int, str]]:
    """Declare all, send what is awaited; the last answers."""
    await held.send(*(declaration(first + at, body) for at, body in enumerate(bodies)))
    awaited = [at for at, status in await held.answers(len(bodies)) if status == "PENDING"]
    for at in awaited:
        await held.send(*chunks(at, bodies[at - first]))
    return await held.answers(len(awaited))
