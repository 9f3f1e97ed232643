"""One statement of a source as a normaliser sees it, and what it may answer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from prw_resolver.vocabulary.definitions import AttributeDefinition

_SPACE = re.compile(r"\s+")

LONGEST_STATEMENT = 20_000
"""What is longer is unreadable, whatever it is about, and is kept only in part."""

LONGEST = 2_000
"""A statement of anything but a text or an address says nothing in more characters than these."""

HINTED = 2_000
"""Hints are looked for in so many characters of a text, and no further: a title is shorter."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What a source wrote, and what is known of how it writes.

    `machine` is true where the text was written for machines (a JSON value, an attribute ``content``).
    `currency` is the code the record itself states for its amounts, `market_currency` the one its source's settings
    give. `base_url` is the page's own address.
    """

    text: str
    locale: str = "en_US"
    machine: bool = False
    currency: str | None = None
    market_currency: str | None = None
    base_url: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """A value in its canonical writing, and its unit (empty where it has none)."""

    value: str
    unit: str = ""


class Unreadable(ValueError):
    """The source says something that has no meaning here; the message says why. Never taken for silence."""


Normaliser = Callable[[Statement, AttributeDefinition], Reading | None]
"""Reads a statement; None where it says nothing (blank, or a placeholder); raises `Unreadable`."""


def fold(text: str) -> str:
    """Compatibility forms unified (NFKC), runs of white space made one space, none at the ends."""
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", text)).strip()


def says_nothing(text: str, definition: AttributeDefinition) -> bool:
    """Whether a folded text is blank or one of the definition's placeholders, in any case."""
    bare = text.casefold().strip(" .:;-–—_*")
    return not bare or bare in {fold(held).casefold() for held in definition.placeholders}
