"""What a source of this adapter can be told."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from prw_sdk.adapter.naming import AttributeNames, NamingSettings

_CATEGORY = re.compile(r"[\w%-]+")


class WooCommerceSettings(NamingSettings):
    """Which shop is read, what of it, and how it names things."""

    shop: str = Field(pattern=r"^https?://[^\s?#]+$")
    """The address of the WordPress site that the shop is part of."""
    rest: str = Field(default="wp-json", pattern=r"^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$")
    """Where the site serves its REST interface, below `shop`."""
    categories: tuple[str, ...] = ()
    """Slugs or numbers of categories: only their products are read. Empty for all products."""
    attributes: AttributeNames = Field(default_factory=dict)
    """More names of attributes, and what each is kept under: ``{"Speicher": "storage:capacity"}``."""
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
