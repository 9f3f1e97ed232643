"""Quoting evidence: the text of a part around the place that a claim's locator leads to."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass

import parsel
from lxml import etree

from prw_sdk.evidence import Claim, Part, Selector, SelectorType
from prw_sdk.locate import fold, json_span, resolve

BEFORE, AFTER = 48, 48
"""Characters quoted on either side."""

_NO_TEXT = ("image/", "video/", "audio/", "font/", "application/pdf")


@dataclass(frozen=True, slots=True)
class Quote:
    """The text before a value, the value as it is written there, what follows, and its line (from 1)."""

    before: str
    value: str
    after: str
    line: int


def leads_to(claim: Claim, part: Part) -> bool:
    """Whether the locator finds the value as stated."""
    found = resolve(part, claim.locator.selector)
    return found is not None and fold(found) == fold(claim.value_as_stated)


def quoted(claim: Claim, part: Part) -> Quote | None:
    """What stands around a claim's value; None where that cannot be shown (no text, or the locator leads nowhere)."""
    if part.media_type.lower().startswith(_NO_TEXT) or not leads_to(claim, part):
        return None
    text = part.text()
    start, end = _narrowed(part, text, claim.locator.selector)
    place = _place(text, claim.value_as_stated, start, end)
    if place is None:
        return None
    first, last = place
    return Quote(
        text[max(0, first - BEFORE) : first],
        text[first:last],
        text[last : last + AFTER],
        text.count("\n", 0, first) + 1,
    )


def _narrowed(part: Part, text: str, selector: Selector | None) -> tuple[int, int]:
    """The stretch of the text in which the value stands, as far as the selector tells."""
    start, end, within = 0, len(text), None
    while selector is not None:
        if selector.type in (SelectorType.CSS, SelectorType.XPATH) and within is None:
            start = _line_start(text, _line_of(text, selector))
            within = resolve(part, Selector(selector.type, selector.value, selector.attribute))
        elif selector.type is SelectorType.JSON_POINTER:
            document = text if within is None else within
            at = text.find(document, start)
            span = json_span(document, selector.value)
            if span is not None and at >= 0:
                start, end = at + span[0], at + span[1]
        selector = selector.refined_by
    return start, end


def _line_of(text: str, selector: Selector) -> int:
    """The line (from 1) of the element that a selector of markup finds."""
    path = parsel.css2xpath(selector.value) if selector.type is SelectorType.CSS else selector.value
    skipped = text[: len(text) - len(text.lstrip("\ufeff \t\r\n"))].count("\n")
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True)
    try:
        tree = etree.fromstring(text.lstrip("\ufeff \t\r\n").encode("utf-8", "replace"), parser)
        found = tree.xpath(path)
    except (etree.LxmlError, ValueError, AttributeError):
        return 1
    first = found[0] if isinstance(found, list) and found else found
    element = first if isinstance(first, etree._Element) else _parent(first)
    line: object = getattr(element, "sourceline", None)
    return line + skipped if isinstance(line, int) else 1


def _parent(found: object) -> etree._Element | None:
    get = getattr(found, "getparent", None)
    parent = get() if callable(get) else None
    return parent if isinstance(parent, etree._Element) else None


def _line_start(text: str, line: int) -> int:
    at = 0
    for _ in range(line - 1):
        found = text.find("\n", at)
        if found < 0:
            return at
        at = found + 1
    return at


def _place(text: str, value: str, start: int, end: int) -> tuple[int, int] | None:
    """Where the value is written; markup and JSON write some characters otherwise."""
    written = json.dumps(value, ensure_ascii=False)[1:-1]
    ways = (value, written, json.dumps(value)[1:-1], html.escape(value), html.escape(value, False))
    for way in dict.fromkeys(ways):
        at = text.find(way, start, end) if way else -1
        if at >= 0:
            return at, at + len(way)
    if end < len(text):
        # a JSON value is the whole stretch, however its characters are escaped
        quotes = int(text[start : start + 1] == '"')
        return start + quotes, end - quotes
    words = r"\s+".join(map(re.escape, value.split()))
    folded = re.compile(words).search(text, start) if words else None
    return None if folded is None else folded.span()
