"""The vocabulary over real words: reported inputs, real titles, and two shops' whole tables with the true pairs.

What the tables say is not copied here; each test is skipped where the real material is not there.
"""

from __future__ import annotations

import csv
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain

import pytest

from prw_resolver.vocabulary.keys import make_keys
from prw_resolver.vocabulary.model import Basis, Value
from prw_resolver.vocabulary.statement import Reading
from tests.resolver.statements import REFUSED, normalised, packaged, samples, value, verdict

Row = Mapping[str, str]

TABLES = (
    ("matching/abt-buy/abt.csv", "name"),
    ("matching/abt-buy/buy.csv", "name"),
    ("matching/walmart-amazon/walmart.csv", "title"),
    ("matching/walmart-amazon/amazon.csv", "title"),
)
WALMART, AMAZON = (name for name, _ in TABLES[2:])
KEYED = ("core:brand", "core:mpn", "core:condition", "core:pack_quantity")
LONGEST = 2_000
"""So many of the titles are timed: the longest ones."""
SECONDS = 0.001
"""The longest that one pattern may look at one title."""


def rows(name: str) -> list[Row]:
    """A table of the real material."""
    with samples(name).open(encoding="utf-8", errors="replace", newline="") as file:
        return list(csv.DictReader(file, delimiter="|"))


def titles() -> list[str]:
    """Every title of the tables and of the marketplace's answers."""
    found = {row[column] for name, column in TABLES for row in rows(name) if row[column]}
    for file in samples("ebay").glob("*.json"):
        found.update(str(listing["title"]) for listing in json.loads(file.read_text()))
    return sorted(found)


def reported(*kinds: str) -> Iterator[dict[str, str]]:
    """Inputs that broke somebody, of these kinds."""
    lines = samples("vectors/reported-inputs.jsonl").read_text().splitlines()
    return (case for case in map(json.loads, lines) if case["kind"] in kinds)


def test_reported_prices_are_read_rightly_or_refused() -> None:
    """The amount that is read is one that the report calls right, in each of two markets."""
    wrong = []
    for case in reported("price"):
        for locale, currency in (("en_US", "USD"), ("de_DE", "EUR")):
            read = normalised("offer:price", case["input"], locale=locale, market_currency=currency)
            if isinstance(read, Reading) and read.value not in right_amounts(case["right"]):
                wrong.append((case["input"], locale, read))
    assert wrong == []


def right_amounts(right: str) -> set[str]:
    """The amounts that a report's right reading names; an unknown currency is the settings' to say."""
    if right == "currency unknown":
        return {"1000"}
    return {f"{float(found):g}" for found in re.findall(r"[0-9]+(?:\.[0-9]+)?", right)}


def test_reported_identifiers_and_quantities_are_read_rightly() -> None:
    """A GTIN keeps its digits, a part number is no number, a GiB is 2³⁰ bytes, a pound is no piece."""
    [gtin] = reported("gtin")
    assert value("core:gtin", gtin["input"]) == "00031146262571"
    assert [value("core:mpn", case["input"]) for case in reported("identifier")] == ["E00000012"]
    assert [value("storage:capacity", case["input"]) for case in reported("capacity")] == [
        str(4 * 2**30)
    ]
    assert [value("core:pack_quantity", case["input"]) for case in reported("quantity")] == [
        REFUSED
    ]


def test_reported_mismatches_share_no_key() -> None:
    """Two capacities are two articles, two writings of an amount one price, and a number alone is no key."""
    pair, lone = reported("identity")
    one, other = (verdict("storage:capacity", [], title).settled for title in pair["input"])
    assert one is not None
    assert other is not None
    assert one.reading != other.reading
    assert isinstance(lone["input"], dict)
    assert keys({"brand": "", "modelno": lone["input"]["mpn"], "title": ""}) == []
    [equal] = reported("price-equality")
    assert len({value("offer:price", text, market_currency="EUR") for text in equal["input"]}) == 1


def test_no_pattern_looks_at_a_title_for_a_millisecond() -> None:
    """Hints and recognitions are tried on every record: none may be slow on any real title."""
    patterns = [hint.pattern for held in packaged().attributes for hint in held.hints]
    for told in (held.recognition for held in packaged().classes if held.recognition is not None):
        patterns += [*told.words, *told.unless]
    every = sorted(titles(), key=len)[-LONGEST:]
    slow = {}
    for pattern in patterns:
        compiled = re.compile(pattern, re.IGNORECASE)
        worst = max((took(compiled, title), title) for title in every)
        slow[pattern] = min(took(compiled, worst[1]) for _ in range(5))
    assert {pattern: seconds for pattern, seconds in slow.items() if seconds > SECONDS} == {}


