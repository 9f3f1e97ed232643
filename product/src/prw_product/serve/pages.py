"""The catalogue as plain pages: a list, and each item with its offers. No script, nothing foreign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from importlib import resources
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from prw.errors import PrwError
from prw_product.publish.model import Attribute
from prw_product.serve import display
from prw_product.serve.model import MAX_TEXT, Item, ItemQuery
from prw_product.serve.service import Catalogue

_SHOWN_IN_BRIEF = ("core:brand", "storage:capacity", "core:condition")
Token = Annotated[str, Query(max_length=MAX_TEXT)]


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("prw_product.serve", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "value_text": display.value_text,
        "label": display.label,
        "sentence": display.sentence,
        "site": display.site,
    }
    made.tests["web_address"] = display.is_web_address
    made.globals |= {
        "money": display.money_text,
        "from_prices": _from_prices,
        "brief": _brief,
        "counted": _counted,
    }
    return made


def make_pages(catalogue: Catalogue) -> APIRouter:
    """The pages of ``catalogue``, each escaped and usable without styles."""
    pages = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
    environment = _environment()
    style = resources.files("prw_product.serve").joinpath("templates", "style.css").read_bytes()

    def render(name: str, **values: Any) -> HTMLResponse:
        return HTMLResponse(environment.get_template(name).render(**values))

    @pages.get("/")
    async def list_page(page_token: Token = "") -> Response:
        page = await catalogue.list_items(ItemQuery(page_token=page_token))
        counts = await catalogue.count()
        return render("list.html", page=page, counts=counts, first=not page_token)

    @pages.get("/items/{item_id}")
    async def item_page(item_id: str) -> Response:
        return render("item.html", item=await catalogue.get_item(item_id))

    @pages.get("/style.css")
    async def style_sheet() -> Response:
        return Response(style, media_type="text/css", headers={"Cache-Control": "max-age=3600"})

    return pages


def error_page(error: PrwError, headers: Mapping[str, str]) -> Response:
    """``error`` for a person's browser."""
    text = _environment().get_template("error.html").render(error=error)
    return HTMLResponse(text, error.entry.http, dict(headers))


def _from_prices(item: Item) -> list[str]:
    """The lowest stated price in each currency."""
    lowest: dict[str, Decimal] = {}
    for offer in item.offers:
        if offer.price_amount is not None and offer.price_currency is not None:
            amount = Decimal(offer.price_amount)
            lowest[offer.price_currency] = min(lowest.get(offer.price_currency, amount), amount)
    return [display.money_text(str(amount), code) for code, amount in sorted(lowest.items())]


def _brief(item: Item) -> str:
    """What tells one item from another at a glance: near misses differ in nothing else."""
    held = {attribute.key: attribute for attribute in item.attributes}
    plain = [display.value_text(held[key]) for key in _SHOWN_IN_BRIEF if key in held]
    stated = [display.sentence(item.class_id), *plain, *_particulars(held)]
    return " · ".join(_together(text) for text in stated if text)


def _particulars(held: Mapping[str, Attribute]) -> Iterator[str]:
    if "storage:heatsink" in held and held["storage:heatsink"].value == "true":
        yield "with heatsink"
    if "core:pack_quantity" in held and held["core:pack_quantity"].value != "1":
        yield f"pack of {held['core:pack_quantity'].value}"


def _together(text: str) -> str:
    """The text without a place to break a line."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
