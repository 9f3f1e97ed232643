"""Where commands write to: a file that appears whole or not at all, or standard output."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from prw_base.files import sync_folder

STREAM = Path("-")
"""Stands for standard output where a file is to be named."""


class TargetUnusable(Exception):
    """Nothing can be written there; the message names the option and the target, and says what to do."""


@contextmanager
def opened(target: Path, option: str) -> Iterator[BinaryIO]:
    """The file, durable once it is whole, with the rights of the one that it replaces; or standard output for `STREAM`.

    A link is followed. Raises `TargetUnusable`: at once for what is no regular file, or has no folder to stand in, and
    at the end of a writing that fails, which leaves what was there.
    """
    if target == STREAM:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    real, mode = _regular(target, option)
    fresh = real.with_name(f".{real.name[:8]}.{secrets.token_hex(8)}")
    try:
        with fresh.open("xb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(real)
        sync_folder(real.parent)
    except OSError as failed:
        # without a name it came from the open file; what else is named is none of the target's
        if failed.filename is not None and Path(failed.filename) not in (fresh, real.parent):
            raise
        raise TargetUnusable(
            f"{option} {target}: {failed.strerror}: mend that, or name a file elsewhere"
        ) from failed
    finally:
        fresh.unlink(missing_ok=True)


def _regular(target: Path, option: str) -> tuple[Path, int | None]:
    """Where the links lead, and the rights of what is there; None where nothing is."""
    real = Path(os.path.realpath(target))
    if not real.parent.is_dir():
        raise TargetUnusable(
            f"{option} {target}: there is no folder {real.parent}: make it, or name a file elsewhere"
        )
    try:
        found = target.stat()
    except FileNotFoundError:
        return real, None
    except OSError as refused:
        raise TargetUnusable(
            f"{option} {target}: {refused.strerror}: name another file"
        ) from refused
    if stat.S_ISDIR(found.st_mode):
        raise TargetUnusable(f"{option} {target}: is a folder: name a file in it")
    if not stat.S_ISREG(found.st_mode) or _is_output(found):
        raise TargetUnusable(
            f"{option} {target}: is no file of its own, and is not replaced: name a file, or give - for "
            "standard output"
        )
    return real, stat.S_IMODE(found.st_mode)


def _is_output(found: os.stat_result) -> bool:
    """Whether this process writes there already: what it says later would be lost with the file it replaces."""
    for descriptor in (1, 2):
        try:
            if os.path.samestat(found, os.fstat(descriptor)):
                return True
        except OSError:  # closed
            continue
    return False
