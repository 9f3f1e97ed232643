"""Bootstrapping a projection from an export against ``pg_dump -Fc -Z0 | pg_restore`` of the same state.

``python -m bench.rebuild [--quick]``: one million rows, or sixty thousand with ``--quick``. *Rebuild* is what
``prw product rebuild`` does, from asking for the export to serving: rows read from the history of facts, compressed,
checksummed and described by a manifest, sent over gRPC, checked, loaded, keyed, caught up with and switched to. *Dump*
copies the finished projection's tables with their keys to another database. Both run in turn on one durable server; the
first ratio is the median of the rounds'. *Live rate* is a follower's over gRPC from the first position, in positions a
second, beside the aggregates a second of a rebuild. *Cutover* is the slowest answer that a reader in another process
got from the moment of catching up to the end of the rebuild, beside the median commit of one row. *Commits during
export* is the rate of eight callers in the export's last five seconds beside that of the five seconds before it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import psycopg

from bench.rebuilding.filling import ROWS_EACH, copy_facts
from bench.telling import last_line, table
from prw_base.server.postgres import Cluster, start
from prw_base.server.programs import find_programs
from prw_product.follow.client import connector as follow_connector
from prw_product.follow.service import Follower, FollowSettings
from prw_product.rebuild.client import connector
from prw_product.rebuild.model import Phase, Progress
from prw_product.rebuild.service import Rebuilder, RebuildSettings
from prw_resolver.export.service import ExportSettings
from tests.faults.rebuilding import Rebuilding, rebuilding
from tests.resolver.catalogue import SCOPE
from tests.resolver.writing import introduction
from tests.support.postgres import PRODUCT, RESOLVER, fresh_database
from tests.support.waiting import until

_WINDOW = 5.0
"""Seconds of commits before an export and at its end."""

_CALLERS = 8
_BARE_COMMITS = 200


@dataclass
class Timeline:
    """When each phase of a rebuild was first heard of, by the machine's monotonic clock."""

    begun: float = field(default_factory=time.monotonic)
    heard: dict[Phase, float] = field(default_factory=dict)

    def __call__(self, progress: Progress) -> None:
        """Note when a phase is first heard of."""
        self.heard.setdefault(progress.phase, time.monotonic())

    def told(self, ended: float) -> str:
        """Seconds of each phase, in their order."""
        starts = [*self.heard.values(), ended]
        return " ".join(
            f"{phase.value} {after - at:.2f}"
            for phase, at, after in zip(self.heard, starts, starts[1:], strict=False)
        )


@dataclass
class Round:
    """What one round gave, in seconds."""

    rebuild: float
    dump: float
    slowest: float
    phases: str


def rebuilder(world: Rebuilding, watch: Timeline) -> Rebuilder:
    """As the product's bootstrap makes it."""
    return Rebuilder(
        world.database, connector(world.channel, "product"), RebuildSettings(SCOPE), watch
    )


def dump_and_restore(cluster: Cluster, source: str, generation: int) -> float:
    """Seconds to copy a generation's schema into another database of the product."""
    programs = find_programs(cluster.folder).bin
    with fresh_database(cluster, PRODUCT) as target:
        started = time.monotonic()
        dump = subprocess.Popen(
            [programs / "pg_dump", "-Fc", "-Z0", "-n", f"projection_{generation}", "-d", source],
            stdout=subprocess.PIPE,
        )
        subprocess.run(
            [programs / "pg_restore", "-d", target["superuser"]], stdin=dump.stdout, check=True
        )
        if dump.wait() != 0:
            raise SystemExit("pg_dump failed")
        return time.monotonic() - started


