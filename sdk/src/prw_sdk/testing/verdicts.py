"""A pytest plugin for whoever runs the suite: each verdict as a line of JSON, and no network but this machine's own."""

from __future__ import annotations

import ipaddress
import json
import sys
from pathlib import PurePath
from typing import TextIO

import pytest

_LOCAL_NAMES = frozenset({"localhost", "localhost.localdomain", ""})
_CONNECTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_RESOLVES = frozenset(
    {
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyname_ex",
        "socket.gethostbyaddr",
    }
)
_FILE = pytest.StashKey[TextIO]()


class NetworkBlocked(RuntimeError):
    """The suite runs from recorded fixtures; what was asked for is on the network."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the verdicts go."""
    parser.addoption("--adapter-verdicts", metavar="FILE", help="write each verdict there as JSON")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Block the network for the rest of this process before an adapter is loaded, and open the file."""
    sys.addaudithook(_audit)
    path = config.getoption("--adapter-verdicts")
    if path:
        config.stash[_FILE] = open(path, "w", encoding="utf-8")  # noqa: SIM115  # closed at the session's end


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the file."""
    if _FILE in config.stash:
        config.stash[_FILE].close()


class _Writer:
    def __init__(self, file: TextIO) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        told = (
            str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else report.longreprtext
        )
        path, name = report.location[0], report.nodeid.rpartition("::")[2]
        line = {
            "room": PurePath(path).name.removeprefix("check_").removesuffix(".py"),
            "check": name.partition("[")[0],
            "case": name.partition("[")[2].removesuffix("]"),
            "outcome": report.outcome,
            "told": told,
            "seconds": round(report.duration, 3),
        }
        self._file.write(json.dumps(line) + "\n")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Listen to every verdict."""
    file = session.config.stash.get(_FILE, None)
    if file is not None:
        session.config.pluginmanager.register(_Writer(file), "prw-verdicts")


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if event in _CONNECTS and isinstance(arguments[1], tuple):
        _refuse_unless_local(str(arguments[1][0]), event)
    elif event in _RESOLVES:
        name = arguments[0]
        _refuse_unless_local(name.decode() if isinstance(name, bytes) else str(name or ""), event)


def _refuse_unless_local(host: str, event: str) -> None:
    if host.lower() in _LOCAL_NAMES:
        return
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        address = None
    if address is None or not (address.is_loopback or address.is_unspecified):
        raise NetworkBlocked(
            f"{event}({host!r}): the network is blocked while an adapter is checked"
        )
