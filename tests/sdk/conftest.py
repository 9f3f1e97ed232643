"""What the tests of the SDK share: a site on loopback, a network, a spool, and runs of a small adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from prw_sdk.collect import RunLimits, SourceJob
from prw_sdk.fetch.http import HttpNet
from prw_sdk.fetch.polite import HostGates, Politeness
from prw_sdk.spool.folder import Spool
from tests.sdk import jobs
from tests.sdk.jobs import QUICK, net_config
from tests.sdk.misbehaving import Site, answer, serving


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
        for name, page in pages.items():
            site.serve(f"/p/{name}", page)
        index = "\n".join(site.url(f"/p/{name}") for name in pages)
        site.serve("/index.txt", answer(index.encode(), content_type="text/plain"))

    return put


@pytest.fixture
def limits() -> RunLimits:
    """Quick limits."""
    return QUICK
