"""What became of every name that one capture states (rule 14)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from prw_sdk.adapter import Adapter, Disposition, Kind, NotARecord, Stated, Stored
from prw_sdk.evidence import Capture, Presence, Record

SAYS_NOTHING = frozenset({Kind.NULL, Kind.EMPTY})
"""Kinds under which a name stands without a value."""


@dataclass(frozen=True, slots=True)
class Account:
    """The names of one capture, each in exactly one of `stored`, `excluded` (or backlog) and `unknown`.

    `unread` are those of `stored` that say something although no record carries their target. `kinds` tells for every
    name the kinds of its values, `targets` the attribute of each stored one. `is_present` is False for an absence,
    which states nothing and counts for nothing.
    """

    stored: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    kinds: Mapping[str, frozenset[Kind]] = field(default_factory=lambda: MappingProxyType({}))
    targets: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    is_present: bool = True


def account(adapter: Adapter, capture: Capture, records: Sequence[Record]) -> Account:
    """Account for a capture that was read into `records`; whatever `stated` raises beyond `NotARecord` is passed on."""
    if capture.presence is Presence.ABSENT:
        return Account(is_present=False)
    kinds = stated_kinds(adapter, capture)
    known = {name: adapter.disposition(name, capture.config) for name in kinds}
    targets = {name: how.target for name, how in known.items() if isinstance(how, Stored)}
    read = {key for record in records for key in attributes(record)}
    return Account(
        stored=tuple(targets),
        excluded=tuple(name for name, how in known.items() if _is_left_out(how)),
        unknown=tuple(name for name, how in known.items() if how is None),
        unread=tuple(
            name
            for name, target in targets.items()
            if records and target not in read and not kinds[name] <= SAYS_NOTHING
        ),
        kinds=kinds,
        targets=targets,
    )


def stated_kinds(adapter: Adapter, capture: Capture) -> dict[str, frozenset[Kind]]:
    """Every name that a capture states with the kinds of its values; nothing where it holds no record."""
    kinds: dict[str, set[Kind]] = {}
    try:
        for one in _as_stated(adapter.stated(capture)):
            kinds.setdefault(one.name, set()).add(one.kind)
    except NotARecord:
        return {}
    return {name: frozenset(found) for name, found in kinds.items()}


def attributes(record: Record) -> frozenset[str]:
    """The attributes that a record carries; ``offer:seller`` where it names its merchant."""
    claimed = frozenset(claim.attribute for claim in record.claims)
    return claimed if record.merchant is None else claimed | {record.merchant.attribute}


def _as_stated(names: Iterable[str | Stated]) -> Iterable[Stated]:
    return (Stated(name) if isinstance(name, str) else name for name in names)


def _is_left_out(how: Disposition | None) -> bool:
    return how is not None and not isinstance(how, Stored)
