"""Numbers as people and machines write them, always as decimals.

A separator that can be read in two ways is decided by the page's locale; where that cannot decide either, the number
is unreadable. Nothing here ever passes through a binary fraction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from babel import Locale, UnknownLocaleError
from babel.numbers import get_decimal_symbol, get_group_symbol

from prw_resolver.vocabulary.statement import Unreadable

_SPACES = "\u0020\u00a0\u2009\u202f"
_TICKS = "'’"
_NUMERAL = re.compile(
    rf"[0-9]{{1,3}}(?:[{_SPACES}{_TICKS}][0-9]{{3}})+(?![0-9])(?:[.,][0-9]+)?|[.,]?[0-9](?:[0-9.,]*[0-9])?"
)
_GROUPING = re.compile(rf"[{_SPACES}{_TICKS}]")
_GROUPED = re.compile(r"[0-9]{1,3}(?:[.,][0-9]{3})+")


@dataclass(frozen=True, slots=True)
class Numeral:
    """A run of digits and separators in a text, and where it stands."""

    text: str
    start: int
    end: int


def numerals(text: str) -> Iterator[Numeral]:
    """Every number written in the text, from left to right."""
    for match in _NUMERAL.finditer(text):
        yield Numeral(match.group(), match.start(), match.end())


@lru_cache(maxsize=256)
def separators(locale: str) -> tuple[str, str]:
    """The decimal and the grouping separator of a locale; two empty strings where the locale is unknown."""
    try:
        found = Locale.parse(locale.replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        return "", ""
    return get_decimal_symbol(found), get_group_symbol(found)


def read_number(text: str, locale: str, *, machine: bool = False) -> Decimal:
    """One numeral as a decimal; raises `Unreadable` where its separators fit no way of writing.

    In machine form the point is the decimal separator unless it plainly isn't; otherwise the locale decides what a
    single separator before three digits is.
    """
    bare = _GROUPING.sub("", text)
    points, commas = bare.count("."), bare.count(",")
    if points and commas:
        return _both(bare)
    if points + commas > 1:
        return _grouped(bare)
    if points + commas == 0:
        return Decimal(bare)
    return _single(bare, locale, machine=machine)


def _both(bare: str) -> Decimal:
    decimal = max(".", ",", key=bare.rfind)
    whole, _, fraction = bare.rpartition(decimal)
    if decimal in whole:
        raise Unreadable("the separators fit no way of writing a number")
    return Decimal(f"{_grouped(whole)}.{fraction}")


def _grouped(bare: str) -> Decimal:
    if not _GROUPED.fullmatch(bare) or ("." in bare and "," in bare):
        raise Unreadable("the groups do not have three digits")
    return Decimal(bare.replace(".", "").replace(",", ""))


def _single(bare: str, locale: str, *, machine: bool) -> Decimal:
    separator = "." if "." in bare else ","
    whole, _, fraction = bare.partition(separator)
    as_decimal = Decimal(f"{whole or '0'}.{fraction}")
    if len(fraction) != 3 or not _GROUPED.fullmatch(bare) or whole == "0":
        return as_decimal
    if machine and separator == ".":
        return as_decimal
    decimal, group = separators(locale)
    if separator == decimal:
        return as_decimal
    if separator == group:
        return Decimal(whole + fraction)
    raise Unreadable("the locale does not say what the separator is")
