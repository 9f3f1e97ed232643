"""What a source of this adapter can be told, and what of it is pinned in each capture."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import Field, field_validator

from prw_sdk.adapter import AdapterSettings

_ATTRIBUTE = re.compile(r"[a-z][a-z0-9_]*:[a-z][a-z0-9_.]*")
_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")


class MerchantFeedSettings(AdapterSettings):
    """Where the feeds are, and what their columns and elements stand for."""

    feeds: tuple[str, ...] = Field(min_length=1)
    """Addresses of feeds: XML (RSS, Atom), TSV or CSV, plain or gzipped."""
    columns: Mapping[str, str] = Field(default_factory=dict)
    """What the feed's own columns or elements are in Google's words: ``{"Artikelnr." = "id", "Preis" = "price"}``."""
    item: str | None = Field(default=None, pattern=r"^[A-Za-z_][\w.-]*$")
    """The XML element that holds one product, where it is neither ``item`` nor ``entry``."""
    fields: Mapping[str, str] = Field(default_factory=dict)
    """Stated names that are kept under another attribute: ``{"detail.Speicher": "storage:capacity"}``."""
    exclusions: Mapping[str, str] = Field(default_factory=dict)
    """Stated names that this source's records leave out, each with the reason; wins over everything else."""
    publisher_is_seller: bool = True
    """Whether an item without a seller is an offer of the feed's publisher, whose name the feed states.

    Switch it off for the feeds of marketplaces and aggregators: a publisher is not the merchant.
    """

    @field_validator("feeds")
    @classmethod
    def _are_addresses(cls, feeds: tuple[str, ...]) -> tuple[str, ...]:
        for feed in feeds:
            if not re.match(r"https?://[^/\s]+", feed):
                raise ValueError(
                    f"{feed!r} is no address: write it with https://, as a browser shows it"
                )
        if len(set(feeds)) < len(feeds):
            raise ValueError("a feed is listed twice: leave one of the two out")
        return feeds

    @field_validator("columns")
    @classmethod
    def _are_names(cls, columns: Mapping[str, str]) -> Mapping[str, str]:
        for column, name in columns.items():
            if not _NAME.fullmatch(name):
                raise ValueError(
                    f"{column!r} stands for {name!r}: write one of Google's names, such as id, price or "
                    "image_link; what it is kept under goes into `fields`"
                )
        return columns

    @field_validator("fields")
    @classmethod
    def _are_attributes(cls, fields: Mapping[str, str]) -> Mapping[str, str]:
        for name, attribute in fields.items():
            if not _ATTRIBUTE.fullmatch(attribute):
                raise ValueError(
                    f"{name!r} is kept under {attribute!r}: write an attribute's key, such as core:mpn"
                )
        return fields

    @field_validator("exclusions")
    @classmethod
    def _have_reasons(cls, exclusions: Mapping[str, str]) -> Mapping[str, str]:
        for name, reason in exclusions.items():
            if not reason.strip():
                raise ValueError(
                    f"{name!r} is excluded without a reason: write why no record carries it"
                )
        return exclusions


def pinned(settings: MerchantFeedSettings) -> dict[str, object]:
    """What is pinned in each capture (JSON values)."""
    return {
        "columns": dict(settings.columns),
        "item": settings.item,
        "fields": dict(settings.fields),
        "exclusions": dict(settings.exclusions),
        "publisher_is_seller": settings.publisher_is_seller,
    }
