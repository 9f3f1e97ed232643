"""The example street's values: what exists, who sells it, and what each page states about it.

Pure: nothing here reads a file or renders a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


class Condition(StrEnum):
    """The condition of an article; the value is the start of its schema.org name."""

    NEW = "new"
    REFURBISHED = "refurbished"
    USED = "used"


class Fact(StrEnum):
    """What a page can state as data about a listing's article, apart from its title and offer."""

    GTIN = "gtin"
    GTIN14 = "gtin14"
    MPN = "mpn"
    CAPACITY = "capacity"
    HEATSINK = "heatsink"
    CONDITION = "condition"
    PACK = "pack"


class Form(StrEnum):
    """How a page marks up its product; all but the last three are JSON-LD."""

    JSONLD = "jsonld"
    GRAPH = "jsonld_graph"
    OFFERS = "jsonld_offers"
    AGGREGATE = "jsonld_aggregate"
    GROUP = "jsonld_group"
    MICRODATA = "microdata"
    BROKEN = "broken_jsonld"
    OPENGRAPH = "opengraph"


class Kind(StrEnum):
    """A sitemap entry that is no product page."""

    TEXT = "text"
    GONE = "gone"
    REDIRECT = "redirect"


@dataclass(frozen=True, slots=True)
class Product:
    """One canonical product: two listings are the same exactly when they carry the same `key`.

    `capacity_gb` is in decimal gigabytes; `heatsink` is None where the article's kind has none to
    speak of; `pack` counts pieces. A bundle or a refurbished one carries the GTIN and MPN of the
    single new article.
    """

    key: str
    brand: str
    family: str
    name: str
    mpn: str
    gtin: str
    capacity_gb: int
    heatsink: bool | None = None
    condition: Condition = Condition.NEW
    pack: int = 1


@dataclass(frozen=True, slots=True)
class Listing:
    """One merchant's offer on one page; `mpn` and `capacity` are as the page has them."""

    product: Product
    sku: str
    seller: str
    price: Decimal
    title: str
    mpn: str
    capacity: str
    states: frozenset[Fact]
    in_stock: bool = True
    stale_mpn_of: str | None = None

    def stated(self, fact: Fact) -> bool:
        """Whether the page states `fact` as data; HEATSINK only where the product knows of one."""
        known = fact is not Fact.HEATSINK or self.product.heatsink is not None
        return known and fact in self.states

    def hinted(self) -> frozenset[Fact]:
        """What differs from the default (new, one piece) without being stated as data."""
        product = self.product
        unusual = {
            Fact.CONDITION: product.condition is not Condition.NEW,
            Fact.PACK: product.pack != 1,
        }
        return frozenset(
            fact for fact, differs in unusual.items() if differs and not self.stated(fact)
        )


@dataclass(frozen=True, slots=True)
class Page:
    """One product page; `unavailable_once` makes its first answer a 503 with `Retry-After: 1`."""

    path: str
    form: Form
    title: str
    listings: tuple[Listing, ...]
    encoding: str = "utf-8"
    price_as_text: bool = False
    unavailable_once: bool = False


@dataclass(frozen=True, slots=True)
class Other:
    """A sitemap entry that is no product page; `location` is where a redirect points."""

    path: str
    kind: Kind
    title: str = ""
    location: str = ""


@dataclass(frozen=True, slots=True)
class Shop:
    """One storefront, which is one source. `trusted` shops may introduce items."""

    id: str
    host: str
    name: str
    language: str
    locale: str
    currency: str
    trusted: bool
    schema: str
    forbids: tuple[str, ...]
    pages: tuple[Page, ...]
    others: tuple[Other, ...]

    def url(self, path: str) -> str:
        """The public address of a path. It names no port: collectors map the host to one."""
        return f"http://{self.host}{path}"

    def forbidden(self, path: str) -> bool:
        """Whether the shop's robots.txt forbids the path (RFC 9309)."""
        return path.startswith(self.forbids)

    def allowed_pages(self) -> Iterator[Page]:
        """The product pages that a polite collector may fetch."""
        return (page for page in self.pages if not self.forbidden(page.path))


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The whole street."""

    products: Mapping[str, Product]
    shops: tuple[Shop, ...]

    def shop(self, source_id: str) -> Shop:
        """The shop of a source id; KeyError if there is none."""
        return {shop.id: shop for shop in self.shops}[source_id]
