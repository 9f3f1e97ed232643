"""Where the demo keeps what, and under which names."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from prw_examples.demo.audit.store import Scope
from prw_examples.demo.children import DemoFailed

SCOPE = Scope("ten_demo", "cat_street")
CATALOG_NAME = "Example street"
WORKER, COLLECTOR, PRODUCT, PERSON = "wrk_demo", "demo-collector", "demo-product", "demo-operator"
GUARD_SECONDS = 30.0
_STEP_SECONDS = 0.1
_MARK = "This folder is the demo's. `prw demo --fresh` empties it.\n"
_OURS = ("postgres", "objects", "keys", "control", "spool", "tokens", "logs", "run")


@dataclass(frozen=True, slots=True)
class Layout:
    """The state folder, absolute; `lock` is the descriptor by which one demo holds it."""

    root: Path
    lock: int

    @property
    def objects(self) -> Path:
        """The resolver's object store."""
        return self.root / "objects"

    @property
    def spool(self) -> Path:
        """The collector's spool."""
        return self.root / "spool"

    @property
    def sources(self) -> Path:
        """The collector's settings."""
        return self.root / "sources.toml"

    @property
    def logs(self) -> Path:
        """One log for each process."""
        return self.root / "logs"

    def token(self, name: str) -> Path:
        """The file that holds somebody's token; only its owner reads it."""
        return self.root / "tokens" / f"{name}.jwt"

    def ready_file(self, name: str) -> Path:
        """The file in which a process says where it serves."""
        return self.root / "run" / f"{name}.json"


@contextmanager
def occupied(root: Path, fresh: bool) -> Iterator[Layout]:
    """The folder, made where it is missing, for one demo at a time; `fresh` empties it first.

    DemoFailed where another demo runs there, or where something else than a demo's state is in it.
    """
    folder = root.absolute()
    _make(folder)
    _refuse_strangers(folder)
    with open(folder / "demo.lock", "a+") as lock:
        _take(lock, folder)
        layout = Layout(folder, lock.fileno())
        (folder / "README").write_text(_MARK, "utf-8")
        if fresh:
            _empty(layout)
        for name in ("tokens", "run"):
            _make(folder / name)
        yield layout


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as refused:
        raise DemoFailed(f"the folder {folder} cannot be made: {refused.strerror}") from refused


def _refuse_strangers(folder: Path) -> None:
    strange = [one.name for one in folder.iterdir() if one.name != "demo.lock"]
    mark = folder / "README"
    if strange and not (mark.is_file() and mark.read_text("utf-8") == _MARK):
        raise DemoFailed(f"{folder} holds {strange[0]!r}, which is not the demo's")


def _take(lock: TextIO, folder: Path) -> None:
    """Take the folder; where a demo was killed, once its guard has ended what it left, since that holds it too."""
    end = time.monotonic() + GUARD_SECONDS
    while not _try(lock):
        lock.seek(0)
        if _runs(lock.read()) or time.monotonic() > end:
            raise DemoFailed(
                f"another demo runs in {folder}: stop it, or give this one a folder with --state"
            )
        time.sleep(_STEP_SECONDS)
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()


def _try(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _runs(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True


def _empty(layout: Layout) -> None:
    for name in _OURS:
        shutil.rmtree(layout.root / name, ignore_errors=True)
    layout.sources.unlink(missing_ok=True)


def isolate() -> None:
    """Leave out of this process, and so of its children, whatever settings of ours the user has for other ends."""
    for name in list(os.environ):
        if name.startswith(("PRW_RESOLVER_", "PRW_PRODUCT_", "PRW_COLLECT_")):
            del os.environ[name]
    os.environ["PRW_CONFIG"] = os.devnull
