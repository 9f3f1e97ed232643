"""A collector killed two hundred times over a run of five hundred items: none lost, none twice, few asked again."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from prw_sdk.spool.folder import Spool
from tests.sdk.jobs import page
from tests.sdk.misbehaving import Site, answer, serving

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("PRW_SEED", "20261201"))
ITEMS, KILLS = 500, 200
POINTS = (
    "collect.after_plan",
    "collect.after_fetch",
    "collect.after_blob",
    "collect.after_keep",
    "collect.before_checkpoint",
    "collect.after_checkpoint",
)


@dataclass
class Lives:
    """A collector's lives over one spool, and what the ledger held when each of them had ended."""

    folder: Path
    process: subprocess.Popen[str]
    settled: list[set[str]] = field(default_factory=list)
    kills: int = 0

    def live(self, point: str = "-", seconds: str = "-") -> int:
        """One life, killed at that point or after so long; its exit status."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{len(self.settled)} {point} {seconds}\n")
        self.process.stdin.flush()
        status = int(self.process.stdout.readline())
        self.settled.append(_settled(self.folder))
        self.kills += status == -signal.SIGKILL
        return status


def _rows(folder: Path, table: str, query: str) -> list[str]:
    """What the ledger says; another process's view, as the next life has it."""
    if not (folder / "ledger.sqlite").exists():
        return []
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as connection:
        tables = "SELECT 1 FROM sqlite_master WHERE name = ?"
        known = connection.execute(tables, (table,)).fetchone()
        return [row[0] for row in connection.execute(query)] if known else []


def _settled(folder: Path) -> set[str]:
    """The items that the ledger knows."""
    return set(_rows(folder, "items", "SELECT native_id FROM items"))


def _is_over(folder: Path) -> bool:
    """Whether the run has ended: a life may be killed after that, and the next one would begin another run."""
    ended = "SELECT generation FROM runs WHERE finished_at IS NOT NULL"
    return bool(_rows(folder, "runs", ended))


@contextmanager
def living(site: Site, folder: Path) -> Iterator[Lives]:
    """A warm process that lives are forked from."""
    command = [sys.executable, "-m", "tests.faults.collector_lives", str(site.port), str(folder)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Lives(folder, process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0


def street(site: Site) -> None:
    """Five hundred pages and the list of them."""
    for number in range(ITEMS):
        site.serve(f"/p{number}", page(f"Thing {number}"))
    lines = "\n".join(site.url(f"/p{number}") for number in range(ITEMS))
    site.serve("/index.txt", answer(lines.encode(), content_type="text/plain"))


def asked(site: Site) -> dict[int, list[str]]:
    """The items that each life asked for, in order."""
    found: dict[int, list[str]] = {}
    for path, headers in site.requests:
        agent = headers.get("user-agent", "")
        if path.startswith("/p") and agent.startswith("life/"):
            found.setdefault(int(agent.removeprefix("life/")), []).append(path[1:])
    return found


def strike(choose: random.Random) -> tuple[str, str]:
    """Where the next life ends: at a named point three times of four, else wherever it is then."""
    if choose.random() < 0.75:
        return f"{choose.choice(POINTS)}=kill@{choose.randint(1, 3)}", "-"
    return "-", f"{choose.uniform(0.02, 0.25):.3f}"


@pytest.mark.timeout(400)
def test_a_collector_killed_two_hundred_times_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """Replay rules 1, 2, 4 and 9: every capture once, and only what was under way at a kill is asked for again."""
    choose, kills, run = random.Random(SEED), 0, 0
    with serving() as site:
        street(site)
        while kills < KILLS:
            kills += _one_run(site, tmp_path / f"run{run}", choose, KILLS - kills)
            run += 1
    assert kills == KILLS, f"SEED={SEED}"


def _one_run(site: Site, folder: Path, choose: random.Random, budget: int) -> int:
    """A run of five hundred items from its first life to its end; how many of its lives were killed."""
    site.requests.clear()
    with living(site, folder) as lives:
        while not _is_over(folder):
            is_spared = lives.kills >= budget
            status = lives.live() if is_spared else lives.live(*strike(choose))
            assert status in (0, -signal.SIGKILL), f"SEED={SEED}: a life ended with {status}"
    check_nothing_is_lost_or_twice(folder)
    check_only_what_was_under_way_is_asked_again(site, lives)
    return lives.kills


def check_nothing_is_lost_or_twice(folder: Path) -> None:
    """Five hundred items, each with one capture whose bytes are whole."""
    with closing(Spool.existing(folder)) as spool:
        kept = Counter(capture.key.native_id for capture in spool.ledger.captures())
        assert kept == Counter({f"p{number}": 1 for number in range(ITEMS)}), f"SEED={SEED}"
        titles = {spool.capture(one).part("page").text() for one in spool.ledger.captures()}
        assert len(titles) == ITEMS
        assert not spool.ledger.is_unfinished("ten_synth_a", "src_list")


def check_only_what_was_under_way_is_asked_again(site: Site, lives: Lives) -> None:
    """Refetches are at most the requests that were sent and not yet in the ledger when their life was killed."""
    by_life = asked(site)
    under_way = sum(
        len([item for item in set(items) if item not in lives.settled[life]])
        for life, items in by_life.items()
    )
    again = sum(map(len, by_life.values())) - ITEMS
    assert 0 <= again <= under_way, f"SEED={SEED}: {again} asked again, {under_way} were under way"
