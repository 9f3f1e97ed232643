"""Passwords and numbers kept in one file that only its owner reads."""

from __future__ import annotations

import fcntl
import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prw_base.files import write_private


class Secrets:
    """A small JSON file of named values, made at first use; safe between processes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def password(self, name: str) -> str:
        """The password kept for ``name``; the first call makes it."""
        return str(self._kept(f"password.{name}", lambda: secrets.token_urlsafe(24)))

    def number(self, name: str, make: Callable[[], int]) -> int:
        """The number kept under ``name``; the first call makes it."""
        return int(self._kept(name, make))

    def set_number(self, name: str, value: int) -> None:
        """Keep another number under ``name``."""
        with self._locked() as values:
            values[name] = value
            self._write(values)

    def _kept(self, name: str, make: Callable[[], object]) -> Any:
        with self._locked() as values:
            if name not in values:
                values[name] = make()
                self._write(values)
            return values[name]

    @contextmanager
    def _locked(self) -> Iterator[dict[str, Any]]:
        with open(self._path.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield json.loads(self._path.read_text("utf-8")) if self._path.exists() else {}

    def _write(self, values: dict[str, Any]) -> None:
        write_private(self._path, json.dumps(values, indent=1).encode())
