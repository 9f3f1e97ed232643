"""What an adapter's code gives back, held against its contract: another type is its error, never the run's."""

from __future__ import annotations

from reprlib import Repr
from typing import TypeVar

from prw_sdk.adapter import Batch, Checkpoint, Fetched, Target
from prw_sdk.collect.reading import AdapterFailed
from prw_sdk.evidence import Part
from prw_sdk.spool.model import sanitised

T = TypeVar("T")
_SHORT = Repr()
_SHORT.maxother = _SHORT.maxstring = 60


def parts_of(fetched: object) -> tuple[Part, ...]:
    """The parts that `fetch` gave, each of a role of its own; raises `AdapterFailed` for anything else."""
    given = _is(_is(fetched, Fetched, "fetch").parts, tuple, "fetch", "a tuple of Part")
    parts = tuple(_is(part, Part, "fetch") for part in given)
    roles = [part.role for part in parts]
    if not roles or len(set(roles)) != len(roles):
        raise AdapterFailed(f"fetch returned parts with the roles {roles}: each needs its own")
    return parts


def batch_of(planned: object) -> Batch:
    """The batch that `plan` gave; raises `AdapterFailed` for anything else."""
    batch = _is(planned, Batch, "plan")
    for target in _is(batch.targets, tuple, "plan", "a tuple of Target"):
        _is(target, Target, "plan")
        _is(target.native_id, str, "plan", "a native_id (str)")
        _is(target.url, str, "plan", "a url (str)")
    if batch.then is not None:
        _is(batch.then, Checkpoint, "plan")
    return batch


def _is(given: object, kind: type[T], giver: str, expected: str | None = None) -> T:
    if not isinstance(given, kind):
        wanted = expected or kind.__name__
        raise AdapterFailed(sanitised(f"{giver} gave {_SHORT.repr(given)} where {wanted} belongs"))
    return given
