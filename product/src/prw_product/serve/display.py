"""Canonical values as people write them, and back where they filter by them."""

from __future__ import annotations

import re
from decimal import Decimal
from urllib.parse import urlsplit

from prw_base.canonical import decimal_text
from prw_product.publish.model import Attribute

_BYTE_UNITS = frozenset({"By", "B"})
_SIZES = tuple(
    (name, Decimal(1000) ** power)
    for name, power in (("PB", 5), ("TB", 4), ("GB", 3), ("MB", 2), ("kB", 1))
)
_BINARY = tuple(
    (name, Decimal(1024) ** power)
    for name, power in (("PiB", 5), ("TiB", 4), ("GiB", 3), ("MiB", 2), ("KiB", 1))
)
_FACTORS = {name.lower(): factor for name, factor in (*_SIZES, *_BINARY)}
_SIZE = re.compile(r"(?P<number>\d{1,12}(?:[.,]\d{1,6})?)\s*(?P<unit>[kmgtp]i?b)", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?")
_SIGNS = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥"}
_WHOLE = frozenset({"JPY", "KRW"})
_TRUTH = {"true": "Yes", "false": "No"}
_FALSE_AND_TRUE = {"yes": "true", "no": "false"}
_INITIALS = frozenset({"gtin", "mpn", "sku", "ssd", "hdd", "url", "id"})
_CODES = frozenset({"core:gtin", "core:mpn", "core:sku"})


def value_text(attribute: Attribute) -> str:
    """The value for people: ``1 TB``, ``Yes``, ``Open box``; codes stay as they are."""
    value = attribute.value
    if attribute.unit in _BYTE_UNITS and _NUMBER.fullmatch(value):
        return _size_text(Decimal(value))
    if attribute.unit:
        return f"{value} {attribute.unit}"
    if value in _TRUTH:
        return _TRUTH[value]
    if attribute.key in _CODES:
        return value
    return _brand(value) if attribute.key == "core:brand" else sentence(value)


def _size_text(size: Decimal) -> str:
    for name, factor in (*_SIZES, *_BINARY):
        number = size / factor
        if number >= 1 and number == number.quantize(Decimal("0.01")):
            return f"{decimal_text(number)} {name}"
    return f"{decimal_text(size)} bytes"


def _brand(value: str) -> str:
    if value != value.lower():
        return value
    return " ".join(word.upper() if len(word) <= 2 else word.capitalize() for word in value.split())


def sentence(value: str) -> str:
    """A word of the vocabulary as text: ``open_box`` is *Open box*; other text stays as it is."""
    if not re.fullmatch(r"[a-z0-9_]+", value):
        return value
    words = [word.upper() if word in _INITIALS else word for word in value.split("_")]
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def label(key: str) -> str:
    """A definition's key as a heading: ``storage:form_factor`` is *Form factor*."""
    return sentence(key.rpartition(":")[2])


def money_text(amount: str | None, currency: str | None) -> str:
    """``€129.90``, ``CHF 129.90``, or nothing where no price was stated."""
    if amount is None or currency is None:
        return ""
    number = Decimal(amount)
    exact = -int(number.normalize().as_tuple().exponent)
    places = max(exact, 0 if currency in _WHOLE else 2)
    text = f"{number:,.{places}f}"
    return f"{_SIGNS[currency]}{text}" if currency in _SIGNS else f"{currency} {text}"


def spellings(text: str) -> list[tuple[str, str | None]]:
    """Canonical values that a filter's text may mean, each with its unit, or None for any unit.

    ``1 TB`` means 1,000,000,000,000 bytes, and ``yes`` is ``true``; each text also means itself.
    """
    found: list[tuple[str, str | None]] = [(text, None)]
    size = _SIZE.fullmatch(text.strip())
    if size is not None:
        number = Decimal(size["number"].replace(",", ".")) * _FACTORS[size["unit"].lower()]
        found += [(decimal_text(number), unit) for unit in sorted(_BYTE_UNITS)]
    folded = text.strip().casefold()
    canonical = _FALSE_AND_TRUE.get(folded, folded.replace(" ", "_"))
    return found + [(other, None) for other in {canonical, folded} - {text}]


def is_web_address(url: str) -> bool:
    """Whether a stated address may become a link: http or https only."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def site(url: str) -> str:
    """The host that a stated web address names: where a listing stands, which need not be its merchant's."""
    return urlsplit(url).hostname or ""
