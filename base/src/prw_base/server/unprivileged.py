"""Become another user, then run: ``python unprivileged.py UID GID plain|enter PROGRAM ARGUMENT…``.

PostgreSQL refuses to run as root, and resolves its own absolute path at start; an unprivileged
user cannot do that below a folder that only root may enter, such as ``/root`` or what
``mktemp -d`` makes. There (``enter``) the program is given, as an ambient capability (Linux,
capabilities(7)), the right to look into folders, and nothing else of root's. Nothing on disk is
changed for it.

It runs as a script of its own, so that no code runs between fork and exec of a threaded process.
"""

from __future__ import annotations

import ctypes
import os
import sys

_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2
_PR_SET_SECUREBITS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 28, 47, 2
_SECBIT_NO_SETUID_FIXUP = 1 << 2
_VERSION_3 = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def become(uid: int, gid: int) -> None:
    """Give up root for good."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def become_able_to_enter(uid: int, gid: int) -> None:
    """Give up root for good, but for the right to enter folders.

    Containers often lack CAP_DAC_READ_SEARCH; then CAP_DAC_OVERRIDE stands in for it.
    Raises OSError where neither may be kept.
    """
    keep = _CAP_DAC_READ_SEARCH if _holds(_CAP_DAC_READ_SEARCH) else _CAP_DAC_OVERRIDE
    # Without this bit access(2), which PostgreSQL asks about its own binary, ignores capabilities.
    _checked(_libc.prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP, 0, 0, 0), "securebits")
    become(uid, gid)
    _hold_only(keep)
    _checked(_libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, keep, 0, 0), "raise capability")


def _holds(capability: int) -> bool:
    data = (_Data * 2)()
    _checked(_libc.capget(ctypes.byref(_Header(_VERSION_3, 0)), data), "read capabilities")
    return bool(data[0].permitted & 1 << capability)


def _hold_only(capability: int) -> None:
    data = (_Data * 2)()
    data[0] = _Data(1 << capability, 1 << capability, 1 << capability)
    _checked(_libc.capset(ctypes.byref(_Header(_VERSION_3, 0)), data), "set capabilities")


if __name__ == "__main__":
    change = become_able_to_enter if sys.argv[3] == "enter" else become
    change(int(sys.argv[1]), int(sys.argv[2]))
    os.execv(sys.argv[4], sys.argv[4:])  # noqa: S606  the point of this script
