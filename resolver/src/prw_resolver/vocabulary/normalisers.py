"""The normalisers by the names that definitions use, and what one attribute of one record comes to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Generic, TypeVar

from prw_resolver.vocabulary import identifiers, money, quantities, texts
from prw_resolver.vocabulary.definitions import AttributeDefinition, Several
from prw_resolver.vocabulary.model import Basis
from prw_resolver.vocabulary.statement import (
    HINTED,
    LONGEST,
    LONGEST_STATEMENT,
    Normaliser,
    Reading,
    Statement,
    Unreadable,
    fold,
)

NORMALISERS: Mapping[str, Normaliser] = MappingProxyType(
    {
        "gtin": identifiers.gtin,
        "mpn": identifiers.mpn,
        "brand": identifiers.brand,
        "capacity": quantities.capacity,
        "pack_quantity": quantities.pack_quantity,
        "boolean": quantities.boolean,
        "word": quantities.word,
        "state": quantities.state,
        "money": money.money,
        "currency": money.currency,
        "text": texts.text,
        "url": texts.url,
    }
)

_LONGER = frozenset({"text", "url"})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Said(Generic[T]):
    """A statement, and whatever the caller ties to it (the claim it came from)."""

    statement: Statement
    source: T


@dataclass(frozen=True, slots=True)
class Settled(Generic[T]):
    """The one value that a record has of an attribute; `source` is None for a default."""

    reading: Reading
    basis: Basis
    source: T | None


@dataclass(frozen=True, slots=True)
class Verdict(Generic[T]):
    """What a record says of an attribute: a value, or nothing, or several things that differ (`ambiguous`).

    `unreadable` has what could not be read, as ``text: reason``.
    """

    settled: Settled[T] | None = None
    ambiguous: bool = False
    unreadable: tuple[str, ...] = ()


def settle(
    definition: AttributeDefinition, claims: Sequence[Said[T]], hinted_from: Sequence[Said[T]]
) -> Verdict[T]:
    """Bring together the claims of an attribute, the hints in other claims, and the published default.

    A claim is worth more than a hint and a hint more than the default; a claim and a hint that differ make the
    attribute ambiguous, and so does a statement that cannot be read where silence would have had a meaning.
    """
    stated, unreadable = _read(definition, claims)
    looked_in = [said for said in hinted_from if len(said.statement.text) <= LONGEST_STATEMENT]
    hinted = list(_hinted(definition, looked_in))
    unread = len(unreadable) + len(hinted_from) - len(looked_in)
    if definition.several is Several.FIRST:
        stated = stated[:1]
    differs = len({held.reading for held in (*stated, *hinted)}) > 1
    if differs or (unread and not stated and definition.assumed):
        return Verdict(None, ambiguous=True, unreadable=unreadable)
    chosen = next(iter((*stated, *hinted)), None) or _default(definition)
    return Verdict(chosen, unreadable=unreadable)


def _read(
    definition: AttributeDefinition, claims: Sequence[Said[T]]
) -> tuple[list[Settled[T]], tuple[str, ...]]:
    read: list[Settled[T]] = []
    unreadable: list[str] = []
    for said in claims:
        try:
            reading = normalised(said.statement, definition)
        except Unreadable as reason:
            unreadable.append(f"{said.statement.text[:200]}: {reason}")
            continue
        if reading is not None:
            read.append(Settled(reading, Basis.STATED, said.source))
    return read, tuple(unreadable)


def normalised(statement: Statement, definition: AttributeDefinition) -> Reading | None:
    """What the definition's normaliser reads; raises `Unreadable`, for what is far too long as well."""
    longest = LONGEST_STATEMENT if definition.normaliser in _LONGER else LONGEST
    if len(statement.text) > longest:
        raise Unreadable(f"longer than {longest} characters")
    return NORMALISERS[definition.normaliser](statement, definition)


def _hinted(
    definition: AttributeDefinition, hinted_from: Sequence[Said[T]]
) -> Iterator[Settled[T]]:
    for said in hinted_from:
        for reading in hints(definition, said.statement):
            yield Settled(reading, Basis.HINT, said.source)


def hints(definition: AttributeDefinition, statement: Statement) -> list[Reading]:
    """What the definition's hints read out of another claim, each value once, in the order of the hints."""
    text = fold(statement.text[:HINTED])
    found: dict[Reading, None] = {}
    for hint in definition.hints:
        for match in _compiled(hint.pattern).finditer(text):
            said = hint.value if hint.value is not None else match["value"]
            reading = _readable(definition, replace(statement, text=said, machine=False))
            if reading is not None:
                found[reading] = None
    return list(found)


def _readable(definition: AttributeDefinition, statement: Statement) -> Reading | None:
    try:
        return normalised(statement, definition)
    except Unreadable:
        return None


def _default(definition: AttributeDefinition) -> Settled[T] | None:
    if definition.default is None:
        return None
    return Settled(Reading(definition.default.value, definition.unit), Basis.DEFAULT, None)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
