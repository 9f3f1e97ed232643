"""Coverage: which declared fields and which locators are met over a whole spool."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prw_sdk.account import Account, FieldProfile, How, Profile, Tally
from prw_sdk.adapter import Adapter, Disposition, Excluded, Stored, covers
from prw_sdk.collect.reading import NOT_A_RECORD, Reading, read
from prw_sdk.evidence import Capture, Claim, Presence, Record, Selector
from prw_sdk.locate import leads_back
from prw_sdk.operate.reread import Opened

_NUMBER = re.compile(r"(?<![\w-])\d+(?![\w-])")
MOST_TROUBLES = 20
"""Of more captures that could not be read than this only the number is told."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A locator with its numbers left out (``/offers/*/price``), and the attribute that it leads to."""

    attribute: str
    part: str
    selector: str


@dataclass(slots=True)
class Found:
    """What one adapter met. `shapes` counts claims, `astray` those whose locator does not lead back."""

    tally: Tally = field(default_factory=Tally)
    roles: Counter[str] = field(default_factory=Counter)
    shapes: Counter[Shape] = field(default_factory=Counter)
    astray: Counter[Shape] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    first: list[str] = field(default_factory=list)

    def add(self, other: Mapping[str, Any]) -> None:
        """Count what another process has counted (`plain`)."""
        self.tally.merge(Profile.from_json(other["profile"]))
        for name in ("roles", "shapes", "astray", "troubles"):
            getattr(self, name).update(other[name])
        self.first += other["first"][: MOST_TROUBLES - len(self.first)]

    def plain(self) -> dict[str, Any]:
        """The same as values that can travel."""
        return {
            "profile": self.tally.profile().as_json(),
            "roles": self.roles,
            "shapes": self.shapes,
            "astray": self.astray,
            "troubles": self.troubles,
            "first": self.first,
        }


Counted = dict[str, dict[str, Any]]
"""By adapter, what `Found.plain` says."""


@dataclass(frozen=True, slots=True)
class Count:
    """The work: count a chunk of captures. With `verify` every locator is followed."""

    verify: bool = False

    def __call__(self, chunk: Iterable[Opened]) -> Counted:
        """What the chunk states, by adapter."""
        found: dict[str, Found] = {}
        for one in chunk:
            self._count(one, found)
        return {name: counted.plain() for name, counted in found.items()}

    def _count(self, one: Opened, found: dict[str, Found]) -> None:
        if one.capture is None or one.adapter is None:
            _note(found.setdefault("", Found()), one, one.code, one.error)
            return
        mine = found.setdefault(one.adapter.name, Found())
        reading = reading_of(one.adapter, one.capture)
        if reading.code not in (None, NOT_A_RECORD):
            _note(mine, one, reading.code, reading.error)
            return
        mine.tally.add(reading.account, reading.records)
        mine.roles.update({part.role for part in one.capture.parts})
        self._locators(mine, one.capture, reading.records)

    def _locators(self, mine: Found, capture: Capture, records: Iterable[Record]) -> None:
        for claim in _claims(records):
            shape = shape_of(claim)
            mine.shapes[shape] += 1
            if self.verify and not leads_back(claim, capture):
                mine.astray[shape] += 1


def reading_of(adapter: Adapter, capture: Capture) -> Reading:
    """What a capture gives; an absence states nothing."""
    if capture.presence is Presence.ABSENT:
        return Reading(account=Account(is_present=False), code=NOT_A_RECORD, error="it is gone")
    return read(adapter, capture)


def _note(mine: Found, one: Opened, code: str | None, error: str | None) -> None:
    mine.troubles[str(code)] += 1
    if len(mine.first) < MOST_TROUBLES:
        key = one.handed.kept.key
        mine.first.append(f"{key.source_id} {key.native_id}: {code}: {error}")


def _claims(records: Iterable[Record]) -> Iterator[Claim]:
    for record in records:
        if record.merchant is not None:
            yield record.merchant
        yield from record.claims


def shape_of(claim: Claim) -> Shape:
    """The shape of a claim's locator."""
    steps: list[str] = []
    selector: Selector | None = claim.locator.selector
    while selector is not None:
        attribute = "" if selector.attribute is None else f"@{selector.attribute}"
        steps.append(f"{selector.type} {_NUMBER.sub('*', selector.value)}{attribute}")
        selector = selector.refined_by
    return Shape(claim.attribute, claim.locator.part_role, " → ".join(steps))


def merged(counts: Iterable[Counted]) -> dict[str, Found]:
    """All chunks together, by adapter; under an empty name what no adapter could be given."""
    found: dict[str, Found] = {}
    for one in counts:
        for name, counted in one.items():
            found.setdefault(name, Found()).add(counted)
    return found


@dataclass(frozen=True, slots=True)
class Line:
    """One declared field, or a stated name that none covers: in how many captures it stands, and in which share.

    `names` are the stated names that a pattern met; `how` is ``stored``, ``excluded`` or ``unknown``.
    """

    field: str
    how: str
    target: str | None
    captures: int
    share: float
    kinds: tuple[str, ...]
    names: tuple[str, ...]


def lines(adapter: type[Adapter], profile: Profile) -> tuple[Line, ...]:
    """A line for each declared field in the order of the declarations, then those for what they do not cover."""
    under: dict[str, list[str]] = {declared: [] for declared in adapter.fields}
    unknown: list[str] = []
    for name, one in profile.fields.items():
        declared = _declared(adapter.fields, name)
        if one.how is How.UNKNOWN or declared is None:
            unknown.append(name)
        else:
            under[declared].append(name)
    told = [
        _line(declared, adapter.fields[declared], names, profile)
        for declared, names in under.items()
    ]
    return (*told, *(_line(name, None, [name], profile) for name in unknown))


def _declared(fields: Mapping[str, Disposition], name: str) -> str | None:
    if name in fields:
        return name
    fitting = [one for one in fields if covers(one, name)]
    return max(fitting, key=len) if fitting else None


def _line(declared: str, how: Disposition | None, names: Iterable[str], profile: Profile) -> Line:
    found: dict[str, FieldProfile] = {name: profile.fields[name] for name in names}
    captures = max((one.captures for one in found.values()), default=0)
    kinds = {kind.value for one in found.values() for kind in one.kinds}
    if how is None:
        # a source's settings may declare what the adapter does not
        kind, target = next((one.how.value, one.target) for one in found.values())
    else:
        target = how.target if isinstance(how, Stored) else None
        kind = _word(how)
    share = captures / profile.captures if profile.captures else 0.0
    return Line(declared, kind, target, captures, share, tuple(sorted(kinds)), tuple(found))


def _word(how: Disposition) -> str:
    if isinstance(how, Stored):
        return "stored"
    return "excluded" if isinstance(how, Excluded) else "backlog"
