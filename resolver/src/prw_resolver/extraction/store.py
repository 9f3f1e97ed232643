"""SQL of readings, claims and normalised records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from psycopg.types.json import Jsonb

from prw_base.server.database import Connection
from prw_base.server.sql import Statements
from prw_resolver.extraction.model import (
    Captured,
    KeptClaim,
    KeptRecord,
    Normalised,
    ReadOutcome,
)
from prw_resolver.vocabulary.model import (
    SELLER,
    Basis,
    IdentityKey,
    NormalisedRecord,
    Quote,
    Value,
)
from prw_sdk.evidence import Claim, Locator, Origin, Selector

_SQL = Statements("prw_resolver.extraction")


def _ids(captured: Captured) -> dict[str, object]:
    return {
        "tenant_id": captured.tenant_id,
        "capture_id": captured.capture_id,
        "attempt_group": captured.attempt_group,
    }


async def add_reading(
    conn: Connection,
    captured: Captured,
    outcome: ReadOutcome,
    detail: str,
    records: Sequence[KeptRecord],
) -> None:
    """Keep a reading with its records and claims."""
    ids, adapter = _ids(captured), captured.evidence.adapter
    header = {"adapter_name": adapter.name, "adapter_version": adapter.version}
    await _SQL.rows(conn, "add_extraction", outcome=outcome, detail=detail, **header, **ids)
    rows = [_record_row(ordinal, held) for ordinal, held in enumerate(records)]
    await _SQL.run(conn, "add_records", rows=Jsonb(rows), **ids)
    claims = [_claim_row(record.record_id, held) for record in records for held in record.claims]
    await _SQL.run(conn, "add_claims", rows=Jsonb(claims), **ids)


def _record_row(ordinal: int, record: KeptRecord) -> dict[str, object]:
    return {
        "record_id": record.record_id,
        "ordinal": ordinal,
        "listing_key": record.listing_key,
    }


def _claim_row(record_id: str, held: KeptClaim) -> dict[str, object]:
    claim = held.claim
    return {
        "record_id": record_id,
        "ordinal": held.ordinal,
        "attribute": claim.attribute,
        "value_as_stated": claim.value_as_stated,
        "part_role": claim.locator.part_role,
        "sha256": held.sha256,
        "selector": claim.locator.selector.as_json(),
        "origin": claim.origin,
        "is_merchant": held.is_merchant,
    }


async def load_reading(conn: Connection, captured: Captured) -> tuple[int, tuple[KeptRecord, ...]]:
    """The newest reading up to the capture's attempt group: its group and its records; LookupError where none is."""
    ids = _ids(captured)
    found = await _SQL.rows(conn, "find_extraction", **ids)
    if not found:
        raise LookupError(f"capture {captured.capture_id} has not been read")
    group: int = found[0]["attempt_group"]
    of_group = ids | {"attempt_group": group}
    claims: dict[str, list[KeptClaim]] = {}
    for row in await _SQL.rows(conn, "claims", **of_group):
        claims.setdefault(row["record_id"], []).append(_claim(row))
    rows = await _SQL.rows(conn, "records", **of_group)
    return group, tuple(
        KeptRecord(row["record_id"], row["listing_key"], tuple(claims.get(row["record_id"], ())))
        for row in rows
    )


def _claim(row: dict[str, Any]) -> KeptClaim:
    locator = Locator(row["part_role"], Selector.from_json(row["selector"]))
    claim = Claim(row["attribute"], row["value_as_stated"], locator, Origin(row["origin"]))
    return KeptClaim(row["ordinal"], claim, row["sha256"], row["is_merchant"])


async def add_normalised(
    conn: Connection,
    captured: Captured,
    extraction_group: int,
    normalised: Sequence[Normalised],
) -> None:
    """Keep the records of a reading in the vocabulary's terms."""
    ids = _ids(captured) | {"extraction_group": extraction_group}
    await _SQL.rows(conn, "add_normalisation", generation=captured.generation, **ids)
    await _SQL.run(
        conn,
        "add_normalised_records",
        rows=Jsonb([_normalised_row(held) for held in normalised]),
        **ids,
    )
    values = [_value_row(value, of) for of in normalised for value in of.record.values]
    await _SQL.run(
        conn, "add_normalised_values", rows=Jsonb(values), catalog_id=captured.catalog_id, **ids
    )


