"""The adapter of the re-reading bench, found as any plugin is: the one of the collecting bench."""

from __future__ import annotations

from bench.collecting.ours import Shop
from prw_sdk.adapter import Adapter
from prw_sdk.hookspecs import hookimpl


@hookimpl
def prw_adapters() -> list[type[Adapter]]:
    """The shop of the benches."""
    return [Shop]
