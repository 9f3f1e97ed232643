"""A site on loopback, a browser, and networks that use it; without Chromium these tests are skipped, and say so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from prw_sdk.fetch.browser import Browser, missing
from prw_sdk.fetch.http import HttpNet
from prw_sdk.fetch.polite import HostGates
from prw_sdk.testing.server import Site, serving
from tests.browser.pages import MANNERS, net_config


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what opens pages where there is no browser, for that reason in one line."""
    lacking = missing()
    for item in items:
        if lacking is not None and {"browser", "site"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.skip(reason=lacking))


@pytest.fixture
def site() -> Iterator[Site]:
    """A server that answers what the test tells it to."""
    with serving() as running:
        yield running


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    """A browser that has not been started yet."""
    async with Browser() as running:
        yield running


@pytest.fixture
async def net(site: Site, browser: Browser) -> AsyncIterator[HttpNet]:
    """A network that may reach the site, and opens pages."""
    net = HttpNet(net_config(site), HostGates(MANNERS), browser=browser)
    yield net
    await net.aclose()
