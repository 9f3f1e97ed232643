"""PRW adapter for shops that need a browser: rendered pages, screenshots, policy pages."""

from __future__ import annotations

from prw_plugin_rendered_shop.adapter import RenderedShop
from prw_sdk.adapter import Adapter
from prw_sdk.hookspecs import hookimpl

__all__ = ["RenderedShop", "prw_adapters"]


@hookimpl
def prw_adapters() -> list[type[Adapter]]:
    """The adapters of this distribution."""
    return [RenderedShop]
