"""Accepted things, and the pure making of the facts that change them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from prw_base.ids import derived_id
from prw_resolver.stream.model import AggregateType, Dependency, Fact
from prw_resolver.vocabulary.model import IdentityKey, Quote, Value

AVAILABILITIES = frozenset({"in_stock", "out_of_stock", "preorder", "backorder", "discontinued"})
"""What an observation may say; anything else is ``unspecified``."""


class ItemStatus(StrEnum):
    """How an item stands. Only an active one takes listings (INV-01)."""

    ACTIVE = "active"
    SPLIT = "split"
    MERGED = "merged"
    RETIRED = "retired"


class MappingStatus(StrEnum):
    """How a mapping stands."""

    ACTIVE = "active"
    RETRACTED = "retracted"


@dataclass(frozen=True, slots=True)
class Attribute:
    """One accepted value of an item, in canonical text."""

    key: str
    definition_version: int
    value: str
    unit: str
    basis: str


@dataclass(frozen=True, slots=True)
class HeldKey:
    """An identity key that an item owns."""

    rule: str
    class_id: str
    generation: int
    identity_hash: str


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that can be bought, whoever sells it."""

    item_id: str
    class_id: str
    status: ItemStatus
    revision: int
    title: str
    successors: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    keys: tuple[HeldKey, ...]

    def attribute(self, key: str) -> Attribute | None:
        """The item's attribute of that key, or None."""
        return next((held for held in self.attributes if held.key == key), None)


@dataclass(frozen=True, slots=True)
class Merchant:
    """Who sells, as one source names them."""

    merchant_id: str
    source_id: str
    name: str
    revision: int


@dataclass(frozen=True, slots=True)
class ListingMapping:
    """Which item a listing is."""

    listing_id: str
    revision: int
    item_id: str
    item_revision: int
    status: MappingStatus
    source_id: str
    listing_key: str
    merchant_id: str
    url: str
    title: str
    observed_at: datetime


@dataclass(frozen=True, slots=True)
class Observation:
    """What a listing cost and whether it was there; `amount` is a decimal string in `currency` (ISO 4217)."""

    listing_id: str
    revision: int
    amount: str | None
    currency: str | None
    availability: str
    observed_at: datetime


@dataclass(frozen=True, slots=True)
class ReleasedListing:
    """A listing as it is public under an item."""

    listing_id: str
    mapping_revision: int


@dataclass(frozen=True, slots=True)
class Release:
    """What of an item is public; one release aggregate for each item."""

    item_id: str
    item_revision: int
    revision: int
    class_id: str
    title: str
    public_fields: tuple[Attribute, ...]
    listings: tuple[ReleasedListing, ...]

    def same_content(self, other: Release) -> bool:
        """Whether publishing the other instead would change nothing a reader sees or may rely on."""
        return replace(other, revision=self.revision) == self


def listing_id(tenant_id: str, catalog_id: str, source_id: str, listing_key: str) -> str:
    """The listing's id: the same key of the same source is the same listing for ever."""
    return derived_id("lst", tenant_id, catalog_id, source_id, listing_key)


def merchant_id(tenant_id: str, catalog_id: str, source_id: str, name: str) -> str:
    """The merchant's id, by the name that the source gives, folded for case and white space."""
    return derived_id("mer", tenant_id, catalog_id, source_id, " ".join(name.casefold().split()))


def release_id(tenant_id: str, catalog_id: str, item_id: str) -> str:
    """The id of an item's one release aggregate."""
    return derived_id("rel", tenant_id, catalog_id, item_id)


def held_keys(keys: Iterable[IdentityKey]) -> tuple[HeldKey, ...]:
    """Keys as an item holds them."""
    return tuple(HeldKey(key.rule, key.class_id, key.generation, key.identity_hash) for key in keys)


def accepted_attribute(value: Value) -> Attribute:
    """A normalised value as an item's attribute."""
    return Attribute(
        value.attribute, value.definition_version, value.value, value.unit, value.basis.value
    )


def item_fact(
    item: Item,
    new_attributes: tuple[Attribute, ...],
    new_keys: tuple[IdentityKey, ...],
    evidence: tuple[Quote, ...],
) -> Fact:
    """An item at its new revision; what is new with it is stored, the full state goes out."""
    row = {
        "class_id": item.class_id,
        "status": item.status.value,
        "title": item.title,
        "successors": list(item.successors),
        "new_attributes": [_attribute_row(attribute) for attribute in new_attributes],
        "new_keys": [_key_row(key) for key in new_keys],
    }
    return Fact(
        AggregateType.CATALOG_ITEM, item.item_id, item.revision, row, _item_state(item), evidence
    )


def merchant_fact(merchant: Merchant, evidence: tuple[Quote, ...]) -> Fact:
    """A merchant at its new revision."""
    row = {"source_id": merchant.source_id, "name": merchant.name}
    state = {"merchant_id": merchant.merchant_id, **row}
    return Fact(
        AggregateType.MERCHANT, merchant.merchant_id, merchant.revision, row, state, evidence
    )


