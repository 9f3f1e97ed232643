"""The example street answers as its truth file says, on loopback and nowhere else."""

from __future__ import annotations

import json
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import httpx
import pytest
from protego import Protego

from prw_examples.street import Street, load_catalogue, load_truth
from prw_examples.street.model import Fact, Form, Page, Shop
from prw_examples.street.truth import Expect

TRUTH = load_truth()
CATALOGUE = load_catalogue()
LOC = "{http://www.sitemaps.org/schemas/sitemap/0.9}loc"
TLS = ssl.create_default_context()
PAGES = [(shop, page) for shop in CATALOGUE.shops for page in shop.pages]


@pytest.fixture
def street() -> Iterator[Street]:
    """A fresh street."""
    with Street.start() as running:
        yield running


@pytest.fixture(scope="module")
def rendered() -> Iterator[dict[str, str]]:
    """The text of every product page by URL, decoded as its Content-Type says."""
    with Street.start() as running:
        urls = [shop.url(page.path) for shop, page in PAGES]
        yield {url: (ask(running, url), ask(running, url))[1].text for url in urls}


def ask(street: Street, url: str, **headers: str) -> httpx.Response:
    """One request as a collector sends it: the name in Host, the connection to loopback."""
    parts = urlsplit(url)
    target = f"http://127.0.0.1:{street.port}{parts.path}"
    return httpx.get(target, headers={"Host": parts.netloc, **headers}, trust_env=False, verify=TLS)


def locations(answer: httpx.Response) -> list[str]:
    """The URLs that a sitemap or an index of sitemaps lists."""
    tree = ET.fromstring(answer.content)  # noqa: S314 - written by the street itself
    return [entry.text or "" for entry in tree.iter(LOC)]


def sitemap_urls(street: Street, shop: Shop) -> list[str]:
    """All that the shop's sitemaps list, from its index on."""
    index = locations(ask(street, shop.url("/sitemap.xml")))
    return [url for part in index for url in locations(ask(street, part))]


def test_the_sitemaps_list_every_page_of_the_truth(street: Street) -> None:
    """Forbidden, gone and redirected ones included."""
    for shop in CATALOGUE.shops:
        expected = [page.url for page in TRUTH.pages if page.source == shop.id]
        assert sitemap_urls(street, shop) == expected
        assert len(locations(ask(street, shop.url("/sitemap.xml")))) > 1


@pytest.mark.parametrize(
    ("expect", "statuses"),
    [
        (Expect.RECORDS, (200, 200)),
        (Expect.FORBIDDEN, (200, 200)),
        (Expect.NOT_A_RECORD, (200, 200)),
        (Expect.RECORDS_AFTER_RETRY, (503, 200)),
        (Expect.ABSENT, (404, 404)),
        (Expect.REDIRECT_REFUSED, (302, 302)),
    ],
)
def test_every_page_answers_as_meant(
    street: Street, expect: Expect, statuses: tuple[int, int]
) -> None:
    """Twice, since one of them fails only the first time."""
    pages = [page for page in TRUTH.pages if page.expect is expect]
    assert pages
    for page in pages:
        assert (ask(street, page.url).status_code, ask(street, page.url).status_code) == statuses


def test_the_unavailable_page_says_when_to_come_back_and_fails_again_after_a_reset(
    street: Street,
) -> None:
    """Retry-After in seconds (RFC 9110, 10.2.3)."""
    [page] = [page for page in TRUTH.pages if page.expect is Expect.RECORDS_AFTER_RETRY]
    first = ask(street, page.url)
    assert first.headers["Retry-After"] == "1"
    assert ask(street, page.url).status_code == 200
    street.reset()
    assert street.requests == 0
    assert ask(street, page.url).status_code == 503


def test_redirects_lead_to_private_addresses_that_the_settings_do_not_allow(street: Street) -> None:
    """A private network and another loopback address."""
    pages = [page for page in TRUTH.pages if page.expect is Expect.REDIRECT_REFUSED]
    targets = [urlsplit(ask(street, page.url).headers["Location"]).hostname for page in pages]
    assert targets == ["10.0.0.1", "127.0.0.2"]


