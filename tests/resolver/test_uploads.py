"""Upload of evidence bytes over gRPC (if_artifact_upload)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from prw.collector.v1 import artifact_service_pb2 as pb
from prw.errors import Code
from prw_resolver.objects.model import ObjectKey
from tests.resolver.collecting import PAGE, Running, digest, gathered, refusal, running


async def test_bytes_are_declared_put_and_then_known(resolver: Running) -> None:
    """A declared upload is pending until its bytes are verified and durable; then it need not be sent again."""
    collector = await resolver.collector()
    declared = await collector.declare()
    assert declared.status == pb.ARTIFACT_STATUS_PENDING
    put = await collector.send(declared.upload_id, PAGE)
    assert (put.sha256, put.status) == (digest(PAGE), pb.ARTIFACT_STATUS_STORED)
    again = await collector.declare()
    assert again.status == pb.ARTIFACT_STATUS_STORED
    stored = await resolver.parts.objects.get(ObjectKey("ten_synth_a", digest(PAGE)))
    assert stored.body == PAGE


async def test_a_repeated_declaration_is_the_same_upload(resolver: Running) -> None:
    """The natural key is tenant and digest: declared again the upload has the same id."""
    collector = await resolver.collector()
    first, second = await collector.declare(), await collector.declare()
    assert first.upload_id == second.upload_id


async def test_a_large_artifact_is_streamed_in_chunks(resolver: Running) -> None:
    """Bytes beyond one message arrive whole."""
    body = bytes(range(256)) * 4096 * 3
    collector = await resolver.collector()
    assert await collector.put(body) == digest(body)
    stored = await resolver.parts.objects.get(ObjectKey("ten_synth_a", digest(body)))
    assert stored.body == body


async def test_an_empty_artifact_is_stored(resolver: Running) -> None:
    """A 304 has no body, and is evidence all the same."""
    collector = await resolver.collector()
    assert await collector.put(b"") == digest(b"")


async def test_the_same_put_again_is_harmless(resolver: Running) -> None:
    """A repeated put of the same bytes answers as the first did."""
    collector = await resolver.collector()
    declared = await collector.declare()
    first = await collector.send(declared.upload_id, PAGE)
    assert await collector.send(declared.upload_id, PAGE) == first


async def test_two_puts_of_one_upload_at_once_store_it_once(
    resolver: Running, superuser: psycopg.Connection[dict[str, Any]]
) -> None:
    """Create-if-absent: both are answered, one object and one row."""
    collector = await resolver.collector()
    declared = await collector.declare()
    puts = await gathered(*(collector.send(declared.upload_id, PAGE, 5) for _ in range(4)))
    assert {put.sha256 for put in puts} == {digest(PAGE)}
    assert len(superuser.execute("select from artifact").fetchall()) == 1


@pytest.mark.parametrize("sent", [PAGE[:-1], PAGE + b"!", b"?" + PAGE[1:]])
async def test_other_bytes_than_declared_are_refused(resolver: Running, sent: bytes) -> None:
    """DIGEST_MISMATCH leaves the upload pending and nothing stored."""
    collector = await resolver.collector()
    declared = await collector.declare()
    refused = await refusal(collector.send(declared.upload_id, sent))
    assert refused.code is Code.DIGEST_MISMATCH
    assert (await collector.declare()).status == pb.ARTIFACT_STATUS_PENDING


async def test_an_artifact_above_the_limit_is_refused_when_declared(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """ARTIFACT_TOO_LARGE comes before any bytes are sent."""
    async with running(resolver_database, tmp_path, artifact_limit=10) as resolver:
        collector = await resolver.collector()
        refused = await refusal(collector.declare(b"x" * 11))
        assert (refused.code, refused.field) == (Code.ARTIFACT_TOO_LARGE, "bytes")
        assert await collector.put(b"x" * 10) == digest(b"x" * 10)


async def test_the_same_bytes_with_another_media_type_are_refused(resolver: Running) -> None:
    """Stored bytes are never reinterpreted; the refusal names the type that is stored."""
    collector = await resolver.collector()
    await collector.put()
    refused = await refusal(collector.declare(media_type="text/plain"))
    assert refused.code is Code.IMMUTABLE_METADATA_CONFLICT
    assert refused.details["media_type"] == "text/html"


async def test_an_expired_upload_must_be_declared_again(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """After expires_at the upload id is worth nothing until it is declared again."""
    none = timedelta(0)
    async with running(resolver_database, tmp_path, upload_lifetime=none) as resolver:
        collector = await resolver.collector()
        declared = await collector.declare()
        refused = await refusal(collector.send(declared.upload_id, PAGE))
        assert refused.code is Code.NOT_FOUND


async def test_only_the_instance_that_declared_an_upload_puts_it(resolver: Running) -> None:
    """Ownership is what the stored upload says, not what a request says."""
    declared = await (await resolver.collector()).declare()
    other = await resolver.collector(instance="ci_two", worker="cw_one")
    refused = await refusal(other.send(declared.upload_id, PAGE))
    assert refused.code is Code.INSTANCE_SCOPE_DENIED


async def test_a_rotated_client_keeps_its_instance_s_uploads(resolver: Running) -> None:
    """A new client of the same stable instance puts what the former one declared."""
    declared = await (await resolver.collector()).declare()
    rotated = await resolver.collector()
    assert (await rotated.send(declared.upload_id, PAGE)).sha256 == digest(PAGE)


async def test_a_source_that_was_taken_away_takes_its_uploads_along(resolver: Running) -> None:
    """The grant is checked again when the bytes come."""
    declared = await (await resolver.collector()).declare()
    rotated = await resolver.collector(sources=("src_two",))
    refused = await refusal(rotated.send(declared.upload_id, PAGE))
    assert refused.code is Code.SOURCE_SCOPE_DENIED


async def test_an_upload_of_another_tenant_does_not_exist_here(resolver: Running) -> None:
    """A client never learns that another tenant has an upload."""
    declared = await (await resolver.collector()).declare()
    other = await resolver.collector(tenant="ten_synth_b")
    refused = await refusal(other.send(declared.upload_id, PAGE))
    assert refused.code is Code.NOT_FOUND


async def test_an_upload_that_never_ends_is_ended(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """A caller without a deadline that sends nothing, or empty chunks, does not keep a call open for ever."""
    limit = timedelta(milliseconds=200)
    async with running(resolver_database, tmp_path, put_limit=limit) as resolver:
        collector = await resolver.collector()
        declared = await collector.declare()
        named = pb.PutArtifactRequest(upload_id=declared.upload_id)
        never = asyncio.Event()

        async def silent() -> AsyncIterator[pb.PutArtifactRequest]:
            yield named
            await never.wait()

        async def empty() -> AsyncIterator[pb.PutArtifactRequest]:
            yield named
            while True:
                yield pb.PutArtifactRequest(chunk=b"")
                await asyncio.sleep(0)

        for endless in (silent(), empty()):
            refused = await refusal(collector.stream(endless))
            assert refused.code is Code.UNAVAILABLE
        assert (await collector.send(declared.upload_id, PAGE)).sha256 == digest(PAGE)


async def test_a_stream_names_its_upload_first_and_once(resolver: Running) -> None:
    """Chunks without an upload, and a second upload id, are VALIDATION_FAILED."""
    collector = await resolver.collector()
    declared = await collector.declare()
    named = pb.PutArtifactRequest(upload_id=declared.upload_id)
    chunk = pb.PutArtifactRequest(chunk=PAGE)
    for messages in ([chunk], [], [named, named]):
        refused = await refusal(collector.stream(messages))
        assert refused.code is Code.VALIDATION_FAILED


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("media_type", "Text/HTML"),
        ("media_type", "text/html; charset=utf-8"),
        ("media_type", ""),
        ("source_id", "a b"),
    ],
)
async def test_a_malformed_declaration_is_refused_by_the_contract_s_limits(
    resolver: Running, field: str, value: str
) -> None:
    """Limits are declared in the proto and checked before the use case."""
    collector = await resolver.collector()
    refused = await refusal(collector.declare(**{field: value}))  # type: ignore[arg-type]  # one field by name
    assert (refused.code, refused.field) == (Code.VALIDATION_FAILED, field)


async def test_a_declaration_names_a_source(
    resolver: Running, superuser: psycopg.Connection[dict[str, Any]]
) -> None:
    """Without one there is nothing to attribute the bytes to: ATTRIBUTION_DENIED, and no upload is kept."""
    collector = await resolver.collector()
    refused = await refusal(collector.declare(source_id=""))
    assert (refused.code, refused.field) == (Code.ATTRIBUTION_DENIED, "source_id")
    assert superuser.execute("select from upload").fetchall() == []
