"""Pages per second of the whole runner, every byte durably kept, against Scrapy and Crawlee on one local site.

``python -m bench.collect [--quick]``. Every side crawls the same pages with the same number in flight, politeness off,
and parses each in the same way; each is a process of its own, and the site is another. Scrapy is run twice: with its
on-disk HTTP cache, and keeping nothing. ``memory_20000_vs_2000`` is the largest memory of our side at 20,000 pages
over that at 2,000 (``--quick`` measures it at 4,000 over 800).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.telling import last_line, table

AT_ONCE = 16
SIDES = {
    "ours": "bench.collecting.ours",
    "scrapy_cached": "bench.collecting.by_scrapy",
    "scrapy": "bench.collecting.by_scrapy",
    "crawlee": "bench.collecting.by_crawlee",
}
_KEEPS = ("ours", "scrapy_cached")


@contextmanager
def site() -> Iterator[str]:
    """The site; its origin."""
    command = [sys.executable, "-m", "bench.collecting.site"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        if server.stdout is None or server.stdin is None:
            raise RuntimeError("the site has no pipes")
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        server.stdin.close()


@dataclass(frozen=True, slots=True)
class Bench:
    """The site, and a folder for what the sides keep: a file system that has just deleted much is slow for a while."""

    origin: str
    kept: Path

    def crawl(self, side: str, pages: int) -> dict[str, float]:
        """One crawl by one side, and what it said of it."""
        where = tempfile.mkdtemp(dir=self.kept) if side in _KEEPS else "-"
        command = [sys.executable, "-m", SIDES[side], self.origin, str(pages), str(AT_ONCE), where]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        return _said(side, done)

    def rounds(self, pages: int, count: int) -> Mapping[str, list[dict[str, float]]]:
        """Every side in turn, `count` times, each round beginning with another side."""
        names = list(SIDES)
        found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        for number in range(count):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                found[name].append(self.crawl(name, pages))
        return found


@contextmanager
def bench() -> Iterator[Bench]:
    """A bench whose files are deleted at its end alone."""
    with tempfile.TemporaryDirectory(prefix="bench-collect-") as kept, site() as origin:
        yield Bench(origin, Path(kept))


def _said(side: str, done: subprocess.CompletedProcess[str]) -> dict[str, float]:
    if done.returncode:
        raise SystemExit(f"{side} failed:\n{done.stderr}")
    said: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return said


def speed(runs: list[dict[str, float]]) -> float:
    """Pages per second, the median of the runs."""
    return median(run["pages"] / run["seconds"] for run in runs)


def shown(found: Mapping[str, list[dict[str, float]]]) -> None:
    """The table of speeds."""
    rows = [
        (
            name,
            f"{speed(runs):.0f}",
            f"{median(1000 * run['cpu'] / run['pages'] for run in runs):.2f}",
            f"{median(run['memory_kb'] for run in runs) / 1024:.0f}",
        )
        for name, runs in found.items()
    ]
    table(("side", "pages/s", "cpu ms/page", "MiB"), rows)


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    pages, count = (500, 2) if quick else (2_000, 5)
    few, many = (800, 4_000) if quick else (2_000, 20_000)
    start = time.monotonic()
    with bench() as all_sides:
        found = all_sides.rounds(pages, count)
        memory = {size: all_sides.crawl("ours", size)["memory_kb"] for size in (few, many)}
    shown(found)
    ours = speed(found["ours"])
    ratios = {f"pages_vs_{name}": ours / speed(runs) for name, runs in found.items()}
    del ratios["pages_vs_ours"]
    ratios["memory_20000_vs_2000"] = memory[many] / memory[few]
    last_line("collect", ratios, time.monotonic() - start)


if __name__ == "__main__":
    main()
