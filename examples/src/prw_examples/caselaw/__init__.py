"""An adapter outside shopping: a portal that publishes the decisions of several courts, its own and others'."""

from __future__ import annotations

from prw_examples.caselaw.adapter import CaseLaw
from prw_sdk.adapter import Adapter
from prw_sdk.hookspecs import hookimpl

__all__ = ["CaseLaw", "prw_adapters"]


@hookimpl
def prw_adapters() -> list[type[Adapter]]:
    """The adapters of this distribution."""
    return [CaseLaw]
