"""What a source changed since its last good run.

A name that is gone, new, emptied or of another kind is reported in the run that meets it. A run over the same pages
reports nothing; where only some of the pages were read, a name is missed only if chance does not explain its absence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from math import sqrt

from prw_sdk.account.capture import SAYS_NOTHING
from prw_sdk.account.profile import FieldProfile, How, Profile
from prw_sdk.adapter import Kind

UNLIKELY = 0.01
"""A name is missed in a partial run where the chance of not meeting it is smaller than this."""

WHOLE = 0.9
"""A run over at least this share of the captures of the last one was over all of them."""

MOST_ALIKE = 0.2
"""How far apart the shares of captures of a renamed name may be."""

FADED = 0.5
"""A name that stands in less than this share of what it stood in before has faded, if chance does not explain it."""

CERTAIN = 5.0
"""Standard deviations beyond which chance does not explain a smaller share."""

MOST_PAIRS = 400
"""Of more vanished and new names than this no pairs are looked for: the source is another one."""

_WITHOUT_VALUE = SAYS_NOTHING | {Kind.UNKNOWN}
_NO_FIELD = FieldProfile(How.UNKNOWN)


class ChangeKind(StrEnum):
    """What became of a name since the last good run."""

    UNKNOWN = "unknown"
    """It is new, and no declaration covers it."""
    DROPPED = "dropped"
    ADDED = "added"
    """It is new, and the declarations cover it."""
    RETYPED = "retyped"
    EMPTIED = "emptied"
    RENAMED = "renamed"
    """It is gone, and another one stands in its place."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change: the name (an attribute's key where it is not stated but read no more), and in how many captures.

    `other` is the new name of a renamed one, or where a re-typed value stands now; `details` says of which kinds.
    """

    kind: ChangeKind
    name: str
    other: str | None = None
    before: int = 0
    now: int = 0
    details: str = ""

    def __str__(self) -> str:
        other = "" if self.other is None else f" (now {self.other!r})"
        details = f", {self.details}" if self.details else ""
        return (
            f"{self.name!r} {self.kind.value}{other}: {self.before} before, {self.now} now{details}"
        )


def changes(before: Profile, now: Profile) -> tuple[Change, ...]:
    """What changed between two runs, in order of names; nothing where there is no earlier run but unknown names."""
    return tuple(sorted(_Comparison(before, now).all(), key=lambda one: (one.name, one.kind)))


class _Comparison:
    """Gone and new names of two profiles, each explained once."""

    def __init__(self, before: Profile, now: Profile) -> None:
        self._before = before
        self._now = now
        self._gone = sorted(name for name in before.fields if self._is_gone(name))
        self._new = sorted(now.fields.keys() - before.fields.keys())

    def all(self) -> Iterator[Change]:
        found = [*self._emptied(), *self._reshaped(), *self._renamed(), *self._left_over()]
        found += [*self._retyped(), *self._faded()]
        yield from found
        yield from self._unread(found)

    def _is_gone(self, name: str) -> bool:
        return name not in self._now.fields and self._is_missed(self._before.fields[name].captures)

    def _is_missed(self, count: int) -> bool:
        """Whether what stood in `count` captures before should have been met in this run."""
        then, now = self._before.captures, self._now.captures
        if not count or not now:
            return False
        if now >= WHOLE * then:
            return True
        return (1 - count / (then + 1)) ** now < UNLIKELY

    def _emptied(self) -> Iterator[Change]:
        """A name without a value where it had one; with it everything that stood under it."""
        empty = [name for name, one in self._now.fields.items() if _is_empty(one)]
        gone = _by_outer(self._gone)
        for name in sorted(empty):
            under = gone.get(name, [])
            earlier = self._before.fields.get(name, _NO_FIELD)
            had = max((self._before.fields[one].saying for one in under), default=earlier.saying)
            if not self._is_missed(had):
                continue
            self._explain(under, [name])
            yield Change(ChangeKind.EMPTIED, name, before=had, now=0)

    def _reshaped(self) -> Iterator[Change]:
        """A value that became an object, or an object that became a value."""
        inner = _by_outer(self._new)
        for name in [one for one in self._gone if one in inner]:
            yield self._change(ChangeKind.RETYPED, name, inner[name][0])
            self._explain([name], inner[name])
        under = _by_outer(self._gone)
        for name in [one for one in self._new if one in under]:
            yield self._change(ChangeKind.RETYPED, under[name][0], name)
            self._explain(under[name], [name])

    def _renamed(self) -> Iterator[Change]:
        if len(self._gone) + len(self._new) > MOST_PAIRS:
            return
        pairs = ((self._likeness(old, new), old, new) for old in self._gone for new in self._new)
        for likeness, old, new in sorted(pairs, key=lambda pair: (-pair[0], pair[1:])):
            if likeness > 0 and old in self._gone and new in self._new:
                self._explain([old], [new])
                yield self._change(ChangeKind.RENAMED, old, new)

    def _likeness(self, old: str, new: str) -> float:
        """How well a new name stands for an old one; 0 where it does not."""
        then, now = self._before.fields[old], self._now.fields[new]
        known = then.kinds.keys() - _WITHOUT_VALUE, now.kinds.keys() - _WITHOUT_VALUE
        if all(known) and not known[0] & known[1]:
            return 0
        apart = abs(then.captures / self._before.captures - now.captures / self._now.captures)
        if apart > MOST_ALIKE:
            return 0
        nearby = _parent(old) == _parent(new) or old.rpartition(".")[2] == new.rpartition(".")[2]
        return SequenceMatcher(None, old, new).ratio() + (1 if nearby else 0) + (1 - apart)

    def _left_over(self) -> Iterator[Change]:
        for name in self._gone:
            yield self._change(ChangeKind.DROPPED, name)
        for name in self._new:
            is_unknown = self._now.fields[name].how is How.UNKNOWN
            if is_unknown or self._before.captures:
                kind = ChangeKind.UNKNOWN if is_unknown else ChangeKind.ADDED
                yield self._change(kind, name)

    def _retyped(self) -> Iterator[Change]:
        """A name with a value of a kind that was not there before."""
        for name, one in self._now.fields.items():
            then = self._before.fields.get(name, _NO_FIELD).kinds.keys() - _WITHOUT_VALUE
            new = one.kinds.keys() - _WITHOUT_VALUE - then
            if then and new:
                details = f"{_listed(then)} before, {_listed(new)} now"
                yield self._change(ChangeKind.RETYPED, name, details=details)

    def _faded(self) -> Iterator[Change]:
        """A name that most of the pages state no more, although some still do."""
        for name, one in self._now.fields.items():
            then = self._before.fields.get(name, _NO_FIELD).captures
            if then and self._is_faded(then, one.captures):
                yield self._change(ChangeKind.DROPPED, name, details="in most captures")

    def _is_faded(self, then: int, now: int) -> bool:
        """Whether a name's share fell beyond chance (the difference of two proportions, pooled)."""
        all_then, all_now = self._before.captures, self._now.captures
        fell = then / all_then - now / all_now
        if now / all_now >= FADED * then / all_then:
            return False
        pooled = (then + now) / (all_then + all_now)
        deviation = sqrt(pooled * (1 - pooled) * (1 / all_then + 1 / all_now))
        return deviation > 0 and fell / deviation > CERTAIN

    def _unread(self, found: Iterable[Change]) -> Iterator[Change]:
        """An attribute that is read no more although nothing that was stated explains it."""
        touched = {one.name for one in found} | {one.other for one in found}
        explained = {
            one.target
            for profile in (self._before, self._now)
            for name, one in profile.fields.items()
            if name in touched or any(name.startswith(f"{outer}.") for outer in touched)
        }
        lost = self._before.attributes.keys() - self._now.attributes.keys() - explained
        for key in lost if self._now.records else ():
            count = self._before.attributes[key]
            if self._is_missed(min(count, self._before.captures)):
                yield Change(ChangeKind.DROPPED, key, before=count, details="read in no record")

    def _explain(self, gone: Iterable[str], new: Iterable[str]) -> None:
        self._gone = [name for name in self._gone if name not in set(gone)]
        self._new = [name for name in self._new if name not in set(new)]

    def _change(
        self, kind: ChangeKind, name: str, other: str | None = None, details: str = ""
    ) -> Change:
        then = self._before.fields.get(name, _NO_FIELD).captures
        now = self._now.fields.get(other or name, _NO_FIELD).captures
        return Change(kind, name, other, then, now, details)


def _is_empty(one: FieldProfile) -> bool:
    return one.captures > 0 and one.saying == 0


def _by_outer(names: Iterable[str]) -> dict[str, list[str]]:
    """Names by each name that they stand under."""
    found: dict[str, list[str]] = {}
    for name in names:
        outer = name
        while outer := _parent(outer):
            found.setdefault(outer, []).append(name)
    return found


def _parent(name: str) -> str:
    return name.rpartition(".")[0]


def _listed(kinds: Iterable[Kind]) -> str:
    return ", ".join(sorted(kind.value for kind in kinds))
