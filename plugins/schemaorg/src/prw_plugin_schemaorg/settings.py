"""What a source of this adapter can be told, and what of it is pinned in each capture."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import parsel
from pydantic import Field, field_validator, model_validator

from prw_plugin_schemaorg.vocabulary import PROPERTIES
from prw_sdk.adapter import AdapterSettings, Disposition, Stored
from prw_sdk.adapter.naming import AttributeNames, Exclusions, excluded, folded, table

PINNED = ("properties", "exclusions", "site_is_seller")
"""The settings that `read` needs, pinned in each capture."""

PROPERTY_PATHS = ("additionalProperty", "identifier")


class SchemaOrgSettings(AdapterSettings):
    """Where a shop's product pages are found, and how it names its properties.

    `sitemaps` are the addresses of sitemaps or sitemap indexes. Without any, those are used that `site`'s robots.txt
    names, else its ``/sitemap.xml``. `categories` are the addresses of pages that list products, another way to find
    them; with it sitemaps are read only where they are named too. `include` and `exclude` are regular expressions
    searched in a page's address.
    """

    site: str | None = Field(default=None, pattern=r"^https?://[^/\s]+")
    sitemaps: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    links: str | None = None
    """A CSS selector of the links to products on the pages of `categories`: ``.tile a.title``."""
    next_page: str = 'a[rel~="next"], link[rel~="next"]'
    """A CSS selector of the link from one page of a category to the next."""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    properties: AttributeNames = Field(default_factory=dict)
    """More names of properties, and the attribute each is kept under: ``{"Speicher": "storage:capacity"}``."""
    exclusions: Exclusions = Field(default_factory=dict)
    """Stated names (patterns with ``*``) that this source's records leave out, each with the reason; these win."""
    site_is_seller: bool = True
    """Whether a page that names no seller is an offer of the site's owner, whose name the page states.

    Switch it off for marketplaces and aggregators: a publisher is not the merchant.
    """
    batch_size: int = Field(default=50, ge=1, le=1000)

    @field_validator("include", "exclude")
    @classmethod
    def _are_expressions(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        return patterns

    @field_validator("links", "next_page")
    @classmethod
    def _are_selectors(cls, selector: str | None) -> str | None:
        try:
            parsel.css2xpath(selector or "a")
        except (SyntaxError, ValueError) as error:
            raise ValueError(f"{selector!r} is no CSS selector: {error}") from error
        return selector

    @model_validator(mode="after")
    def _has_a_start(self) -> SchemaOrgSettings:
        if not self.site and not self.sitemaps and not self.categories:
            raise ValueError(
                "write `sitemaps`, `categories`, or `site` to find its sitemaps through its robots.txt"
            )
        if self.categories and not self.links:
            raise ValueError(
                "write `links`: the CSS selector of the links to products on the pages of `categories`"
            )
        return self


@dataclass(frozen=True, slots=True)
class Reading:
    """The part of the settings that `read` needs, as it comes out of a capture's config."""

    properties: Mapping[str, str] = field(default_factory=lambda: PROPERTIES)
    exclusions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    site_is_seller: bool = True

    def attribute_of(self, label: str, path: str = PROPERTY_PATHS[0]) -> str | None:
        """What a labelled property is kept under; None where it is left out."""
        name = f"{path}.{label}"
        return None if excluded(self.exclusions, name) else self.properties.get(folded(label))

    def disposition(self, name: str) -> Disposition | None:
        """What this source's own settings, or the names of properties, say of a stated name."""
        left_out = excluded(self.exclusions, name)
        if left_out is not None:
            return left_out
        path, _, label = name.partition(".")
        attribute = self.attribute_of(label, path) if path in PROPERTY_PATHS else None
        return None if attribute is None else Stored(attribute)


def reading(config: Mapping[str, object]) -> Reading:
    """Take it out of a capture's config again."""
    own = {folded(label): attribute for label, attribute in table(config, "properties").items()}
    return Reading(
        MappingProxyType({**PROPERTIES, **own}),
        MappingProxyType(table(config, "exclusions")),
        config.get("site_is_seller") is not False,
    )
