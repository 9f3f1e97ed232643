"""Pages that do what pages do, and how a network reaches them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from prw_sdk.evidence import Part
from prw_sdk.fetch.guard import AddressRules
from prw_sdk.fetch.http import NetConfig
from prw_sdk.fetch.polite import Politeness, user_agent
from prw_sdk.fetch.retry import RetryPolicy
from prw_sdk.testing.server import Site, answer

MANNERS = Politeness(1000, 16)
ONCE = RetryPolicy(attempts=1)


def net_config(site: Site, **others: object) -> NetConfig:
    """Reaches the site's port on loopback, and no other one; asks once."""
    rules = AddressRules(allow_private=frozenset({f"127.0.0.1:{site.port}"}))
    given: dict[str, object] = {"rules": rules, "retry": ONCE, **others}
    return NetConfig(user_agent("ops@example.org"), **given)  # type: ignore[arg-type]  # tests name any field


def html(body: str, head: str = "") -> bytes:
    """An answer with a page."""
    return answer(f"<!doctype html><html><head>{head}</head><body>{body}</body></html>".encode())


def script(text: str) -> bytes:
    """An answer with a page that does something."""
    return html(f"<p>before</p><script>{text}</script>")


def json(text: str, status: int = 200) -> bytes:
    """An answer with JSON."""
    return answer(text.encode(), status=status, content_type="application/json")


def by_role(parts: tuple[Part, ...]) -> dict[str, Part]:
    """The parts of a page."""
    return {part.role: part for part in parts}


@dataclass
class Listener:
    """A port that nobody should come to, over TCP and over UDP, and who came."""

    port: int = 0
    came: list[bytes] = field(default_factory=list)


@contextmanager
def listening() -> Iterator[Listener]:
    """A running listener on loopback; what comes in is noted, never answered."""
    found = Listener()
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        found.port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", found.port))
        ended = threading.Event()
        threads = [
            threading.Thread(target=_take, args=(tcp, found, ended), daemon=True),
            threading.Thread(target=_hear, args=(udp, found, ended), daemon=True),
        ]
        for thread in threads:
            thread.start()
        yield found
        ended.set()
        for thread in threads:
            thread.join(5)


def _take(tcp: socket.socket, found: Listener, ended: threading.Event) -> None:
    tcp.settimeout(0.1)
    while not ended.is_set():
        try:
            connection, _ = tcp.accept()
        except TimeoutError:
            continue
        with connection:
            connection.settimeout(1)
            found.came.append(connection.recv(200))


def _hear(udp: socket.socket, found: Listener, ended: threading.Event) -> None:
    udp.settimeout(0.1)
    while not ended.is_set():
        try:
            found.came.append(udp.recv(200))
        except TimeoutError:
            continue


def descendants(pid: int) -> dict[int, str]:
    """Every process under that one that is alive, with its command line, but those of the tests' PostgreSQL.

    It belongs to the whole session, and begins and ends processes whenever it likes.
    """
    parents, commands = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                state = (folder / "stat").read_text().rpartition(")")[2].split()
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if state[0] != "Z" and "postgres" not in words:
                parents[int(folder.name)], commands[int(folder.name)] = int(state[1]), words
    found = {pid}
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return {one: commands[one] for one in found if one in commands and one != pid}


def is_main(words: str) -> bool:
    """Whether that command line is of Chromium itself, not of a part of it and not of what drives it."""
    return "--remote-debugging-pipe" in words and "--type=" not in words
