"""Records of a feed: one for each item and seller, made while the feed is read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote

from prw_plugin_merchant_feed import markup, tables
from prw_plugin_merchant_feed.encoding import FEED, is_xml, stream
from prw_plugin_merchant_feed.inventory import SELLER
from prw_plugin_merchant_feed.words import Names
from prw_sdk.adapter import Disposition, NotARecord, Stored
from prw_sdk.adapter.naming import table
from prw_sdk.evidence import Capture, Part, Presence, Record
from prw_sdk.take import Leaf, take

_LONGEST = 200
_NOTHING_ASKED = re.compile(r"[0.,\s]*[^0-9]*")

Dispositions = Callable[[str], Disposition | None]
Rows = Iterator[tuple[Leaf, ...]]


def rows(capture: Capture) -> tuple[tuple[Leaf, ...], Rows]:
    """What the feed says of itself, and the leaves of each item; raises `NotARecord` for what is no feed."""
    part = _feed(capture)
    names = Names(table(capture.config, "columns"))
    if not is_xml(part):
        return (), tables.rows(part, names)
    item = capture.config.get("item")
    found = markup.items(part, names, item if isinstance(item, str) else None)
    first = next(found, None)
    if first is None:
        raise NotARecord("a feed without items")
    return first.leaves, (one.leaves for one in found)


def records(capture: Capture, disposition: Dispositions) -> Iterator[Record]:
    """The records, one at a time; raises `NotARecord` at the end where there was none.

    Of items with one id and one seller the first counts.
    """
    channel, found = rows(capture)
    at = capture.part(FEED).fetched_at
    seen: set[str] = set()
    for row in found:
        record = _record(row, channel, at, disposition)
        if record is not None and record.listing_key not in seen:
            seen.add(record.listing_key)
            yield record
    if not seen:
        raise NotARecord("no item of the feed has an id")


def leaves(capture: Capture) -> Iterator[Leaf]:
    """Every leaf of the feed, under the names that the inventory declares."""
    channel, found = rows(capture)
    yield from channel
    for row in found:
        yield from _renamed(row)


def _feed(capture: Capture) -> Part:
    if capture.presence is Presence.ABSENT:
        raise NotARecord("the source says that this feed is gone")
    try:
        part = capture.part(FEED)
    except KeyError:
        raise NotARecord(f"the capture has no part {FEED!r}") from None
    head = stream(part).read(200).lstrip("\ufeff \t\r\n")
    if not head:
        raise NotARecord("an empty feed")
    if head.lower().startswith(("<!doctype html", "<html")):
        raise NotARecord("a page, and no feed")
    if head.startswith(("{", "[")):
        raise NotARecord("JSON, and no feed of XML, TSV or CSV")
    return part


def _record(
    row: tuple[Leaf, ...], channel: tuple[Leaf, ...], at: datetime, disposition: Dispositions
) -> Record | None:
    number = next((leaf.text for leaf in row if leaf.name == "id" and leaf.text), None)
    if number is None:
        return None
    own = tuple(_asked(tuple(_renamed(row)), at))
    seller = next((leaf.text for leaf in own if leaf.text and _is_seller(leaf, disposition)), None)
    parts = [("", number), *([] if seller is None else [("#seller=", " ".join(seller.split()))])]
    key = "".join(mark + _bounded(quote(text, safe="")) for mark, text in parts)
    return take([*own, *(channel if seller is None else ())], disposition).record(key, key)


def _is_seller(leaf: Leaf, disposition: Dispositions) -> bool:
    found = disposition(leaf.name)
    return isinstance(found, Stored) and found.target == SELLER


def _renamed(row: Iterable[Leaf]) -> Iterator[Leaf]:
    for leaf in row:
        is_none = leaf.name == "multipack" and leaf.text == "0"
        yield replace(leaf, name="multipack.none") if is_none else leaf


def _asked(row: tuple[Leaf, ...], at: datetime) -> Iterator[Leaf]:
    """The row with the one price that is asked: the sale price while the sale goes on, else the price."""
    stated: Mapping[str, str] = {leaf.name: leaf.text for leaf in reversed(row)}
    sale = stated.get("sale_price", "")
    is_on = not _NOTHING_ASKED.fullmatch(sale) and _goes_on(
        stated.get("sale_price_effective_date", ""), at
    )
    left = "price" if is_on else "sale_price"
    return (leaf for leaf in row if leaf.name != left)


def _goes_on(period: str, at: datetime) -> bool:
    """Whether a period (ISO 8601, with a slash between its ends) holds at that moment; a blank one always does.

    One that cannot be read holds never, since the sale may be over.
    """
    if not period.strip():
        return True
    start, _, end = period.partition("/")
    try:
        return _moment(start) <= at <= _moment(end)
    except ValueError:
        return False


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text.strip())
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _bounded(text: str) -> str:
    """The text, its end replaced by a digest of the whole where it is longer than an id should be."""
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[: _LONGEST - len(digest) - 1]}~{digest}"
