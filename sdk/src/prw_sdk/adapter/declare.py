"""Declarations: how what a source serves and states is accounted for, and what a run must come to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache

from pydantic import BaseModel, ConfigDict


class AdapterSettings(BaseModel):
    """Base of an adapter's typed settings. Unknown names are refused, so that a typing error is no silent default.

    So are infinite and undefined numbers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class Stored:
    """A surface kept as the part of that role, or a field kept under that target (an attribute's key)."""

    target: str


@dataclass(frozen=True, slots=True)
class Excluded:
    """A surface or field left out on purpose. The reason says what it is and why no row carries it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Backlog:
    """Known and not stored yet: only for adapters on the committed baseline, which only shrinks."""

    reason: str


Disposition = Stored | Excluded | Backlog


class Kind(StrEnum):
    """What sort of value a source states under a name; a field that changes its kind was re-typed."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    NULL = "null"
    OBJECT = "object"
    LIST = "list"
    EMPTY = "empty"
    """A list, object or text with nothing in it."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Stated:
    """One name that the publisher labelled, and the kind of value that stands under it."""

    name: str
    kind: Kind = Kind.UNKNOWN


class Measure(StrEnum):
    """What a bound is about: `RECORDS` read in one run, or the `SHARE` of them (0 to 1) that carry an attribute."""

    RECORDS = "records"
    SHARE = "share"


@dataclass(frozen=True, slots=True)
class Bound:
    """What a whole run of a source must come to.

    A breached `minimum` ends the run as failed and nothing of it is sent; a breached `maximum` warns.
    `attribute` is the key that a `SHARE` is of.
    """

    measure: Measure
    minimum: Decimal | None = None
    maximum: Decimal | None = None
    attribute: str | None = None


def matching(fields: Mapping[str, Disposition], name: str) -> Disposition | None:
    """The disposition of a name: declared exactly, else by the longest pattern that covers it, else None."""
    exact = fields.get(name)
    if exact is not None:
        return exact
    covering = [pattern for pattern in fields if "*" in pattern and covers(pattern, name)]
    return fields[max(covering, key=len)] if covering else None


def covers(declared: str, name: str) -> bool:
    """Whether a declared field, or pattern with ``*`` (which stands for anything), is about a stated name."""
    return declared == name or ("*" in declared and _pattern(declared).fullmatch(name) is not None)


@lru_cache(maxsize=4096)
def _pattern(declared: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, declared.split("*"))), re.DOTALL)
