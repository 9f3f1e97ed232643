"""What a version of an adapter reads otherwise than was read before, capture by capture."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from prw_sdk.adapter import Adapter, NotARecord
from prw_sdk.collect.reading import NOT_A_RECORD, READ_FAILED, AdapterFailed, foreign
from prw_sdk.evidence import Capture, Presence
from prw_sdk.operate.reread import Opened
from prw_sdk.spool import readings
from prw_sdk.spool.model import sanitised
from prw_sdk.spool.readings import KeptReading

_Told = Mapping[str, Any]
"""A reading as `readings.decode` gives it, or a record of it."""


class How(StrEnum):
    """What became of a claim. `MOVED`: the same value, found at another place."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class ClaimChange:
    """One claim of a record that is not as it was; `attribute` is empty where the whole capture is meant.

    `before` and `now` are values as stated (for a whole capture: why it gives no record); None where there is none.
    """

    how: How
    record_id: str
    attribute: str
    before: str | None = None
    now: str | None = None


@dataclass(frozen=True, slots=True)
class CaptureDiff:
    """The changes of one capture. `version` read it before; `code` and `error` say why it could not be read now."""

    source_id: str
    native_id: str
    captured_at: str
    adapter: str
    version: str | None
    changes: tuple[ClaimChange, ...] = ()
    code: str | None = None
    error: str | None = None


@dataclass(slots=True)
class Compared:
    """What came of a chunk: captures that are not as they were, and how many were the same, or never read before."""

    diffs: list[CaptureDiff] = field(default_factory=list)
    same: int = 0
    new: int = 0
    readings: list[KeptReading] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Compare:
    """The work: hold a chunk against what was read of it. With `keep` the new readings are given back as well."""

    keep: bool = False

    def __call__(self, chunk: Iterable[Opened]) -> Compared:
        """The differences of the chunk."""
        compared = Compared()
        for one in chunk:
            if one.capture is None or one.adapter is None:
                compared.diffs.append(_diff(one, (), one.code, one.error))
            else:
                self._compare(one, one.adapter, one.capture, compared)
        return compared

    def _compare(self, one: Opened, adapter: Adapter, capture: Capture, compared: Compared) -> None:
        now = reading_of(adapter, capture)
        if now["code"] == READ_FAILED:
            compared.diffs.append(_diff(one, (), now["code"], now["error"]))
            return
        if self.keep:
            body = readings.encode_told(now)
            compared.readings.append(KeptReading(one.handed.kept.row, adapter.version, body))
        if one.handed.before is None:
            compared.new += 1
            return
        before = readings.decode(one.handed.before)
        changes = () if before == now else tuple(changed(before, now))
        if changes:
            compared.diffs.append(_diff(one, changes))
        else:
            compared.same += 1


def reading_of(adapter: Adapter, capture: Capture) -> _Told:
    """What a capture gives now, as `readings.decode` has it."""
    if capture.presence is Presence.ABSENT:
        return readings.told(())
    try:
        with foreign("read"):
            records = tuple(adapter.read(capture))
            if records:
                return readings.told(records)
    except NotARecord as other:
        return readings.told((), NOT_A_RECORD, sanitised(str(other)))
    except AdapterFailed as broken:
        return readings.told((), READ_FAILED, str(broken))
    return readings.told((), NOT_A_RECORD, "it holds no record")


def changed(before: _Told, now: _Told) -> Iterator[ClaimChange]:
    """Every claim that was added, changed, removed or moved between two readings of one capture."""
    old, new = _by_id(before["records"]), _by_id(now["records"])
    if bool(old) != bool(new):
        reasons = (_reason(before), _reason(now))
        yield ClaimChange(How.ADDED if new else How.REMOVED, "", "", *reasons)
    for record_id in dict.fromkeys((*old, *new)):
        yield from _of_record(record_id, old.get(record_id), new.get(record_id))


def _reason(told: _Told) -> str | None:
    return None if told["code"] is None else f"{told['code']}: {told['error']}"


def _by_id(records: Sequence[_Told]) -> dict[str, _Told]:
    return {str(record["record_id"]): record for record in records}


def _of_record(record_id: str, before: _Told | None, now: _Told | None) -> Iterator[ClaimChange]:
    if before is not None and now is not None and before["listing_key"] != now["listing_key"]:
        keys = (str(before["listing_key"]), str(now["listing_key"]))
        yield ClaimChange(How.CHANGED, record_id, "listing key", *keys)
    old, new = _values(before), _values(now)
    for attribute in dict.fromkeys((*old, *new)):
        for how, was, is_now in _of_values(old.get(attribute, []), new.get(attribute, [])):
            yield ClaimChange(how, record_id, attribute, was, is_now)


_Value = tuple[str, str]
"""A value as stated, and where it stands."""


def _values(record: _Told | None) -> dict[str, list[_Value]]:
    found: dict[str, list[_Value]] = defaultdict(list)
    if record is None:
        return found
    merchant = [record["merchant"]] if record["merchant"] else []
    for claim in (*merchant, *record["claims"]):
        place = f"{claim['part']} {claim['selector']}"
        found[claim["attribute"]].append((claim["value_as_stated"], place))
    return found


def _of_values(
    old: Sequence[_Value], new: Sequence[_Value]
) -> Iterator[tuple[How, str | None, str | None]]:
    """Values that are equal stand for one another; of what is left one that went and one that came make a change."""
    came, went = Counter(value for value, _ in new), Counter(value for value, _ in old)
    gone = list((went - came).elements())
    fresh = list((came - went).elements())
    for was, is_now in zip(gone, fresh, strict=False):
        yield How.CHANGED, was, is_now
    yield from ((How.REMOVED, was, None) for was in gone[len(fresh) :])
    yield from ((How.ADDED, None, is_now) for is_now in fresh[len(gone) :])
    moved = Counter(old) - Counter(new)
    for value, count in Counter(value for value, _ in moved.elements()).items():
        for _ in range(count - (went - came)[value]):
            yield How.MOVED, value, value


def _diff(
    one: Opened,
    changes: tuple[ClaimChange, ...] = (),
    code: str | None = None,
    error: str | None = None,
) -> CaptureDiff:
    kept = one.handed.kept
    adapter = "" if one.capture is None else one.capture.adapter.name
    moment = kept.captured_at.isoformat()
    named = (kept.key.source_id, kept.key.native_id, moment, adapter, one.handed.version)
    return CaptureDiff(*named, changes, code, error)


@dataclass(frozen=True, slots=True)
class Remember:
    """The work that only reads: what is to be held against another version's reading."""

    def __call__(self, chunk: Iterable[Opened]) -> list[KeptReading]:
        """The readings of a chunk; none for captures that cannot be read."""
        return [
            KeptReading(
                one.handed.kept.row,
                one.adapter.version,
                readings.encode_told(reading_of(one.adapter, one.capture)),
            )
            for one in chunk
            if one.capture is not None and one.adapter is not None
        ]
