"""From the wire's bytes to the projection's values; whatever does not fit is poison, not a crash.

Everything that PostgreSQL would refuse later is refused here: NUL characters, numbers beyond its
types, instants that no calendar has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp

from prw.changes.v1 import change_pb2 as pb
from prw_product.apply.model import (
    AggregateType,
    Body,
    DeadCode,
    Delivery,
    Event,
    Inventory,
    Item,
    Key,
    Mapping,
    Merchant,
    Need,
    Poison,
    Source,
)
from prw_product.publish.model import Attribute, Release, ReleasedListing

_MAX_BIGINT = 2**63 - 1
_MAX_ID_BYTES = 256
_MAX_DIGITS = 38


def decode(delivery: Delivery) -> Event | Poison:
    """The event of ``delivery``, or why it cannot be applied."""
    digest = hashlib.sha256(delivery.event).digest()
    message = pb.Event()
    try:
        message.ParseFromString(delivery.event)
        return _event(delivery, digest, message)
    except (DecodeError, ValueError, OverflowError, InvalidOperation) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        # Without its id: what is not understood must not take the id of what is.
        return Poison(delivery, digest, DeadCode.SCHEMA_INVALID, reason)


def _event(delivery: Delivery, digest: bytes, message: pb.Event) -> Event:
    key = _key(message.aggregate)
    kind, body = _body(message, delivery.position)
    if (key.type, key.id) != (kind, _body_id(body)):
        raise ValueError(f"the body is not of {key.type} {key.id}")
    return Event(
        delivery,
        digest,
        _id(message.event_id, "event_id"),
        _id(message.stream.tenant_id, "tenant_id"),
        _id(message.stream.catalog_id, "catalog_id"),
        _ordinal(message.stream.history_epoch, "history_epoch"),
        key,
        _ordinal(message.revision, "revision"),
        _needs(message.dependencies, body),
        body,
    )


def _key(aggregate: pb.Aggregate) -> Key:
    name = pb.AggregateType.Name(aggregate.type).removeprefix("AGGREGATE_TYPE_").lower()
    return Key(AggregateType(name), _id(aggregate.id, "aggregate.id"))


def _needs(dependencies: Iterable[pb.Dependency], body: Body) -> tuple[Need, ...]:
    """The dependencies as stated, and those that a release cannot do without."""
    needs = {
        (need.key, need.revision): need
        for need in (
            Need(_key(d.aggregate), _ordinal(d.revision, "dependency")) for d in dependencies
        )
    }
    if isinstance(body, Release):
        item = Need(Key(AggregateType.CATALOG_ITEM, body.item_id), body.item_revision)
        exact = [_exact(listing) for listing in body.listings]
        needs |= {(need.key, need.revision): need for need in (item, *exact)}
    return tuple(needs.values())


def _exact(listing: ReleasedListing) -> Need:
    key = Key(AggregateType.LISTING_MAPPING, listing.listing_id)
    return Need(key, listing.mapping_revision, exact=True)


def _body(message: pb.Event, position: int) -> tuple[AggregateType, Body]:
    name = message.WhichOneof("body")
    if name is None:
        raise ValueError("the body is missing or of a kind that this version does not know")
    if name == "release":
        return AggregateType.RELEASE, _release(message.release, message.revision, position)
    return AggregateType(name), _BODIES[name](getattr(message, name))


def _body_id(body: Body) -> str:
    match body:
        case Item():
            return body.item_id
        case Mapping() | Inventory():
            return body.listing_id
        case Merchant():
            return body.merchant_id
        case Source():
            return body.source_id
        case Release():
            return body.release_id


def _item(item: pb.CatalogItem) -> Item:
    return Item(
        _id(item.item_id, "item_id"),
        _name(item.class_id, "class_id"),
        _stated(pb.ItemStatus.Name(item.status), "ITEM_STATUS_"),
        tuple(_id(successor, "successor") for successor in item.successors),
        _text(item.title),
        _attributes(item.attributes),
        tuple((_text(k.rule), int(k.generation), _text(k.identity_hash)) for k in item.keys),
    )


def _mapping(mapping: pb.ListingMapping) -> Mapping:
    return Mapping(
        _id(mapping.listing_id, "listing_id"),
        _id(mapping.item_id, "item_id"),
        _ordinal(mapping.item_revision, "item_revision"),
        _stated(pb.MappingStatus.Name(mapping.status), "MAPPING_STATUS_"),
        _name(mapping.source_id, "source_id"),
        _text(mapping.listing_key),
        _name(mapping.merchant_id, "merchant_id"),
        _text(mapping.url),
        _text(mapping.title),
        _instant(mapping, "observed_at"),
    )


def _merchant(merchant: pb.Merchant) -> Merchant:
    return Merchant(
        _id(merchant.merchant_id, "merchant_id"), _text(merchant.name), _text(merchant.source_id)
    )


def _source(source: pb.Source) -> Source:
    return Source(_id(source.source_id, "source_id"), _text(source.name))


def _inventory(seen: pb.InventoryObservation) -> Inventory:
    amount, currency = _money(seen.price) if seen.HasField("price") else (None, None)
    availability = pb.Availability.Name(seen.availability).removeprefix("AVAILABILITY_").lower()
    return Inventory(
        _id(seen.listing_id, "listing_id"),
        amount,
        currency,
        "" if availability == "unspecified" else availability,
        _instant(seen, "observed_at"),
    )


def _release(release: pb.Release, revision: int, position: int) -> Release:
    if release.publication_revision != revision:
        raise ValueError("publication_revision is not the release's revision")
    listings = tuple(
        ReleasedListing(
            _id(one.listing_id, "listing_id"), _ordinal(one.mapping_revision, "mapping")
        )
        for one in release.listings
    )
    if len({listing.listing_id for listing in listings}) != len(listings):
        raise ValueError("a release names a listing twice")
    return Release(
        _id(release.release_id, "release_id"),
        _id(release.item_id, "item_id"),
        _ordinal(release.item_revision, "item_revision"),
        _ordinal(release.publication_revision, "publication_revision"),
        _name(release.class_id, "class_id"),
        _text(release.title),
        _attributes(release.public_fields),
        listings,
        position,
    )


_BODIES: dict[str, Callable[[Any], Body]] = {
    "catalog_item": _item,
    "listing_mapping": _mapping,
    "merchant": _merchant,
    "source": _source,
    "inventory_observation": _inventory,
}


def _attributes(attributes: Iterable[pb.Attribute]) -> tuple[Attribute, ...]:
    values = tuple(
        Attribute(
            _id(a.key, "key"), _text(a.value), _name(a.unit, "unit"), int(a.definition_version)
        )
        for a in attributes
    )
    if len({value.key for value in values}) != len(values):
        raise ValueError("an attribute is there twice")
    return values


def _money(money: pb.Money) -> tuple[Decimal, str]:
    amount = Decimal(money.amount)
    if not amount.is_finite() or amount < 0 or len(amount.as_tuple().digits) > _MAX_DIGITS:
        raise ValueError("a price is not a plain amount")
    if abs(amount.adjusted()) > _MAX_DIGITS:
        raise ValueError("a price is out of range")
    if len(money.currency) != 3 or not money.currency.isascii() or not money.currency.isupper():
        raise ValueError("a price has no ISO 4217 currency")
    return amount, money.currency


def _instant(message: Any, field: str) -> datetime | None:
    if not message.HasField(field):
        return None
    stamp: Timestamp = getattr(message, field)
    return stamp.ToDatetime(tzinfo=UTC)


def _stated(name: str, prefix: str) -> str:
    status = name.removeprefix(prefix).lower()
    if status == "unspecified":
        raise ValueError("a status is missing")
    return status


def _ordinal(value: int, field: str) -> int:
    if not 1 <= value <= _MAX_BIGINT:
        raise ValueError(f"{field} is not a number from 1")
    return value


def _id(value: str, field: str) -> str:
    if not value or len(value.encode()) > _MAX_ID_BYTES:
        raise ValueError(f"{field} is empty or longer than {_MAX_ID_BYTES} bytes")
    return _text(value)


def _name(value: str, field: str) -> str:
    """A text that an index holds: it may be empty, but not longer than an id."""
    return _id(value, field) if value else value


def _text(value: str) -> str:
    if "\0" in value:
        raise ValueError("a text holds a NUL character")
    return value
