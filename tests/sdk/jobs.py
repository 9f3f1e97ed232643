"""Jobs and settings for tests: quick retries, and leave to reach loopback."""

from __future__ import annotations

from dataclasses import replace

from prw_sdk.adapter import Adapter, Source
from prw_sdk.collect import RunLimits, SourceJob
from prw_sdk.fetch.guard import AddressRules
from prw_sdk.fetch.http import FetchLimits, NetConfig
from prw_sdk.fetch.polite import Politeness, user_agent
from prw_sdk.fetch.retry import RetryPolicy
from tests.sdk.catalogue_adapter import ListAdapter, ListSettings
from tests.sdk.misbehaving import Site, answer

QUICK = RunLimits(concurrency=4, attempt_budget=3, manners=Politeness(1000, 16))


def page(title: str) -> bytes:
    """A page with a title."""
    return answer(f"<html><title>{title}</title></html>".encode())


def net_config(site: Site, **limits: float) -> NetConfig:
    """May reach the site's loopback address, and retries at once."""
    return NetConfig(
        user_agent("ops@example.org"),
        AddressRules(frozenset({f"127.0.0.1:{site.port}"})),
        replace(FetchLimits(connect=2, total=5), **limits),  # type: ignore[arg-type]  # all numbers
        RetryPolicy(attempts=3, base=0.001, cap=0.01, patience=5.0),
    )


def list_job(site: Site, adapter: Adapter | None = None, batch: int = 2) -> SourceJob:
    """A job over the site's index."""
    settings = ListSettings(index=site.url("/index.txt"), batch=batch)
    source = Source("src_list", settings, currency="EUR")
    return SourceJob("ten_synth_a", source, adapter or ListAdapter(), net_config(site))
