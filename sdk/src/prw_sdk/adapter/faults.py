"""What is wrong with an adapter's declarations, each with what to write instead."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterable, Iterator
from decimal import Decimal
from importlib import resources

from prw_sdk.adapter.base import Adapter
from prw_sdk.adapter.declare import (
    AdapterSettings,
    Backlog,
    Bound,
    Excluded,
    Measure,
    Stored,
    matching,
)


def _baseline() -> frozenset[str]:
    text = resources.files(__package__).joinpath("backlog.toml").read_text("utf-8")
    return frozenset(map(str, tomllib.loads(text)["entries"]))


BACKLOG_BASELINE: frozenset[str] = _baseline()
"""The entries (``adapter:surface or field``) that may still be `Backlog`: ``backlog.toml``, which only shrinks."""

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_VERSION = re.compile(r"\d+\.\d+\.\d+([-+][0-9A-Za-z.-]+)?")
_TARGET = re.compile(r"[a-z][a-z0-9_]*:[a-z][a-z0-9_.]*")
_PUT_OFF = re.compile(
    r"\b(today|yet|for now|so far|at the moment|todo|tbd|not implemented|not supported)\b"
    r"|^\W*not (read|fetched|stored|kept|parsed|needed|used)\W*$",
    re.IGNORECASE,
)


def declaration_faults(adapter: type[Adapter]) -> tuple[str, ...]:
    """What is wrong with an adapter's declarations, each with what to write instead; empty where all is well."""
    return (
        *_identity_faults(adapter),
        *_half_faults(adapter),
        *_census_faults(adapter),
        *_inventory_faults(adapter),
        *_merchant_faults(adapter),
        *_bound_faults(adapter),
        *_other_faults(adapter),
    )


def _identity_faults(adapter: type[Adapter]) -> Iterator[str]:
    name, version = getattr(adapter, "name", ""), getattr(adapter, "version", "")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f'no usable name ({name!r}): write name = "lumen-web", in lower case with hyphens'
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        yield f'no usable version ({version!r}): write version = "1.0.0", and raise it when the output of read changes'
    settings = getattr(adapter, "settings", None)
    if not (isinstance(settings, type) and issubclass(settings, AdapterSettings)):
        yield "settings is no subclass of AdapterSettings: write a model of what the adapter can be told"


def _half_faults(adapter: type[Adapter]) -> Iterator[str]:
    missing = sorted(adapter.__abstractmethods__)
    if missing:
        yield f"{', '.join(missing)} missing: write what this adapter does there"
    for half in (adapter.read, adapter.stated):
        if inspect.iscoroutinefunction(half) or inspect.isasyncgenfunction(half):
            yield f"{half.__name__} is async: write a plain function over the capture's bytes, which does no I/O"


def _census_faults(adapter: type[Adapter]) -> Iterator[str]:
    surfaces = getattr(adapter, "surfaces", None)
    if not surfaces:
        yield (
            "no surface census: write surfaces = {...}, with everything that the publisher serves for one record, "
            'each Stored(part="...") or Excluded("what it is, and why it is left out")'
        )
        return
    for name, disposition in surfaces.items():
        yield from _disposition_faults(adapter, f"surface {name!r}", name, disposition)
        if isinstance(disposition, Stored) and not disposition.target.strip():
            yield f'surface {name!r} is stored without a part: write Stored("page"), the role that fetch gives it'


def _inventory_faults(adapter: type[Adapter]) -> Iterator[str]:
    fields = getattr(adapter, "fields", None)
    if not fields:
        yield (
            "no field inventory: write fields = {...}, with every name that the source labels on its stored surfaces, "
            'each Stored("core:mpn") or Excluded("what it is, and why no record carries it")'
        )
        return
    for name, disposition in fields.items():
        yield from _disposition_faults(adapter, f"field {name!r}", name, disposition)
        if isinstance(disposition, Stored) and not _TARGET.fullmatch(disposition.target):
            yield (
                f"field {name!r} is stored under {disposition.target!r}: "
                'write the key of an attribute, such as Stored("core:mpn")'
            )


