"""The profile of a source over a run: in how many captures each name stands, of which kinds, and what was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from prw_sdk.account.capture import SAYS_NOTHING, Account, attributes
from prw_sdk.adapter import Kind
from prw_sdk.evidence import Record


class How(StrEnum):
    """How a name is accounted for."""

    STORED = "stored"
    EXCLUDED = "excluded"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class FieldProfile:
    """One name: the captures that state it, those where it says something, those of each kind, and its target."""

    how: How
    captures: int = 0
    saying: int = 0
    kinds: Mapping[Kind, int] = field(default_factory=lambda: MappingProxyType({}))
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """What a run came to. `captures` counts those of pages that are there, `barren` those of them without a record.

    `attributes` counts the records that carry each attribute, ``offer:seller`` included.
    """

    captures: int = 0
    barren: int = 0
    records: int = 0
    fields: Mapping[str, FieldProfile] = field(default_factory=lambda: MappingProxyType({}))
    attributes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names that no declaration covers, in order."""
        return tuple(sorted(name for name, one in self.fields.items() if one.how is How.UNKNOWN))

    def share(self, attribute: str) -> Decimal | None:
        """The share (0 to 1) of records that carry an attribute; None where there are no records."""
        if not self.records:
            return None
        return Decimal(self.attributes.get(attribute, 0)) / self.records

    def merged(self, other: Profile) -> Profile:
        """The profile of both together; where they account for a name differently, the later one counts."""
        tally = Tally()
        tally.merge(self)
        tally.merge(other)
        return tally.profile()

    def as_json(self) -> dict[str, object]:
        """As JSON values, integers and texts only."""
        return {
            "captures": self.captures,
            "barren": self.barren,
            "records": self.records,
            "fields": {name: _field_json(one) for name, one in sorted(self.fields.items())},
            "attributes": dict(sorted(self.attributes.items())),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Profile:
        """The profile that `as_json` wrote; raises KeyError or ValueError for anything else."""
        return cls(
            int(stored["captures"]),
            int(stored["barren"]),
            int(stored["records"]),
            MappingProxyType({name: _from_json(one) for name, one in stored["fields"].items()}),
            MappingProxyType({key: int(count) for key, count in stored["attributes"].items()}),
        )


class Tally:
    """A profile in the making; one for a run, filled capture by capture in any order."""

    def __init__(self) -> None:
        self._captures = self._barren = self._records = 0
        self._how: dict[str, tuple[How, str | None]] = {}
        self._named: Counter[str] = Counter()
        self._saying: Counter[str] = Counter()
        self._kinds: Counter[tuple[str, Kind]] = Counter()
        self._attributes: Counter[str] = Counter()

    def add(self, account: Account, records: Sequence[Record]) -> None:
        """Count one capture; an absence counts for nothing."""
        if not account.is_present:
            return
        self._captures += 1
        self._barren += not records
        self._records += len(records)
        for record in records:
            self._attributes.update(attributes(record))
        self._account(account)

    def _account(self, account: Account) -> None:
        self._how.update(_ways(account))
        for name, kinds in account.kinds.items():
            self._named[name] += 1
            self._saying[name] += not kinds <= SAYS_NOTHING
            self._kinds.update((name, kind) for kind in kinds)

    def merge(self, other: Profile) -> None:
        """Count everything that another profile has counted."""
        self._captures += other.captures
        self._barren += other.barren
        self._records += other.records
        self._attributes.update(other.attributes)
        for name, one in other.fields.items():
            self._how[name] = one.how, one.target
            self._named[name] += one.captures
            self._saying[name] += one.saying
            self._kinds.update({(name, kind): count for kind, count in one.kinds.items()})

    def profile(self) -> Profile:
        """What was counted so far."""
        kinds: dict[str, dict[Kind, int]] = {}
        for (name, kind), count in sorted(self._kinds.items()):
            kinds.setdefault(name, {})[kind] = count
        fields = {
            name: FieldProfile(
                how, self._named[name], self._saying[name], kinds.get(name, {}), target
            )
            for name, (how, target) in sorted(self._how.items())
        }
        return Profile(
            self._captures,
            self._barren,
            self._records,
            MappingProxyType(fields),
            MappingProxyType(dict(sorted(self._attributes.items()))),
        )


def _ways(account: Account) -> Iterable[tuple[str, tuple[How, str | None]]]:
    yield from ((name, (How.STORED, account.targets.get(name))) for name in account.stored)
    yield from ((name, (How.EXCLUDED, None)) for name in account.excluded)
    yield from ((name, (How.UNKNOWN, None)) for name in account.unknown)


def _field_json(one: FieldProfile) -> dict[str, object]:
    return {
        "how": one.how.value,
        "captures": one.captures,
        "saying": one.saying,
        "kinds": {kind.value: count for kind, count in sorted(one.kinds.items())},
        "target": one.target,
    }


def _from_json(stored: Mapping[str, Any]) -> FieldProfile:
    return FieldProfile(
        How(stored["how"]),
        int(stored["captures"]),
        int(stored["saying"]),
        {Kind(kind): int(count) for kind, count in stored["kinds"].items()},
        None if stored["target"] is None else str(stored["target"]),
    )
