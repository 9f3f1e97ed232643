"""Read the street's definition from the packaged TOML files."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from prw_examples.street.model import (
    Catalogue,
    Condition,
    Fact,
    Form,
    Kind,
    Listing,
    Other,
    Page,
    Product,
    Shop,
)

Table = Mapping[str, Any]

SHOPS = ("lumen", "halden", "bazaarline")
USUALLY_STATED = "gtin mpn capacity heatsink condition"


@cache
def load_catalogue() -> Catalogue:
    """The street as packaged; always the same value."""
    products = _products(_read("products")["product"])
    return Catalogue(products, tuple(_shop(_read(name), products) for name in SHOPS))


def _read(name: str) -> Table:
    text = files("prw_examples.street").joinpath("catalogue", f"{name}.toml").read_text("utf-8")
    return tomllib.loads(text)


def _products(rows: list[Table]) -> dict[str, Product]:
    plain = {row["key"]: row for row in rows if "of" not in row}
    return {
        row["key"]: _product({**plain[row["of"]], **row} if "of" in row else row) for row in rows
    }


def _product(row: Table) -> Product:
    return Product(
        key=row["key"],
        brand=row["brand"],
        family=row["family"],
        name=row["name"],
        mpn=row["mpn"],
        gtin=row["gtin"],
        capacity_gb=row["capacity_gb"],
        heatsink=row.get("heatsink"),
        condition=Condition(row.get("condition", "new")),
        pack=row.get("pack", 1),
    )


def _shop(row: Table, products: Mapping[str, Product]) -> Shop:
    return Shop(
        id=row["id"],
        host=row["host"],
        name=row["name"],
        language=row["language"],
        locale=row["locale"],
        currency=row["currency"],
        trusted=row["trusted"],
        schema=row["schema"],
        forbids=tuple(row["forbids"]),
        pages=tuple(_page(page, row["name"], products) for page in row["page"]),
        others=tuple(_other(other) for other in row["other"]),
    )


def _other(row: Table) -> Other:
    return Other(row["path"], Kind(row["kind"]), row.get("title", ""), row.get("location", ""))


def _page(row: Table, shop: str, products: Mapping[str, Product]) -> Page:
    defaults = {"title": row["title"], "seller": shop}
    return Page(
        path=row["path"],
        form=Form(row["form"]),
        title=row["title"],
        listings=tuple(_listing({**defaults, **item}, products) for item in row["listings"]),
        encoding=row.get("encoding", "utf-8"),
        price_as_text=row.get("price_as_text", False),
        unavailable_once=row.get("trouble") == "unavailable_once",
    )


def _listing(row: Table, products: Mapping[str, Product]) -> Listing:
    product = products[row["product"]]
    stale = row.get("stale_mpn_of")
    return Listing(
        product=product,
        sku=row["sku"],
        seller=row["seller"],
        price=Decimal(row["price"]),
        title=row["title"],
        mpn=products[stale].mpn if stale else row.get("mpn", product.mpn),
        capacity=row.get("capacity", capacity_text(product.capacity_gb)),
        states=frozenset(Fact(word) for word in row.get("states", USUALLY_STATED).split()),
        in_stock=row.get("stock", "in") == "in",
        stale_mpn_of=stale,
    )


def capacity_text(gigabytes: int) -> str:
    """How shops write a capacity: whole terabytes (1 TB is 1000 GB) as such, else gigabytes."""
    terabytes, rest = divmod(gigabytes, 1000)
    return f"{gigabytes} GB" if rest else f"{terabytes} TB"
