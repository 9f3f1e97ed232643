"""The command `prw collect` in the process of a test, with one small adapter installed."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from prw_sdk.cli.app import app
from prw_sdk.evidence import AdapterVersion
from prw_sdk.plugins import Plugins
from tests.sdk.catalogue_adapter import ListAdapter

INSTALLED = Plugins(
    adapters={"list": ListAdapter}, versions={AdapterVersion("list", "1.0.0"): ListAdapter}
)


def invoke(*arguments: object) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def summary(result: Result) -> dict[str, Any]:
    """The summary of a run's one source, from its JSON."""
    (row,) = json.loads(result.stdout.splitlines()[-1])
    assert isinstance(row, dict)
    return row
