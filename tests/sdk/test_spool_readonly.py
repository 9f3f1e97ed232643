"""A spool that cannot be written can be looked at by every command that only reads, and stops every one that writes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from prw_sdk.collect import SourceJob, collect
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.readonly import ReadOnlyFile
from prw_sdk.spool.sqlite import SpoolUnusable
from tests.sdk.jobs import QUICK, page
from tests.sdk.misbehaving import answer

Shop = Callable[..., None]
Told = list[Any]
"""An exit status, standard output and standard error."""
ROOT = Path(__file__).parents[2]
READING = [
    ["collect", "status", "DIR", "--json", "--verify"],
    ["collect", "items", "DIR", "--json"],
    ["collect", "records", "DIR", "--format", "jsonl"],
    ["collect", "export", "DIR", "--warc", "out/DIR.warc", "--json"],
    ["collect", "doctor", "DIR", "--json"],
    ["adapter", "diff", "DIR", "--json"],
    ["adapter", "coverage", "DIR", "--json"],
]
WRITING = [
    ["collect", "run", "-c", "sources.toml", "--local", "DIR"],
    ["collect", "push", "DIR", "-c", "sources.toml"],
    ["collect", "retry", "DIR"],
    ["collect", "doctor", "DIR", "--repair"],
    ["adapter", "diff", "DIR", "--save"],
]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may enter, unlike that of a test."""
    with tempfile.TemporaryDirectory(prefix="prw-readonly-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "out").mkdir()
        (folder / "out").chmod(0o777)
        yield folder
        for path in folder.rglob("*"):
            path.chmod(0o755)


def as_closed(spool: Spool, target: Path) -> None:
    """As a run leaves it that has ended."""
    spool.close()
    shutil.copytree(spool.folder, target)
    assert not (target / "ledger.sqlite-wal").exists()


def as_killed(spool: Spool, target: Path) -> None:
    """As a killed run leaves it: everything new is in the log."""
    shutil.copytree(spool.folder, target)
    assert (target / "ledger.sqlite-wal").stat().st_size


def as_restored(spool: Spool, target: Path) -> None:
    """As a backup of that gives it back: with the log, and without the file that processes share."""
    as_killed(spool, target)
    (target / "ledger.sqlite-shm").unlink()


def run_in(place: Path, way: str, commands: list[list[str]]) -> tuple[list[Told], list[Told]]:
    """What came of the commands on a spool that can be written, and on one that cannot."""
    namespace = ["unshare", "-rm"] if way == "mount" else []
    if subprocess.run([*namespace, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody make a mount of his own")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(place / "out")}
    environment["XDG_RUNTIME_DIR"] = str(place / "out")
    done = subprocess.run(
        [*namespace, sys.executable, "-m", "tests.sdk.readonly_program", way],
        cwd=place,
        env=environment,
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, after = json.loads(done.stdout)
    return before, after


def put_settings(config: Path, place: Path) -> None:
    """The settings of the site, with a resolver that is nowhere."""
    resolver = '[resolver]\naddress = "127.0.0.1:1"\nretry = { attempts = 1 }\n'
    (place / "sources.toml").write_text(f"{config.read_text()}\n{resolver}", "utf-8")


def held(folder: Path) -> Mapping[Path, bytes]:
    """Every file of a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("way", ["other-user", "mount"])
@pytest.mark.parametrize("leave", [as_closed, as_killed, as_restored])
async def test_reading_commands_see_the_same_where_nothing_can_be_written(
    shop: Shop,
    job: SourceJob,
    spool: Spool,
    place: Path,
    way: str,
    leave: Callable[[Spool, Path], None],
) -> None:
    """As root and as another user; what stands in a log only is seen as well, and no file changes."""
    shop(a=page("A"), b=page("B"), gone=answer(b"gone", status=404), bad=answer(b"", status=500))
    await collect([job], spool, QUICK)
    leave(spool, place / "locked")
    shutil.copytree(place / "locked", place / "open")
    before = held(place / "locked")
    plain, locked = run_in(place, way, READING)
    for command, expected, found in zip(READING, plain, locked, strict=True):
        assert found == [
            expected[0],
            expected[1].replace("open", "locked"),
            expected[2],
        ], command
        assert expected[0] in (0, 1), expected
    assert held(place / "locked") == before
    assert {one["item"] for one in json.loads(locked[1][1])["items"]} >= {"a", "b", "gone"}


@pytest.mark.parametrize("way", ["other-user", "mount"])
async def test_writing_commands_stop_clearly_and_lose_nothing(
    shop: Shop, job: SourceJob, spool: Spool, config: Path, place: Path, way: str
) -> None:
    """Before anything is fetched or sent."""
    shop(a=page("A"))
    await collect([job], spool, QUICK)
    as_killed(spool, place / "locked")
    shutil.copytree(place / "locked", place / "open")
    put_settings(config, place)
    before = held(place / "locked")
    _, locked = run_in(place, way, WRITING)
    for command, (status, _, error) in zip(WRITING, locked, strict=True):
        assert status == 2, (command, error)
        assert "can only be read here" in error, command
    assert held(place / "locked") == before


async def test_a_ledger_that_is_written_meanwhile_is_not_shown_half(
    filled: Spool, tmp_path: Path
) -> None:
    """Without a log nobody has it open; whoever opens it later is noticed."""
    filled.close()
    looking = ReadOnlyFile(filled.folder / "ledger.sqlite")
    with looking.reading() as connection:
        assert connection.execute("SELECT count(*) FROM items").fetchone()[0] == 3
    writing = Spool(filled.folder)
    with pytest.raises(SpoolUnusable, match="look again"), looking.reading():
        pass
    writing.close()
    looking.close()
