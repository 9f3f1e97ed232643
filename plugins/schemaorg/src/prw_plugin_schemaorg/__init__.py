"""PRW's adapter for shops with schema.org or OpenGraph product markup."""

from __future__ import annotations

from prw_plugin_schemaorg.adapter import SchemaOrg
from prw_sdk.adapter import Adapter
from prw_sdk.hookspecs import hookimpl

__all__ = ["SchemaOrg", "prw_adapters"]


@hookimpl
def prw_adapters() -> list[type[Adapter]]:
    """The adapters of this distribution."""
    return [SchemaOrg]
