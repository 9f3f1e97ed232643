"""Many artifacts over one two-way stream (if_artifact_upload)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from prw.errors import Code
from prw_resolver.access import service as access
from prw_resolver.access.model import COLLECTOR_SCOPES, ClientGrant
from prw_resolver.intake.artifacts.service import PENDING_LIMIT
from prw_resolver.objects.model import ObjectKey
from tests.resolver.collecting import CATALOG, PAGE, Running, digest, refusal, running
from tests.resolver.storing import SOURCE, Stream, chunk, chunks, declaration, store, stream
from tests.support.waiting import until

Rows = psycopg.Connection[dict[str, Any]]

BODIES = [b"page %d" % number * (number + 1) for number in range(40)]


async def token(resolver: Running, tenant: str = "ten_synth_a", instance: str = "ci_one") -> str:
    """The token of a collector that may fetch the tenant's first source."""
    sources = (f"{tenant}.src_one",)
    grant = ClientGrant(tenant, CATALOG, instance, COLLECTOR_SCOPES, "cw_one", sources)
    return await resolver.token(grant)


@pytest.fixture
async def opened(resolver: Running) -> AsyncIterator[Stream]:
    """A stream of a collector."""
    async with stream(resolver.target, await token(resolver)) as held:
        yield held


async def stored(resolver: Running, body: bytes, tenant: str = "ten_synth_a") -> bytes | None:
    """The bytes that the object store has for the tenant."""
    key = ObjectKey(tenant, digest(body))
    held = await resolver.parts.objects.head(key)
    return None if held is None else (await resolver.parts.objects.get(key)).body


async def test_many_artifacts_are_stored_and_answered_in_order(
    resolver: Running, opened: Stream, superuser: Rows
) -> None:
    """Declared ahead, sent one after the other: each is verified, durable and on record when it is answered."""
    assert await store(opened, BODIES) == [(at + 1, "STORED") for at in range(len(BODIES))]
    assert [await stored(resolver, body) for body in BODIES] == BODIES
    rows = superuser.execute("select sha256 from artifact").fetchall()
    assert {row["sha256"] for row in rows} == {digest(body) for body in BODIES}
    assert await opened.done() == []


async def test_what_is_stored_already_is_never_awaited(resolver: Running, opened: Stream) -> None:
    """Declared again, on this stream or another, it is STORED at once."""
    await store(opened, BODIES[:3])
    await opened.send(*(declaration(10 + at, body) for at, body in enumerate(BODIES[:4])))
    assert await opened.answers(4) == [
        (10, "STORED"),
        (11, "STORED"),
        (12, "STORED"),
        (13, "PENDING"),
    ]


