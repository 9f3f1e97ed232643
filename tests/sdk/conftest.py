"""What the tests of the SDK share: a site on loopback, a network, a spool, and runs of a small adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from prw_sdk import plugins
from prw_sdk.collect import RunLimits, SourceJob, collect
from prw_sdk.fetch.http import HttpNet
from prw_sdk.fetch.polite import HostGates, Politeness
from prw_sdk.spool.folder import Spool
from tests.sdk import jobs
from tests.sdk.commanding import INSTALLED
from tests.sdk.jobs import QUICK, net_config, page
from tests.sdk.misbehaving import Site, answer, serving
from tests.sdk.resolver_double import Intake, receiving


@pytest.fixture
def site() -> Iterator[Site]:
    """A site on loopback."""
    with serving() as running:
        yield running


@pytest.fixture
async def net(site: Site) -> AsyncIterator[HttpNet]:
    """A network that may reach the site, with quick retries."""
    one = HttpNet(net_config(site), HostGates(Politeness(1000, 16)))
    yield one
    await one.aclose()


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    """An empty spool."""
    one = Spool(tmp_path / "spool")
    yield one
    one.close()


@pytest.fixture
def job(site: Site) -> SourceJob:
    """The source ``src_list``: the pages that `shop` puts on the site."""
    return jobs.list_job(site)


@pytest.fixture
def shop(site: Site) -> Callable[..., None]:
    """Put pages on the site, by name, and list them in its index."""

    def put(**pages: bytes) -> None:
        for name, one in pages.items():
            site.serve(f"/p/{name}", one)
        index = "\n".join(site.url(f"/p/{name}") for name in pages)
        site.serve("/index.txt", answer(index.encode(), content_type="text/plain"))

    return put


@pytest.fixture
def limits() -> RunLimits:
    """Quick limits."""
    return QUICK


@pytest.fixture
def config(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings for the site, with quick retries, no resolver, and one adapter installed."""
    monkeypatch.setattr(plugins, "load", lambda: INSTALLED)
    path = tmp_path / "sources.toml"
    path.write_text(
        f"""
        contact = "ops@example.org"
        tenant = "ten_synth_a"
        fetch = {{ attempts = 2, backoff = 0.001 }}
        rate = {{ per_second = 1000, at_once = 8 }}

        [[source]]
        id = "src_list"
        adapter = "list"
        currency = "EUR"
        resolve = {{ "list.example:80" = "127.0.0.1:{site.port}" }}
        allow_private = ["list.example", "127.0.0.1"]

        [source.settings]
        index = "http://list.example/index.txt"
        """,
        "utf-8",
    )
    return path


@pytest.fixture
async def intake() -> AsyncIterator[Intake]:
    """A resolver's intake."""
    async with receiving() as running:
        yield running


@pytest.fixture
async def filled(shop: Callable[..., None], job: SourceJob, spool: Spool) -> Spool:
    """A spool with three captures, one of them an absence."""
    shop(a=page("A"), b=page("B"), gone=answer(b"gone", status=404))
    await collect([job], spool, QUICK)
    return spool
