"""Targets and disks that would end a run: one target ends itself, a disk ends the run in order."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from prw_sdk.adapter import Batch, Checkpoint, Net, Source, Target
from prw_sdk.collect import SourceJob, collect
from prw_sdk.evidence import Capture, Record
from prw_sdk.report import Event, EventKind
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import Outcome, presentable
from prw_sdk.spool.sqlite import SpoolUnusable
from tests.sdk.catalogue_adapter import ListAdapter
from tests.sdk.jobs import QUICK, page
from tests.sdk.misbehaving import Site, answer
from tests.sdk.running import item, kept, run
from tests.support.waiting import until_sync

Shop = Callable[..., None]
BAD_IDS = ("", "half \ud800", "nul \0", "line\nbreak", "a" * 2001, "é" * 1001)


class Strange(ListAdapter):
    """Plans targets with ids that nothing can be known by, among good ones."""

    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """One batch."""
        good = Target(
            "good", str(getattr(source.settings, "index", "")).replace("index.txt", "p/a")
        )
        bad = tuple(Target(name, f"{good.url}?\ud800") for name in BAD_IDS)
        yield Batch((*bad, good))


async def test_a_target_whose_id_is_no_text_ends_alone(
    shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """Rejected by name and durably; the others of the run are kept, and a second run says the same."""
    shop(a=page("A"))
    strange = replace(job, adapter=Strange())
    for _ in range(2):
        report = await run(strange, spool)
        assert report.failure is None
        assert report.outcomes[Outcome.REJECTED] == len(BAD_IDS)
    assert kept(spool) == ["good"]
    for name in BAD_IDS:
        assert item(spool, presentable(name)).verdict.code == "BAD_TARGET"


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """The kernel refuses to let any file of this process grow beyond `size` bytes (EFBIG)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_disk_that_takes_no_more_bytes_stops_the_run_and_loses_nothing(
    shop: Shop, job: SourceJob, spool: Spool, site: Site
) -> None:
    """One clear error, no half a file; with room again the same run is taken up and ends."""
    shop(a=page("A"))
    await run(job, spool)
    large = answer(b"<title>L</title>" + os.urandom(3_000_000))
    shop(a=page("A"), large=large)
    with no_file_larger_than(2_000_000), pytest.raises(SpoolUnusable, match="still holds"):
        await run(job, spool)
    assert kept(spool) == ["a"]
    assert not list(spool.folder.glob("blobs/*/.*"))
    report = await run(job, spool)
    assert report.is_clean
    assert sorted(kept(spool)) == ["a", "large"]


async def test_a_ledger_that_cannot_grow_stops_the_run_and_loses_nothing(
    shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """The verdict that could not be written was not given."""
    shop(**{f"p{number}": page(f"{number}") for number in range(6)})
    with no_file_larger_than(60_000), pytest.raises(SpoolUnusable):
        await run(job, spool)
    report = await run(job, spool)
    assert report.is_clean
    assert len(set(kept(spool))) == 6


async def test_a_blob_folder_that_may_not_be_written_is_named(
    shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """A file stands where a folder should: the same clear stop, also for root, whom no mode stops."""
    shop(a=page("A"))
    block_every_folder(spool.folder / "blobs")
    with pytest.raises(SpoolUnusable):
        await run(job, spool)
    assert kept(spool) == []


def block_every_folder(folder: Path) -> None:
    """Put a file where each folder of blobs should be."""
    for number in range(256):
        (folder / f"{number:02x}").touch()


class Slow(ListAdapter):
    """Its reader waits until it is let go."""

    def __init__(self, go: threading.Event) -> None:
        self._go = go

    def read(self, capture: Capture) -> Iterable[Record]:
        """In the end."""
        assert self._go.wait(30)
        return super().read(capture)


async def test_a_reader_that_is_slow_holds_up_its_own_source_alone(
    site: Site, shop: Shop, job: SourceJob, spool: Spool
) -> None:
    """The other sources of the run are read, kept and ended meanwhile."""
    go = threading.Event()
    shop(a=page("A"), b=page("B"))
    slow = [
        replace(job, source=replace(job.source, source_id=f"src_slow{n}"), adapter=Slow(go))
        for n in range(9)
    ]
    ended: list[str] = []

    def watch(event: Event) -> None:
        if event.kind is EventKind.ENDED:
            ended.append(event.source_id)
            # nobody else can have ended: the slow ones wait for this
            go.set()

    reports = await asyncio.wait_for(collect([*slow, job], spool, QUICK, watch=watch), 20)
    assert ended[0] == "src_list"
    assert [report.kept for report in reports] == [2] * 10


_STUCK = """
import sys, threading
from prw_sdk import plugins
from prw_sdk.evidence import AdapterVersion
from tests.sdk.catalogue_adapter import ListAdapter

class Stuck(ListAdapter):
    def read(self, capture):
        print("reading", flush=True)
        threading.Event().wait()

found = {AdapterVersion("list", "1.0.0"): Stuck}
plugins.load = lambda: plugins.Plugins({"list": Stuck}, (), found)
from prw_base.cli import main
sys.argv[1:1] = ["collect"]
main()
"""


def _lets_terminate(process: subprocess.Popen[str]) -> bool:
    """Whether SIGTERM has its first meaning again, as after the first signal to a run."""
    status = Path(f"/proc/{process.pid}/status").read_text("ascii")
    (caught,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return not int(caught, 16) >> (signal.SIGTERM - 1) & 1


def test_a_second_ctrl_c_ends_a_run_whose_reader_never_returns(
    shop: Shop, config: Path, tmp_path: Path
) -> None:
    """Its thread is not waited for."""
    shop(a=page("A"))
    arguments = ["run", "-c", str(config), "--local", str(tmp_path / "spool")]
    with subprocess.Popen(
        [sys.executable, "-c", _STUCK, *arguments],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "reading\n"
            process.send_signal(signal.SIGINT)
            until_sync(lambda: _lets_terminate(process))
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 130
        finally:
            process.kill()
