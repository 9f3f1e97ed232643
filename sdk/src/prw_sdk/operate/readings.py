"""Reading what a spool holds, with the adapters that are installed here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prw_sdk.adapter import NotARecord
from prw_sdk.collect.reading import AdapterFailed, foreign
from prw_sdk.evidence import Capture, Claim, Presence, Record
from prw_sdk.plugins import Plugins, UnknownAdapter
from prw_sdk.spool.blobs import BlobDamaged, BlobMissing
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CaptureState, KeptCapture

COLUMNS = (
    *("source", "item", "record", "merchant", "title", "brand", "mpn", "gtin"),
    *("price", "currency", "claims", "held", "trouble"),
)
SHOWN = ("core:title", "core:brand", "core:mpn", "core:gtin", "offer:price", "offer:currency")
"""The attributes that have a column of their own in tables."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One record of a kept capture, or the trouble that kept it from being read (a code and a sentence)."""

    kept: KeptCapture
    record: Record | None = None
    code: str | None = None
    error: str | None = None

    @property
    def held(self) -> bool:
        """Whether the capture waits for the judgement of its run, or for a person where that was against it."""
        return self.kept.state is CaptureState.HELD

    @property
    def failed(self) -> bool:
        """Whether something must be mended; a page that is no record is none of that."""
        return self.code not in (None, "ABSENT", "NOT_A_RECORD")

    def row(self) -> tuple[object, ...]:
        """The reading as a row of `COLUMNS`."""
        key, record, held = self.kept.key, self.record, "held" if self.held else None
        if record is None:
            gap = (None,) * (len(COLUMNS) - 4)
            return (key.source_id, key.native_id, *gap, held, f"{self.code}: {self.error}")
        first = {claim.attribute: claim.value_as_stated for claim in reversed(record.claims)}
        shown = (first.get(attribute) for attribute in SHOWN)
        merchant = record.merchant and record.merchant.value_as_stated
        named = (key.source_id, key.native_id, record.record_id, merchant)
        return (*named, *shown, len(record.claims), held, None)

    def line(self) -> dict[str, object]:
        """The reading as a JSON object, with every claim and its locator."""
        values: dict[str, object] = {
            "source_id": self.kept.key.source_id,
            "native_record_id": self.kept.key.native_id,
            "captured_at": self.kept.captured_at.isoformat(),
            "held": self.held,
        }
        if self.record is None:
            return values | {"code": self.code, "error": self.error}
        return values | {
            "record_id": self.record.record_id,
            "listing_key": self.record.listing_key,
            "merchant": self.record.merchant and claim_json(self.record.merchant),
            "claims": [claim_json(claim) for claim in self.record.claims],
        }


def read_spool(spool: Spool, plugins: Plugins, source_id: str | None) -> Iterator[Reading]:
    """Every record of every kept capture, oldest capture first."""
    for kept in spool.ledger.captures():
        if source_id in (None, kept.key.source_id):
            yield from _read(spool, plugins, kept)


def _read(spool: Spool, plugins: Plugins, kept: KeptCapture) -> Iterator[Reading]:
    try:
        records = _records(spool.capture(kept), plugins)
    except (BlobMissing, BlobDamaged) as damaged:
        yield Reading(kept, code="EVIDENCE_DAMAGED", error=str(damaged))
    except UnknownAdapter as unknown:
        yield Reading(kept, code="UNKNOWN_ADAPTER", error=str(unknown))
    except AdapterFailed as broken:
        yield Reading(kept, code="READ_FAILED", error=str(broken))
    except NotARecord as other:
        yield Reading(kept, code="NOT_A_RECORD", error=str(other))
    else:
        yield from (Reading(kept, record) for record in records)
        if not records:
            yield Reading(kept, code="ABSENT", error="the source says that it is gone")


def _records(capture: Capture, plugins: Plugins) -> list[Record]:
    if capture.presence is Presence.ABSENT:
        return []
    adapter = plugins.find(capture.adapter.name)()
    with foreign("read"):
        records = list(adapter.read(capture))
    if not records:
        raise NotARecord("it holds no record")
    return records


def claim_json(claim: Claim) -> dict[str, object]:
    """A claim and its locator as JSON values."""
    return {
        "attribute": claim.attribute,
        "value_as_stated": claim.value_as_stated,
        "origin": claim.origin.value,
        "locator": {
            "part_role": claim.locator.part_role,
            "selector": claim.locator.selector.as_json(),
        },
    }
