"""Re-reading a spool on all cores against the bare parsing of the same bytes in a process pool.

``python -m bench.reread [--quick]``. *Re-reading* is the work of ``prw adapter diff``: every capture is taken from the
ledger and its bytes from their files (their digests checked), read into claims that say where they stand, and held
against what was read before. *Bare parsing* takes the same files to the same parser, as many at a time, in a pool of as
many processes, and gives back nothing. Both include the start of their processes; modules are loaded before. The
ratio is the median of the rounds', in each of which all sides run one after the other.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from operator import truediv
from pathlib import Path
from statistics import median

from parsel import Selector

from bench.collecting.pages import product
from bench.rereading.filling import ORIGIN, fill
from bench.telling import last_line, table
from prw_sdk.operate.coverage import Count, merged
from prw_sdk.operate.diff import Compare
from prw_sdk.operate.reread import CHUNK, Handed, Rereading, cores
from prw_sdk.spool.folder import Spool


def parse(path: Path) -> bool:
    """Bare parsing of one page."""
    return bool(product(Selector(text=path.read_bytes().decode("utf-8"))))


def bare(paths: Sequence[Path]) -> int:
    """All pages in a pool; how many were parsed."""
    with ProcessPoolExecutor(cores(), get_context("fork")) as pool:
        return sum(pool.map(parse, paths, chunksize=CHUNK))


def compared(spool: Spool) -> int:
    """All captures read again and compared; how many are as they were."""
    work = Rereading(spool.folder, Compare(), ORIGIN)
    return sum(one.same for one in work.over(_handed(spool)))


def counted(spool: Spool) -> int:
    """All captures read again and accounted for; how many there are."""
    work = Rereading(spool.folder, Count(), ORIGIN)
    found = merged(work.over(Handed(kept) for kept in spool.ledger.captures()))
    return sum(one.tally.profile().captures for one in found.values())


def _handed(spool: Spool) -> Iterator[Handed]:
    kept = list(spool.ledger.captures())
    known = spool.readings.of(one.row for one in kept)
    return (Handed(one, known[one.row].body, known[one.row].version) for one in kept)


def timed(side: Callable[[], int], pages: int) -> float:
    """Seconds that a side took; every page must be there in the end."""
    start = time.perf_counter()
    done = side()
    seconds = time.perf_counter() - start
    if done != pages:
        raise SystemExit(f"{done} of {pages} pages")
    return seconds


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    rounds = 3 if parser.parse_args().quick else 7
    pages, start = 1_000, time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="bench-reread-"))
    try:
        paths = fill(folder, pages)
        spool = Spool(folder)
        sides: dict[str, Callable[[], int]] = {
            "bare parsing": lambda: bare(paths),
            "re-reading (diff)": lambda: compared(spool),
            "re-reading (coverage)": lambda: counted(spool),
        }
        ORIGIN.plugins()
        found: dict[str, list[float]] = {name: [] for name in sides}
        for number in range(rounds):
            names = list(sides)
            for name in names[number % 3 :] + names[: number % 3]:
                found[name].append(timed(sides[name], pages))
        spool.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    base = found["bare parsing"]
    ratios = {name: median(map(truediv, seconds, base)) for name, seconds in found.items()}
    rows = [
        (name, f"{pages / median(seconds):.0f}", f"{ratios[name]:.2f}")
        for name, seconds in found.items()
    ]
    table(("side", "pages/s", "of bare parsing"), rows)
    ratio = ratios["re-reading (diff)"]
    last_line("reread", {"reread_vs_bare_parse": ratio}, time.monotonic() - start)


if __name__ == "__main__":
    main()
