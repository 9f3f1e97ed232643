"""Identifiers: GTIN and ISBN, manufacturers' part numbers, brands."""

from __future__ import annotations

import re

from stdnum import ean, isbn
from stdnum.exceptions import ValidationError

from prw_resolver.vocabulary.definitions import AttributeDefinition
from prw_resolver.vocabulary.statement import Reading, Statement, Unreadable, fold, says_nothing

_LABEL = re.compile(r"^(?:gtin|ean|upc|jan|isbn)[- ]?(?:8|1[0234]|a)?\s*[:#]\s*", re.IGNORECASE)
_GTIN_LENGTHS = (8, 12, 13, 14)
_RESTRICTED = re.compile(r"^(?:02|04|05|2|98[0-4]|99)")
_RESTRICTED_GTIN8 = re.compile(r"^[02]")
_MPN_DROPPED = re.compile(r"[\s\-‐‑‒–—_]+")
_BRAND_MARKS = re.compile(r"[®™©\"'’.,]+")
_DASHES = re.compile(r"[\-‐‑‒–—_]+")
_PLAIN_WORD = re.compile(r"[(\"']?[^\W\d_]?[^\W\d_A-Z]{3,}[)\"',:.]*")


def gtin(statement: Statement, definition: AttributeDefinition) -> Reading | None:
    """A GTIN-8, -12, -13, -14 or ISBN as 14 digits (GS1 General Specifications, 7.9).

    The check digit must hold. Numbers that GS1 sets aside for use inside a company or a region, for coupons, and for
    variable measure identify nothing outside the shop and are refused, as are numbers made of one digit.
    """
    text = fold(statement.text)
    if says_nothing(text, definition):
        return None
    bare = _LABEL.sub("", text).strip("()[] \t").replace("-", "").replace(" ", "")
    if not re.fullmatch(r"[0-9]{7,14}|[0-9]{9}[xX]", bare):
        raise Unreadable("not the digits of a GTIN")
    digits = _checked(bare)
    if len(set(digits[:-1])) == 1 or says_nothing(digits.lstrip("0"), definition):
        return None
    if _restricted(digits):
        raise Unreadable("a number for use inside a company or region")
    return Reading(digits.zfill(14))


def _checked(bare: str) -> str:
    try:
        if len(bare) == 10:
            return isbn.to_isbn13(isbn.validate(bare))
        if len(bare) not in _GTIN_LENGTHS:
            raise Unreadable(f"{len(bare)} digits are no GTIN")
        return ean.validate(bare)
    except ValidationError as error:
        raise Unreadable("the check digit is wrong") from error


def _restricted(digits: str) -> bool:
    if len(digits) == 8:
        return bool(_RESTRICTED_GTIN8.match(digits))
    return bool(_RESTRICTED.match(digits.zfill(14)[1:]))


def mpn(statement: Statement, definition: AttributeDefinition) -> Reading | None:
    """A part number in capitals without spaces and dashes, so that ``mz-v7s1t0bw`` is ``MZV7S1T0BW``.

    What reads as words is the name of a model, a colour or a series, which many articles share: ``Matte White``,
    ``HP 2600 Series``.
    """
    text = fold(statement.text)
    if says_nothing(text, definition):
        return None
    bare = _MPN_DROPPED.sub("", text).upper().strip("\"'`()[]")
    if says_nothing(bare, definition) or not re.search(r"[0-9A-Z]", bare):
        return None
    if _is_words(text):
        raise Unreadable("words, and no part number")
    if len(bare) < 2 or len(set(bare)) == 1:
        raise Unreadable("too short for a part number")
    if len(bare) > 70:
        raise Unreadable("too long for a part number")
    return Reading(bare)


def _is_words(text: str) -> bool:
    """Several words without a digit, or three and more of which one is a plain word."""
    words = text.split()
    if len(words) > 1 and not re.search(r"[0-9]", text):
        return True
    return len(words) > 2 and any(_PLAIN_WORD.fullmatch(word) for word in words)


def brand(statement: Statement, definition: AttributeDefinition) -> Reading | None:
    """A brand in small letters without dashes and legal form, under the name that the definition's aliases give."""
    text = fold(statement.text)
    if says_nothing(text, definition):
        return None
    words = _DASHES.sub(" ", _BRAND_MARKS.sub("", text.casefold())).split()
    while len(words) > 1 and words[-1] in definition.suffixes:
        words.pop()
    name = " ".join(words)
    if says_nothing(name, definition):
        return None
    return Reading(definition.aliases.get(name, name))
