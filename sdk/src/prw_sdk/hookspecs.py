"""The hooks that a plugin may implement (pluggy project ``prw``); few, and typed."""

from __future__ import annotations

from collections.abc import Callable

import pluggy

from prw_sdk.adapter import Adapter

PROJECT = "prw"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class PluginHooks:
    """What PRW asks of a plugin."""

    @hookspec
    def prw_adapters(self) -> list[type[Adapter]]:  # type: ignore[empty-body]  # a hook spec has no body by design
        """The adapter classes that this distribution brings."""

    @hookspec
    def prw_run_observer(self) -> Callable[[object], None]:  # type: ignore[empty-body]  # a hook spec has no body by design
        """A function that is told of every event of a run (`prw_sdk.report.Event`).

        It decides nothing and should be quick; what it raises is reported, and it is told no more.
        """

    @hookspec
    def prw_vocabulary(self) -> str:  # type: ignore[empty-body]  # a hook spec has no body by design
        """The classes and attributes that this plugin's records are about, as TOML that the resolver publishes."""
