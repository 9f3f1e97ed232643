"""Files that outlive a power cut, and files that only their owner reads."""

from __future__ import annotations

import os
from pathlib import Path

from prw.errors import Code, PrwError


def write_private(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` with mode 0600, whole or not at all, and make it durable."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
    sync_folder(path.parent)


def read_token(path: Path, field: str) -> str:
    """The token in ``path``; ``field`` is the setting that named the file.

    Raises PrwError INVALID_TOKEN where the file cannot be read or holds nothing.
    """
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise PrwError(Code.INVALID_TOKEN, f"no token: {error}", field=field) from error
    if not token:
        raise PrwError(Code.INVALID_TOKEN, f"{path} holds no token", field=field)
    return token


def make_folder(folder: Path) -> None:
    """Make ``folder`` and its parents, durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
