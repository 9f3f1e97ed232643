"""The real collector, as a process of its own, over a site on loopback; killed where a test says so."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prw_sdk import plugins
from prw_sdk.adapter import NotARecord
from prw_sdk.evidence import Capture, Record
from prw_sdk.spool.folder import Spool

HEAD = """
contact = "ops@example.org"
spool = "spool"
[rate]
per_second = 500.0
at_once = 8
[fetch]
attempts = 3
backoff = 0.01
backoff_cap = 0.05
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended: the exit status (negative for a signal), the summary of its one source, what it said."""

    status: int
    summary: Mapping[str, Any]
    told: str


async def collect(folder: Path, source: str, faults: str = "") -> Ran:
    """Run `prw collect run --local` with that `[[source]]` block; the spool is in the folder."""
    settings = folder / "sources.toml"
    settings.write_text(HEAD + source, "utf-8")
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("prw")),
        *("collect", "run", "--local", str(folder / "spool"), "--config", str(settings), "--json"),
        env=os.environ | {"PRW_FAULTS": faults, "XDG_RUNTIME_DIR": str(folder)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    told = out.decode() + err.decode()
    if process.returncode == -signal.SIGKILL:
        return Ran(-signal.SIGKILL, {}, told)
    found = json.loads(out.decode().splitlines()[-1])
    return Ran(process.returncode or 0, found[0] if isinstance(found, list) else found, told)


def kept(folder: Path) -> tuple[Capture, ...]:
    """Every capture in the spool, in order."""
    spool = Spool.existing(folder / "spool")
    try:
        return tuple(spool.capture(one) for one in spool.ledger.captures())
    finally:
        spool.close()


def read(captures: tuple[Capture, ...]) -> tuple[Record, ...]:
    """What the installed adapter reads of them; captures without records count for none."""
    found: list[Record] = []
    for capture in captures:
        adapter = plugins.load().find(capture.adapter.name)()
        try:
            found.extend(adapter.read(capture))
        except NotARecord:
            continue
    return tuple(found)
