"""From an accepted record to its facts: item, merchant, mapping and observation. Pure; used by rules and by persons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from prw_base.ids import new_id
from prw_resolver.catalog.model import (
    AVAILABILITIES,
    Attribute,
    Item,
    ItemStatus,
    ListingMapping,
    MappingStatus,
    Merchant,
    Observation,
    accepted_attribute,
    held_keys,
    item_fact,
    listing_id,
    mapping_fact,
    merchant_fact,
    merchant_id,
    observation_fact,
)
from prw_resolver.stream.model import Fact
from prw_resolver.vocabulary.definitions import AttributeDefinition, Vocabulary
from prw_resolver.vocabulary.model import IdentityKey, NormalisedRecord, Quote, Value

PRICE = "offer:price"
AVAILABILITY = "offer:availability"


@dataclass(frozen=True, slots=True)
class Held:
    """What is accepted already of the things that a record speaks of."""

    mapping: ListingMapping | None = None
    merchant: Merchant | None = None
    observation: Observation | None = None


def record_listing_id(record: NormalisedRecord) -> str:
    """The id of the record's listing."""
    return listing_id(record.tenant_id, record.catalog_id, record.source_id, record.listing_key)


def record_merchant_id(record: NormalisedRecord) -> str | None:
    """The id of the record's merchant, or None where the record names none."""
    if record.merchant is None:
        return None
    return merchant_id(record.tenant_id, record.catalog_id, record.source_id, record.merchant.value)


def record_evidence(record: NormalisedRecord) -> tuple[Quote, ...]:
    """Every quote that the record rests on, its merchant's included."""
    merchant = () if record.merchant is None else (record.merchant,)
    return _quotes((*record.values, *merchant))


def accept_record(
    record: NormalisedRecord,
    item: Item | None,
    new_keys: tuple[IdentityKey, ...],
    held: Held,
    vocabulary: Vocabulary,
) -> tuple[Fact, ...]:
    """The facts that make a record's listing that item (None for a new one), in the order of their dependencies.

    What is accepted already and does not change is no fact: an empty answer says that nothing is new. The record must
    name a class and a merchant.
    """
    accepted, facts = _item(record, item, new_keys, vocabulary)
    merchant, merchant_facts = _merchant(record, held)
    mapping, mapping_facts = _mapping(record, accepted, merchant, held)
    return (*facts, *merchant_facts, *mapping_facts, *_observation(record, mapping, held))


def observe_record(
    record: NormalisedRecord, mapping: ListingMapping, held: Held
) -> tuple[Fact, ...]:
    """The fact of a newer price and availability, where the mapping itself stays as it is."""
    return _observation(record, mapping, held)


def _item(
    record: NormalisedRecord,
    item: Item | None,
    new_keys: tuple[IdentityKey, ...],
    vocabulary: Vocabulary,
) -> tuple[Item, tuple[Fact, ...]]:
    if item is None:
        return _new_item(record, new_keys, vocabulary)
    attributes = _learnt(record, item, vocabulary)
    if not new_keys and not attributes:
        return item, ()
    learnt = {attribute.key for attribute in attributes}
    kept = tuple(attribute for attribute in item.attributes if attribute.key not in learnt)
    grown = replace(
        item,
        revision=item.revision + 1,
        attributes=tuple(sorted((*kept, *attributes), key=lambda attribute: attribute.key)),
        keys=(*item.keys, *held_keys(new_keys)),
    )
    return grown, (item_fact(grown, attributes, new_keys, _item_evidence(record)),)


def _new_item(
    record: NormalisedRecord, new_keys: tuple[IdentityKey, ...], vocabulary: Vocabulary
) -> tuple[Item, tuple[Fact, ...]]:
    if record.class_id is None:
        raise ValueError("a record without a class makes no item")
    attributes = tuple(
        accepted_attribute(value)
        for value in record.values
        if _describes(value, record.class_id, vocabulary)
    )
    item = Item(
        item_id=new_id("itm"),
        class_id=record.class_id,
        status=ItemStatus.ACTIVE,
        revision=1,
        title=record.title,
        successors=(),
        attributes=tuple(sorted(attributes, key=lambda attribute: attribute.key)),
        keys=held_keys(new_keys),
    )
    return item, (item_fact(item, attributes, new_keys, _item_evidence(record)),)


