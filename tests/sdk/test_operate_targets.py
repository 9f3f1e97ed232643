"""Where `export` and `records` write to: a file whole or not at all, standard output, and nothing else."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from prw_sdk.operate.writing import TargetUnusable, opened
from prw_sdk.spool.folder import Spool
from tests.sdk.commanding import invoke
from tests.sdk.test_operate_export import keep, part, read

EXPORT, RECORDS = ("export", "--warc"), ("records", "--format", "jsonl", "--out")


@pytest.fixture
def kept(spool: Spool) -> Path:
    """The folder of a spool with some captures, whose records are more than one buffer holds."""
    for number in range(40):
        keep(spool, f"p{number}" + "x" * 500, (part(b"<html>one</html>"),))
    return spool.folder


def to(command: tuple[str, ...], spool: Path, target: object) -> tuple[object, ...]:
    """The arguments of a command that reads this spool and writes there."""
    return (command[0], spool, *command[1:], target)


@pytest.mark.parametrize("command", [EXPORT, RECORDS])
@pytest.mark.parametrize("target", ["pipe", ".", "folder", "missing/out", "file/out"])
def test_a_target_that_is_no_file_is_refused_and_stays_what_it_is(
    kept: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    target: str,
) -> None:
    """Exit status 2, naming the option and the target as it was given; nothing is left beside it."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("folder").mkdir()
    Path("file").touch()
    before = {path: path.stat().st_ino for path in tmp_path.iterdir()}
    result = invoke(*to(command, kept, target))
    assert result.exit_code == 2
    assert f"{command[-1]} {target}: " in result.stderr
    assert {path: path.stat().st_ino for path in tmp_path.iterdir()} == before


def test_an_archive_whose_name_is_no_text_is_written(kept: Path, tmp_path: Path) -> None:
    """A file system takes other bytes than UTF-8; what an archive says of its own name shows them escaped."""
    target = tmp_path / os.fsdecode(b"\xff.warc")
    assert invoke(*to(EXPORT, kept, target)).exit_code == 0
    assert b"WARC-Filename: \\xff.warc" in target.read_bytes()


def test_a_link_stays_a_link_and_its_file_is_written(kept: Path, tmp_path: Path) -> None:
    """The new file has the rights of the one in whose place it stands."""
    real, link = tmp_path / "real.warc", tmp_path / "link.warc"
    real.touch(0o600)
    link.symlink_to(real)
    assert invoke(*to(EXPORT, kept, link)).exit_code == 0
    assert link.is_symlink()
    assert len(read(real)) == 81
    assert real.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_written_to_its_end_stays_as_it_was(tmp_path: Path) -> None:
    """The error names the target, never the file that is written beside it until it is whole."""
    target = tmp_path / "out"
    target.write_text("before")

    def write() -> None:
        with opened(target, "--out") as file:
            file.write(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(TargetUnusable, match=f"^--out {target}: No space left on device") as told:
        write()
    assert [*tmp_path.iterdir()] == [target]
    assert target.read_text() == "before"
    assert "/." not in str(told.value)


def prw(*arguments: object, stdout: int) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    code = "from prw_base.cli import main; main()"
    line = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(line, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.parametrize(
    "command",
    [("collect", "export", "--warc", "-"), ("collect", "items", "--json"), ("adapter", "coverage")],
)
def test_a_full_standard_output_is_told_in_one_line(kept: Path, command: tuple[str, ...]) -> None:
    """Exit status 1, by every command; a pipe that nobody reads any more ends it without a word."""
    full = os.open("/dev/full", os.O_WRONLY)
    reading, closed = os.pipe()
    os.close(reading)
    try:
        told = prw(*command[:2], kept, *command[2:], stdout=full)
        quiet = prw(*command[:2], kept, *command[2:], stdout=closed)
    finally:
        os.close(full)
        os.close(closed)
    assert (told.returncode, told.stderr) == (1, "prw: standard output: No space left on device\n")
    assert (quiet.returncode, quiet.stderr) == (1, "")


def test_the_file_that_standard_output_goes_to_is_not_replaced(kept: Path, tmp_path: Path) -> None:
    """A link to it, as `/dev/stdout` is one, is refused; `-` streams, and the summary goes elsewhere."""
    link = tmp_path / "stdout"
    link.symlink_to("/proc/self/fd/1")
    with (tmp_path / "out.warc").open("wb") as out:
        refused = prw("collect", "export", kept, "--warc", link, stdout=out.fileno())
        streamed = prw("collect", "export", kept, "--warc", "-", stdout=out.fileno())
    assert (refused.returncode, f"--warc {link}: " in refused.stderr) == (2, True)
    assert (streamed.returncode, "40 captures" in streamed.stderr) == (0, True)
    assert len(read(tmp_path / "out.warc")) == 81
