"""Random legal histories, and the small oracle that says what any delivered part of one must show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from prw.changes.v1 import change_pb2 as pb
from tests.product import events

_ITEMS, _LISTINGS, _MERCHANTS = 3, 3, 2
_ACTS = ("item", "map", "map", "retract", "merchant", "price", "release", "release", "release")

Act = tuple[str, int, int]
Key = tuple[int, str]
Shown = dict[str, tuple[object, ...]]
"""Each public item's id with its title, both revisions, and its offers by merchant and listing."""


@dataclass(slots=True)
class _Author:
    """Writes events as a resolver may: revisions without holes, releases of what is mapped now."""

    written: list[pb.Event] = field(default_factory=list)
    revisions: dict[str, int] = field(default_factory=dict)
    mapped: dict[str, str | None] = field(default_factory=dict)

    def act(self, act: Act) -> None:
        writers: dict[str, Callable[[int, int], None]] = {
            "item": self._item,
            "map": self._map,
            "retract": self._retract,
            "merchant": self._merchant,
            "price": self._price,
            "release": self._release,
        }
        name, first, second = act
        writers[name](first, second)

    def _next(self, name: str) -> int:
        self.revisions[name] = self.revisions.get(name, 0) + 1
        return self.revisions[name]

    def _item(self, number: int, _: int) -> None:
        name = f"itm_{number % _ITEMS}"
        revision = self._next(name)
        self.written.append(events.item(name, revision, title=f"{name}@{revision}"))

    def _map(self, number: int, to: int) -> None:
        self._write_mapping(f"lst_{number % _LISTINGS}", f"itm_{to % _ITEMS}", to, gone=False)

    def _retract(self, number: int, _: int) -> None:
        name = f"lst_{number % _LISTINGS}"
        of = self.mapped.get(name)
        if of is not None:
            self._write_mapping(name, of, number, gone=True)

    def _write_mapping(self, name: str, of: str, seller: int, *, gone: bool) -> None:
        if of not in self.revisions:
            return
        revision = self._next(name)
        needs = [events.need("catalog_item", of, self.revisions[of])]
        seller_id = f"mer_{seller % _MERCHANTS}"
        title = f"{name}@{revision}"
        event = events.mapping(name, of, revision, seller_id, title, needs)
        if gone:
            event.listing_mapping.status = pb.MAPPING_STATUS_RETRACTED
        self.mapped[name] = None if gone else of
        self.written.append(event)

    def _merchant(self, number: int, _: int) -> None:
        name = f"mer_{number % _MERCHANTS}"
        revision = self._next(name)
        self.written.append(events.merchant(name, f"{name}@{revision}", revision))

    def _price(self, number: int, _: int) -> None:
        name = f"lst_{number % _LISTINGS}"
        revision = self._next(f"price {name}")
        self.written.append(events.price(name, f"{revision}.00", revision=revision))

    def _release(self, number: int, _: int) -> None:
        name = f"itm_{number % _ITEMS}"
        if name not in self.revisions:
            return
        listings = {
            listing: self.revisions[listing] for listing, of in self.mapped.items() if of == name
        }
        at, revision = self.revisions[name], self._next(f"release {name}")
        title = f"{name}@{at}"
        made = events.release(name, listings, revision, title, item_revision=at)
        self.written.append(made)


def write(acts: Iterable[Act], catalog_id: str) -> list[pb.Change]:
    """The history of these acts, of which those that are not legal are left out."""
    author = _Author()
    for act in (("item", 0, 0), ("item", 1, 0), ("map", 0, 0), ("release", 0, 0), *acts):
        author.act(act)
    for event in author.written:
        event.stream.catalog_id = catalog_id
    return events.history(*author.written)


ACTS: st.SearchStrategy[list[Act]] = st.lists(
    st.tuples(st.sampled_from(_ACTS), st.integers(0, 2), st.integers(0, 2)),
    min_size=14,
    max_size=30,
)


@dataclass(slots=True)
class Oracle:
    """What must be processed and shown once a set of changes was delivered, in whatever order."""

    delivered: dict[int, pb.Event] = field(default_factory=dict)
    processed: set[int] = field(default_factory=set)
    newest: dict[Key, int] = field(default_factory=dict)
    states: dict[tuple[Key, int], pb.Event] = field(default_factory=dict)

    def deliver(self, changes: Sequence[pb.Change]) -> None:
        """Take changes, and everything that they make possible."""
        for change in changes:
            self.delivered[change.position] = pb.Event.FromString(change.event)
        before = -1
        while before != len(self.processed):
            before = len(self.processed)
            for at in self.parked:
                self._settle(at)

    def _settle(self, position: int) -> None:
        event = self.delivered[position]
        key = _key(event.aggregate)
        if event.revision > self.newest.get(key, 0):
            if not self._is_ready(event):
                return
            self.newest[key] = event.revision
        self.states[key, event.revision] = event
        self.processed.add(position)

    def _is_ready(self, event: pb.Event) -> bool:
        met = all(self.newest.get(_key(d.aggregate), 0) >= d.revision for d in event.dependencies)
        named = [(_mapping_key(one), one.mapping_revision) for one in event.release.listings]
        return met and all(state in self.states for state in named)

    @property
    def progress(self) -> int:
        """I3: the contiguous prefix of what is processed."""
        return next(at for at in range(len(self.processed) + 1) if at + 1 not in self.processed)

    @property
    def parked(self) -> list[int]:
        """T6: what was delivered and waits."""
        return sorted(set(self.delivered) - self.processed)

    def shown(self) -> Shown:
        """What the public sees: newest releases, each listing where it was released last."""
        return {
            release.item_id: (
                release.title,
                release.item_revision,
                release.publication_revision,
                tuple(sorted(self._offers(release))),
            )
            for release in self._newest_releases()
        }

    def _newest_releases(self) -> list[pb.Release]:
        kind = pb.AGGREGATE_TYPE_RELEASE
        return [
            self.states[key, revision].release
            for key, revision in self.newest.items()
            if key[0] == kind
        ]

    def _offers(self, release: pb.Release) -> Iterable[tuple[str, str, str, str]]:
        for one in release.listings:
            if one.mapping_revision < self._last_released(one.listing_id):
                continue
            mapping = self.states[_mapping_key(one), one.mapping_revision].listing_mapping
            seller = self._newest(pb.AGGREGATE_TYPE_MERCHANT, mapping.merchant_id)
            price = self._newest(pb.AGGREGATE_TYPE_INVENTORY_OBSERVATION, one.listing_id)
            amount = price.inventory_observation.price.amount
            yield seller.merchant.name, one.listing_id, mapping.title, amount

    def _last_released(self, listing_id: str) -> int:
        return max(
            one.mapping_revision
            for event in self.states.values()
            for one in event.release.listings
            if one.listing_id == listing_id
        )

    def _newest(self, kind: int, name: str) -> pb.Event:
        return self.states.get(((kind, name), self.newest.get((kind, name), 0)), pb.Event())


def _key(aggregate: pb.Aggregate) -> Key:
    return aggregate.type, aggregate.id


def _mapping_key(listing: pb.ReleasedListing) -> Key:
    return pb.AGGREGATE_TYPE_LISTING_MAPPING, listing.listing_id
