"""Seeing to it that reading reaches for nothing: no network, no files, no processes, no clock and no chance."""

from __future__ import annotations

import datetime as dt
import random
import secrets
import sys
import sysconfig
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

_FORBIDDEN = (
    *("socket.", "subprocess.", "urllib.", "http.client.", "ftplib.", "smtplib.", "sqlite3."),
    *(
        "shutil.",
        "tempfile.",
        "glob.",
        "time.sleep",
        "os.system",
        "os.exec",
        "os.fork",
        "os.posix_spawn",
    ),
    *("os.spawn", "os.startfile", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.listdir"),
    *("os.scandir", "os.truncate", "os.link", "os.symlink", "webbrowser."),
)
_LIBRARIES = (
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")},
    "/usr/share/zoneinfo",
)


_LOOPBACK = (None, "", "localhost", "127.0.0.1", "::1", b"127.0.0.1", b"localhost")


class Reached(RuntimeError):
    """Reading reached for what it may not; the message says for what."""


class _Watch:
    """What is watched now; the interpreter's audit hook stays for good, and asks here."""

    seen: list[str] | None = None
    allowed: tuple[str, ...] = ()
    is_offline = False
    installed = False


def _install() -> None:
    if not _Watch.installed:
        sys.addaudithook(_audit)
        _Watch.installed = True


@contextmanager
def offline() -> Iterator[None]:
    """Refuse every connection and every look-up but those of this machine's own loopback address."""
    _install()
    before, _Watch.is_offline = _Watch.is_offline, True
    try:
        yield
    finally:
        _Watch.is_offline = before


@contextmanager
def without_io(adapter: type) -> Iterator[list[str]]:
    """Refuse and note every file, socket and process that is reached for.

    Loading code is not reading: imports, and files of the adapter's own package and of installed libraries, are let
    through.
    """
    _install()
    home = getattr(sys.modules.get(adapter.__module__), "__file__", None)
    _Watch.allowed = (*_LIBRARIES, *([] if home is None else [str(Path(home).parent)]))
    seen: list[str] = []
    _Watch.seen = seen
    try:
        yield seen
    finally:
        _Watch.seen = None


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if _Watch.is_offline and event in _OUTWARD:
        _stay(event, arguments)
    seen = _Watch.seen
    if seen is None or not (event == "open" or event.startswith(_FORBIDDEN)):
        return
    if event == "open" and str(arguments[0]).startswith(_Watch.allowed):
        return
    if _is_import(sys._getframe()):
        return
    what = f"{event}({', '.join(repr(one)[:80] for one in arguments[:2])})"
    seen.append(what)
    raise Reached(f"reading reached for {what}")


_OUTWARD = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
}
"""Which argument of these events is the address."""


def _stay(event: str, arguments: tuple[object, ...]) -> None:
    address = arguments[_OUTWARD[event]]
    # a path is an address of this machine
    is_path = not isinstance(address, tuple) and event in ("socket.connect", "socket.sendto")
    host = address[0] if isinstance(address, tuple) else address
    if not is_path and host not in _LOOPBACK:
        raise Reached(f"the network is blocked: {event} to {host!r}")


def _is_import(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def without_chance(adapter: type) -> Iterator[list[str]]:
    """Note every use of a clock or of chance by the adapter's own package."""
    seen: list[str] = []
    put_back: list[tuple[ModuleType, str, object]] = []
    for module in _modules(adapter):
        for name, value in list(vars(module).items()):
            watched = _watched(value, seen)
            if watched is not None:
                put_back.append((module, name, value))
                setattr(module, name, watched)
    try:
        yield seen
    finally:
        for module, name, value in put_back:
            setattr(module, name, value)


def _modules(adapter: type) -> list[ModuleType]:
    package = adapter.__module__.rpartition(".")[0] or adapter.__module__
    own = sys.modules.get(adapter.__module__)
    inner = [one for name, one in sys.modules.items() if name.startswith(f"{package}.")]
    top = sys.modules.get(package)
    return list({id(one): one for one in (own, top, *inner) if one is not None}.values())


_CLOCKS: dict[str, Callable[..., object]] = {
    f"time.{name}": getattr(time, name)
    for name in ("time", "time_ns", "monotonic", "perf_counter", "gmtime", "localtime", "ctime")
}
_CHANCES: dict[str, Callable[..., object]] = {
    **{f"uuid.{name}": getattr(uuid, name) for name in ("uuid1", "uuid4")},
    **{
        f"secrets.{name}": getattr(secrets, name) for name in ("token_hex", "token_bytes", "choice")
    },
    **{
        f"random.{name}": getattr(random, name)
        for name in (
            "random",
            "randint",
            "choice",
            "choices",
            "shuffle",
            "sample",
            "uniform",
            "randrange",
        )
    },
}
_NAMED = {id(one): name for name, one in (_CLOCKS | _CHANCES).items()}
_PACKAGES = (time, random, uuid, secrets, dt)


def _watched(value: object, seen: list[str]) -> object | None:
    """The same, telling of its use; None for what need not be watched."""
    if id(value) in _NAMED and callable(value):
        return _telling(_NAMED[id(value)], value, seen)
    if value is dt.datetime or value is dt.date:
        return _telling_class(value, seen)
    if isinstance(value, ModuleType) and value in _PACKAGES:
        copy = ModuleType(value.__name__)
        inner = {name: _watched(one, seen) or one for name, one in vars(value).items()}
        vars(copy).update(inner)
        return copy
    return None


def _telling(name: str, function: Callable[..., object], seen: list[str]) -> Callable[..., object]:
    def told(*arguments: object, **named: object) -> object:
        seen.append(name)
        return function(*arguments, **named)

    return told


def _telling_class(real: Any, seen: list[str]) -> type:
    """A class that makes the real one's values, and tells of ``now``, ``today`` and ``utcnow``."""

    class Meta(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, real)

    def telling(name: str) -> object:
        return staticmethod(_telling(f"{real.__name__}.{name}", getattr(real, name), seen))

    clocks = [name for name in ("now", "today", "utcnow") if hasattr(real, name)]
    made = staticmethod(lambda cls, *arguments, **named: real(*arguments, **named))
    members = {**{name: telling(name) for name in clocks}, "__new__": made}
    return Meta(real.__name__, (real,), members)
