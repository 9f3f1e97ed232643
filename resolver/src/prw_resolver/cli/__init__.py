"""``prw resolver``: run the resolver, and tell it about tenants, sources and callers."""

from __future__ import annotations

from prw_resolver.cli.app import app

__all__ = ["app"]
