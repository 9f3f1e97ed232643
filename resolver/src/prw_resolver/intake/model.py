"""A capture as it is handed over, its rules, and what makes two of them the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from prw.errors import Code, PrwError
from prw_base.canonical import canonical_json, sha256_hex
from prw_sdk.evidence import AdapterVersion, Citation, Egress, Presence, Region

LEASE: Final = timedelta(seconds=90)
"""How long a heartbeat keeps an instance live (if_heartbeat)."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class SubmittedPart:
    """What is said about one response; its bytes are an artifact. `size` counts bytes, times are UTC."""

    role: str
    sha256: str
    size: int
    media_type: str
    charset_declared: str | None
    charset_used: str | None
    url_asked: str
    url_reached: str
    http_status: int
    headers: tuple[tuple[str, str], ...]
    fetched_at: datetime
    cites: Citation | None = None

    def document(self) -> dict[str, object]:
        """The part's normalised fields."""
        return {
            "role": self.role,
            "sha256": self.sha256,
            "bytes": self.size,
            "media_type": self.media_type,
            "charset_declared": self.charset_declared,
            "charset_used": self.charset_used,
            "url_asked": self.url_asked,
            "url_reached": self.url_reached,
            "http_status": self.http_status,
            "headers": [list(header) for header in self.headers],
            "fetched_at": self.fetched_at,
            "cites": self.cites
            and {"captured_at": self.cites.captured_at, "sha256": self.cites.sha256},
        }


@dataclass(frozen=True, slots=True)
class Submission:
    """A capture as a collector hands it over; times are UTC, to the microsecond."""

    source_id: str
    native_record_id: str
    captured_at: datetime
    adapter: AdapterVersion
    config: Mapping[str, object]
    config_digest: str
    parts: tuple[SubmittedPart, ...]
    presence: Presence
    execution_region: Region = Region()
    egress: Egress = Egress()

    def check(self, latest: datetime) -> None:
        """Refuse with VALIDATION_FAILED what the fields' own limits cannot express, and times after `latest`.

        The newest observation counts (rule 8), so one from the future would hold every true one off until then.
        """
        if self.config_digest != sha256_hex(canonical_json(self.config)):
            raise _invalid("capture.config_digest", "is not the digest of the config")
        roles = [part.role for part in self.parts]
        for index, role in enumerate(roles):
            if role in roles[:index]:
                raise _invalid(f"capture.parts[{index}].role", f"{role!r} is there twice")
        for field, moment in self._moments():
            if moment > latest:
                raise _invalid(field, "lies in the future")
        if _has_control(self.native_record_id):
            raise _invalid("capture.native_record_id", "holds a control character")

    def _moments(self) -> Iterator[tuple[str, datetime]]:
        yield "capture.captured_at", self.captured_at
        for index, part in enumerate(self.parts):
            yield f"capture.parts[{index}].fetched_at", part.fetched_at
            if part.cites is not None:
                yield f"capture.parts[{index}].cites.captured_at", part.cites.captured_at

    def document(self) -> dict[str, object]:
        """Every field in its normalised form; what makes two bodies the same."""
        return {
            "source_id": self.source_id,
            "native_record_id": self.native_record_id,
            "captured_at": self.captured_at,
            "adapter": {"name": self.adapter.name, "version": self.adapter.version},
            "config": dict(self.config),
            "parts": [part.document() for part in self.parts],
            "presence": self.presence,
            "execution_region": {
                "country": self.execution_region.country,
                "label": self.execution_region.label,
                "declared_by": self.execution_region.declared_by,
            },
            "egress": {"country": self.egress.country, "verified": self.egress.verified},
        }

    def body_digest(self) -> str:
        """Hex SHA-256 of the normalised fields, never of wire bytes."""
        return sha256_hex(canonical_json(self.document()))

    def idempotency_key(self, worker_id: str) -> str:
        """The key that the server makes: a digest over worker, source, native record and captured_at.

        A digest, since a native record id is longer than a database index may hold.
        """
        parts = [worker_id, self.source_id, self.native_record_id, self.captured_at]
        return sha256_hex(canonical_json(parts))

    def cited(self) -> Mapping[str, str]:
        """Every digest that must be stored already, with the field that names it."""
        fields: dict[str, str] = {}
        for index, part in enumerate(self.parts):
            fields.setdefault(part.sha256, f"capture.parts[{index}].sha256")
            if part.cites is not None:
                fields.setdefault(part.cites.sha256, f"capture.parts[{index}].cites.sha256")
        return fields

    def check_stored(self, sizes: Mapping[str, int]) -> None:
        """Refuse what is not stored (ARTIFACT_NOT_STORED), or stored with another length (VALIDATION_FAILED).

        `sizes` holds the length of each digest that the tenant has stored.
        """
        for digest, field in self.cited().items():
            if digest not in sizes:
                raise PrwError(
                    Code.ARTIFACT_NOT_STORED, f"artifact {digest} is not stored", field=field
                )
        for index, part in enumerate(self.parts):
            if sizes[part.sha256] != part.size:
                raise _invalid(
                    f"capture.parts[{index}].bytes", f"the artifact has {sizes[part.sha256]}"
                )


@dataclass(frozen=True, slots=True)
class Upload:
    """A declared upload and who may put its bytes. `size` counts bytes; `expires_at` is UTC."""

    upload_id: str
    source_id: str
    instance_id: str
    sha256: str
    size: int
    media_type: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Declared:
    """What a declaration is answered with; `stored` says that the bytes need not be sent."""

    upload_id: str
    stored: bool
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Instance:
    """A collector instance as it describes itself when it registers."""

    worker_id: str
    instance_id: str
    version: str
    runtime: str
    runtime_kind: str
    execution_region: Region
    egress: Egress
    targets: tuple[str, ...]
    capabilities: tuple[str, ...]


def _has_control(text: str) -> bool:
    return _CONTROL.search(text) is not None


def _invalid(field: str, message: str) -> PrwError:
    return PrwError(Code.VALIDATION_FAILED, message, field=field)
