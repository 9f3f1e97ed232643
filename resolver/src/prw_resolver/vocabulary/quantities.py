"""Capacities, pack quantities, truth values."""

from __future__ import annotations

import re
from decimal import Decimal

from prw_base.canonical import decimal_text
from prw_resolver.vocabulary.definitions import AttributeDefinition
from prw_resolver.vocabulary.numerals import read_number
from prw_resolver.vocabulary.statement import Reading, Statement, Unreadable, fold, says_nothing

_SCHEMA_ORG = re.compile(r"^(?:(?:https?:)?(?://)?(?:www\.)?schema\.org/|schema:)", re.IGNORECASE)
_LETTERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_WORDS = {"byte": "", "kilo": "k", "mega": "m", "giga": "g", "tera": "t", "peta": "p"}
_CAPACITY = re.compile(
    r"(?P<number>[0-9][0-9.,'’ ]*)\s*"
    r"(?:(?P<letter>[kmgtp]?)(?P<binary>i?)(?:b|o)|(?P<word>kilo|mega|giga|tera|peta)(?:bytes?|octets?))",
    re.IGNORECASE,
)
_PIECES = (
    r"packs?|pk|set|bundle|stücke?|stk\.?|st\.?|pcs?\.?|pieces?|count|ct|units?|unidades?|uds?\.?|piezas?"
    r"|teile|packung(?:en)?"
)
_BUNDLE = r"pack|set|bundle|box|case|lot|paket|packung|paquete|juego|conjunto|lote"
_PACKS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<n>\w+)",
        r"(?P<n>[0-9]+)\s*[x×]",
        r"[x×]\s*(?P<n>[0-9]+)",
        r"(?P<n>[0-9]+)\s*[x×*]\s*[0-9].*",
        rf"(?P<n>[0-9]+)(?:er|-?fach)?[-\s]*(?:{_PIECES})",
        r"(?P<n>[a-zäöüñ]+)[-\s]+(?:pack|set|bundle|stück|pieces?|units?|unidades)",
        rf"(?:{_BUNDLE})\s+(?:of|with|von|mit|à|a|de|con)\s+(?P<n>\w+)(?:\s+(?:stück|pieces?|units?|unidades))?",
        r"(?P<n>single|einzeln|individual|doppelpack|zweierpack|dreierpack|twin[-\s]?pack|double[-\s]?pack)",
    )
)
_MOST = 1000


def capacity(statement: Statement, definition: AttributeDefinition) -> Reading | None:
    """A storage capacity in bytes (UCUM ``By``): GB is 10⁹, GiB is 2³⁰ (IEC 80000-13)."""
    text = fold(statement.text)
    if says_nothing(text, definition):
        return None
    match = _CAPACITY.fullmatch(text)
    if match is None:
        raise Unreadable("not a number with a unit of bytes")
    number = read_number(match["number"].strip(), statement.locale)
    letter = _WORDS[match["word"].lower()] if match["word"] else match["letter"].lower()
    factor = Decimal(1024 if match["binary"] else 1000) ** _LETTERS[letter]
    size = number * factor
    if size <= 0 or size != size.to_integral_value():
        raise Unreadable("not a whole number of bytes")
    return Reading(decimal_text(size), "By")


def pack_quantity(statement: Statement, definition: AttributeDefinition) -> Reading | None:
    """How many of the article are sold together, 1 to 1000: ``2er-Pack``, ``Pack of 2``, ``2 Stück``, ``4 x 25g``."""
    text = fold(statement.text)
    if says_nothing(text, definition):
        return None
    for pattern in _PACKS:
        match = pattern.fullmatch(text)
        number = _count(match["n"], definition) if match else None
        if number is not None:
            return Reading(str(number))
    raise Unreadable("not a number of pieces")


def _count(word: str, definition: AttributeDefinition) -> int | None:
    if re.fullmatch(r"[0-9]{1,4}", word):
        number = int(word)
        return number if 1 <= number <= _MOST else None
    folded = word.casefold().replace(" ", "-")
    return next((int(n) for n, words in definition.words.items() if folded in words), None)


def boolean(statement: Statement, definition: AttributeDefinition) -> Reading | None:
    """``true`` or ``false``, by the definition's words for each."""
    return word(statement, definition)


def word(statement: Statement, definition: AttributeDefinition) -> Reading | None:
    """One of the definition's canonical values, by its words; an address of schema.org counts by its last segment."""
    text = fold(statement.text)
    if says_nothing(text, definition):
        return None
    folded = (
        re.sub(r"^https?://schema\.org/", "", text, flags=re.IGNORECASE).casefold().strip(" .!/")
    )
    for value, words in definition.words.items():
        if folded == value or folded in {held.casefold() for held in words}:
            return Reading(value)
    raise Unreadable("not one of the words that are known")


def state(statement: Statement, definition: AttributeDefinition) -> Reading | None:
    """As `word`, however the words are joined: ``in-stock``, ``IN_STOCK``, ``InStock`` and ``in stock`` are one.

    Addresses of schema.org count by their last segment, with ``www.``, without a scheme, and as ``schema:InStock``.
    """
    text = fold(statement.text)
    if says_nothing(text, definition):
        return None
    folded = _joined(_SCHEMA_ORG.sub("", text))
    for value, words in definition.words.items():
        if folded in {_joined(held) for held in (value, *words)}:
            return Reading(value)
    raise Unreadable("not one of the words that are known")


def _joined(text: str) -> str:
    return re.sub(r"[-_\s\u2010\u2011]+", "", text).casefold().strip(".!/")
