"""A capture on its way through extraction, what an adapter read out of it, and how a reading can fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from prw_base.canonical import sha256_hex
from prw_resolver.vocabulary.model import SELLER, NormalisedRecord, Quote
from prw_resolver.vocabulary.statement import LONGEST_STATEMENT
from prw_sdk.evidence import Capture, Claim, Record

LONGEST_ID = 1_000
LONGEST_KEY = 2_000
"""Bytes of a record's id and of its listing's key, since both stand in indexes of the database."""


class ReadOutcome(StrEnum):
    """What an adapter found in a capture."""

    RECORDS = "records"
    NOT_A_RECORD = "not_a_record"
    """The page is no record of its source, as the adapter says."""
    ABSENT = "absent"
    """The source no longer serves the target; nothing is there to read."""


class ReadCode(StrEnum):
    """Why a capture could not be read: a job's code."""

    SCHEMA_INVALID = "SCHEMA_INVALID"
    """The adapter raised, or returned what is no record."""
    DIGEST_MISMATCH = "DIGEST_MISMATCH"
    """Stored bytes are not those that the capture names."""
    UNKNOWN_ADAPTER_VERSION = "UNKNOWN_ADAPTER_VERSION"
    """No installed plugin brings the adapter at that version."""
    PARSER_TIMEOUT = "PARSER_TIMEOUT"
    """The adapter took longer than it may; it was stopped."""
    PARSER_CRASHED = "PARSER_CRASHED"
    """The adapter's process ended without an answer."""

    @property
    def retryable(self) -> bool:
        """Whether reading the same bytes again may go better: a machine may have been short of something."""
        return self in {ReadCode.PARSER_TIMEOUT, ReadCode.PARSER_CRASHED}


class ReadFailed(Exception):
    """A capture could not be read; `code` says why in the terms of jobs, `detail` in words."""

    def __init__(self, code: ReadCode, detail: str) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Captured:
    """A capture with its bytes, as the worker hands it in.

    `generation` is the identity generation that it pinned on arrival. `attempt_group` numbers the reading; results of
    an earlier group stay as they are.
    """

    tenant_id: str
    catalog_id: str
    capture_id: str
    generation: int
    evidence: Capture
    attempt_group: int = 0

    @property
    def locale(self) -> str:
        """The market's locale as the source's settings gave it."""
        return _text(self.evidence.config, "locale") or "en_US"

    @property
    def currency(self) -> str | None:
        """The market's currency (ISO 4217) as the source's settings gave it, or None."""
        return _text(self.evidence.config, "currency")

    @property
    def url(self) -> str:
        """The address that the first response came from; relative addresses are meant against it."""
        return self.evidence.parts[0].url_reached if self.evidence.parts else ""

    def digest(self, part_role: str) -> str:
        """The SHA-256 of the part of that role."""
        return self.evidence.part(part_role).sha256


@dataclass(frozen=True, slots=True)
class Reading:
    """What an adapter answered: records, or the words in which it said that there are none."""

    outcome: ReadOutcome
    detail: str = ""
    records: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True)
class KeptClaim:
    """A claim as it is stored: `ordinal` counts the record's claims from 0."""

    ordinal: int
    claim: Claim
    sha256: str
    is_merchant: bool = False

    def quote(self, capture_id: str) -> Quote:
        """The claim as evidence of a value (INV-05)."""
        return Quote(
            capture_id=capture_id,
            part_role=self.claim.locator.part_role,
            sha256=self.sha256,
            attribute=self.claim.attribute,
            quote=self.claim.value_as_stated,
            selector=self.claim.locator.selector.as_json(),
            origin=self.claim.origin.value,
        )


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """A record as it is stored, with all its claims; the merchant's is among them."""

    record_id: str
    listing_key: str
    claims: tuple[KeptClaim, ...]

    @property
    def has_merchant(self) -> bool:
        """Whether the record names its merchant."""
        return any(claim.is_merchant for claim in self.claims)


@dataclass(frozen=True, slots=True)
class Normalised:
    """A record in the vocabulary's terms, and what of it had no place there.

    `claim_ordinals` has for each attribute with a claim behind it which claim that is.
    """

    record: NormalisedRecord
    claim_ordinals: Mapping[str, int]
    unmapped: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()


def check_bytes(capture: Capture) -> None:
    """Raise `ReadFailed` DIGEST_MISMATCH where a part's bytes do not hash to its digest."""
    for part in capture.parts:
        if sha256_hex(part.body) != part.sha256:
            raise ReadFailed(
                ReadCode.DIGEST_MISMATCH, f"the bytes of part {part.role!r} have changed"
            )


def keep(captured: Captured, reading: Reading) -> tuple[KeptRecord, ...]:
    """The records as they are to be stored; raises `ReadFailed` SCHEMA_INVALID for what is no record."""
    for complaint in _faults(captured, reading):
        raise ReadFailed(ReadCode.SCHEMA_INVALID, complaint)
    return tuple(_keep(captured, record) for record in reading.records)


def _cut(claim: Claim) -> Claim:
    """The claim, cut where nothing will rest on it: every decision keeps a copy of what it quotes."""
    if len(claim.value_as_stated) <= LONGEST_STATEMENT:
        return claim
    return replace(claim, value_as_stated=claim.value_as_stated[: LONGEST_STATEMENT + 1])


def _keep(captured: Captured, record: Record) -> KeptRecord:
    claims = [_cut(claim) for claim in record.claims]
    named = None if record.merchant is None else _cut(record.merchant)
    if named is not None and named not in claims:
        claims.append(named)
    merchant = None if named is None else claims.index(named)
    return KeptRecord(
        record.record_id,
        record.listing_key,
        tuple(
            KeptClaim(ordinal, claim, captured.digest(claim.locator.part_role), ordinal == merchant)
            for ordinal, claim in enumerate(claims)
        ),
    )


def _faults(captured: Captured, reading: Reading) -> Iterator[str]:
    roles = {part.role for part in captured.evidence.parts}
    seen: set[str] = set()
    for record in reading.records:
        if record.record_id in seen or not (
            _names(record.record_id) and _names(record.listing_key)
        ):
            yield f"record {record.record_id!r}: record_id and listing_key must be there, and record_id only once"
        seen.add(record.record_id)
        if _bytes(record.record_id) > LONGEST_ID or _bytes(record.listing_key) > LONGEST_KEY:
            yield (
                f"record {record.record_id[:80]!r}: record_id may have {LONGEST_ID} bytes"
                f" and listing_key {LONGEST_KEY}"
            )
        if record.merchant is not None and record.merchant.attribute != SELLER:
            yield f"record {record.record_id!r}: the merchant must be a claim of {SELLER}"
        for claim in (*record.claims, *filter(None, [record.merchant])):
            if claim.locator.part_role not in roles:
                yield f"{claim.attribute}: the capture has no part {claim.locator.part_role!r}"
            if not _storable(claim.value_as_stated) or not _names(claim.attribute):
                yield f"{claim.attribute!r}: the value cannot be written as text"


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", errors="replace"))


def _names(text: str) -> bool:
    return bool(text) and _storable(text)


def _storable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _text(config: Mapping[str, object], name: str) -> str | None:
    held = config.get(name)
    return held if isinstance(held, str) and held else None
