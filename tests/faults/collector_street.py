"""A street of pages on the misbehaving server, runs of the real collector over it, and what these leave behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from prw_base.faults import VARIABLE
from prw_sdk.adapter import Adapter
from prw_sdk.collect import RunLimits
from prw_sdk.collect.job import SourceJob
from prw_sdk.report import SourceReport
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CheckpointKey, Item, ItemKey
from prw_sdk.testing.server import Site, answer, serving
from tests.sdk.jobs import QUICK, list_job, page
from tests.sdk.running import run, run_at

TENANT, SOURCE = "ten_synth_a", "src_list"
CHECKPOINT = CheckpointKey(TENANT, SOURCE, "list")
ROOT = Path(__file__).parents[2]
_PUSH = """
import asyncio, sys
from pathlib import Path
from prw_sdk.cli.run import push
from prw_sdk.report import unwatched
from prw_sdk.spool.folder import Spool
from tests.sdk.resolver_double import Intake
from tests.sdk.sending import resolver
asyncio.run(push(Spool(Path(sys.argv[1])), resolver(Intake(address=sys.argv[2])), unwatched))
"""


@dataclass(frozen=True, slots=True)
class Left:
    """Everything durable that a run leaves for others, without its times.

    `captures` says of each item which bytes were captured, `outcomes` what became of it, `blobs` which bytes lie in
    the folder.
    """

    captures: tuple[tuple[str, ...], ...]
    outcomes: dict[str, str]
    checkpoint: dict[str, object]
    unfinished: bool
    blobs: tuple[str, ...]

    @property
    def captured(self) -> list[str]:
        """The items of the captures."""
        return [native_id for native_id, *_ in self.captures]


@dataclass
class Street:
    """The site, and a folder in which each spool has its name."""

    site: Site
    folder: Path
    names: tuple[str, ...] = ()
    open: list[Spool] = field(default_factory=list)

    def pages(self, *names: str, **others: bytes) -> None:
        """Put a page for each name on the site, and those others; the index lists them in this order."""
        self.names = (*names, *others)
        for name in names:
            self.site.serve(f"/p/{name}", page(f"Thing {name}"))
        for name, body in others.items():
            self.site.serve(f"/p/{name}", body)
        self.lists(self.names)

    def lists(self, names: Iterable[str]) -> None:
        """What the index names from now on."""
        lines = "\n".join(self.site.url(f"/p/{name}") for name in names)
        self.site.serve("/index.txt", answer(lines.encode(), content_type="text/plain"))

    def spool(self, name: str = "spool") -> Spool:
        """The spool of that name; opened anew each time, as another process would."""
        self.open.append(Spool(self.folder / name))
        return self.open[-1]

    def job(self, adapter: Adapter | None = None, batch: int = 2) -> SourceJob:
        """The source, with batches of so many lines of the index."""
        return list_job(self.site, adapter, batch)

    async def run(
        self, name: str = "spool", job: SourceJob | None = None, limits: RunLimits = QUICK
    ) -> SourceReport:
        """One run in this process, through the library."""
        return await run(job or self.job(), self.spool(name), limits)

    async def run_at(self, now: datetime, name: str = "spool") -> SourceReport:
        """One run at that moment."""
        return await run_at(self.job(), self.spool(name), now)

    async def collector(self, name: str = "spool", faults: str = "") -> int:
        """One run in a process of its own, which may be killed at a named point; its exit status."""
        program = ("-m", "tests.sdk.collect_program", str(self.site.port), str(self.folder / name))
        return await _process(program, faults)

    async def pusher(self, address: str, name: str = "spool", faults: str = "") -> int:
        """A process that sends what the spool holds to the resolver at that address; its exit status."""
        return await _process(("-c", _PUSH, str(self.folder / name), address), faults)

    def left(self, name: str = "spool") -> Left:
        """What is durable in that spool by now."""
        with closing(Spool.existing(self.folder / name)) as spool:
            captures = [
                (one.key.native_id, *(part.sha256 for part in spool.capture(one).parts))
                for one in spool.ledger.captures()
            ]
            items = spool.ledger.items(TENANT, SOURCE, self.names)
            return Left(
                tuple(sorted(captures)),
                {name: item.verdict.outcome.value for name, item in items.items()},
                dict(spool.checkpoints.load(CHECKPOINT).state),
                spool.ledger.is_unfinished(TENANT, SOURCE),
                _blobs(spool.folder / "blobs"),
            )

    async def clean(self) -> Left:
        """What one undisturbed run over the street leaves behind."""
        await self.run("clean")
        return self.left("clean")

    def item(self, native_id: str, name: str = "spool") -> Item | None:
        """What the ledger says of an item."""
        with closing(Spool.existing(self.folder / name)) as spool:
            return spool.ledger.item(ItemKey(TENANT, SOURCE, native_id))

    def asked(self) -> Counter[str]:
        """How often each item's page was asked for."""
        paths = Counter(path for path, _ in self.site.requests)
        return Counter({name: paths[f"/p/{name}"] for name in self.names})

    @contextmanager
    def refused(self, table: str, when: str = "TRUE", name: str = "spool") -> Iterator[None]:
        """While this lasts the spool's database itself fails at rows of that table."""
        with closing(sqlite3.connect(self.folder / name / "ledger.sqlite")) as connection:
            connection.execute(
                f"CREATE TRIGGER refuses BEFORE INSERT ON {table} WHEN {when} "
                "BEGIN SELECT json('the disk is full'); END"
            )
            try:
                yield
            finally:
                connection.execute("DROP TRIGGER refuses")


def _blobs(folder: Path) -> tuple[str, ...]:
    """What lies there under its name; a writer that was killed leaves a file with a dot, which nobody reads."""
    files = (path.name for path in folder.rglob("*") if path.is_file())
    return tuple(sorted(name for name in files if not name.startswith(".")))


@contextmanager
def street(folder: Path) -> Iterator[Street]:
    """A street without pages."""
    with serving() as site:
        one = Street(site, folder)
        try:
            yield one
        finally:
            for spool in one.open:
                spool.close()


async def _process(program: Iterable[str], faults: str) -> int:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *program,
        cwd=ROOT,
        env=os.environ | {VARIABLE: faults},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), err.decode()
    return process.returncode or 0
