"""Runs commands on a spool that this process cannot write: ``python -m tests.sdk.readonly_program WAY``, in its folder.

The folder holds two spools with the same content, `open` and `locked`. Each command is run on `open` first, and once
that and everything else that is needed is loaded, `locked` is made unwritable in that WAY:

- `other-user`: by its modes, for another user than root;
- `mount`: by a read-only mount, for root (``unshare -rm`` starts it).

Standard input names the commands as JSON, with DIR for the folder; standard output gets what came of each, on both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from prw_sdk import plugins
from prw_sdk.cli import adapter
from prw_sdk.cli import app as collecting
from tests.sdk.commanding import INSTALLED

NOBODY = 65_534


def lock(way: str, folder: Path) -> None:
    """Make the folder unwritable for this process."""
    if way == "mount":
        subprocess.run(["mount", "--bind", folder, folder], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        return
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def told(command: list[str], folder: str) -> tuple[int, str, str]:
    """The exit status of a command, and both of its outputs."""
    group, *arguments = (part.replace("DIR", folder) for part in command)
    app = adapter.app if group == "adapter" else collecting.app
    result = CliRunner().invoke(app, arguments)
    defect = "" if isinstance(result.exception, (SystemExit, type(None))) else result.exception
    return (
        result.exit_code,
        result.stdout,
        f"{result.stderr}{defect!r}" if defect else result.stderr,
    )


def main() -> None:
    """See the module."""
    plugins.load = lambda *_: INSTALLED
    commands = json.load(sys.stdin)
    before = [told(command, "open") for command in commands]
    lock(sys.argv[1], Path("locked"))
    assert not os.access("locked", os.W_OK), "the folder can still be written"
    json.dump([before, [told(command, "locked") for command in commands]], sys.stdout)


if __name__ == "__main__":
    main()
