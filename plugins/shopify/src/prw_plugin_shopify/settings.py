"""What a source of this adapter can be told, and what of it is pinned in each capture."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import Field, field_validator

from prw_sdk.adapter import AdapterSettings

_ATTRIBUTE = re.compile(r"[a-z][a-z0-9_]*:[a-z][a-z0-9_.]*")
_HANDLE = re.compile(r"[^/\s?#]+")


class ShopifySettings(AdapterSettings):
    """Which shop is read, what of it, and how it names things."""

    shop: str = Field(pattern=r"^https?://[^/\s?#]+(/[A-Za-z-]+)?/?$")
    """The storefront's address; with its path where that is a market of its own (``https://shop.example/de``)."""
    collections: tuple[str, ...] = ()
    """Handles of collections: only their products are read. Empty for all products."""
    options: Mapping[str, str] = Field(default_factory=dict)
    """More names of options, and the attribute each is kept under: ``{"Speicher": "storage:capacity"}``."""
    fields: Mapping[str, str] = Field(default_factory=dict)
    """Stated names that are kept under another attribute: ``{"vendor": "offer:seller"}`` for a shop of many sellers."""
    exclusions: Mapping[str, str] = Field(default_factory=dict)
    """Stated names that this source's records leave out, each with the reason; wins over everything else."""
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

    @field_validator("options", "fields")
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


def pinned(settings: ShopifySettings) -> dict[str, object]:
    """What is pinned in each capture (JSON values)."""
    return {
        "options": dict(settings.options),
        "fields": dict(settings.fields),
        "exclusions": dict(settings.exclusions),
    }
