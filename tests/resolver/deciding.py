"""What is known when a record is decided, made by hand: for the tests of the pure rules."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from prw_resolver.catalog.acceptance import record_listing_id
from prw_resolver.catalog.model import (
    Item,
    ItemStatus,
    ListingMapping,
    MappingStatus,
    Merchant,
    Observation,
    accepted_attribute,
    held_keys,
)
from prw_resolver.identity.model import Known
from prw_resolver.review.model import (
    Case,
    CaseKind,
    CaseStatus,
    Question,
    Settled,
    evidence_digest,
    open_case,
)
from prw_resolver.stream.model import Action
from prw_resolver.vocabulary.definitions import Vocabulary
from prw_resolver.vocabulary.model import NormalisedRecord
from tests.resolver.catalogue import NOON

LATER = NOON + timedelta(hours=1)
MERCHANT = Merchant("mer_1", "src_trusted", "Lumen Parts", 1)


def item_of(record: NormalisedRecord, item_id: str = "itm_1", **other: object) -> Item:
    """The item that a record would introduce, with everything that it states but its offer."""
    item = Item(
        item_id=item_id,
        class_id="storage_ssd",
        status=ItemStatus.ACTIVE,
        revision=1,
        title=record.title,
        successors=(),
        attributes=tuple(
            accepted_attribute(value)
            for value in record.values
            if not value.attribute.startswith("offer:") and value.attribute != "core:title"
        ),
        keys=held_keys(record.keys),
    )
    return replace(item, **other)  # type: ignore[arg-type]  # a test names the fields it means


def mapping_of(record: NormalisedRecord, item: Item, **other: object) -> ListingMapping:
    """The mapping of the record's listing to the item."""
    mapping = ListingMapping(
        listing_id=record_listing_id(record),
        revision=1,
        item_id=item.item_id,
        item_revision=item.revision,
        status=MappingStatus.ACTIVE,
        source_id=record.source_id,
        listing_key=record.listing_key,
        merchant_id=MERCHANT.merchant_id,
        url=record.url,
        title=record.title,
        observed_at=record.observed_at,
    )
    return replace(mapping, **other)  # type: ignore[arg-type]  # a test names the fields it means


def observation_of(record: NormalisedRecord, **other: object) -> Observation:
    """What was last observed of the record's listing."""
    seen = Observation(record_listing_id(record), 1, "99.90", "USD", "in_stock", record.observed_at)
    return replace(seen, **other)  # type: ignore[arg-type]  # a test names the fields it means


def case_of(record: NormalisedRecord, question: Question | None = None, **other: object) -> Case:
    """An open case about the record."""
    asked = question or Question(CaseKind.IDENTITY_MAPPING, "untrusted_new_key")
    content = open_case("case_1", record, asked, ()).content
    case = Case(
        case_id="case_1",
        kind=asked.kind,
        status=CaseStatus.AWAITING_HUMAN,
        revision=1,
        reason=asked.reason,
        listing_id=record_listing_id(record),
        source_id=record.source_id,
        listing_key=record.listing_key,
        title=record.title,
        record=record,
        candidates=asked.candidates,
        evidence=tuple(value.quote for value in record.values if value.quote is not None),
        evidence_digest=str(content["evidence_digest"]),
        observed_at=record.observed_at,
        opened_at=record.observed_at,
    )
    return replace(case, **other)  # type: ignore[arg-type]  # a test names the fields it means


def settled_on(record: NormalisedRecord, action: Action) -> Settled:
    """A person's last word, given on this very record."""
    return Settled(action, evidence_digest(record), "dec_person", record.observed_at)


def known(vocabulary: Vocabulary, *owners: tuple[NormalisedRecord, Item], **other: object) -> Known:
    """What the database holds: each item owns the keys of the record beside it. The source is trusted."""
    held = Known(
        owners={key.identity_hash: item.item_id for record, item in owners for key in record.keys},
        items={item.item_id: item for _, item in owners},
        mapping=None,
        observation=None,
        case=None,
        settled=None,
        trusted=True,
        vocabulary=vocabulary,
    )
    return replace(held, **other)  # type: ignore[arg-type]  # a test names the fields it means
