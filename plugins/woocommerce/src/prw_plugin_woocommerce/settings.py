"""What a source of this adapter can be told, and what of it is pinned in each capture."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import Field, field_validator

from prw_sdk.adapter import AdapterSettings

_ATTRIBUTE = re.compile(r"[a-z][a-z0-9_]*:[a-z][a-z0-9_.]*")
_CATEGORY = re.compile(r"[\w%-]+")


class WooCommerceSettings(AdapterSettings):
    """Which shop is read, what of it, and how it names things."""

    shop: str = Field(pattern=r"^https?://[^\s?#]+$")
    """The address of the WordPress site that the shop is part of."""
    rest: str = Field(default="wp-json", pattern=r"^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$")
    """Where the site serves its REST interface, below `shop`."""
    categories: tuple[str, ...] = ()
    """Slugs or numbers of categories: only their products are read. Empty for all products."""
    attributes: Mapping[str, str] = Field(default_factory=dict)
    """More names of attributes, and what each is kept under: ``{"Speicher": "storage:capacity"}``."""
    fields: Mapping[str, str] = Field(default_factory=dict)
    """Stated names that are kept under another attribute: ``{"sku": "core:mpn"}``."""
    exclusions: Mapping[str, str] = Field(default_factory=dict)
    """Stated names that this source's records leave out, each with the reason; wins over everything else."""
    batch_size: int = Field(default=50, ge=1, le=1000)
    """Products between two checkpoints."""

    @property
    def interface(self) -> str:
        """The address of the REST interface without a closing slash."""
        return f"{self.shop.rstrip('/')}/{self.rest}"

    @field_validator("categories")
    @classmethod
    def _are_slugs(cls, categories: tuple[str, ...]) -> tuple[str, ...]:
        for category in categories:
            if not _CATEGORY.fullmatch(category):
                raise ValueError(
                    f"{category!r} is no slug: write what stands last in the category's address"
                )
        return categories

    @field_validator("attributes", "fields")
    @classmethod
    def _are_attributes(cls, table: Mapping[str, str]) -> Mapping[str, str]:
        for name, attribute in table.items():
            if not _ATTRIBUTE.fullmatch(attribute):
                raise ValueError(
                    f"{name!r} is kept under {attribute!r}: write an attribute's key, such as core:mpn"
                )
        return table

    @field_validator("exclusions")
    @classmethod
    def _have_reasons(cls, exclusions: Mapping[str, str]) -> Mapping[str, str]:
        for name, reason in exclusions.items():
            if not reason.strip():
                raise ValueError(
                    f"{name!r} is excluded without a reason: write why no record carries it"
                )
        return exclusions


def pinned(settings: WooCommerceSettings) -> dict[str, object]:
    """What is pinned in each capture (JSON values)."""
    return {
        "attributes": dict(settings.attributes),
        "fields": dict(settings.fields),
        "exclusions": dict(settings.exclusions),
    }
