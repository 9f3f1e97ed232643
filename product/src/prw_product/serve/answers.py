"""The shapes of HTTP answers, as OpenAPI shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from prw_product.serve.display import value_text
from prw_product.serve.model import Item, ItemPage, Merchant, MerchantPage, Offer


class AttributeAnswer(BaseModel):
    """One public value."""

    key: str = Field(description="Key of its definition, for example storage:capacity.")
    value: str = Field(description="Canonical text.")
    unit: str = Field(description="UCUM-style unit, or empty.")
    display: str = Field(description="The value for people, for example 1 TB.")


class MoneyAnswer(BaseModel):
    """An exact amount."""

    amount: str = Field(description="Decimal digits with a point.")
    currency: str = Field(description="ISO 4217.")


class MerchantAnswer(BaseModel):
    """Who sells."""

    merchant_id: str
    name: str = Field(description="As stated, or empty.")


class OfferAnswer(BaseModel):
    """One merchant's listing of an item."""

    listing_id: str
    merchant: MerchantAnswer
    title: str = Field(description="As the merchant stated it.")
    url: str = Field(description="The original page.")
    price: MoneyAnswer | None = Field(description="Null where none was stated.")
    availability: str = Field(description="For example in_stock, or empty.")
    observed_at: datetime | None = Field(description="When price and availability were observed.")


class ItemAnswer(BaseModel):
    """A released item."""

    item_id: str
    class_id: str
    title: str
    attributes: list[AttributeAnswer]
    published_revision: int = Field(description="Revision of the item that is published.")
    publication_revision: int = Field(description="Number of the publication.")
    offers: list[OfferAnswer] = Field(description="One for each released listing.")


class ItemsAnswer(BaseModel):
    """One page of items."""

    items: list[ItemAnswer]
    next_page_token: str = Field(description="Empty at the end.")


class MerchantsAnswer(BaseModel):
    """One page of merchants."""

    merchants: list[MerchantAnswer]
    next_page_token: str = Field(description="Empty at the end.")


class ProblemAnswer(BaseModel):
    """An error (RFC 9457), with its stable code."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str | None = None
    details: dict[str, str] | None = None


class HealthAnswer(BaseModel):
    """Whether the catalogue can be read, and how following goes where this process follows."""

    status: str = Field(description="ok, or degraded: read on, but what is there grows old.")
    public_items: int
    following: bool | None = Field(description="Null where another process follows.")
    progress: int | None
    stopped: str | None = Field(description="The code that ended following, if any.")
    held: str | None = Field(description="The code of the refused change that holds progress.")


def item_answer(item: Item) -> ItemAnswer:
    """A released item as it is answered."""
    attributes = [
        AttributeAnswer(key=a.key, value=a.value, unit=a.unit, display=value_text(a))
        for a in item.attributes
    ]
    return ItemAnswer(
        item_id=item.item_id,
        class_id=item.class_id,
        title=item.title,
        attributes=attributes,
        published_revision=item.published_revision,
        publication_revision=item.publication_revision,
        offers=[_offer(offer) for offer in item.offers],
    )


def items_answer(page: ItemPage) -> ItemsAnswer:
    """A page of items as it is answered."""
    items = [item_answer(item) for item in page.items]
    return ItemsAnswer(items=items, next_page_token=page.next_page_token)


def merchants_answer(page: MerchantPage) -> MerchantsAnswer:
    """A page of merchants as it is answered."""
    merchants = [_merchant(merchant) for merchant in page.merchants]
    return MerchantsAnswer(merchants=merchants, next_page_token=page.next_page_token)


def _offer(offer: Offer) -> OfferAnswer:
    amount, currency = offer.price_amount, offer.price_currency
    stated = amount is not None and currency is not None
    return OfferAnswer(
        listing_id=offer.listing_id,
        merchant=_merchant(offer.merchant),
        title=offer.title,
        url=offer.url,
        price=MoneyAnswer(amount=amount or "", currency=currency or "") if stated else None,
        availability=offer.availability,
        observed_at=offer.observed_at,
    )


def _merchant(merchant: Merchant) -> MerchantAnswer:
    return MerchantAnswer(merchant_id=merchant.merchant_id, name=merchant.name)