def mapping_fact(mapping: ListingMapping, merchant: Merchant, evidence: tuple[Quote, ...]) -> Fact:
    """A listing's mapping at its new revision; it depends on its item and its merchant."""
    row = {
        "item_id": mapping.item_id,
        "item_revision": mapping.item_revision,
        "status": mapping.status.value,
        "source_id": mapping.source_id,
        "listing_key": mapping.listing_key,
        "merchant_id": mapping.merchant_id,
        "url": mapping.url,
        "title": mapping.title,
        "observed_at": mapping.observed_at.isoformat(),
    }
    state = {
        **row,
        "listing_id": mapping.listing_id,
        "status": f"MAPPING_STATUS_{mapping.status.value.upper()}",
    }
    needs = (
        Dependency(AggregateType.CATALOG_ITEM, mapping.item_id, mapping.item_revision),
        Dependency(AggregateType.MERCHANT, merchant.merchant_id, merchant.revision),
    )
    return Fact(
        AggregateType.LISTING_MAPPING,
        mapping.listing_id,
        mapping.revision,
        row,
        state,
        evidence,
        needs,
    )


def observation_fact(
    observation: Observation, mapping_revision: int, evidence: tuple[Quote, ...]
) -> Fact:
    """A listing's price and availability at its new revision; it depends on the listing's mapping."""
    row = {
        "amount": observation.amount,
        "currency": observation.currency,
        "availability": observation.availability,
        "observed_at": observation.observed_at.isoformat(),
    }
    state: dict[str, object] = {
        "listing_id": observation.listing_id,
        "availability": f"AVAILABILITY_{observation.availability.upper()}",
        "observed_at": observation.observed_at.isoformat(),
    }
    if observation.amount is not None:
        state["price"] = {"amount": observation.amount, "currency": observation.currency}
    needs = (Dependency(AggregateType.LISTING_MAPPING, observation.listing_id, mapping_revision),)
    kind = AggregateType.INVENTORY_OBSERVATION
    return Fact(kind, observation.listing_id, observation.revision, row, state, evidence, needs)


def release_fact(
    identifier: str, release: Release, touched: int, evidence: tuple[Quote, ...]
) -> Fact:
    """A release at its new revision; it depends on the very revisions that it makes public."""
    content = release_content(release)
    row = {
        "item_id": release.item_id,
        "item_revision": release.item_revision,
        "content": content,
        "listings": content["listings"],
        "touched": touched,
    }
    state = {
        "release_id": identifier,
        "item_id": release.item_id,
        "item_revision": release.item_revision,
        "publication_revision": release.revision,
        "class_id": release.class_id,
        "title": release.title,
        "public_fields": [_attribute_state(attribute) for attribute in release.public_fields],
        "listings": content["listings"],
    }
    needs = _release_needs(release)
    return Fact(AggregateType.RELEASE, identifier, release.revision, row, state, evidence, needs)


def _release_needs(release: Release) -> tuple[Dependency, ...]:
    item = Dependency(AggregateType.CATALOG_ITEM, release.item_id, release.item_revision)
    listings = (
        Dependency(AggregateType.LISTING_MAPPING, listing.listing_id, listing.mapping_revision)
        for listing in release.listings
    )
    return item, *listings


def release_content(release: Release) -> dict[str, object]:
    """A release's content as JSON values."""
    return {
        "class_id": release.class_id,
        "title": release.title,
        "public_fields": [_attribute_row(attribute) for attribute in release.public_fields],
        "listings": [
            {"listing_id": listing.listing_id, "mapping_revision": listing.mapping_revision}
            for listing in release.listings
        ],
    }


def _item_state(item: Item) -> Mapping[str, object]:
    return {
        "item_id": item.item_id,
        "class_id": item.class_id,
        "status": f"ITEM_STATUS_{item.status.value.upper()}",
        "successors": list(item.successors),
        "title": item.title,
        "attributes": [_attribute_state(attribute) for attribute in item.attributes],
        "keys": [
            {"rule": key.rule, "generation": key.generation, "identity_hash": key.identity_hash}
            for key in item.keys
        ],
    }


def _attribute_row(attribute: Attribute) -> dict[str, object]:
    """As it is stored: what a value rests on stays here, and does not go out."""
    return {**_attribute_state(attribute), "basis": attribute.basis}


def _key_row(key: IdentityKey) -> dict[str, object]:
    return {
        "rule": key.rule,
        "class_id": key.class_id,
        "generation": key.generation,
        "identity_hash": key.identity_hash,
        "canonical": key.canonical,
    }


def _attribute_state(attribute: Attribute) -> dict[str, object]:
    return {
        "key": attribute.key,
        "definition_version": attribute.definition_version,
        "value": attribute.value,
        "unit": attribute.unit,
    }
