"""How a program says that it serves: a line for people, a file for whoever started it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from prw_base.files import write_private

ReadyFileOption = Annotated[
    Path | None,
    typer.Option(
        "--ready-file", help="Write addresses and process id here, as JSON, once it is ready."
    ),
]


def tell_ready(line: str, ready_file: Path | None, **addresses: str | None) -> None:
    """Print ``line`` to standard error, and write ``addresses`` and ``pid`` to the file where one is wanted."""
    typer.echo(line, err=True)
    if ready_file is not None:
        write_private(ready_file, json.dumps({**addresses, "pid": os.getpid()}).encode())
