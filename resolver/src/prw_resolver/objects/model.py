"""What the object store keeps: keys derived from tenant and digest, and metadata that never changes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from prw.errors import Code, PrwError

_DIGEST = re.compile(r"[0-9a-f]{64}")
_TENANT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


class Put(StrEnum):
    """What a put found."""

    STORED = "stored"
    """The bytes were new and are durable now."""
    ALREADY = "already"
    """The same bytes with the same metadata were there before."""


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """Where an object lives: a tenant and the lower-case hex SHA-256 of the bytes.

    Both parts are checked, since the key becomes a path or an URL. The same bytes of two tenants are two objects.
    """

    tenant_id: str
    sha256: str

    def __post_init__(self) -> None:
        if not _TENANT.fullmatch(self.tenant_id):
            raise PrwError(Code.VALIDATION_FAILED, "the tenant's id cannot name an object")
        if not _DIGEST.fullmatch(self.sha256):
            raise PrwError(Code.VALIDATION_FAILED, "an object is named by 64 hex digits")

    @property
    def path(self) -> tuple[str, str, str]:
        """The key as folders and name: tenant, first two digits of the digest, digest."""
        return self.tenant_id, self.sha256[:2], self.sha256


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """Immutable metadata, committed together with the bytes. `size` counts bytes."""

    sha256: str
    size: int
    media_type: str

    def same_or_conflict(self, held: ObjectMeta) -> None:
        """Refuse with IMMUTABLE_METADATA_CONFLICT where `held` differs: stored bytes are never reinterpreted."""
        if self != held:
            raise PrwError(
                Code.IMMUTABLE_METADATA_CONFLICT,
                "these bytes are stored with another size or media type",
                details={"bytes": str(held.size), "media_type": held.media_type},
            )


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as it was stored."""

    meta: ObjectMeta
    body: bytes