@pytest.mark.parametrize("size", [1, 256 * 1024, 256 * 1024 + 1, 3 * 1024 * 1024])
async def test_any_length_arrives_whole(resolver: Running, opened: Stream, size: int) -> None:
    """In one chunk or in many, small enough for one visit to the disk or not."""
    body = (bytes(range(256)) * (size // 256 + 1))[:size]
    assert await store(opened, [body, b""]) == [(1, "STORED"), (2, "STORED")]
    assert await stored(resolver, body) == body
    assert await stored(resolver, b"") == b""


async def test_refused_artifacts_end_nothing_else(resolver: Running, opened: Stream) -> None:
    """Each refusal is told for itself; what comes before and after is stored."""
    other, foreign = "ten_synth_a.src_two", "ten_synth_b.src_one"
    await store(opened, [PAGE])
    await opened.send(
        declaration(2, b"a", source_id=""),
        declaration(3, b"a", source_id=other),
        declaration(4, b"a", source_id=foreign),
        declaration(5, b"a", bytes=2**60),
        declaration(6, PAGE, media_type="text/plain"),
        declaration(7, b"good"),
    )
    assert await opened.answers(6) == [
        (2, "ATTRIBUTION_DENIED"),
        (3, "SOURCE_SCOPE_DENIED"),
        (4, "TENANT_SCOPE_DENIED"),
        (5, "ARTIFACT_TOO_LARGE"),
        (6, "IMMUTABLE_METADATA_CONFLICT"),
        (7, "PENDING"),
    ]
    await opened.send(chunk(7, b"good"))
    assert await opened.answers(1) == [(7, "STORED")]


async def test_the_refusal_of_an_artifact_names_what_is_wrong(
    resolver: Running, opened: Stream
) -> None:
    """The field of its declaration, or in the details what is stored already."""
    await store(opened, [PAGE])
    await opened.send(
        declaration(2, b"a", source_id=""),
        declaration(3, b"a", source_id="ten_synth_a.src_two"),
        declaration(4, b"a", bytes=2**60),
        declaration(5, PAGE, media_type="text/plain"),
    )
    told = [(await opened.call.read()).error for _ in range(4)]
    assert [one.field for one in told] == ["source_id", "source_id", "bytes", ""]
    assert dict(told[-1].details).keys() == {"bytes", "media_type"}
    assert all(one.message for one in told)


@pytest.mark.parametrize("size", [10, 600_000])
async def test_other_bytes_than_declared_are_refused_and_the_rest_is_stored(
    resolver: Running, opened: Stream, superuser: Rows, size: int
) -> None:
    """DIGEST_MISMATCH for too few, too many and others, however many chunks they come in; nothing of them is kept."""
    body = b"x" * size
    wrong = [body[:-1], body + b"x" * 700_000, b"y" + body[1:], b""]
    await opened.send(*(declaration(at + 1, body) for at in range(len(wrong))))
    await opened.send(declaration(9, b"good"))
    assert {status for _, status in await opened.answers(5)} == {"PENDING"}
    for at, sent in enumerate(wrong):
        await opened.send(*chunks(at + 1, sent, 100_000))
    await opened.send(chunk(9, b"good"))
    refused = [(at + 1, "DIGEST_MISMATCH") for at in range(len(wrong))]
    assert await opened.answers(5) == [*refused, (9, "STORED")]
    assert await stored(resolver, body) is None
    assert len(superuser.execute("select from artifact").fetchall()) == 1


async def test_the_same_bytes_declared_twice_are_stored_once(
    resolver: Running, opened: Stream, superuser: Rows
) -> None:
    """Both are awaited, since neither is there yet; create-if-absent makes one of them."""
    assert await store(opened, [PAGE, PAGE]) == [(1, "STORED"), (2, "STORED")]
    assert len(superuser.execute("select from artifact").fetchall()) == 1


async def test_streams_with_the_same_pages_at_once_do_no_harm(
    resolver: Running, superuser: Rows
) -> None:
    """Four streams, two of another tenant, each in an order of its own: one object and one row for each tenant."""

    async def run(tenant: str, instance: str, bodies: list[bytes]) -> set[str]:
        held_token = await token(resolver, tenant, instance)
        async with stream(resolver.target, held_token) as held:
            source = f"{tenant}.src_one"
            numbered = list(enumerate(bodies, 1))
            await held.send(*(declaration(at, body, source_id=source) for at, body in numbered))
            awaited = [at for at, what in await held.answers(len(bodies)) if what == "PENDING"]
            for at in awaited:
                await held.send(*chunks(at, bodies[at - 1]))
            return {what for _, what in await held.done()} | {"STORED"}

    orders = [BODIES, BODIES[::-1]]
    told = await asyncio.gather(
        *(
            run(tenant, f"ci_{number}", order)
            for tenant in ("ten_synth_a", "ten_synth_b")
            for number, order in enumerate(orders)
        )
    )
    assert told == [{"STORED"}] * 4
    assert len(superuser.execute("select from artifact").fetchall()) == 2 * len(BODIES)


@pytest.mark.parametrize(
    "messages",
    [
        [chunk(1, b"")],
        [declaration(2), declaration(2)],
        [declaration(2), declaration(1)],
        [declaration(1, source_id="a b")],
        [declaration(1, sha256="no digest")],
        [chunk(0, b"")],
        [type(chunk(1, b""))()],
    ],
    ids=["undeclared", "twice", "backwards", "malformed", "digest", "zero", "empty"],
)
async def test_a_fault_of_the_caller_ends_the_stream(opened: Stream, messages: list[Any]) -> None:
    """VALIDATION_FAILED that names the field."""
    await opened.send(*messages)
    ended = await opened.refusal()
    assert (ended.code, bool(ended.field)) == (Code.VALIDATION_FAILED, True)


async def test_chunks_of_different_artifacts_never_mix(resolver: Running, opened: Stream) -> None:
    """VALIDATION_FAILED, but what was sent whole before is stored and answered; of the others nothing is kept."""
    await opened.send(*(declaration(at, b"%d!" % at) for at in (1, 2, 3)))
    await opened.answers(3)
    await opened.send(chunk(1, b"1!"), chunk(2, b"2", last=False), chunk(3, b"3!"))
    assert await opened.answers(1) == [(1, "STORED")]
    ended = await opened.refusal()
    assert (ended.code, ended.field) == (Code.VALIDATION_FAILED, "chunk.sequence")
    assert [await stored(resolver, b"%d!" % at) for at in (1, 2, 3)] == [b"1!", None, None]


async def test_a_stream_that_ends_in_the_midst_of_an_artifact_keeps_nothing_of_it(
    resolver: Running, opened: Stream
) -> None:
    """Half-closed too early is a fault of the caller, and leaves no file behind."""
    await opened.send(declaration(1, b"x" * 600_000))
    await opened.answers(1)
    await opened.send(chunk(1, b"x" * 300_000, last=False))
    ended = await refusal(opened.done())
    assert (ended.code, ended.field) == (Code.VALIDATION_FAILED, "chunk.last")
    incoming = resolver.parts.settings.objects / "incoming"
    await until(lambda: not list(incoming.iterdir()))


async def test_a_caller_that_is_cut_off_leaves_what_was_answered(
    resolver: Running, superuser: Rows
) -> None:
    """What was answered STORED is; an artifact that was half sent leaves no file, and its bytes may come again."""
    held_token = await token(resolver)
    async with stream(resolver.target, held_token) as held:
        await store(held, BODIES[:5])
        await held.send(declaration(9, b"x" * 600_000))
        await held.answers(1)
        await held.send(chunk(9, b"x" * 300_000, last=False))
    incoming = resolver.parts.settings.objects / "incoming"
    await until(lambda: not list(incoming.iterdir()))
    assert len(superuser.execute("select from artifact").fetchall()) == 5
    async with stream(resolver.target, held_token) as held:
        assert await store(held, [b"x" * 600_000]) == [(1, "STORED")]


async def test_a_giant_of_declarations_is_held_back(opened: Stream) -> None:
    """What awaits bytes is bounded; beyond it the stream ends with VALIDATION_FAILED, and no memory goes."""
    asked = asyncio.create_task(opened.answers(PENDING_LIMIT))
    for at in range(1, PENDING_LIMIT + 1):
        await opened.call.write(declaration(at, b"%d" % at))
    await asked
    # one more and no other: a write after the end would hide its reason from the caller
    await opened.call.write(declaration(PENDING_LIMIT + 1, b"one more"))
    ended = await opened.refusal()
    assert (ended.code, ended.field) == (Code.VALIDATION_FAILED, "declaration")


async def test_a_silent_or_trickling_stream_is_ended(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """UNAVAILABLE once nothing came for the limit, or an artifact's bytes take longer, empty chunks or not."""
    limit = timedelta(milliseconds=300)
    async with running(resolver_database, tmp_path, put_limit=limit) as resolver:
        held_token = await token(resolver)
        async with stream(resolver.target, held_token) as held:
            assert (await held.refusal()).code is Code.UNAVAILABLE
        async with stream(resolver.target, held_token) as held:
            await held.send(declaration(1))
            await held.answers(1)
            ended = asyncio.create_task(held.refusal())
            while not ended.done():
                await asyncio.wait([asyncio.create_task(held.call.write(chunk(1, b"", False)))])
            assert (await ended).code is Code.UNAVAILABLE
        async with stream(resolver.target, held_token) as held:
            assert await store(held, [PAGE]) == [(1, "STORED")]


async def test_a_caller_revoked_in_the_midst_is_cut_off(
    resolver_database: dict[str, str], tmp_path: Path, superuser: Rows
) -> None:
    """An open stream is authorised again and closed with CREDENTIAL_REVOKED; what was answered stays."""
    often = timedelta(milliseconds=50)
    async with running(resolver_database, tmp_path, recheck_every=often) as resolver:
        async with stream(resolver.target, await token(resolver)) as held:
            await store(held, [PAGE])
            await held.send(declaration(2, b"never"), declaration(3, b"ever"))
            await held.answers(2)
            await held.send(chunk(2, b"ne", last=False))
            await access.revoke_client(resolver.parts.db, "ten_synth_a", "ci_one")
            assert (await held.refusal()).code is Code.CREDENTIAL_REVOKED
        assert len(superuser.execute("select from artifact").fetchall()) == 1


async def test_a_rotated_client_s_stream_is_closed(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """Provisioned again with fewer sources, the former client's stream ends; the grants of the new one count."""
    often = timedelta(milliseconds=50)
    async with running(resolver_database, tmp_path, recheck_every=often) as resolver:
        async with stream(resolver.target, await token(resolver)) as held:
            await store(held, [PAGE])
            grant = ClientGrant(
                "ten_synth_a",
                CATALOG,
                "ci_one",
                COLLECTOR_SCOPES,
                "cw_one",
                ("ten_synth_a.src_two",),
            )
            rotated = await resolver.token(grant)
            assert (await held.refusal()).code is Code.CREDENTIAL_REVOKED
        async with stream(resolver.target, rotated) as held:
            await held.send(declaration(1, b"new", source_id=SOURCE))
            assert await held.answers(1) == [(1, "SOURCE_SCOPE_DENIED")]


async def test_a_full_disk_refuses_artifacts_and_no_more(
    resolver: Running, opened: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """STORAGE_UNAVAILABLE is told of each, may be sent again, and then it is stored on the same stream."""

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr("os.fsync", full)
        told = await store(opened, BODIES[:3])
        assert told == [(at, "STORAGE_UNAVAILABLE") for at in (1, 2, 3)]
    assert await store(opened, BODIES[:3], first=4) == [(at, "STORED") for at in (4, 5, 6)]


async def test_a_server_that_ends_ends_open_streams(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """UNAVAILABLE at once where nothing is under way: the drain is not waited out."""
    async with (
        running(resolver_database, tmp_path) as resolver,
        stream(resolver.target, await token(resolver)) as held,
    ):
        await store(held, [PAGE])
        ending = asyncio.create_task(resolver.channels.aclose())
        assert (await held.refusal()).code is Code.UNAVAILABLE
        await asyncio.wait_for(ending, 5)