@contextmanager
def reading(world: Rebuilding) -> Iterator[list[tuple[float, float, int]]]:
    """A reader in a process of its own while the block lasts; its answers are there after it."""
    answers: list[tuple[float, float, int]] = []
    command = [sys.executable, "-m", "bench.rebuilding.reader", world.dsns["product_app"]]
    with subprocess.Popen(
        [*command, SCOPE.tenant_id, SCOPE.catalog_id],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as reader:
        yield answers
        said, _ = reader.communicate()
    if reader.returncode != 0:
        raise SystemExit("the reader met an error")
    answers += [(at, took, items) for at, took, items in json.loads(said)]


async def one_round(world: Rebuilding, cluster: Cluster) -> Round:
    """A rebuild under a reader's eyes, and a dump of what it made."""
    with reading(world) as answers:
        watch = Timeline()
        rebuilt = await rebuilder(world, watch).run()
        ended = time.monotonic()
        await asyncio.sleep(0.5)
    since = watch.heard[Phase.CATCHING_UP]
    slowest = max(took for at, took, _ in answers if at + took >= since and at <= ended + 0.5)
    dumped = await asyncio.to_thread(dump_and_restore, cluster, world.dsn, rebuilt.generation)
    return Round(ended - watch.begun, dumped, slowest, watch.told(ended))


def bare_commit(dsn: str) -> float:
    """Median seconds to insert and commit one row."""
    taken = []
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table if not exists bare (n integer)")
        for number in range(_BARE_COMMITS):
            started = time.monotonic()
            conn.execute("insert into bare values (%s)", (number,))
            taken.append(time.monotonic() - started)
    return median(taken)


async def live_rate(world: Rebuilding, cluster: Cluster) -> float:
    """Positions a second that a follower applies from the first one."""
    with fresh_database(cluster, PRODUCT) as dsns:
        async with world.beside(dsns) as other:
            connect = follow_connector(other.channel, "live")
            follower = Follower(other.database, connect, FollowSettings(SCOPE, 250))
            started = time.monotonic()
            following = asyncio.create_task(follower.run())
            await until(lambda: follower.standing.progress == other.cursor)
            seconds = time.monotonic() - started
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            return other.cursor / seconds


async def commits_during_export(world: Rebuilding) -> float:
    """The rate of commits in an export's last seconds, in that of the seconds before it."""
    done: list[float] = []
    over = asyncio.Event()
    held = world.exporting.held.rooms

    async def caller(number: int) -> None:
        at = 0
        while not over.is_set():
            at += 1
            await held.committer.commit(introduction(held.vocabulary, f"x{number}-{at}"))
            done.append(time.monotonic())

    callers = [asyncio.create_task(caller(number)) for number in range(_CALLERS)]
    await asyncio.sleep(_WINDOW + 1)
    begun = time.monotonic()
    told = await world.exporting.made("commits")
    ended = time.monotonic()
    over.set()
    await asyncio.gather(*callers)
    if told.export.status != "ready":
        raise SystemExit("the export failed")
    window = min(_WINDOW, ended - begun)
    before = sum(begun - _WINDOW <= at < begun for at in done) / _WINDOW
    during = sum(ended - window <= at < ended for at in done) / window
    return during / before


@dataclass
class Found:
    """All figures."""

    rounds: list[Round]
    live: float
    commit: float
    during: float
    rows: int
    aggregates: int


async def measure(cluster: Cluster, folder: Path, rows: int, changes: int, rounds: int) -> Found:
    """Fill a resolver, then measure everything in turn."""
    with ExitStack() as stack:
        resolver = stack.enter_context(fresh_database(cluster, RESOLVER))
        product = stack.enter_context(fresh_database(cluster, PRODUCT))
        async with rebuilding(resolver, product, folder, settings=ExportSettings()) as world:
            await world.exporting.held.fill(changes, start=1000)
            live = await live_rate(world, cluster)
            copy_facts(resolver["superuser"], rows // ROWS_EACH)
            found = [await one_round(world, cluster) for _ in range(rounds)]
            during = await commits_during_export(world)
            aggregates = world.exporting.held.one(
                "select count(distinct (aggregate_type, aggregate_id)) from resolver.catalog_revision"
            )
            return Found(found, live, bare_commit(world.dsn), during, rows, aggregates)


def tell(found: Found, seconds: float) -> None:
    """Print what was found."""
    ratio = median(one.rebuild / one.dump for one in found.rounds)
    rebuild = median(one.rebuild for one in found.rounds)
    rate = found.aggregates / rebuild
    rows = [
        (f"{one.rebuild:.1f}", f"{one.dump:.1f}", f"{one.slowest * 1000:.1f}", one.phases)
        for one in found.rounds
    ]
    print(f"{found.rows} rows, {found.aggregates} aggregates")
    table(("rebuild s", "dump and restore s", "slowest answer ms", "seconds of its phases"), rows)
    print(f"rebuild {rate:.0f} aggregates/s, live {found.live:.0f} positions/s")
    print(f"bare commit {found.commit * 1000:.2f} ms, commits during export {found.during:.2f}")
    ratios = {
        "bootstrap_vs_pg_dump_restore": ratio,
        "rebuild_vs_live_rate": rate / found.live,
        "cutover_vs_bare_commit": max(one.slowest for one in found.rounds) / found.commit,
        "commits_during_export": found.during,
    }
    last_line("rebuild", ratios, seconds)


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rows, changes, rounds = (60_000, 300, 2) if quick else (1_000_000, 2_000, 3)
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="bench-rebuild-"))
    folder.chmod(0o755)
    cluster = start(folder / "server", durable=True)
    try:
        found = asyncio.run(measure(cluster, folder, rows, changes, rounds))
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
    tell(found, time.monotonic() - started)


if __name__ == "__main__":
    main()
