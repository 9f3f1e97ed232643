"""The one table of errors: every code, its two transports, and what to do about it.

Both transports read this module, so a code means the same on gRPC (``prw.grpc_errors``) and on
HTTP (``PrwError.problem``, RFC 9457). No method builds a status by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum, unique
from types import MappingProxyType
from typing import Final

DOMAIN: Final = "prw"
"""The ``domain`` of ``google.rpc.ErrorInfo`` for every code of this table."""


@unique
class Code(StrEnum):
    """Stable codes that a call can answer with."""

    INVALID_TOKEN = "INVALID_TOKEN"
    CREDENTIAL_REVOKED = "CREDENTIAL_REVOKED"
    SESSION_EXPIRED = "SESSION_EXPIRED"
    MISSING_SCOPE = "MISSING_SCOPE"
    TENANT_SCOPE_DENIED = "TENANT_SCOPE_DENIED"
    SOURCE_SCOPE_DENIED = "SOURCE_SCOPE_DENIED"
    INSTANCE_SCOPE_DENIED = "INSTANCE_SCOPE_DENIED"
    ATTRIBUTION_DENIED = "ATTRIBUTION_DENIED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    FORBIDDEN = "FORBIDDEN"
    NOT_FOUND = "NOT_FOUND"
    UNKNOWN_INSTANCE = "UNKNOWN_INSTANCE"
    STALE_CASE_REVISION = "STALE_CASE_REVISION"
    STALE_FACT_REVISION = "STALE_FACT_REVISION"
    REPLAY_IN_PROGRESS = "REPLAY_IN_PROGRESS"
    REBUILD_IN_PROGRESS = "REBUILD_IN_PROGRESS"
    CHECKPOINT_CONFLICT = "CHECKPOINT_CONFLICT"
    KEY_TAKEN = "KEY_TAKEN"
    SLOW_CONSUMER = "SLOW_CONSUMER"
    IDEMPOTENCY_CONFLICT = "IDEMPOTENCY_CONFLICT"
    IMMUTABLE_METADATA_CONFLICT = "IMMUTABLE_METADATA_CONFLICT"
    ITEM_NOT_ACTIVE = "ITEM_NOT_ACTIVE"
    EXPORT_EXPIRED = "EXPORT_EXPIRED"
    LEASE_EXPIRED = "LEASE_EXPIRED"
    CURSOR_PRUNED = "CURSOR_PRUNED"
    CURSOR_AHEAD = "CURSOR_AHEAD"
    EPOCH_FENCED = "EPOCH_FENCED"
    ARTIFACT_TOO_LARGE = "ARTIFACT_TOO_LARGE"
    VALIDATION_FAILED = "VALIDATION_FAILED"
    DIGEST_MISMATCH = "DIGEST_MISMATCH"
    UNKNOWN_ADAPTER_VERSION = "UNKNOWN_ADAPTER_VERSION"
    BASKET_SPANS_MERCHANTS = "BASKET_SPANS_MERCHANTS"
    INVALID_DESTINATION = "INVALID_DESTINATION"
    ARTIFACT_NOT_STORED = "ARTIFACT_NOT_STORED"
    RATE_LIMITED = "RATE_LIMITED"
    STORAGE_UNAVAILABLE = "STORAGE_UNAVAILABLE"
    UNAVAILABLE = "UNAVAILABLE"
    OVERLOADED = "OVERLOADED"
    INTERNAL = "INTERNAL"


@unique
class JobCode(StrEnum):
    """Codes of jobs, collector runs and dead letters. No call ever answers with one of these."""

    SCHEMA_INVALID = "SCHEMA_INVALID"
    TENANT_MISMATCH = "TENANT_MISMATCH"
    DIGEST_MISMATCH = "DIGEST_MISMATCH"
    SCOPE_NOT_PROJECTED = "SCOPE_NOT_PROJECTED"
    UPSTREAM_503 = "UPSTREAM_503"
    PROVIDER_ERROR = "PROVIDER_ERROR"
    OUTPUT_SCHEMA_INVALID = "OUTPUT_SCHEMA_INVALID"
    STORAGE_UNAVAILABLE = "STORAGE_UNAVAILABLE"
    DB_UNAVAILABLE = "DB_UNAVAILABLE"


RETRYABLE_JOB_CODES: Final[frozenset[JobCode]] = frozenset(
    {
        JobCode.UPSTREAM_503,
        JobCode.PROVIDER_ERROR,
        JobCode.STORAGE_UNAVAILABLE,
        JobCode.DB_UNAVAILABLE,
    }
)
"""Jobs that failed with one of these are tried again; all others go to the dead letter at once."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the table.

    ``http`` is the status of the HTTP reference, ``grpc`` the name of a ``grpc.StatusCode``.
    ``retryable`` says whether the *same* call may be sent again unchanged.
    """

    http: int
    grpc: str
    retryable: bool
    meaning: str
    remedy: str


_ROWS: dict[Code, Entry] = {}


def _row(http: int, grpc: str, *rows: tuple[Code, str, str], retryable: bool = False) -> None:
    for code, meaning, remedy in rows:
        _ROWS[code] = Entry(http, grpc, retryable, meaning, remedy)


_row(
    401,
    "UNAUTHENTICATED",
    (Code.INVALID_TOKEN, "The token is missing, expired or not from here.", "Get a new token."),
    (
        Code.CREDENTIAL_REVOKED,
        "The client was revoked or superseded.",
        "Stop; ask an operator to provision a new client.",
    ),
    (Code.SESSION_EXPIRED, "The operator session is over.", "Log in again."),
)
_row(
    403,
    "PERMISSION_DENIED",
    (
        Code.MISSING_SCOPE,
        "The caller's binding lacks the scope that this method needs.",
        "Ask an operator to provision the scope.",
    ),
    (
        Code.TENANT_SCOPE_DENIED,
        "What was named belongs to another tenant.",
        "Use an id of your own tenant.",
    ),
    (
        Code.SOURCE_SCOPE_DENIED,
        "The source is not granted to this caller.",
        "Ask an operator to grant the source.",
    ),
    (
        Code.INSTANCE_SCOPE_DENIED,
        "What was named belongs to another instance.",
        "Call as the instance that made it.",
    ),
    (
        Code.ATTRIBUTION_DENIED,
        "The request names another worker than the caller's, or no source.",
        "Send the worker and the source that the binding names.",
    ),
    (
        Code.PERMISSION_DENIED,
        "This kind of caller may not call this method.",
        "Call as a provisioned machine or as a person, as the method declares.",
    ),
    (Code.FORBIDDEN, "The caller's role is too low.", "Ask an operator for a higher role."),
)
_row(
    404,
    "NOT_FOUND",
    (Code.NOT_FOUND, "There is nothing under that name.", "Check the id."),
    (Code.UNKNOWN_INSTANCE, "The instance is not registered.", "Register first."),
)
_row(
    409,
    "ABORTED",
    (
        Code.STALE_CASE_REVISION,
        "The case has moved since it was read.",
        "Read the case again, then decide.",
    ),
    (
        Code.STALE_FACT_REVISION,
        "A fact has moved since the change was prepared.",
        "Prepare the change again from the present state.",
    ),
    (
        Code.REPLAY_IN_PROGRESS,
        "A replay of the same improvement and pins is running.",
        "Wait for it, or read its state.",
    ),
    (
        Code.REBUILD_IN_PROGRESS,
        "Another process is rebuilding this projection.",
        "Wait for it; `prw product status` shows how it stands.",
    ),
    (
        Code.CHECKPOINT_CONFLICT,
        "Another run has moved the checkpoint; the winner is in the details.",
        "Go on from the winner's checkpoint.",
    ),
    (
        Code.KEY_TAKEN,
        "An identity key already belongs to another item.",
        "Identify again; open a case if both items claim it.",
    ),
    (
        Code.SLOW_CONSUMER,
        "The reader took nothing for longer than the write timeout.",
        "Open a new stream after the last processed position.",
    ),
)
_row(
    409,
    "ALREADY_EXISTS",
    (
        Code.IDEMPOTENCY_CONFLICT,
        "The idempotency key was used for another body.",
        "Send the former body, or use a new key.",
    ),
    (
        Code.IMMUTABLE_METADATA_CONFLICT,
        "The same bytes are stored with other metadata.",
        "Send the metadata that is stored; stored bytes are never reinterpreted.",
    ),
)
_row(
    409,
    "FAILED_PRECONDITION",
    (
        Code.ITEM_NOT_ACTIVE,
        "The item is split, merged or retired.",
        "Use the item's successors.",
    ),
)
_row(
    410,
    "FAILED_PRECONDITION",
    (Code.EXPORT_EXPIRED, "The export is gone.", "Request a new export."),
    (Code.LEASE_EXPIRED, "The lease has run out and never comes back.", "Start a new export."),
    (
        Code.CURSOR_PRUNED,
        "Changes after this position are no longer kept.",
        "Rebuild from a snapshot.",
    ),
    (
        Code.CURSOR_AHEAD,
        "The position is beyond the stream: histories have parted.",
        "Stop, and rebuild from a snapshot of this history.",
    ),
    (
        Code.EPOCH_FENCED,
        "This history epoch is closed.",
        "Ask for the present epoch, and rebuild from it.",
    ),
)
_row(
    413,
    "INVALID_ARGUMENT",
    (
        Code.ARTIFACT_TOO_LARGE,
        "The artifact is above the limit.",
        "Keep it out, or raise the limit.",
    ),
)
_row(
    422,
    "INVALID_ARGUMENT",
    (
        Code.VALIDATION_FAILED,
        "A field breaks its rule; nothing was stored.",
        "Correct the field that is named.",
    ),
    (
        Code.DIGEST_MISMATCH,
        "The bytes do not hash to the digest that was declared.",
        "Hash the bytes that are sent.",
    ),
    (
        Code.UNKNOWN_ADAPTER_VERSION,
        "No such adapter version is installed here.",
        "Install it, or pin a version that is installed.",
    ),
    (
        Code.BASKET_SPANS_MERCHANTS,
        "A basket holds listings of several merchants.",
        "Ask once for each merchant.",
    ),
    (Code.INVALID_DESTINATION, "The destination is not an address we know.", "Correct it."),
)
_row(
    422,
    "FAILED_PRECONDITION",
    (
        Code.ARTIFACT_NOT_STORED,
        "The capture cites an artifact that is not stored.",
        "Upload the artifact, then submit again.",
    ),
)
_row(
    429,
    "RESOURCE_EXHAUSTED",
    (Code.RATE_LIMITED, "Too many calls.", "Wait for as long as the answer says."),
    retryable=True,
)
_row(
    503,
    "UNAVAILABLE",
    (Code.STORAGE_UNAVAILABLE, "The object store does not answer.", "Try again later."),
    (Code.UNAVAILABLE, "The service or its database does not answer.", "Try again later."),
    (Code.OVERLOADED, "A queue is full.", "Wait for as long as the answer says."),
    retryable=True,
)
_row(
    500,
    "INTERNAL",
    (
        Code.INTERNAL,
        "Something unexpected happened; the log has the same id.",
        "Give the id to an operator.",
    ),
)

TABLE: Final[Mapping[Code, Entry]] = MappingProxyType(_ROWS)
"""Every code of ``Code`` with its row."""


class PrwError(Exception):
    """A refusal or failure with a code of the table.

    ``field`` is the path of the request's field that is wrong (``parts[0].sha256``).
    ``retry_after`` is the shortest wait before another try. ``details`` are small, public strings,
    such as the winner of a CHECKPOINT_CONFLICT; they travel to the caller.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        field: str | None = None,
        retry_after: timedelta | None = None,
        details: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.field = field
        self.retry_after = retry_after
        self.details = dict(details)

    def __str__(self) -> str:
        where = f" ({self.field})" if self.field else ""
        return f"{self.code}{where}: {self.message}"

    @property
    def entry(self) -> Entry:
        """The code's row of the table."""
        return TABLE[self.code]

    @property
    def retryable(self) -> bool:
        """Whether the same call may be sent again unchanged."""
        return self.entry.retryable

    def problem(self) -> dict[str, object]:
        """The body of an ``application/problem+json`` answer (RFC 9457)."""
        body: dict[str, object] = {
            "type": "about:blank",
            "title": self.entry.meaning,
            "status": self.entry.http,
            "detail": self.message,
            "code": self.code.value,
        }
        if self.field:
            body["field"] = self.field
        if self.details:
            body["details"] = dict(self.details)
        return body
