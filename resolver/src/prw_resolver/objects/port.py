"""The port that every object store implements (if_object_storage); its contract suite is in the tests."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Protocol

from prw_resolver.objects.model import ObjectKey, ObjectMeta, Put, StoredObject


class ObjectStore(Protocol):
    """Keeps bytes and metadata together, once and for ever.

    Every method fails with STORAGE_UNAVAILABLE where the store does not answer; the same call may then be made again.
    """

    async def put_if_absent(
        self, key: ObjectKey, meta: ObjectMeta, chunks: AsyncIterable[bytes]
    ) -> Put:
        """Make the bytes and `meta` durable in one step, unless they are there already.

        Reads the whole of `chunks` in bounded memory. DIGEST_MISMATCH where the bytes are not those that `meta`
        declares, IMMUTABLE_METADATA_CONFLICT where the key is stored with other metadata; either leaves nothing new.
        Of two racing puts one stores and the other finds.
        """

    async def get(self, key: ObjectKey) -> StoredObject:
        """The whole object. NOT_FOUND where there is none, DIGEST_MISMATCH where the stored bytes are damaged."""

    async def head(self, key: ObjectKey) -> ObjectMeta | None:
        """The object's metadata, or None where there is no object."""
