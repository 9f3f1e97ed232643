"""What a source of this adapter can be told, what of it opens a page, and what of it is pinned in each capture."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from parsel import css2xpath
from pydantic import Field, field_validator, model_validator

from prw_sdk.adapter import AdapterSettings, Disposition, Stored, naming
from prw_sdk.adapter.naming import AttributeNames, Exclusions, excluded, table

_PINNED = ("rows", "row_label", "row_value", "not_found", "statements", "labels", "exclusions")
_WITH_ATTRIBUTE = re.compile(r"(?P<css>.*\S)@(?P<attribute>[\w:-]+)", re.DOTALL)

SELECTORS: Mapping[str, str] = MappingProxyType(
    {
        "title": "h1",
        "price": ".price",
        "seller": 'meta[property="og:site_name"]@content',
        "image": 'meta[property="og:image"]@content',
        "description": 'meta[name="description"]@content',
    }
)
"""Where a page shows what, unless the settings say otherwise."""

POLICIES: Mapping[str, str] = MappingProxyType(
    {
        "shipping": 'a[href*="shipping"], a[href*="delivery"], a[href*="versand"], a[href*="envio"]',
        "returns": 'a[href*="return"], a[href*="retoure"], a[href*="widerruf"], a[href*="devolucion"]',
        "warranty": 'a[href*="warranty"], a[href*="garantie"], a[href*="gewaehrleistung"], a[href*="garantia"]',
    }
)
"""The links that lead from a product to the shop's policies."""


DATA_GLOB = "*/api/product*"
"""Where shops' own pages ask for what they show, unless the settings say otherwise."""


def split(selector: str) -> tuple[str, str | None]:
    """A selector without and with its attribute: ``img.main@src`` is the `src` of the first ``img.main``."""
    found = _WITH_ATTRIBUTE.fullmatch(selector.strip())
    return (found["css"], found["attribute"]) if found else (selector.strip(), None)


def _must_be_css(selector: str) -> None:
    try:
        css2xpath(split(selector)[0])
    except (SyntaxError, ValueError) as wrong:  # cssselect's errors are SyntaxErrors
        raise ValueError(f"{selector!r} is no CSS selector: {wrong}") from wrong


class RenderedShopSettings(AdapterSettings):
    """Where a shop's products are listed, and where their pages show what.

    Selectors are CSS; with ``@name`` behind it one means an attribute of the element, else its text.
    """

    lists: tuple[str, ...] = ()
    """Addresses of pages that list products."""
    links: str = "a.product"
    """The links of a list that lead to products."""
    next: str = 'a[rel="next"]'
    """The link of a list that leads to its next page; the first one counts."""
    lists_rendered: bool = True
    """Whether lists are opened in the browser too, which most need."""
    products: tuple[str, ...] = ()
    """Addresses of products besides those that are listed."""
    most_lists: int = Field(default=1000, ge=1)
    """So many pages of lists are followed; a shop with more of them is told so."""
    wait_for: str | None = None
    """What a product's page must come to show before it is taken; also what a page without one shows."""
    wait_for_list: str | None = None
    data: str | None = DATA_GLOB
    """A glob for the address of the page's own JSON answer that is kept as well; the first that fits."""
    selectors: Mapping[str, str] = Field(default_factory=dict)
    """Where a page shows ``title``, ``price``, …: added to what is known; an empty one means nowhere."""
    rows: str = "table tr"
    row_label: str = "th"
    row_value: str = "td"
    """Rows of labelled values; label and value are the first such element within a row."""
    not_found: str | None = None
    """What a page shows that is served as a product's and is none."""
    policies: Mapping[str, str] = Field(default_factory=dict)
    """Links to the pages of ``shipping``, ``returns`` and ``warranty``; an empty one means that it is left out."""
    statements: str = "main p, main li, main dd"
    """The single statements of a policy page."""
    labels: AttributeNames = Field(default_factory=dict)
    """More labels and names (``data.stock``), and the attribute each is kept under."""
    exclusions: Exclusions = Field(default_factory=dict)
    """Labels and names (patterns with ``*``) that records leave out, each with the reason; these win."""

    @field_validator("links", "next", "wait_for", "wait_for_list", "rows", "row_label", "row_value")
    @classmethod
    def _is_css(cls, selector: str | None) -> str | None:
        if selector is not None:
            _must_be_css(selector)
        return selector

    @field_validator("statements", "not_found")
    @classmethod
    def _is_css_too(cls, selector: str | None) -> str | None:
        return cls._is_css(selector)

    @field_validator("selectors", "policies")
    @classmethod
    def _are_css(cls, selectors: Mapping[str, str]) -> Mapping[str, str]:
        for selector in filter(None, selectors.values()):
            _must_be_css(selector)
        return selectors

    @field_validator("policies")
    @classmethod
    def _are_policies(cls, policies: Mapping[str, str]) -> Mapping[str, str]:
        unknown = sorted(policies.keys() - POLICIES)
        if unknown:
            raise ValueError(f"no policy is called {unknown[0]!r}: write {', '.join(POLICIES)}")
        return policies

    @model_validator(mode="after")
    def _has_a_start(self) -> RenderedShopSettings:
        if not self.lists and not self.products:
            raise ValueError(
                "write `lists`, the pages that list products, or `products` themselves"
            )
        return self


@dataclass(frozen=True, slots=True)
class Opening:
    """What is needed of the settings to open a product's page."""

    wait_for: str | None = None
    data: str | None = DATA_GLOB
    policies: Mapping[str, str] = field(default_factory=lambda: POLICIES)


def opening(settings: RenderedShopSettings) -> Opening:
    """The part of the settings that `fetch` needs."""
    chosen = {**POLICIES, **settings.policies}
    policies = {name: css for name, css in chosen.items() if css}
    return Opening(settings.wait_for, settings.data, MappingProxyType(policies))


@dataclass(frozen=True, slots=True)
class Reading:
    """The part of the settings that `read` needs, as it comes out of a capture's config."""

    selectors: Mapping[str, str] = field(default_factory=lambda: SELECTORS)
    rows: str = "table tr"
    row_label: str = "th"
    row_value: str = "td"
    not_found: str | None = None
    statements: str = "main p, main li, main dd"
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    exclusions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def disposition(self, name: str) -> Disposition | None:
        """What this source's own settings say of a stated name; a row goes by its label alone too."""
        for known in (name, name.removeprefix("specs.")):
            left_out = excluded(self.exclusions, known)
            if left_out is not None:
                return left_out
            if known in self.labels:
                return Stored(self.labels[known])
        return None


def pinned(settings: RenderedShopSettings) -> dict[str, object]:
    """What is pinned in each capture (JSON values)."""
    chosen = {**SELECTORS, **settings.selectors}
    selectors = {name: css for name, css in chosen.items() if css}
    return {**naming.pinned(settings, *_PINNED), "selectors": selectors}


def reading(config: Mapping[str, object]) -> Reading:
    """Take it out of a capture's config again."""
    usual, not_found = Reading(), config.get("not_found")
    return Reading(
        selectors=table(config, "selectors") or usual.selectors,
        rows=str(config.get("rows", usual.rows)),
        row_label=str(config.get("row_label", usual.row_label)),
        row_value=str(config.get("row_value", usual.row_value)),
        not_found=not_found if isinstance(not_found, str) else None,
        statements=str(config.get("statements", usual.statements)),
        labels=table(config, "labels"),
        exclusions=table(config, "exclusions"),
    )
