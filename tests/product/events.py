"""Changes as the resolver would encode them, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from prw.changes.v1 import change_pb2 as pb
from prw_base.ids import derived_id
from prw_product.apply.model import Delivery

TENANT, CATALOG, EPOCH = "ten_synth_a", "cat_synth", 3
WHEN = datetime(2026, 11, 1, 12, tzinfo=UTC)

_TYPES = {
    "catalog_item": pb.AGGREGATE_TYPE_CATALOG_ITEM,
    "listing_mapping": pb.AGGREGATE_TYPE_LISTING_MAPPING,
    "merchant": pb.AGGREGATE_TYPE_MERCHANT,
    "source": pb.AGGREGATE_TYPE_SOURCE,
    "inventory_observation": pb.AGGREGATE_TYPE_INVENTORY_OBSERVATION,
    "release": pb.AGGREGATE_TYPE_RELEASE,
}


def need(kind: str, name: str, revision: int) -> pb.Dependency:
    """A dependency."""
    return pb.Dependency(aggregate=pb.Aggregate(type=_TYPES[kind], id=name), revision=revision)


def _event(
    kind: str, name: str, revision: int, needs: Sequence[pb.Dependency] = (), epoch: int = EPOCH
) -> pb.Event:
    return pb.Event(
        event_id=derived_id("evt", kind, name, str(revision), str(epoch)),
        stream=pb.Stream(tenant_id=TENANT, catalog_id=CATALOG, history_epoch=epoch),
        aggregate=pb.Aggregate(type=_TYPES[kind], id=name),
        revision=revision,
        dependencies=list(needs),
    )


def item(
    name: str,
    revision: int = 1,
    needs: Sequence[pb.Dependency] = (),
    title: str = "Aurora P5 1 TB",
    epoch: int = EPOCH,
) -> pb.Event:
    """An item's revision."""
    event = _event("catalog_item", name, revision, needs, epoch)
    event.catalog_item.CopyFrom(
        pb.CatalogItem(
            item_id=name,
            class_id="storage_ssd",
            status=pb.ITEM_STATUS_ACTIVE,
            title=title,
            attributes=[capacity()],
            keys=[pb.IdentityKey(rule="gtin", generation=1, identity_hash="ab" * 32)],
        )
    )
    return event


def capacity(size: str = "1000000000000") -> pb.Attribute:
    """A capacity in bytes."""
    return pb.Attribute(key="storage:capacity", definition_version=1, value=size, unit="By")


def mapping(
    name: str,
    of: str,
    revision: int = 1,
    merchant: str = "mer_lumen",
    title: str = "Aurora P5 SSD 1TB",
    needs: Sequence[pb.Dependency] | None = None,
) -> pb.Event:
    """A listing's mapping to an item; without ``needs`` it depends on the item's revision 1."""
    needed = [need("catalog_item", of, 1)] if needs is None else needs
    event = _event("listing_mapping", name, revision, needed)
    event.listing_mapping.CopyFrom(
        pb.ListingMapping(
            listing_id=name,
            item_id=of,
            item_revision=1,
            status=pb.MAPPING_STATUS_ACTIVE,
            source_id="src_lumen",
            listing_key=name,
            merchant_id=merchant,
            url=f"https://lumen.example/{name}",
            title=title,
        )
    )
    event.listing_mapping.observed_at.FromDatetime(WHEN)
    return event


def merchant(name: str = "mer_lumen", stated: str = "Lumen Parts", revision: int = 1) -> pb.Event:
    """A merchant."""
    event = _event("merchant", name, revision)
    event.merchant.CopyFrom(pb.Merchant(merchant_id=name, name=stated, source_id="src_lumen"))
    return event


def source(name: str = "src_lumen") -> pb.Event:
    """A source."""
    event = _event("source", name, 1)
    event.source.CopyFrom(pb.Source(source_id=name, name="Lumen's pages"))
    return event


def price(name: str, amount: str = "129.90", currency: str = "EUR", revision: int = 1) -> pb.Event:
    """A listing's price, in stock."""
    event = _event("inventory_observation", name, revision)
    event.inventory_observation.CopyFrom(
        pb.InventoryObservation(
            listing_id=name,
            price=pb.Money(amount=amount, currency=currency),
            availability=pb.AVAILABILITY_IN_STOCK,
        )
    )
    event.inventory_observation.observed_at.FromDatetime(WHEN)
    return event


def release(
    of: str,
    listings: dict[str, int],
    revision: int = 1,
    title: str = "Aurora P5 1 TB",
    fields: Sequence[pb.Attribute] | None = None,
    item_revision: int = 1,
) -> pb.Event:
    """A release of an item with listings at mapping revisions, and the dependencies of each."""
    needs = [need("catalog_item", of, item_revision)]
    needs += [need("listing_mapping", name, at) for name, at in listings.items()]
    event = _event("release", f"rel_{of}", revision, needs)
    event.release.CopyFrom(
        pb.Release(
            release_id=f"rel_{of}",
            item_id=of,
            item_revision=item_revision,
            publication_revision=revision,
            class_id="storage_ssd",
            title=title,
            public_fields=[capacity()] if fields is None else fields,
            listings=[
                pb.ReleasedListing(listing_id=name, mapping_revision=at)
                for name, at in listings.items()
            ],
        )
    )
    return event


def change(position: int, event: pb.Event | bytes) -> pb.Change:
    """An event at its place."""
    encoded = event if isinstance(event, bytes) else event.SerializeToString(deterministic=True)
    made = pb.Change(position=position, event=encoded)
    made.committed_at.FromDatetime(WHEN)
    return made


def history(*events: pb.Event | bytes) -> list[pb.Change]:
    """Events at positions 1, 2, 3, …"""
    return [change(position, event) for position, event in enumerate(events, start=1)]


def delivery(made: pb.Change) -> Delivery:
    """A change as the applier gets it."""
    return Delivery(made.position, made.committed_at.ToDatetime(tzinfo=UTC), made.event)


def deliveries(changes: Sequence[pb.Change]) -> list[Delivery]:
    """Changes as the applier gets them."""
    return [delivery(made) for made in changes]


def story() -> list[pb.Change]:
    """A merchant, two items, three listings with prices, and two releases: twelve positions."""
    return history(
        merchant(),
        item("itm_1"),
        mapping("lst_1", "itm_1"),
        price("lst_1"),
        release("itm_1", {"lst_1": 1}),
        merchant("mer_halden", "Halden & Söhne"),
        mapping("lst_2", "itm_1", merchant="mer_halden"),
        release("itm_1", {"lst_1": 1, "lst_2": 1}, revision=2),
        item("itm_2", title="Aurora P5 2 TB"),
        mapping("lst_3", "itm_2"),
        price("lst_3", "199.00", "USD"),
        release("itm_2", {"lst_3": 1}, title="Aurora P5 2 TB", fields=[capacity("2000000000000")]),
    )
