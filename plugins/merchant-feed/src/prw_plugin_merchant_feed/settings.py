"""What a source of this adapter can be told."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import Field, field_validator

from prw_sdk.adapter.naming import NamingSettings

PINNED = ("columns", "item", "fields", "exclusions", "publisher_is_seller")
"""The settings that `read` needs, pinned in each capture."""

_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")


class MerchantFeedSettings(NamingSettings):
    """Where the feeds are, and what their columns and elements stand for."""

    feeds: tuple[str, ...] = Field(min_length=1)
    """Addresses of feeds: XML (RSS, Atom), TSV or CSV, plain or gzipped."""
    columns: Mapping[str, str] = Field(default_factory=dict)
    """What the feed's own columns or elements are in Google's words: ``{"Artikelnr." = "id", "Preis" = "price"}``."""
    item: str | None = Field(default=None, pattern=r"^[A-Za-z_][\w.-]*$")
    """The XML element that holds one product, where it is neither ``item`` nor ``entry``."""
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