def _normalised_row(normalised: Normalised) -> dict[str, object]:
    record = normalised.record
    return {
        "record_id": record.record_id,
        "class_id": record.class_id,
        "title": record.title,
        "url": record.url,
        "has_merchant": record.merchant is not None,
        "keys": [asdict(key) for key in record.keys],
        "ambiguous": list(record.ambiguous),
        "unmapped": list(normalised.unmapped),
        "unreadable": list(normalised.unreadable),
    }


def _value_row(value: Value, of: Normalised) -> dict[str, object]:
    return {
        "record_id": of.record.record_id,
        "attribute_key": value.attribute,
        "definition_version": value.definition_version,
        "value": value.value,
        "unit": value.unit,
        "basis": value.basis,
        "claim_ordinal": of.claim_ordinals.get(value.attribute),
    }


async def load_normalised(conn: Connection, captured: Captured) -> tuple[NormalisedRecord, ...]:
    """The records of the newest normalising up to the capture's attempt group; none where there is none."""
    found = await _SQL.rows(conn, "find_normalisation", **_ids(captured))
    if not found:
        return ()
    ids = _ids(captured) | {"attempt_group": found[0]["attempt_group"]}
    values: dict[str, list[Value]] = {}
    for row in await _SQL.rows(conn, "normalised_values", **ids):
        values.setdefault(row["record_id"], []).append(_value(captured, row))
    records = await _SQL.rows(conn, "normalised_records", **ids)
    generation: int = found[0]["generation"]
    return tuple(
        _normalised(captured, generation, row, tuple(values.get(row["record_id"], ())))
        for row in records
    )


def _value(captured: Captured, row: dict[str, Any]) -> Value:
    quote = None
    if row["claim_ordinal"] is not None:
        quote = Quote(
            capture_id=captured.capture_id,
            part_role=row["part_role"],
            sha256=row["sha256"],
            attribute=row["attribute"],
            quote=row["value_as_stated"],
            selector=row["selector"],
            origin=row["origin"],
        )
    return Value(
        attribute=row["attribute_key"],
        definition_version=row["definition_version"],
        value=row["value"],
        unit=row["unit"],
        basis=Basis(row["basis"]),
        quote=quote,
    )


def _normalised(
    captured: Captured, generation: int, row: dict[str, Any], values: tuple[Value, ...]
) -> NormalisedRecord:
    seller = next((value for value in values if value.attribute == SELLER), None)
    return NormalisedRecord(
        tenant_id=captured.tenant_id,
        catalog_id=captured.catalog_id,
        capture_id=captured.capture_id,
        record_id=row["record_id"],
        source_id=captured.evidence.source_id,
        listing_key=row["listing_key"],
        observed_at=captured.evidence.captured_at,
        class_id=row["class_id"],
        generation=generation,
        title=row["title"],
        url=row["url"],
        merchant=seller if row["has_merchant"] else None,
        values=values,
        keys=tuple(IdentityKey(**_as_tuple(key)) for key in row["keys"]),
        ambiguous=tuple(row["ambiguous"]),
    )


def _as_tuple(key: dict[str, Any]) -> dict[str, Any]:
    return key | {"attributes": tuple(key["attributes"])}


async def outcomes(
    conn: Connection, tenant_id: str, capture_ids: Sequence[str]
) -> dict[str, tuple[ReadOutcome, str, int]]:
    """How the newest reading of each named capture ended, in what words, with how many records."""
    rows = await _SQL.rows(conn, "outcomes", tenant_id=tenant_id, capture_ids=list(capture_ids))
    return {
        row["capture_id"]: (ReadOutcome(row["outcome"]), row["detail"], row["records"])
        for row in rows
    }
