"""Pages over https: Chromium opens no connection of its own, so it is the network alone that checks certificates."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256

import pytest

from prw_sdk.evidence import Part
from prw_sdk.fetch import browser as module
from prw_sdk.fetch.browser import Browser, BrowserConfig, missing
from prw_sdk.fetch.outcome import FetchFailed, Outcome
from prw_sdk.fetch.rendering import Document, Pages, Resource
from tests.browser.pages import by_role

ORIGIN = "https://www.shop.example"
PAGES: Mapping[str, tuple[str, bytes]] = {
    f"{ORIGIN}/p": (
        "text/html",
        b"""<!doctype html><link rel=stylesheet href="https://cdn.example/a.css"><p id=state></p><script>
        state.textContent = [isSecureContext, location.protocol, document.cookie].join(' ');
        fetch('https://api.shop.example/offers', {headers: {'X-Wanted': 'yes'}, credentials: 'include'})
          .then(found => found.json()).then(found => { state.textContent += ' ' + found.seller; });</script>
        <img src="http://cdn.example/plain.png">""",
    ),
    "https://cdn.example/a.css": ("text/css", b"p { color: teal }"),
    "https://api.shop.example/offers": ("application/json", b'{"seller": "Nordwind"}'),
}
CORS = (
    ("access-control-allow-origin", ORIGIN),
    ("access-control-allow-credentials", "true"),
    ("access-control-allow-headers", "x-wanted"),
)


class Shop:
    """A network in which there is this shop, and nothing else."""

    user_agent = "PRW-collector (+ops@example.org)"
    pages = Pages("de-DE")

    def __init__(self) -> None:
        self.asked: dict[str, Mapping[str, str]] = {}

    async def document(self, url: str, *, role: str) -> Document:
        """The page, with a cookie."""
        found = await self.resource(url, {}, ask_robots=True)
        headers = (*found.headers, ("set-cookie", "visit=1; Secure; Path=/; Domain=shop.example"))
        return Document(self.part(found, role=role, url_asked=url), found.url, headers)

    async def resource(self, url: str, headers: Mapping[str, str], *, ask_robots: bool) -> Resource:
        """One of the shop's answers."""
        self.asked[url] = headers
        if url not in PAGES:
            raise self.failed(Outcome.NETWORK, "there is no such address", url)
        kind, body = PAGES[url]
        return Resource(url, 200, (("content-type", kind), *CORS), body, datetime.now(UTC))

    def part(self, resource: Resource, *, role: str, url_asked: str) -> Part:
        """An answer as a part."""
        digest, kind = sha256(resource.body).hexdigest(), dict(resource.headers)["content-type"]
        at = resource.fetched_at
        return Part(role, digest, resource.body, kind, url_asked, resource.url, 200, at)

    def judge(self, part: Part) -> None:
        """Every page is the shop's."""

    def failed(self, outcome: Outcome, message: str, url: str) -> FetchFailed:
        """A failure."""
        return FetchFailed(outcome, message, url=url)


async def test_a_secure_page_is_opened_as_any_browser_would(browser: Browser) -> None:
    """A secure context, its cookies, its own hosts' data by the rules of its origin, and other hosts' styles."""
    shop = Shop()
    wanted = {"offers": "https://api.shop.example/*"}
    parts = await browser.render(
        f"{ORIGIN}/p", role="page", responses=wanted, wait_for=None, through=shop
    )
    found = by_role(parts)
    assert "true https: visit=1 Nordwind" in found["page"].text()
    assert found["offers"].body == b'{"seller": "Nordwind"}'
    sent = shop.asked["https://api.shop.example/offers"]
    assert (sent["x-wanted"], sent["origin"], sent["cookie"]) == ("yes", ORIGIN, "visit=1")
    assert not sent.keys() & {"user-agent", "accept-encoding", "host", "sec-ch-ua"}


def test_a_collector_without_playwright_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The extra, by its name."""
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert missing(BrowserConfig()) == "Playwright is not installed: install prw-sdk[browser]"
