"""What a folder must be like before a spool is opened in it: SQLite itself would begin a new ledger anywhere."""

from __future__ import annotations

from pathlib import Path

from prw_sdk.spool.sqlite import SpoolUnusable

LEDGER = "ledger.sqlite"
_KEPT = {"blobs": "*/*", "turns": "*"}
"""What is only there once a ledger has been made."""


def refuse_without_ledger(folder: Path) -> None:
    """Raise `SpoolUnusable` where a spool was used whose ledger is gone or empty."""
    # in this order: whatever a spool keeps was put there after its ledger was made
    is_used = refuses_new_ledger(folder) or _size(folder / f"{LEDGER}-wal") > 0
    if is_used and not _size(folder / LEDGER):
        raise without_ledger(folder)


def refuses_new_ledger(folder: Path) -> bool:
    """Whether something is kept there that a ledger has named, so that none may be begun."""
    return any(any((folder / name).glob(them)) for name, them in _KEPT.items())


def without_ledger(folder: Path) -> SpoolUnusable:
    """What to say of a folder that was used and has no ledger."""
    return SpoolUnusable(
        f"{folder} was used, and its {LEDGER} is missing or empty; nothing else of it is lost or touched. Restore "
        f"{LEDGER} (and {LEDGER}-wal, where there is one) from your backup; without one, keep this folder for its "
        "bytes and collect into another"
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