def _learnt(record: NormalisedRecord, item: Item, vocabulary: Vocabulary) -> tuple[Attribute, ...]:
    """What the record states and the item lacks.

    Of two wordings of a descriptive attribute the lesser text wins, so that the order of arrival changes nothing.
    What tells items apart never changes by a listing: a person who maps one that contradicts says that the listing is
    wrong, not the item.
    """
    learnt = []
    for value in record.values:
        if not _describes(value, item.class_id, vocabulary):
            continue
        known = item.attribute(value.attribute)
        if known is None or (
            not _tells_apart(value, vocabulary)
            and (value.value, value.unit) < (known.value, known.unit)
        ):
            learnt.append(accepted_attribute(value))
    return tuple(learnt)


def _tells_apart(value: Value, vocabulary: Vocabulary) -> bool:
    definition = vocabulary.attribute(value.attribute)
    return definition is not None and definition.contradiction != ""


def _describes(value: Value, class_id: str, vocabulary: Vocabulary) -> bool:
    """Whether the value is the item's, rather than the listing's or the offer's."""
    definition = vocabulary.attribute(value.attribute)
    return (
        definition is not None
        and vocabulary.applies(definition, class_id)
        and describes_item(definition)
    )


def describes_item(definition: AttributeDefinition) -> bool:
    """Attributes of a class, and those whose difference would tell two items apart."""
    return definition.contradiction != "" or not definition.key.startswith(("core:", "offer:"))


def _merchant(record: NormalisedRecord, held: Held) -> tuple[Merchant, tuple[Fact, ...]]:
    identifier = record_merchant_id(record)
    if identifier is None or record.merchant is None:
        raise ValueError("a record without a stated merchant is never accepted (rule 15)")
    if held.merchant is not None:
        return held.merchant, ()
    merchant = Merchant(identifier, record.source_id, record.merchant.value, 1)
    evidence = _quotes((record.merchant,)) or record_evidence(record)
    return merchant, (merchant_fact(merchant, evidence),)


def _mapping(
    record: NormalisedRecord, item: Item, merchant: Merchant, held: Held
) -> tuple[ListingMapping, tuple[Fact, ...]]:
    former = held.mapping
    mapping = ListingMapping(
        listing_id=record_listing_id(record),
        revision=1 if former is None else former.revision + 1,
        item_id=item.item_id,
        item_revision=item.revision,
        status=MappingStatus.ACTIVE,
        source_id=record.source_id,
        listing_key=record.listing_key,
        merchant_id=merchant.merchant_id,
        url=record.url,
        title=record.title,
        observed_at=record.observed_at,
    )
    if former is not None and _same_face(former, mapping):
        return former, ()
    return mapping, (mapping_fact(mapping, merchant, _mapping_evidence(record)),)


def _same_face(former: ListingMapping, mapping: ListingMapping) -> bool:
    """Whether a mapping says nothing new; when it was seen and at which revision of its item is no news."""
    return former == replace(
        mapping,
        revision=former.revision,
        item_revision=former.item_revision,
        observed_at=former.observed_at,
    )


def _observation(record: NormalisedRecord, mapping: ListingMapping, held: Held) -> tuple[Fact, ...]:
    price, availability = record.value(PRICE), record.value(AVAILABILITY)
    evidence = _quotes(value for value in (price, availability) if value is not None)
    former = held.observation
    if not evidence or (former is not None and former.observed_at >= record.observed_at):
        return ()
    observation = Observation(
        listing_id=mapping.listing_id,
        revision=1 if former is None else former.revision + 1,
        amount=None if price is None else price.value,
        currency=None if price is None else price.unit,
        availability=_availability(availability),
        observed_at=record.observed_at,
    )
    return (observation_fact(observation, mapping.revision, evidence),)


def _availability(stated: Value | None) -> str:
    """As readers of the stream know it; what they have no word for, such as "in store only", is not stated."""
    if stated is None or stated.value not in AVAILABILITIES:
        return "unspecified"
    return stated.value


def _item_evidence(record: NormalisedRecord) -> tuple[Quote, ...]:
    return _quotes(value for value in record.values if not value.attribute.startswith("offer:"))


def _mapping_evidence(record: NormalisedRecord) -> tuple[Quote, ...]:
    identifying = {attribute for key in record.keys for attribute in key.attributes}
    wanted = identifying | {"core:title"}
    return _quotes(
        value for value in record.values if value.attribute in wanted
    ) or record_evidence(record)


def _quotes(values: Iterable[Value]) -> tuple[Quote, ...]:
    return tuple(value.quote for value in values if value.quote is not None)
