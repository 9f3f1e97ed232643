"""Records: one for each offer on a page, known by its item and its seller."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from prw_plugin_marketplace_offers.settings import Reading, dotted, reading
from prw_sdk.adapter import Disposition, NotARecord
from prw_sdk.evidence import Capture, Part, Presence, Record
from prw_sdk.take import Leaf, json_leaves, parsed, take

ROLE = "offers"
_LONGEST_PART = 200
_NO_DOCUMENT = "the part holds no JSON"

Of = Callable[[str], Disposition | None]


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a page: its value, and where it stands."""

    value: Mapping[str, object]
    pointer: str

    def text(self, pointer: str) -> str:
        """What stands there as text; empty where there is nothing."""
        found = at(self.value, pointer)
        return "" if found is None or isinstance(found, list | Mapping) else str(found).strip()


def page_of(capture: Capture) -> Part:
    """The page of offers of a capture; raises `NotARecord` where there is none."""
    if capture.presence is Presence.ABSENT:
        raise NotARecord("the source says that this page is gone")
    try:
        return capture.part(ROLE)
    except KeyError:
        raise NotARecord(f"the capture has no part {ROLE!r}") from None


def items(part: Part, pointer: str) -> tuple[Item, ...]:
    """The items of a page, in order; raises `NotARecord` where it holds no list of them."""
    try:
        document = parsed(part.text())
    except ValueError:
        raise NotARecord(_NO_DOCUMENT) from None
    found = at(document, pointer)
    if not isinstance(found, list):
        raise NotARecord(f"no list of items at {pointer!r}: see `items` in the source's settings")
    return tuple(
        Item(value, f"{pointer}/{index}")
        for index, value in enumerate(found)
        if isinstance(value, Mapping)
    )


def leaves(capture: Capture) -> Iterator[Leaf]:
    """Everything that the items of a capture state, under names within the item."""
    for item in items(page_of(capture), reading(capture.config).items):
        yield from json_leaves(item.value, ROLE, item.pointer)


def records(capture: Capture, disposition: Of) -> Iterator[Record]:
    """The capture's records; of offers that nothing tells apart the first one stands for all."""
    told, seen = reading(capture.config), set[str]()
    found = items(page_of(capture), told.items)
    if not found:
        raise NotARecord("a page without offers, as after the last one")
    if not any(item.text(told.id) for item in found):
        raise NotARecord(f"no item states {told.id!r}: see `id` in the source's settings")
    for item in found:
        for key, stated in _offers(item, told):
            if key not in seen:
                seen.add(key)
                yield take(stated, disposition).record(key, key)


def _offers(item: Item, told: Reading) -> Iterator[tuple[str, Iterable[Leaf]]]:
    """Each offer of an item: its key, and what is stated of it."""
    number = item.text(told.id)
    if not number:
        return
    if told.offers is None:
        yield _key(number, item, told), json_leaves(item.value, ROLE, item.pointer)
        return
    every, inner = tuple(json_leaves(item.value, ROLE, item.pointer)), dotted(told.offers)
    shared = [
        leaf for leaf in every if leaf.name != inner and not leaf.name.startswith(f"{inner}.")
    ]
    for offer in _nested(item, told.offers):
        own = json_leaves(offer.value, ROLE, offer.pointer, inner)
        yield _key(number, offer, told), (*shared, *own)


def _nested(item: Item, pointer: str) -> Iterator[Item]:
    found = at(item.value, pointer)
    for index, value in enumerate(found if isinstance(found, list) else ()):
        if isinstance(value, Mapping):
            yield Item(value, f"{item.pointer}{pointer}/{index}")


def _key(number: str, offer: Item, told: Reading) -> str:
    """The item and its seller, whatever other offers there are: so it is the same in every capture."""
    parts = [("seller", offer.text(told.seller))]
    parts += [(dotted(pointer), offer.text(pointer)) for pointer in told.tell_apart]
    return "#".join(
        [_bounded(number), "&".join(f"{name}={_bounded(text)}" for name, text in parts)]
    )


def _bounded(text: str) -> str:
    """The text as it may stand in a key, its end replaced by a digest where it is long."""
    folded = " ".join(text.split())
    if len(folded) > _LONGEST_PART:
        digest = hashlib.sha256(folded.encode()).hexdigest()[:16]
        folded = f"{folded[: _LONGEST_PART - 17]}~{digest}"
    return quote(folded, safe="|:~ ").replace(" ", "+")


def at(value: object, pointer: str) -> object:
    """What stands at a JSON Pointer in a value; None where there is nothing."""
    for token in pointer.split("/")[1:]:
        wanted = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping):
            value = value.get(wanted)
        elif isinstance(value, list) and wanted.isdecimal() and int(wanted) < len(value):
            value = value[int(wanted)]
        else:
            return None
    return value