def _disposition_faults(
    adapter: type[Adapter], what: str, name: str, disposition: object
) -> Iterator[str]:
    if not isinstance(disposition, Stored | Excluded | Backlog):
        yield f"{what} has no disposition ({disposition!r}): write Stored(...) or Excluded(...)"
        return
    if isinstance(disposition, Stored):
        return
    if isinstance(disposition, Backlog) and f"{adapter.name}:{name}" not in BACKLOG_BASELINE:
        yield f"{what} is Backlog, which only an adapter on the committed baseline may use: store it or exclude it"
    if not disposition.reason.strip():
        yield f"{what} has a blank reason: write what it is, and why no record carries it"
    elif isinstance(disposition, Excluded) and _PUT_OFF.search(disposition.reason):
        yield (
            f"{what} is excluded because {disposition.reason!r}, which only puts it off: store it, or write what it "
            "is and why no record carries it (a duplicate of a stored field, derived elsewhere, data minimisation)"
        )


def _merchant_faults(adapter: type[Adapter]) -> Iterator[str]:
    named, fields = getattr(adapter, "merchant_field", None), getattr(adapter, "fields", None) or {}
    if not isinstance(named, str) or not named.strip():
        yield 'no merchant_field: write merchant_field = "...", the field that names the seller (never a literal)'
    elif not isinstance(matching(fields, named), Stored):
        yield f"merchant_field {named!r} is not declared as stored: write it in fields with the target it is kept under"


def _bound_faults(adapter: type[Adapter]) -> Iterator[str]:
    bounds: Iterable[object] = getattr(adapter, "bounds", ())
    if not isinstance(bounds, tuple):
        yield "bounds is no tuple: write bounds = (Bound(Measure.RECORDS, minimum=Decimal(1)),)"
        return
    for number, bound in enumerate(bounds, start=1):
        if not isinstance(bound, Bound):
            yield f"bound {number} is {bound!r}: write Bound(Measure.RECORDS, minimum=Decimal(1))"
        else:
            yield from (f"bound {number} {fault}" for fault in _faults_of(bound))


def _faults_of(bound: Bound) -> Iterator[str]:
    """What is wrong with one bound."""
    limits = [limit for limit in (bound.minimum, bound.maximum) if limit is not None]
    if not limits:
        yield "bounds nothing: write a minimum or a maximum"
    if any(not isinstance(limit, Decimal) for limit in limits):
        yield 'has limits that are no Decimals: write Decimal("0.9")'
    elif any(not limit.is_finite() or limit < 0 for limit in limits):
        yield "has a negative or endless limit: write a number from 0"
    elif limits != sorted(limits):
        yield "has a minimum above its maximum: exchange them"
    elif bound.measure is Measure.SHARE and any(limit > 1 for limit in limits):
        yield 'has a share above 1: write a fraction, such as Decimal("0.9") for nine of ten'
    if bound.measure is Measure.SHARE and not _TARGET.fullmatch(bound.attribute or ""):
        yield 'is a share of nothing: write attribute="offer:price", the key that records carry'
    if bound.measure is Measure.RECORDS and bound.attribute is not None:
        yield "counts records and names an attribute: write Measure.SHARE, or leave attribute out"


def _other_faults(adapter: type[Adapter]) -> Iterator[str]:
    legacy = getattr(adapter, "legacy", ())
    if not isinstance(legacy, tuple):
        yield 'legacy is no tuple: write legacy = ("1.0.0",), the versions whose captures have another shape'
        return
    for version in legacy:
        if not isinstance(version, str) or not _VERSION.fullmatch(version):
            yield f'legacy names {version!r}, which is no version: write "1.0.0"'
        elif version == getattr(adapter, "version", ""):
            yield f"legacy names {version!r}, the version itself: name older ones alone"
    if not isinstance(getattr(adapter, "uses_browser", False), bool):
        yield "uses_browser is neither True nor False: write True where fetch or plan calls net.render"
    if not isinstance(getattr(adapter, "lists_everything", False), bool):
        yield "lists_everything is neither True nor False: write True where a whole plan names all that there is"
