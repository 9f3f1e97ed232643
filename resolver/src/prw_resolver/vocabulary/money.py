"""Amounts of money, by the page's locale, and the currency that goes with them."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

from babel import Locale, UnknownLocaleError
from babel.numbers import get_currency_precision, get_territory_currencies, list_currencies

from prw_base.canonical import decimal_text
from prw_resolver.vocabulary.definitions import AttributeDefinition
from prw_resolver.vocabulary.numerals import Numeral, numerals, read_number
from prw_resolver.vocabulary.statement import Reading, Statement, Unreadable, fold, says_nothing

_DOLLARS = ("USD", "CAD", "AUD", "NZD", "SGD", "HKD", "TWD", "MXN", "ARS", "CLP", "COP")
_SIGNS: dict[str, tuple[str, ...]] = {
    "US$": ("USD",),
    "CA$": ("CAD",),
    "C$": ("CAD",),
    "A$": ("AUD",),
    "AU$": ("AUD",),
    "NZ$": ("NZD",),
    "HK$": ("HKD",),
    "S$": ("SGD",),
    "R$": ("BRL",),
    "MX$": ("MXN",),
    "$": _DOLLARS,
    "€": ("EUR",),
    "Euro": ("EUR",),
    "£": ("GBP",),
    "₤": ("GBP",),
    "¥": ("JPY", "CNY"),
    "元": ("CNY",),
    "円": ("JPY",),
    "₩": ("KRW",),
    "원": ("KRW",),
    "₹": ("INR",),
    "₽": ("RUB",),
    "руб": ("RUB",),
    "₺": ("TRY",),
    "zł": ("PLN",),
    "Kč": ("CZK",),
    "Ft": ("HUF",),
    "Rp": ("IDR",),
    "₫": ("VND",),
    "Fr.": ("CHF",),
    "kr": ("SEK", "NOK", "DKK", "ISK"),
}
_SIGN = re.compile(
    "|".join(
        [re.escape(sign) for sign in sorted(_SIGNS, key=len, reverse=True)]
        + [r"(?<![A-Za-z])[A-Z]{3}(?![A-Za-z])"]
    )
)
_NEAR = 2
_MOST = Decimal(10) ** 15
_PLACES = 4
_GOES_ON = re.compile(r"[.,]\s+[0-9]|\s*(?:to|bis|a|-|–|—)\s*[^0-9\s]?\s?[0-9]", re.IGNORECASE)
_PLUS_MINUS = re.compile(r"[-−]\s*$")


@lru_cache(maxsize=1)
def codes() -> frozenset[str]:
    """Every ISO 4217 code known to the locale data."""
    return frozenset(list_currencies())


def currency(statement: Statement, definition: AttributeDefinition) -> Reading | None:
    """An ISO 4217 code, from a code or from a sign that means just one."""
    text = fold(statement.text)
    if says_nothing(text, definition):
        return None
    if text.upper() in codes():
        return Reading(text.upper())
    found = _SIGNS.get(text, ())
    if len(found) == 1:
        return Reading(found[0])
    raise Unreadable("not a currency")


def money(statement: Statement, definition: AttributeDefinition) -> Reading | None:
    """An amount as decimal text with its ISO 4217 code as unit.

    The currency is the one written beside the amount, or stated by the record, or the source's. Where two of the
    first disagree, where there is none, where several amounts are written, or where the amount is 10¹⁵ or more or has
    more than four decimal places, the price is unreadable.
    """
    text = fold(statement.text)
    if says_nothing(text, definition):
        return None
    if any(_GOES_ON.match(text[held.end :]) for held in numerals(text)):
        raise Unreadable("a number is broken off, or one of a range")
    signs = [(match, found) for match in _SIGN.finditer(text) if (found := _meant(match.group()))]
    amounts = _amounts(text, [match for match, _ in signs])
    code = _code(statement, frozenset.intersection(*(f for _, f in signs)) if signs else None)
    read = {_amount(text, held, statement, code) for held in amounts}
    if len(read) != 1:
        raise Unreadable("no amount" if not read else "several amounts")
    return Reading(_plausible(read.pop()), code)


def _plausible(amount: Decimal) -> str:
    """The amount's canonical writing; no price has sixteen digits before the point or five behind it."""
    if amount >= _MOST or -int(amount.normalize().as_tuple().exponent) > _PLACES:
        raise Unreadable("not a plausible amount")
    return decimal_text(amount)


def _meant(sign: str) -> frozenset[str]:
    return frozenset(_SIGNS.get(sign, (sign,) if sign in codes() else ()))


def _amounts(text: str, signs: list[re.Match[str]]) -> list[Numeral]:
    every = list(numerals(text))
    beside = [held for held in every if any(_beside(held, match, text) for match in signs)]
    return beside or every


def _beside(held: Numeral, sign: re.Match[str], text: str) -> bool:
    between = (
        text[sign.end() : held.start] if sign.end() <= held.start else text[held.end : sign.start()]
    )
    return len(between.strip(" :,.-–—*")) == 0 and len(between) <= _NEAR + 2


def _amount(text: str, held: Numeral, statement: Statement, code: str) -> Decimal:
    if _PLUS_MINUS.search(text[: held.start]) and text[: held.start].strip() in {"-", "−"}:
        raise Unreadable("a price is not negative")
    number = read_number(held.text, statement.locale, machine=statement.machine)
    if _reads_two_ways(held.text, number, code):
        raise Unreadable("the separator may be a decimal or a grouping one")
    return number


def _reads_two_ways(text: str, number: Decimal, code: str) -> bool:
    """Three digits behind one separator that was taken for a decimal one, in a currency that has but two."""
    three = re.fullmatch(r"[1-9][0-9]{0,2}[.,][0-9]{3}", text) is not None
    return three and number < 1000 and get_currency_precision(code) < 3


def _code(statement: Statement, written: frozenset[str] | None) -> str:
    stated = statement.currency
    if written is not None and not written:
        raise Unreadable("two currencies are written")
    if stated is not None:
        if written is not None and stated not in written:
            raise Unreadable(f"the amount is not in {stated}, as the record states")
        return stated
    if written is None:
        if statement.market_currency is None:
            raise Unreadable("no currency is stated")
        return statement.market_currency
    if len(written) == 1:
        return next(iter(written))
    return _of_market(statement, written)


def _of_market(statement: Statement, written: frozenset[str]) -> str:
    """Which of the currencies that a sign may mean the market's is."""
    for candidate in (statement.market_currency, *_of_territory(statement.locale)):
        if candidate in written:
            return str(candidate)
    raise Unreadable("the sign means several currencies")


def _of_territory(locale: str) -> list[str]:
    try:
        territory = Locale.parse(locale.replace("-", "_")).territory
    except (UnknownLocaleError, ValueError):
        return []
    return get_territory_currencies(territory) if territory is not None else []