def took(pattern: re.Pattern[str], title: str) -> float:
    """Seconds of processor time that a pattern spends on a title."""
    begun = time.process_time()
    for _ in pattern.finditer(title):
        pass
    return time.process_time() - begun


@pytest.mark.parametrize(
    ("attribute", "about", "unless"),
    [
        ("core:pack_quantity", r"\d+x (?:optical )?zoom", r"pack|piece|pcs|\bct\b|kit|set of"),
        ("core:pack_quantity", r"(?<!\d )\b\d\d x \d\d$", r"pack|pk\b"),
        ("core:condition", r"\bused (?:to|for|with|by)\b", r"refurb|remanufactured"),
    ],
)
def test_titles_that_count_something_else_hint_at_nothing(
    attribute: str, about: str, unless: str
) -> None:
    """Zooms and sizes are no pieces, purposes no conditions."""
    held = [title for title in titles() if re.search(about, title, re.IGNORECASE)]
    plain = [title for title in held if not re.search(unless, title, re.IGNORECASE)]
    misread = [title for title in plain if verdict_of_title(attribute, title)]
    assert len(misread) <= len(plain) // 50, misread


def test_rates_of_transfer_are_no_capacities() -> None:
    """``SATA 3.0 Gb-s`` beside one capacity leaves that one, whatever the case of its letters."""
    rated = [title for title in titles() if re.search(r"\d Gb[- ]s\b", title, re.IGNORECASE)]
    sized = [t for t in rated if len(re.findall(r"\d ?[TG]B\b(?![- ]s\b)", t, re.IGNORECASE)) == 1]
    assert sized
    assert [title for title in sized if verdict("storage:capacity", [], title).ambiguous] == []


def verdict_of_title(attribute: str, title: str) -> bool:
    """Whether the title says something of the attribute."""
    found = verdict(attribute, [], title)
    return found.ambiguous or (found.settled is not None and found.settled.basis is Basis.HINT)


@cache
def walmart() -> dict[str, list[Row]]:
    """One shop's rows by their keys."""
    return by_key(rows(WALMART))


@cache
def amazon() -> dict[str, list[Row]]:
    """The other shop's."""
    return by_key(rows(AMAZON))


def keys(row: Row) -> list[str]:
    """The keys of a row as a record would have them: brand and number stated, the title hinting."""
    stated = {"core:brand": row["brand"], "core:mpn": row["modelno"]}
    values = []
    for attribute in KEYED:
        said = [stated[attribute]] if stated.get(attribute) else []
        settled = verdict(attribute, said, row["title"]).settled
        if settled is not None:
            reading = settled.reading
            held = Value(attribute, 1, reading.value, reading.unit, settled.basis, None)
            values.append(held)
    rules = packaged().rules("thing", 1)
    return [key.canonical for key in make_keys(rules, "thing", 1, values)]


def by_key(table: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows under the keys that they have."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in table:
        for key in keys(row):
            found[key].append(row)
    return found


def written(row: Row) -> str:
    """The number without case, spaces and dashes, by other code than the vocabulary's."""
    return "".join(sign for sign in row["modelno"].casefold() if sign not in " -_()[]\"'`")


def test_one_key_never_joins_numbers_that_differ_by_more_than_case_and_dashes() -> None:
    """Over 24,000 articles nothing is merged that the tables do not themselves write alike."""
    groups = ([*walmart().get(key, []), *amazon().get(key, [])] for key in {*walmart(), *amazon()})
    merged = [group for group in groups if len({written(row) for row in group}) > 1]
    assert merged == []


def test_keys_across_two_shops_join_what_is_the_same() -> None:
    """Of the pairs with one key most are true ones; the rest repeat a number, or stand in no list of pairs.

    The list names one partner for an article, so that a second listing of the same article counts as false here.
    """
    true = {(row["D1"], row["D2"]) for row in rows("matching/walmart-amazon/gt.csv")}
    joined = {
        (one["id"], other["id"])
        for key in walmart().keys() & amazon().keys()
        for one in walmart()[key]
        for other in amazon()[key]
    }
    assert len(joined & true) / len(joined) > 0.82
    assert len(joined & true) / len(true) > 0.5


def test_words_make_no_key() -> None:
    """Names of series and colours in the place of a number join nothing."""
    every = chain(rows(WALMART), rows(AMAZON))
    words = [row for row in every if re.fullmatch(r"[A-Za-z]+(?: [A-Za-z]+)+", row["modelno"])]
    assert words
    assert [row for row in words if keys(row)] == []
