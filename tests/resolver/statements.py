"""Statements as pages make them, for the tests of normalisers, and the packaged vocabulary."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from prw_resolver.vocabulary import service
from prw_resolver.vocabulary.definitions import AttributeDefinition, Vocabulary
from prw_resolver.vocabulary.normalisers import NORMALISERS, Said, Verdict, hints, settle
from prw_resolver.vocabulary.statement import Reading, Statement, Unreadable

REFUSED = "refused"
"""Stands for a statement that means something that cannot be read."""


@cache
def packaged() -> Vocabulary:
    """The vocabulary that comes with the resolver."""
    return service.read()


def definition(key: str) -> AttributeDefinition:
    """A definition of the packaged vocabulary."""
    found = packaged().attribute(key)
    assert found is not None, key
    return found


def normalised(key: str, text: str, **how: object) -> Reading | str | None:
    """What the attribute's normaliser makes of a text; `REFUSED` where it cannot be read."""
    held = definition(key)
    try:
        return NORMALISERS[held.normaliser](Statement(text, **how), held)  # type: ignore[arg-type]  # a test's own words
    except Unreadable:
        return REFUSED


def value(key: str, text: str, **how: object) -> str | None:
    """The canonical value alone."""
    read = normalised(key, text, **how)
    return read.value if isinstance(read, Reading) else read


def hinted(key: str, title: str) -> list[str]:
    """What a title hints of the attribute."""
    return [reading.value for reading in hints(definition(key), Statement(title))]


def verdict(key: str, claims: list[str], title: str = "") -> Verdict[str]:
    """What a record with these claims and that title comes to."""
    said = [Said(Statement(text), text) for text in claims]
    return settle(definition(key), said, [Said(Statement(title), title)] if title else [])


def samples(name: str) -> Path:
    """A file of the real material; the test is skipped where that is not there."""
    folder = os.environ.get("PRW_SAMPLES")
    if folder is None or not (Path(folder) / name).exists():
        pytest.skip("PRW_SAMPLES does not name the real material")
    return Path(folder) / name
