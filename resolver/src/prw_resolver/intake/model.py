"""A capture as it is handed over, its rules, and what makes two of them the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What an instance says of itself. `report` is what a run came to, as plain JSON values with an ``outcome``.

    With the instance, `at` identifies it (if_heartbeat).
    """

    instance_id: str
    at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    report: Mapping[str, object] | None = None
    sources: tuple[str, ...] = ()
    receipt_ids: tuple[str, ...] = ()

    def check(self, latest: datetime) -> None:
        """Refuse times after `latest`, and a run that ended before it began, with VALIDATION_FAILED."""
        moments = {"at": self.at, "run.started_at": self.started_at, "run.ended_at": self.ended_at}
        for field, moment in moments.items():
            if moment is not None and moment > latest:
                raise _invalid(field, "lies in the future")
        if self.started_at and self.ended_at and self.ended_at < self.started_at:
            raise _invalid("run.ended_at", "lies before run.started_at")


@dataclass(frozen=True, slots=True)
class Standing:
    """How an instance stands. `heard_at` and the lease are by the resolver's clock, the others by the instance's.

    `last_report` is the newest run's, `consecutive_failures` counts failed runs since the last one that was not.
    """

    instance_id: str
    worker_id: str
    version: str
    runtime_kind: str
    targets: tuple[str, ...]
    heard_at: datetime | None
    lease_expires_at: datetime | None
    is_live: bool
    consecutive_failures: int
    last_success: datetime | None
    last_run: datetime | None
    last_report: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class CheckpointKey:
    """A checkpoint names source, adapter and partition."""

    source_id: str
    adapter: str
    partition: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a plan has come: the adapter's own words as a JSON object's text, and what was put off before it.

    `revision` is 0 where nothing was persisted yet. `deferred` holds plain JSON values.
    """

    key: CheckpointKey
    revision: int = 0
    state: str = "{}"
    deferred: Sequence[Mapping[str, object]] = ()
    updated_at: datetime | None = None

    def check(self) -> None:
        """Refuse a state that is no JSON object, and an item that is put off twice, with VALIDATION_FAILED."""
        try:
            held = json.loads(self.state, parse_constant=_no_constant)
        except ValueError as bad:
            raise _invalid("state", f"is not JSON: {bad}") from bad
        except RecursionError as deep:
            raise _invalid("state", "is nested too deep") from deep
        if not isinstance(held, dict):
            raise _invalid("state", "is no JSON object")
        names = [item["native_record_id"] for item in self.deferred]
        if len(set(names)) != len(names):
            raise _invalid("deferred", "names an item twice")

    def says(self, other: Checkpoint) -> bool:
        """Whether both hold the same state and the same deferred items."""
        return (self.state, list(self.deferred)) == (other.state, list(other.deferred))


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _has_control(text: str) -> bool:
    return _CONTROL.search(text) is not None


def _invalid(field: str, message: str) -> PrwError:
    return PrwError(Code.VALIDATION_FAILED, message, field=field)
