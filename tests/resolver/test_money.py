"""Money: amounts by the page's locale, never through a binary fraction; the currency beside, in, or around them."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prw_resolver.vocabulary.statement import Reading
from tests.resolver.statements import REFUSED, normalised, samples


def price(text: str, locale: str = "en_US", **how: object) -> str | None:
    """Amount and currency in one text."""
    read = normalised("offer:price", text, locale=locale, **how)
    return f"{read.value} {read.unit}" if isinstance(read, Reading) else read


@pytest.mark.parametrize(
    ("text", "locale", "expected"),
    [
        ("1.299,00 €", "de_DE", "1299 EUR"),
        ("1.299 €", "de_DE", "1299 EUR"),
        ("1.015 EUR", "de-DE", "1015 EUR"),
        ("€ 1.299,-", "de_DE", "1299 EUR"),
        ("92,90 €", "de_DE", "92.9 EUR"),
        (",89 €", "de_DE", "0.89 EUR"),
        ("12.99 €", "de_DE", "12.99 EUR"),
        ("ab 44,90 €*", "de_DE", "44.9 EUR"),
        ("$1,299", "en_US", "1299 USD"),
        ("$1,299.00", "en_US", "1299 USD"),
        ("US$:12.99", "en_US", "12.99 USD"),
        ("$1327 /each", "en_US", "1327 USD"),
        ("A$190.00", "en_US", "190 AUD"),
        ("$19.95", "en_CA", "19.95 CAD"),
        ("CHF 1'049.95", "de_CH", "1049.95 CHF"),
        ("PTE 120 000 000", "pt_PT", "120000000 PTE"),
        ("36元人民币", "zh_CN", "36 CNY"),
        ("45,00 zł", "pl_PL", "45 PLN"),
        ("Pasta 500g 12,00 €", "de_DE", "12 EUR"),
        ("2 pairs from $349", "en_US", "349 USD"),
        ("Was $120.00 Now $60.00", "en_US", REFUSED),
        ("AED 8000 (USD 2179)", "en_US", REFUSED),
        ("1000 ANNUALLY", "en_US", REFUSED),
        ("15.00", "en_US", REFUSED),
        ("$${product.price.currency}", "en_US", REFUSED),
        ("-5.00 €", "de_DE", REFUSED),
        ("26 bis 50 €", "de_DE", REFUSED),
        ("$119. 95", "en_US", REFUSED),
        ("call us", "en_US", REFUSED),
        ("", "en_US", None),
    ],
)
def test_visible_prices_are_read_by_the_page_s_locale(
    text: str, locale: str, expected: str | None
) -> None:
    """A point is what it is in the page's language; several amounts or no currency are no price."""
    assert price(text, locale) == expected


@pytest.mark.parametrize(
    ("text", "locale", "expected"),
    [
        ("1299.00", "de_DE", "1299 EUR"),
        ("1.299,00", "de_DE", "1299 EUR"),
        ("1299,00", "de_DE", "1299 EUR"),
        ("1,600.00", "en_US", "1600 EUR"),
        ("2879.20", "en_US", "2879.2 EUR"),
        ("1.299", "de_DE", REFUSED),
        ("1.299", "en_US", REFUSED),
        ("29.1583", "de_DE", "29.1583 EUR"),
        ("92.9", "de_DE", "92.9 EUR"),
    ],
)
def test_machine_prices_take_the_point_as_decimal_unless_it_plainly_is_not(
    text: str, locale: str, expected: str
) -> None:
    """Markup is written for machines; where a German shop may have meant thousands nobody guesses."""
    assert price(text, locale, machine=True, currency="EUR") == expected


@given(st.integers(0, 10**9))
def test_an_amount_survives_every_way_of_writing_it(cents: int) -> None:
    """German, English and machine writing of one amount are one value."""
    amount = Decimal(cents) / 100
    english = f"{amount:,.2f}"
    german = english.translate(str.maketrans(".,", ",."))
    readings = {
        price(f"${english}", "en_US", currency="USD"),
        price(f"{german} $", "de_DE", currency="USD"),
        price(f"{amount:.2f}", "de_DE", machine=True, currency="USD"),
    }
    assert len(readings) == 1
    assert Decimal(str(readings.pop()).split()[0]) == amount


def test_a_stated_currency_and_a_written_one_must_agree() -> None:
    """A dollar sign fits every dollar; euros beside a record in dollars are no price."""
    assert price("$19.95", currency="CAD") == "19.95 CAD"
    assert price("19,95 €", "de_DE", currency="USD") == REFUSED


def test_the_source_s_currency_counts_where_nothing_else_says_it() -> None:
    """The settings of a source are a declaration; the locale alone is none."""
    assert price("19.95", market_currency="USD") == "19.95 USD"
    assert price("19.95 £", market_currency="USD") == "19.95 GBP"


def test_currencies_are_codes_or_signs_that_mean_one() -> None:
    """A sign that several countries share is no currency by itself."""
    assert normalised("offer:currency", "eur") == Reading("EUR")
    assert normalised("offer:currency", "€") == Reading("EUR")
    assert normalised("offer:currency", "$") == REFUSED
    assert normalised("offer:currency", "XXQ") == REFUSED


def test_published_prices_are_read_right_or_not_at_all() -> None:
    """Strings of a public test suite, without their pages' locales: refusing is allowed, a wrong amount is not."""
    cases = json.loads(samples("vectors/prices.json").read_text())["cases"]
    wrong, right = [], 0
    for case in cases:
        if case["amount"] is None or not case["price_raw"]:
            continue
        comma = case.get("decimal_separator") == "," or "," in str(case["amount_text"])[-3:]
        locale = "de_DE" if comma else "en_US"
        read = normalised("offer:price", case["price_raw"], locale=locale, market_currency="USD")
        if not isinstance(read, Reading):
            continue
        if Decimal(read.value) == Decimal(case["amount"]):
            right += 1
        else:
            wrong.append((case["price_raw"], read.value, case["amount"]))
    assert wrong == []
    assert right > len(cases) * 0.6
