"""What a source of this adapter can be told, and what of it is pinned in each capture."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType

from pydantic import Field, field_validator, model_validator

from prw_sdk.adapter import Disposition, Stored
from prw_sdk.adapter.naming import NamingSettings, excluded, table
from prw_sdk.take import SELLER

PINNED = ("items", "offers", "id", "seller", "tell_apart", "fields", "exclusions")
"""The settings that `read` needs, pinned in each capture."""

_POINTER = re.compile(r"(/[^/]*)*")


class Paging(StrEnum):
    """How the interface is told which page to give."""

    NONE = "none"
    """There is one page."""
    PAGE = "page"
    """By number: ``page=3``."""
    OFFSET = "offset"
    """By the number of offers before it: ``offset=100``."""
    CURSOR = "cursor"
    """By what the page before said under `next`."""
    LINK = "link"
    """By the address that the page before gives under `next`."""


class OffersSettings(NamingSettings):
    """Where a marketplace's offers are listed, how its pages follow each other, and how an offer names its fields.

    Pointers are JSON Pointers (RFC 6901): `items`, `total` and `next` into a page, the others into an item or offer.
    """

    url: str = Field(pattern=r"^https?://[^/\s]+")
    """The first page's address, with everything in its query that does not change from page to page."""
    items: str = "/offers"
    """The list of items on a page; an empty pointer where the page is that list."""
    offers: str | None = None
    """The list of offers within an item; without it each item is one offer."""
    id: str = "/id"
    """What an item is known by, always the same and its own."""
    seller: str = "/seller/name"
    """The seller's name: the merchant of the offer, and part of the listing's identity."""
    tell_apart: tuple[str, ...] = ()
    """What else tells two offers of one seller for one item apart, such as ``/condition``."""
    paging: Paging = Paging.PAGE
    parameter: str | None = None
    """The query's name for the page, offset or cursor; ``page``, ``offset`` or ``cursor`` where it is not given."""
    first: int = Field(default=1, ge=0, le=1)
    """The number of the first page."""
    next: str = "/next"
    """Where a page says what comes after it (`cursor`, `link`)."""
    total: str | None = None
    """Where a page says how many items there are in all."""
    passes: int = Field(default=3, ge=1, le=10)
    """How often the list is read over where it moved while it was read."""
    tolerance: Decimal = Field(default=Decimal("0.02"), ge=0, le=1)
    """The share of the stated total that may never have been seen without the run being called incomplete."""
    most_pages: int = Field(default=10_000, ge=1)

    @field_validator("items", "offers", "id", "seller", "tell_apart", "next", "total")
    @classmethod
    def _are_pointers(cls, given: object) -> object:
        for pointer in given if isinstance(given, tuple) else (given,):
            if isinstance(pointer, str) and not _POINTER.fullmatch(pointer):
                raise ValueError(
                    f"{pointer!r} is no JSON Pointer: write '/offers' or '/seller/name'"
                )
        return given

    @model_validator(mode="after")
    def _can_be_told_apart(self) -> OffersSettings:
        if not self.id or not self.seller:
            raise ValueError(
                "`id` and `seller` point into an item: write '/itemId' and '/seller/name'"
            )
        return self


@dataclass(frozen=True, slots=True)
class Reading:
    """The part of the settings that `read` needs, as it comes out of a capture's config."""

    items: str = "/offers"
    offers: str | None = None
    id: str = "/id"
    seller: str = "/seller/name"
    tell_apart: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    exclusions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def prefix(self) -> str:
        """What the names within an offer begin with: the name of the list of offers in an item."""
        return "" if self.offers is None else dotted(self.offers)

    def disposition(self, name: str) -> Disposition | None:
        """What this source's own settings say of a stated name."""
        left_out = excluded(self.exclusions, name)
        if left_out is not None:
            return left_out
        if name in (self.seller_name, dotted(self.seller)):
            return Stored(SELLER)
        attribute = self.fields.get(name)
        return None if attribute is None else Stored(attribute)

    @property
    def seller_name(self) -> str:
        """The seller's dotted name within an item."""
        return ".".join(filter(None, (self.prefix, dotted(self.seller))))


def dotted(pointer: str) -> str:
    """A pointer as fields are named: ``seller.name`` for ``/seller/name``."""
    tokens = pointer.split("/")[1:]
    return ".".join(token.replace("~1", "/").replace("~0", "~") for token in tokens)


def reading(config: Mapping[str, object]) -> Reading:
    """Take it out of a capture's config again."""
    usual, offers, apart = Reading(), config.get("offers"), config.get("tell_apart")
    return Reading(
        items=str(config.get("items", usual.items)),
        offers=offers if isinstance(offers, str) else None,
        id=str(config.get("id", usual.id)),
        seller=str(config.get("seller", usual.seller)),
        tell_apart=tuple(map(str, apart)) if isinstance(apart, list | tuple) else (),
        fields=MappingProxyType(table(config, "fields")),
        exclusions=MappingProxyType(table(config, "exclusions")),
    )
