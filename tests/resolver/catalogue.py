"""Records made by hand, and a resolver's rooms over a database of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prw_base.scope import Scope
from prw_base.server.database import Database
from prw_resolver.access import service as access
from prw_resolver.access.model import Source
from prw_resolver.catalog.service import ReleasePolicy
from prw_resolver.identity.service import Identifier
from prw_resolver.review.service import Review
from prw_resolver.stream.committer import Committer
from prw_resolver.stream.epoch import EpochFile
from prw_resolver.stream.service import Feed
from prw_resolver.stream.signal import Signal
from prw_resolver.vocabulary import service as vocabulary_service
from prw_resolver.vocabulary.definitions import Vocabulary
from prw_resolver.vocabulary.keys import make_keys
from prw_resolver.vocabulary.model import Basis, NormalisedRecord, Quote, Value

SCOPE = Scope("ten_synth_a", "cat_primary")
TRUSTED, UNTRUSTED = "src_trusted", "src_market"
NOON = datetime(2026, 10, 10, 12, 0, tzinfo=UTC)
DEFAULTS = {"core:condition": "new", "core:pack_quantity": "1"}
UNITS = {"storage:capacity": "By", "offer:price": "USD"}


@dataclass(frozen=True, slots=True)
class Rooms:
    """The resolver's rooms as a bootstrap would put them together."""

    database: Database
    committer: Committer
    identifier: Identifier
    releases: ReleasePolicy
    review: Review
    feed: Feed
    vocabulary: Vocabulary
    signal: Signal


@asynccontextmanager
async def rooms(dsn: str, folder: Path, scope: Scope = SCOPE) -> AsyncIterator[Rooms]:
    """Rooms over the database, with a catalogue, two sources and the packaged vocabulary."""
    async with await Database.open(dsn, 1, 8) as database:
        await _found(database, scope)
        epoch = EpochFile(folder / "epoch.json")
        epoch.claim("1")
        signal = Signal()
        committer = Committer(database, epoch, signal)
        async with database.transaction(scope.tenant_id) as conn:
            vocabulary = await vocabulary_service.load(conn, scope.tenant_id, scope.catalog_id)
        yield Rooms(
            database,
            committer,
            Identifier(database, committer),
            ReleasePolicy(database, committer),
            Review(database, committer, vocabulary_service.load),
            Feed(database, epoch),
            vocabulary,
            signal,
        )
        await committer.close()


async def _found(database: Database, scope: Scope) -> None:
    tenant, catalog = scope.tenant_id, scope.catalog_id
    await access.put_tenant(database, tenant, tenant)
    await access.put_catalog(database, tenant, catalog, catalog)
    for source_id, trusted in ((TRUSTED, True), (UNTRUSTED, False)):
        await access.put_source(
            database, Source(tenant, catalog, source_id, source_id, trusted, {})
        )
    await vocabulary_service.publish(database, tenant, catalog)


def value(
    attribute: str, text: str, *, capture_id: str = "cap_1", origin: str = "adapter"
) -> Value:
    """A normalised value that was stated as it is."""
    quote = Quote(
        capture_id, "page", "0" * 64, attribute, text, {"type": "css", "value": "h1"}, origin
    )
    return Value(attribute, 1, text, UNITS.get(attribute, ""), Basis.STATED, quote)


def record(
    vocabulary: Vocabulary,
    listing_key: str,
    *,
    source_id: str = TRUSTED,
    capture_id: str | None = None,
    observed_at: datetime = NOON,
    merchant: str | None = "Lumen Parts",
    scope: Scope = SCOPE,
    **stated: Any,
) -> NormalisedRecord:
    """A record of an SSD; attributes by their name with ``__`` for the colon, for example ``core__gtin``."""
    capture = capture_id or f"cap_{listing_key}"
    values = [
        value(key.replace("__", ":"), text, capture_id=capture) for key, text in stated.items()
    ]
    held = {known.attribute for known in values}
    values += [
        Value(key, 1, text, "", Basis.DEFAULT, None)
        for key, text in DEFAULTS.items()
        if key not in held
    ]
    title = stated.get("core__title", f"SSD {listing_key}")
    if "core:title" not in held:
        values.append(value("core:title", title, capture_id=capture))
    rules = vocabulary.rules("storage_ssd", 1)
    return NormalisedRecord(
        tenant_id=scope.tenant_id,
        catalog_id=scope.catalog_id,
        capture_id=capture,
        record_id="1",
        source_id=source_id,
        listing_key=listing_key,
        observed_at=observed_at,
        class_id="storage_ssd",
        generation=1,
        title=title,
        url=f"https://shop.example/{listing_key}",
        merchant=None if merchant is None else value("offer:seller", merchant, capture_id=capture),
        values=tuple(values),
        keys=make_keys(rules, "storage_ssd", 1, values),
    )
