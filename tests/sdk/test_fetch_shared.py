"""Limits of a host that hold for every process of a machine (replay rule 12, verification 9)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from prw_sdk.fetch.gates import HostBusy, HostGates, Politeness
from prw_sdk.fetch.http import HttpNet
from prw_sdk.fetch.places import HostPlaces
from prw_sdk.fetch.runtime import RuntimeFolderUnusable, default_folder, secured
from tests.sdk.jobs import net_config
from tests.sdk.misbehaving import Site, answer
from tests.support.waiting import until

HOST = "shop.example"
ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def process(
    do: str, host: str = HOST, *, rate: float = 1000, at_once: int = 2, turns: int = 1
) -> Iterator[subprocess.Popen[str]]:
    """A process that takes turns, with this one's runtime folder; killed at the end if it is still there."""
    words = (do, host, str(rate), str(at_once), str(turns))
    started = subprocess.Popen(
        [sys.executable, "-m", "tests.sdk.turns_program", *words],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )
    with started:
        try:
            yield started
        finally:
            started.kill()


def line(of: subprocess.Popen[str]) -> str:
    """The next line that a process says."""
    assert of.stdout is not None
    return of.stdout.readline().strip()


async def test_three_processes_stay_within_one_limit_of_calls(site: Site) -> None:
    """Overlap at the provider's concurrency limit: calls stay bounded (verification 9)."""
    for number in range(8):
        site.serve(f"/{number}", answer(b"x"))
    site.gate = threading.Event()
    host = f"127.0.0.1:{site.port}"
    with (
        process("get", host, turns=8) as one,
        process("get", host, turns=8) as two,
        process("get", host, turns=8) as three,
    ):
        await until(lambda: site.at_once == 2)
        site.gate.set()
        for each in (one, two, three):
            assert await asyncio.to_thread(line, each) == "done"
    assert site.most_at_once == 2
    assert len(site.requests) == 3 * (8 + 1)


async def test_three_processes_keep_one_rate() -> None:
    """Twelve turns at twenty a second take eleven intervals, whoever takes them."""
    with (
        process("take", rate=20, turns=4) as one,
        process("take", rate=20, turns=4) as two,
        process("take", rate=20, turns=4) as three,
    ):
        moments = [
            float(await asyncio.to_thread(line, each)) for each in (one, two, three) for _ in "1234"
        ]
    assert max(moments) - min(moments) >= 11 / 20 - 0.02


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_place_is_free_again_when_its_holder_is_killed(how: signal.Signals) -> None:
    """However it dies; nothing is cleaned up by hand."""
    gates = HostGates(Politeness(1000, 2))
    with process("hold", turns=2) as holder:
        for _ in range(2):
            assert await asyncio.to_thread(line, holder) == "held"
        taken = asyncio.create_task(_turn(gates))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(taken), 0.3)
        os.kill(holder.pid, how)
        await asyncio.wait_for(taken, 30)


async def _turn(gates: HostGates, order: list[str] | None = None, name: str = "") -> None:
    async with gates.turn(HOST):
        await asyncio.sleep(0.005)
    if order is not None:
        order.append(name)


async def test_a_pause_that_one_process_was_told_holds_for_all() -> None:
    """A host that says 429 to one collector has said it to its neighbours."""
    gates = HostGates(Politeness(1000, 2))
    await _turn(gates)
    with process("pause") as other:
        assert await asyncio.to_thread(line, other) == "paused"
        with pytest.raises(HostBusy) as busy:
            async with gates.turn(HOST, patience=5):
                pytest.fail("the host was asked")
    assert 3500 < busy.value.seconds <= 3600


async def test_a_busy_process_leaves_turns_to_the_others() -> None:
    """A long queue in one does not shut out the one page of another."""
    one, other = HostGates(Politeness(10_000, 1)), HostGates(Politeness(10_000, 1))
    order: list[str] = []
    many = [asyncio.create_task(_turn(one, order, "many")) for _ in range(150)]
    await until(lambda: len(order) > 2)
    await _turn(other, order, "single")
    await asyncio.gather(*many)
    assert order.index("single") < 60


async def test_hosts_do_not_wait_for_each_other() -> None:
    """A place at one is none at another."""
    gates = HostGates(Politeness(1000, 1))
    async with gates.turn("a.example"), gates.turn("b.example"):
        pass


async def test_a_turn_that_was_given_up_gives_its_place_back() -> None:
    """Cancelled while it waits, or while it is used."""
    gates, other = HostGates(Politeness(1000, 1)), HostGates(Politeness(1000, 1))
    async with other.turn(HOST):
        waiting = asyncio.create_task(_turn(gates))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await asyncio.wait_for(_turn(gates), 5)
    await asyncio.wait_for(_turn(other), 5)


@pytest.mark.parametrize("ended_by", ["net", "gates"])
def test_no_place_is_kept_beyond_a_loop(site: Site, ended_by: str) -> None:
    """Whoever closes its network has given its places back, whatever became of its timers."""
    host = f"127.0.0.1:{site.port}"
    gates = HostGates(Politeness(1000, 1))

    async def one() -> None:
        if ended_by == "gates":
            async with gates.turn(host):
                pass
            gates.close()
            return
        net = HttpNet(net_config(site), gates)
        await net.get(site.serve("/a", answer(b"x")), role="page")
        await net.aclose()

    async def other() -> None:
        async with HostGates(Politeness(1000, 1)).turn(host):
            pass

    asyncio.run(one())
    asyncio.run(asyncio.wait_for(other(), 5))


def test_times_of_another_start_of_the_machine_or_of_no_sense_are_void(tmp_path: Path) -> None:
    """The clock starts anew with the machine; files in a folder for temporary files may survive it."""
    places = HostPlaces(tmp_path, HOST, 1)
    assert places.pause(3600)
    assert places.paused() > 3500
    (times,) = tmp_path.glob("*.times")
    stored = times.read_bytes()
    times.write_bytes(bytes(16) + stored[16:])
    assert places.paused() == 0
    for damaged in (b"", stored[:-1], stored[:16] + b"\xff" * 16):
        times.write_bytes(damaged)
        assert places.paused() == 0
        assert places.reserve(1.0) == 0


def test_the_runtime_folder_is_closed_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made with mode 0700, under XDG_RUNTIME_DIR or in the folder for temporary files."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    assert secured(default_folder()).stat().st_mode & 0o777 == 0o700
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert default_folder().name == f"prw-{os.getuid()}"


@pytest.mark.parametrize("trouble", ["file", "link", "open", "foreign", "unwritable"])
def test_a_runtime_folder_that_others_could_have_made_is_refused(
    trouble: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its name and what to do."""
    folder = tmp_path / "prw"
    if trouble == "file":
        folder.write_bytes(b"")
    elif trouble == "link":
        folder.symlink_to(tmp_path)
    elif trouble == "unwritable":
        (tmp_path / "x").write_bytes(b"")
        folder = tmp_path / "x" / "prw"
    else:
        folder.mkdir(mode=0o700)
    if trouble == "open":
        folder.chmod(0o777)
    if trouble == "foreign":
        owner = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(RuntimeFolderUnusable, match="XDG_RUNTIME_DIR") as refused:
        HostGates(Politeness(), folder)
    assert str(folder) in str(refused.value)
