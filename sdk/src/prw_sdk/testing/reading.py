"""What an adapter makes of a capture, as plain JSON that can be kept, compared and shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from prw_sdk.account.capture import account, stated_kinds
from prw_sdk.adapter import Adapter, Kind, NotARecord
from prw_sdk.evidence import Capture, Claim, Presence, Record

RECORDS, NOT_A_RECORD, ABSENT = "records", "not_a_record", "absent"


def outcome(adapter: Adapter, capture: Capture) -> dict[str, Any]:
    """What `read` and `stated` say of a capture; whatever they raise beyond `NotARecord` is passed on.

    `outcome` is ``records``, ``not_a_record`` (with its `reason`) or ``absent``; `stated` has ``name: kinds`` lines.
    """
    records, reason = read(adapter, capture)
    found = _outcome(capture, records)
    return {
        "adapter_version": adapter.version,
        "outcome": found,
        **({"reason": reason} if found == NOT_A_RECORD else {}),
        "records": [plain(record) for record in records],
        "stated": [
            _line(name, kinds) for name, kinds in sorted(stated_kinds(adapter, capture).items())
        ],
        "unknown": sorted(account(adapter, capture, records).unknown),
    }


def read(adapter: Adapter, capture: Capture) -> tuple[tuple[Record, ...], str]:
    """The records, or none with the reason that `NotARecord` gives."""
    try:
        records = tuple(adapter.read(capture))
    except NotARecord as other:
        return (), str(other)
    return records, "" if records else "it holds no record"


def claims(record: Record) -> Iterator[Claim]:
    """All statements of a record, its merchant included."""
    if record.merchant is not None:
        yield record.merchant
    yield from record.claims


def plain(record: Record) -> dict[str, Any]:
    """A record as JSON values."""
    return {
        "record_id": record.record_id,
        "listing_key": record.listing_key,
        "merchant": None if record.merchant is None else plain_claim(record.merchant),
        "claims": [plain_claim(claim) for claim in record.claims],
    }


def plain_claim(claim: Claim) -> dict[str, Any]:
    """A claim as JSON values."""
    return {
        "attribute": claim.attribute,
        "value_as_stated": claim.value_as_stated,
        "part": claim.locator.part_role,
        "selector": claim.locator.selector.as_json(),
        **({} if claim.origin == "adapter" else {"origin": claim.origin.value}),
    }


def _outcome(capture: Capture, records: Sequence[Record]) -> str:
    if capture.presence is Presence.ABSENT:
        return ABSENT
    return RECORDS if records else NOT_A_RECORD


def _line(name: str, kinds: Iterable[Kind]) -> str:
    told = sorted(kind.value for kind in kinds if kind is not Kind.UNKNOWN)
    return f"{name}: {', '.join(told)}" if told else name