def test_robots_txt_forbids_exactly_the_pages_that_the_truth_calls_forbidden(
    street: Street,
) -> None:
    """And it asks for no delay (RFC 9309)."""
    for shop in CATALOGUE.shops:
        rules = Protego.parse(ask(street, shop.url("/robots.txt")).text)
        assert rules.crawl_delay("any") is None
        assert list(rules.sitemaps) == [shop.url("/sitemap.xml")]
        for page in (page for page in TRUTH.pages if page.source == shop.id):
            allowed = rules.can_fetch(page.url, "any")
            assert allowed is (page.expect is not Expect.FORBIDDEN)


def test_the_windows_1252_page_is_what_its_content_type_says(street: Street) -> None:
    """Umlauts and the euro sign are one byte each, and no UTF-8."""
    [(shop, page)] = [(shop, page) for shop, page in PAGES if page.encoding != "utf-8"]
    answer = ask(street, shop.url(page.path))
    assert answer.headers["Content-Type"] == "text/html; charset=windows-1252"
    assert "1.299,00 €".encode("windows-1252") in answer.content
    assert "Kühlkörper" in answer.content.decode("windows-1252")
    with pytest.raises(UnicodeDecodeError):
        answer.content.decode("utf-8")


@pytest.mark.parametrize(("shop", "page"), PAGES, ids=lambda value: getattr(value, "path", ""))
def test_a_page_states_what_the_catalogue_says(
    rendered: dict[str, str], shop: Shop, page: Page
) -> None:
    """Identifiers that are stated stand there, and those that are not stand nowhere."""
    text = rendered[shop.url(page.path)]
    for listing in page.listings:
        assert listing.seller in text
        assert listing.sku in text
        assert (listing.product.gtin in text) is bool({Fact.GTIN, Fact.GTIN14} & listing.states)
        assert (listing.mpn in text) is listing.stated(Fact.MPN)


@pytest.mark.parametrize(("shop", "page"), PAGES, ids=lambda value: getattr(value, "path", ""))
def test_json_ld_is_sound_but_on_the_broken_page(
    rendered: dict[str, str], shop: Shop, page: Page
) -> None:
    """The broken one has good microdata beside it."""
    text = rendered[shop.url(page.path)]
    scripts = re.findall(r'<script type="application/ld\+json">(.*?)</script>', text, re.DOTALL)
    assert len(scripts) == (0 if page.form in (Form.MICRODATA, Form.OPENGRAPH) else 1)
    if page.form is Form.BROKEN:
        assert 'itemprop="gtin13"' in text
        with pytest.raises(json.JSONDecodeError):
            json.loads(scripts[0])
    else:
        assert all(json.loads(script)["@context"] == shop.schema for script in scripts)


def test_answers_are_counted_by_host_and_path(street: Street) -> None:
    """The counts are there in this process and over HTTP."""
    url = CATALOGUE.shops[0].url("/about")
    ask(street, url)
    ask(street, url)
    assert street.requests == 2
    assert street.served == {("lumenparts.example", "/about"): 2}
    own = ask(street, f"http://127.0.0.1:{street.port}/served").json()
    assert own == {"requests": 2, "served": {"lumenparts.example/about": 2}}


def test_an_unchanged_page_is_not_sent_again(street: Street) -> None:
    """If-None-Match with the page's ETag is answered 304 (RFC 9110, 13.1.2)."""
    url = CATALOGUE.shops[0].url("/about")
    etag = ask(street, url).headers["ETag"]
    again = ask(street, url, **{"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")


def test_other_hosts_are_refused(street: Street) -> None:
    """421 Misdirected Request (RFC 9110, 15.5.20), and not counted."""
    assert ask(street, "http://elsewhere.example/").status_code == 421
    assert street.requests == 0


@pytest.mark.parametrize("address", ["0.0.0.0", "192.0.2.1", "::"])  # noqa: S104 - refused is the point
def test_it_serves_on_loopback_only(address: str) -> None:
    """Any other address is refused before a socket is opened."""
    with pytest.raises(ValueError, match="loopback only"):
        Street.start(address=address)


async def test_it_is_an_async_context_manager_that_frees_its_port() -> None:
    """Stopping twice is no error, and the port can be taken again."""
    async with Street.start() as street:
        port = street.port
    street.stop()
    with Street.start(port) as again:
        assert again.port == port


def test_it_serves_as_a_process_of_its_own() -> None:
    """`python -m prw_examples.street` says its port in its first line and stops on SIGTERM."""
    command = [sys.executable, "-m", "prw_examples.street", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip().rpartition(":")[2]
        try:
            answer = httpx.get(f"http://127.0.0.1:{port}/served", trust_env=False)
            assert answer.json()["requests"] == 0
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=20)
