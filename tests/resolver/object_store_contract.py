"""What every adapter of the object store must do; an adapter's tests subclass this and give `store`."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator

import pytest

from prw.errors import Code, PrwError
from prw_resolver.objects.model import ObjectKey, ObjectMeta, Put
from prw_resolver.objects.port import ObjectStore

HTML = b"<html>one terabyte</html>"


def meta_of(body: bytes, media_type: str = "text/html") -> ObjectMeta:
    """The metadata that honestly describes `body`."""
    return ObjectMeta(hashlib.sha256(body).hexdigest(), len(body), media_type)


def key_of(body: bytes, tenant: str = "ten_synth_a") -> ObjectKey:
    """Where `body` lives for `tenant`."""
    return ObjectKey(tenant, hashlib.sha256(body).hexdigest())


async def pieces(body: bytes, size: int = 7) -> AsyncIterator[bytes]:
    """`body` in small chunks."""
    for start in range(0, len(body), size):
        yield body[start : start + size]


class ObjectStoreContract:
    """The contract suite of the port (if_object_storage)."""

    async def test_bytes_and_metadata_come_back_as_they_were_put(self, store: ObjectStore) -> None:
        """One put makes bytes and metadata durable together."""
        assert await store.put_if_absent(key_of(HTML), meta_of(HTML), pieces(HTML)) is Put.STORED
        held = await store.get(key_of(HTML))
        assert (held.body, held.meta) == (HTML, meta_of(HTML))
        assert await store.head(key_of(HTML)) == meta_of(HTML)

    async def test_an_empty_object_is_an_object(self, store: ObjectStore) -> None:
        """A response without a body is evidence too."""
        await store.put_if_absent(key_of(b""), meta_of(b""), pieces(b""))
        assert (await store.get(key_of(b""))).body == b""

    async def test_the_same_put_again_finds_the_object(self, store: ObjectStore) -> None:
        """A put is idempotent by its content-addressed key."""
        await store.put_if_absent(key_of(HTML), meta_of(HTML), pieces(HTML))
        again = await store.put_if_absent(key_of(HTML), meta_of(HTML), pieces(HTML))
        assert again is Put.ALREADY

    async def test_other_metadata_for_stored_bytes_is_refused(self, store: ObjectStore) -> None:
        """Stored bytes are never reinterpreted; the refusal names what is stored."""
        await store.put_if_absent(key_of(HTML), meta_of(HTML), pieces(HTML))
        with pytest.raises(PrwError) as refused:
            await store.put_if_absent(key_of(HTML), meta_of(HTML, "text/plain"), pieces(HTML))
        assert refused.value.code is Code.IMMUTABLE_METADATA_CONFLICT
        assert refused.value.details["media_type"] == "text/html"
        assert await store.head(key_of(HTML)) == meta_of(HTML)

    @pytest.mark.parametrize("sent", [HTML[:-1], HTML + b"!", HTML[:-1] + b"!"])
    async def test_bytes_that_are_not_those_declared_store_nothing(
        self, store: ObjectStore, sent: bytes
    ) -> None:
        """Too few, too many and other bytes are all DIGEST_MISMATCH."""
        with pytest.raises(PrwError) as refused:
            await store.put_if_absent(key_of(HTML), meta_of(HTML), pieces(sent))
        assert refused.value.code is Code.DIGEST_MISMATCH
        assert await store.head(key_of(HTML)) is None

    async def test_a_sender_that_breaks_off_stores_nothing(self, store: ObjectStore) -> None:
        """An object is there whole or not at all."""

        async def broken() -> AsyncIterator[bytes]:
            yield HTML[:5]
            raise ConnectionResetError

        with pytest.raises(ConnectionResetError):
            await store.put_if_absent(key_of(HTML), meta_of(HTML), broken())
        assert await store.head(key_of(HTML)) is None

    async def test_what_was_never_put_is_not_found(self, store: ObjectStore) -> None:
        """A missing object is said to be missing."""
        assert await store.head(key_of(HTML)) is None
        with pytest.raises(PrwError) as refused:
            await store.get(key_of(HTML))
        assert refused.value.code is Code.NOT_FOUND

    async def test_tenants_do_not_share_objects(self, store: ObjectStore) -> None:
        """Identical bytes in two tenants are two objects."""
        await store.put_if_absent(key_of(HTML), meta_of(HTML), pieces(HTML))
        other = key_of(HTML, "ten_synth_b")
        assert await store.head(other) is None
        put = await store.put_if_absent(other, meta_of(HTML, "text/plain"), pieces(HTML))
        assert put is Put.STORED

    async def test_of_racing_writers_one_stores_and_the_others_find(
        self, store: ObjectStore
    ) -> None:
        """Create-if-absent is atomic: both writers are held at the same point, then let go."""
        gate = asyncio.Barrier(8)

        async def at_once() -> AsyncIterator[bytes]:
            yield HTML[:5]
            await gate.wait()
            yield HTML[5:]

        puts = await asyncio.gather(
            *(store.put_if_absent(key_of(HTML), meta_of(HTML), at_once()) for _ in range(8))
        )
        assert sorted(puts) == [Put.ALREADY] * 7 + [Put.STORED]

    async def test_of_racing_writers_with_other_metadata_one_wins(self, store: ObjectStore) -> None:
        """The loser learns of the conflict and the winner's metadata stays."""
        gate = asyncio.Barrier(2)

        async def at_once() -> AsyncIterator[bytes]:
            await gate.wait()
            yield HTML

        results = await asyncio.gather(
            store.put_if_absent(key_of(HTML), meta_of(HTML, "text/html"), at_once()),
            store.put_if_absent(key_of(HTML), meta_of(HTML, "text/plain"), at_once()),
            return_exceptions=True,
        )
        codes = [r.code for r in results if isinstance(r, PrwError)]
        assert codes == [Code.IMMUTABLE_METADATA_CONFLICT]
        assert results.count(Put.STORED) == 1

    @pytest.mark.parametrize("tenant", ["", ".", "..", "a/b", "../x", "a\0b", "ä"])
    def test_a_tenant_that_could_leave_its_folder_names_no_object(self, tenant: str) -> None:
        """Keys are derived by the server and checked, since they become paths."""
        with pytest.raises(PrwError):
            ObjectKey(tenant, "0" * 64)
