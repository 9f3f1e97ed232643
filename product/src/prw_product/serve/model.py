"""What the public may see, and how it asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import TypeVar

from prw.errors import Code, PrwError
from prw_base.canonical import canonical_json, sha256_hex
from prw_product.publish.model import Attribute

DEFAULT_PAGE = 50
MAX_PAGE = 500
MAX_TEXT = 512
MAX_FILTERS = 16
MAX_PAGE_BYTES = 3 * 1024 * 1024
"""A page of long texts ends sooner: a message has at most 4 MiB."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Merchant:
    """Who sells; ``name`` as stated, empty where it is not known."""

    merchant_id: str
    name: str


@dataclass(frozen=True, slots=True)
class Offer:
    """One merchant's listing of an item.

    The price is an exact decimal amount in an ISO 4217 currency, both None where none was stated;
    price and availability are those of ``observed_at`` (UTC).
    """

    listing_id: str
    merchant: Merchant
    title: str
    url: str
    price_amount: str | None
    price_currency: str | None
    availability: str
    observed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Item:
    """A released item with its offers; never anything private."""

    item_id: str
    class_id: str
    title: str
    attributes: tuple[Attribute, ...]
    published_revision: int
    publication_revision: int
    offers: tuple[Offer, ...]


@dataclass(frozen=True, slots=True)
class ItemQuery:
    """Which items: of a class (None for all), with these values, at most 500 a page (0 for 50)."""

    class_id: str | None = None
    attributes: Mapping[str, str] | None = None
    page_size: int = 0
    page_token: str = ""

    def fingerprint(self) -> str:
        """What a page token is bound to: the filters, not the size of a page."""
        asked = {"class": self.class_id or "", "attributes": dict(self.attributes or {})}
        return sha256_hex(canonical_json(asked))[:16]


@dataclass(frozen=True, slots=True)
class ItemPage:
    """Items by id; ``next_page_token`` is empty at the end."""

    items: tuple[Item, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class MerchantPage:
    """Merchants by id; ``next_page_token`` is empty at the end."""

    merchants: tuple[Merchant, ...]
    next_page_token: str


def page_size(asked: int) -> int:
    """The rows of a page; raises PrwError VALIDATION_FAILED outside of 0 to 500."""
    if not 0 <= asked <= MAX_PAGE:
        raise _invalid("page_size", f"page_size is 0 to {MAX_PAGE}")
    return asked or DEFAULT_PAGE


def check_query(query: ItemQuery) -> None:
    """The limits of the proto, for callers that come by HTTP; raises PrwError."""
    given = query.attributes or {}
    if len(given) > MAX_FILTERS:
        raise _invalid("attr", f"at most {MAX_FILTERS} attributes")
    for text in (query.class_id or "", query.page_token, *given, *given.values()):
        if len(text) > MAX_TEXT or "\0" in text:
            raise _invalid("query", f"a text is longer than {MAX_TEXT} characters or holds a NUL")


def weigh_item(item: Item) -> int:
    """At least the bytes of an item's message."""
    offers = sum(weigh_offer(offer) for offer in item.offers)
    values = sum(_weigh(a.key, a.value, a.unit) for a in item.attributes)
    return _weigh(item.item_id, item.class_id, item.title, "", "") + values + offers


def weigh_offer(offer: Offer) -> int:
    """At least the bytes of an offer's message."""
    texts = (offer.listing_id, offer.title, offer.url, offer.availability, offer.price_amount or "")
    return _weigh(*texts, offer.price_currency or "", "", "") + weigh_merchant(offer.merchant)


def weigh_merchant(merchant: Merchant) -> int:
    """At least the bytes of a merchant's message."""
    return _weigh(merchant.merchant_id, merchant.name)


def _weigh(*texts: str) -> int:
    """The bytes of a message with these fields; a tag, a length or a number takes at most 16."""
    return 16 + sum(16 + len(text.encode()) for text in texts)


def bounded(found: Sequence[T], weigh: Callable[[T], int]) -> tuple[T, ...]:
    """As many from the start as fit in ``MAX_PAGE_BYTES``, and the first in any case."""
    weights = accumulate(weigh(one) for one in found)
    fitting = sum(1 for weight in weights if weight <= MAX_PAGE_BYTES)
    return tuple(found[: max(1, fitting)])


def _invalid(field: str, message: str) -> PrwError:
    return PrwError(Code.VALIDATION_FAILED, message, field=field)
