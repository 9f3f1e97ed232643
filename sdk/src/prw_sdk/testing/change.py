"""Changing what a page says, to see whether what is read follows."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prw_sdk.evidence import Capture, Claim, Part, Record
from prw_sdk.testing.bench import Bench, with_text
from prw_sdk.testing.fixtures import Fixture
from prw_sdk.testing.reading import claims, read

MARK = "Qzx"
MOST_PLACES = 60
"""Of more occurrences of a text than this the rest is left alone."""


@dataclass(frozen=True, slots=True)
class Changed:
    """What is read once a text in the page was replaced by another."""

    text: str
    records: tuple[Record, ...]


def follows(bench: Bench, case: Fixture) -> bool:
    """Whether the merchant of some record of a fixture changes when its text in the page does."""
    return any(
        MARK in record.merchant.value_as_stated
        for changed in renamed_in(bench, case, lambda claim: claim.attribute == "offer:seller")
        for record in changed.records
        if record.merchant is not None
    )


def renamed_in(bench: Bench, case: Fixture, wanted: Callable[[Claim], bool]) -> Iterator[Changed]:
    """The fixture read anew for each place where the text of its first such claim was changed.

    Where no single place makes a difference, all of them are changed at once.
    """
    found = (claim for record in bench.records(case) for claim in claims(record) if wanted(claim))
    claim = next(found, None)
    if claim is None:
        return
    other = _other(claim.value_as_stated)
    part = case.capture.part(claim.locator.part_role)
    for capture in _changed(case.capture, part, claim.value_as_stated, other):
        try:
            records, _ = read(bench.fresh(), capture)
        except Exception:  # noqa: BLE001, S112  # what a damaged page does is another check's question
            continue
        yield Changed(other, records)


def _other(text: str) -> str:
    """Another text of the same sort: a number stays one."""
    digits = re.search(r"\d", text)
    if digits is None:
        return f"{text}{MARK}"
    turned = "1" if digits[0] != "1" else "2"
    is_number = re.fullmatch(r"[\d.,\s]+", text)
    changed = f"{text[: digits.start()]}{turned}{text[digits.end() :]}"
    return changed if is_number else f"{changed}{MARK}"


def _changed(capture: Capture, part: Part, old: str, new: str) -> Iterator[Capture]:
    text = part.text()
    for write in (str, _json, html.escape, lambda value: html.escape(_json(value))):
        written = write(old)
        places = [found.start() for found in re.finditer(re.escape(written), text)]
        for place in places[:MOST_PLACES]:
            changed = f"{text[:place]}{write(new)}{text[place + len(written) :]}"
            yield with_text(capture, part, changed)
        if len(places) > 1:
            yield with_text(capture, part, text.replace(written, write(new)))


def _json(text: str) -> str:
    return json.dumps(text)[1:-1]
