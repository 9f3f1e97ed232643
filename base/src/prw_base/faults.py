"""Named points in the code path at which tests kill the process or raise.

``PRW_FAULTS="intake.after_commit=kill@3,spool.before_fsync=raise@1"`` kills the process with
SIGKILL at the third hit of one point and raises ``InjectedFault`` at the first hit of the other.
Unarmed, a point costs one look into an empty dictionary.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from dataclasses import dataclass

VARIABLE = "PRW_FAULTS"

_ARM = re.compile(r"(?P<name>[a-z0-9_.]+)=(?P<action>kill|raise)(?:@(?P<hit>[1-9][0-9]*))?")


class InjectedFault(Exception):
    """Raised by an armed point, by tests only."""


@dataclass(slots=True)
class _Armed:
    action: str
    at_hit: int
    hits: int = 0


_lock = threading.Lock()


def parse(spec: str) -> dict[str, _Armed]:
    """The points armed by ``spec``; raises ValueError for a part that is not ``name=action@n``."""
    armed: dict[str, _Armed] = {}
    for part in filter(None, (p.strip() for p in spec.split(","))):
        match = _ARM.fullmatch(part)
        if match is None:
            raise ValueError(f"{VARIABLE}: {part!r} is not name=kill@n or name=raise@n")
        armed[match["name"]] = _Armed(match["action"], int(match["hit"] or 1))
    return armed


_points: dict[str, dict[str, _Armed]] = {}
"""Under ``now`` the armed points, once they are known; the environment is read at the first hit."""


def arm(spec: str) -> None:
    """Arm the points of ``spec`` in this process, in place of all that were armed."""
    _points["now"] = parse(spec)


def disarm() -> None:
    """Disarm every point of this process, those of the environment included."""
    arm("")


def fault(name: str) -> None:
    """A point named ``room.where``; does nothing unless it is armed and this is its hit."""
    if "now" not in _points:
        arm(os.environ.get(VARIABLE, ""))
    armed = _points["now"].get(name)
    if armed is not None and _is_due(armed):
        _strike(name, armed.action)


def _is_due(armed: _Armed) -> bool:
    with _lock:
        armed.hits += 1
        return armed.hits == armed.at_hit


def _strike(name: str, action: str) -> None:
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise InjectedFault(name)
