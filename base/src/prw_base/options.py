"""Options that every group of commands has, so that each is named and told alike."""

from __future__ import annotations

from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")]
"""Of every command that prints a table."""
