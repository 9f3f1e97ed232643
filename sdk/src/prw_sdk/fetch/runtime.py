"""The folder in which the processes of one host agree on their manners."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


class RuntimeFolderUnusable(Exception):
    """The folder cannot be used; the message names it and says what to do."""


def default_folder() -> Path:
    """``$XDG_RUNTIME_DIR/prw``, else ``prw-<uid>`` in the folder for temporary files."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    return Path(given) / "prw" if given else Path(tempfile.gettempdir()) / f"prw-{os.getuid()}"


def secured(folder: Path) -> Path:
    """The folder, made with mode 0700 where it is not there; raises `RuntimeFolderUnusable`.

    In a folder for temporary files anybody may have made it before us: it is used only if it is ours, no link, and
    closed to others.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise _unusable(folder, error.strerror or str(error)) from error
    if not stat.S_ISDIR(found.st_mode):
        raise _unusable(folder, "it is no folder")
    if found.st_uid != os.getuid():
        raise _unusable(folder, f"it belongs to user {found.st_uid}")
    if stat.S_IMODE(found.st_mode) & 0o022:
        raise _unusable(folder, "others may write to it (chmod 700 would close it)")
    return folder


def _unusable(folder: Path, why: str) -> RuntimeFolderUnusable:
    return RuntimeFolderUnusable(
        f"runtime folder {folder}: {why}; collectors on one machine share their request limits there: "
        "set XDG_RUNTIME_DIR to a folder of your own"
    )
