"""The query parameters of the HTTP API: filters are read here, and what is not known is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated

from fastapi import Query, Request

from prw.errors import Code, PrwError
from prw_product.serve.model import MAX_PAGE, MAX_TEXT

_ATTRIBUTE = re.compile(r"attr\[(?P<key>[^\[\]]+)\]")

ATTR_PARAMETER = {
    "name": "attr",
    "in": "query",
    "style": "deepObject",
    "explode": True,
    "description": "attr[key]=value: only items with this value, canonical or as people write it "
    "(attr[storage:capacity]=1 TB). At most 16.",
    "schema": {"type": "object", "additionalProperties": {"type": "string", "maxLength": MAX_TEXT}},
}
PageSize = Annotated[
    int,
    Query(
        ge=0,
        le=MAX_PAGE,
        description="At most so many; 0 for 50. A page of long texts ends sooner.",
    ),
]
PageToken = Annotated[
    str, Query(max_length=MAX_TEXT, description="Token of the previous page, or empty.")
]
ClassId = Annotated[
    str | None, Query(alias="class", max_length=128, description="Only this class.")
]


def only(*names: str, attributes: bool = False) -> Callable[[Request], None]:
    """A dependency that refuses every parameter but these, and one of these that is there twice.

    ``attributes`` allows attr[key] too.
    A parameter that is not understood would otherwise be a filter that lets everything through.
    """

    known = (*names, *(["attr[key]"] if attributes else []))

    def check(request: Request) -> None:
        given = [name for name, _ in request.query_params.multi_items()]
        for name in given:
            if name not in names and not (attributes and _ATTRIBUTE.fullmatch(name)):
                raise PrwError(Code.VALIDATION_FAILED, _unknown(name, known), field=name[:100])
            if given.count(name) > 1:
                raise PrwError(Code.VALIDATION_FAILED, f"{name} is there twice", field=name)

    return check


def _unknown(name: str, known: tuple[str, ...]) -> str:
    if "attr[key]" in known and re.match(r"attr(?:$|\[)", name):
        return "an attribute is asked for as attr[key]=value"
    return f"{name[:100]} is no parameter of this; there are: {', '.join(known) or 'none'}"


def attribute_filters(request: Request) -> dict[str, str]:
    """The ``attr[key]=value`` parameters, each of which ``only`` has found once."""
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        match = _ATTRIBUTE.fullmatch(name)
        if match is not None:
            found[match["key"]] = value
    return found
