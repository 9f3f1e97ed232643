"""What a source of this adapter can be told."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from prw_sdk.adapter.naming import AttributeNames, NamingSettings

_HANDLE = re.compile(r"[^/\s?#]+")


class ShopifySettings(NamingSettings):
    """Which shop is read, what of it, and how it names things."""

    shop: str = Field(pattern=r"^https?://[^/\s?#]+(/[A-Za-z-]+)?/?$")
    """The storefront's address; with its path where that is a market of its own (``https://shop.example/de``)."""
    collections: tuple[str, ...] = ()
    """Handles of collections: only their products are read. Empty for all products."""
    options: AttributeNames = Field(default_factory=dict)
    """More names of options, and the attribute each is kept under: ``{"Speicher": "storage:capacity"}``."""
    batch_size: int = Field(default=50, ge=1, le=1000)
    """Products between two checkpoints."""

    @property
    def address(self) -> str:
        """The storefront's address without a closing slash."""
        return self.shop.rstrip("/")

    @field_validator("collections")
    @classmethod
    def _are_handles(cls, handles: tuple[str, ...]) -> tuple[str, ...]:
        for handle in handles:
            if not _HANDLE.fullmatch(handle):
                raise ValueError(
                    f"{handle!r} is no handle: write what stands after /collections/ in its address"
                )
        return handles
