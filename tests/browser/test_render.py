"""What opening a page gives, and how it can fail."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from prw_sdk.fetch.browser import Browser, BrowserConfig
from prw_sdk.fetch.browser_rules import VisitLimits
from prw_sdk.fetch.http import HttpNet
from prw_sdk.fetch.outcome import FetchFailed, Outcome, Recovery
from prw_sdk.fetch.polite import HostGates
from prw_sdk.fetch.rendering import Pages
from prw_sdk.fetch.retry import RetryPolicy
from prw_sdk.testing.server import Site, answer, redirect
from tests.browser.pages import (
    MANNERS,
    by_role,
    descendants,
    html,
    is_main,
    json,
    net_config,
    script,
)
from tests.support.waiting import until

OFFERS = '{"offers": [{"seller": "Nordwind", "price": 12.90}]}'
SHOWS = """
fetch('/api/offers?of=1').then(found => found.json()).then(found => {
  document.body.insertAdjacentHTML('beforeend', '<b id=price>' + found.offers[0].price.toFixed(2) + ' €</b>');
});
"""


async def failure(net: HttpNet, url: str, **how: object) -> FetchFailed:
    """How the page fails to be opened."""
    with pytest.raises(FetchFailed) as caught:
        await net.render(url, **how)  # type: ignore[arg-type]  # tests name any parameter
    return caught.value


async def test_a_page_gives_what_it_shows_what_was_served_a_picture_and_its_own_answers(
    site: Site, net: HttpNet
) -> None:
    """Each a part under its role; the answer's bytes are those that were received."""
    url = site.serve("/p", script(SHOWS))
    site.serve("/api/offers?of=1", json(OFFERS))
    found = by_role(await net.render(url, role="page", responses={"offers": "*/api/offers*"}))
    assert set(found) == {"page", "page.source", "page.screenshot", "offers"}
    assert '<b id="price">12.90 €</b>' in found["page"].text()
    assert found["page"].charset_used == "utf-8"
    assert b"12.90" not in found["page.source"].body
    assert found["page.screenshot"].body.startswith(b"\x89PNG")
    assert found["offers"].body == OFFERS.encode()
    assert found["offers"].url_asked == site.url("/api/offers?of=1")
    assert {part.url_asked for role, part in found.items() if role != "offers"} == {url}


async def test_an_answer_that_the_page_never_got_is_no_part(site: Site, net: HttpNet) -> None:
    """Neither is one that the source had not got."""
    url = site.serve("/p", script("fetch('/api/gone')"))
    found = by_role(await net.render(url, responses={"a": "*/api/gone", "b": "*/api/other"}))
    assert set(found) == {"page", "page.source", "page.screenshot"}


async def test_a_page_is_waited_for_until_it_shows_what_is_sought(site: Site, net: HttpNet) -> None:
    """However long its scripts think about it."""
    shows = (
        "setTimeout(() => document.body.insertAdjacentHTML('beforeend', '<h1>Nordwind</h1>'), 1500)"
    )
    found = by_role(await net.render(site.serve("/p", script(shows)), wait_for="h1, .not-found"))
    assert "<h1>Nordwind</h1>" in found["page"].text()


async def test_a_page_that_never_shows_it_is_tried_again_and_says_what_it_missed(
    site: Site, browser: Browser
) -> None:
    """A page in the middle of its work is no evidence."""
    browser = Browser(BrowserConfig(limits=VisitLimits(settle=0.6, calm=0.1)))
    async with browser:
        net = HttpNet(net_config(site), HostGates(MANNERS), browser=browser)
        url = site.serve("/p", script("fetch('https://www.google-analytics.com/x')"))
        failed = await failure(net, url, wait_for="h1.product")
        await net.aclose()
    assert (failed.outcome, failed.recovery) == (Outcome.TIMEOUT, Recovery.RETRY)
    assert "h1.product" in failed.message
    assert "follows visitors" in failed.message


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (404, Outcome.NOT_FOUND),
        (410, Outcome.GONE),
        (403, Outcome.REFUSED),
        (429, Outcome.RATE_LIMITED),
        (503, Outcome.UPSTREAM),
    ],
)
async def test_a_page_that_is_not_served_fails_as_it_would_without_a_browser(
    site: Site, net: HttpNet, status: int, outcome: Outcome
) -> None:
    """A real 404 keeps its answer, so that the listing can be reviewed."""
    url = site.serve("/p", answer(b"<p>no</p>", status=status))
    failed = await failure(net, url)
    assert failed.outcome is outcome
    assert (failed.part is not None) is (outcome.recovery is Recovery.ABSENT)


async def test_an_own_answer_that_the_source_could_not_give_fails_the_page(
    site: Site, net: HttpNet
) -> None:
    """What was asked for as evidence is whole, or asked for again."""
    url = site.serve("/p", script("fetch('/api/offers')"))
    site.serve("/api/offers", json("{}", status=503))
    failed = await failure(net, url, responses={"offers": "*/api/offers"})
    assert (failed.outcome, failed.recovery) == (Outcome.UPSTREAM, Recovery.RETRY)


async def test_what_failed_is_opened_again(site: Site, browser: Browser) -> None:
    """As any GET is, by the same policy."""
    config = replace(net_config(site), retry=RetryPolicy(attempts=3, base=0.01))
    net = HttpNet(config, HostGates(MANNERS), browser=browser)
    url = site.serve("/p", answer(b"", status=503), html("<h1>here</h1>"))
    assert "here" in by_role(await net.render(url))["page"].text()
    await net.aclose()


async def test_redirects_and_a_page_that_goes_elsewhere_lead_to_the_address_reached(
    site: Site, net: HttpNet
) -> None:
    """By status, and by its own script."""
    asked = site.serve("/old", redirect("/hop"))
    site.serve("/hop", script("location.replace('/new')"))
    site.serve("/new", html("<h1>there</h1>"))
    found = by_role(await net.render(asked))
    assert "there" in found["page"].text()
    for role in ("page", "page.source", "page.screenshot"):
        assert (found[role].url_asked, found[role].url_reached) == (asked, site.url("/new"))


async def test_a_page_that_goes_round_in_circles_ends(site: Site, net: HttpNet) -> None:
    """It is no page."""
    site.serve("/b", script("location.replace('/a')"))
    failed = await failure(net, site.serve("/a", script("location.replace('/b')")))
    assert failed.outcome is Outcome.TOO_MANY_REDIRECTS


async def test_robots_rules_hold_for_the_page_and_for_the_data_it_asks_for(
    site: Site, net: HttpNet
) -> None:
    """Both are what a robot reads."""
    rules = b"User-agent: *\nDisallow: /secret\nDisallow: /api\n"
    site.serve("/robots.txt", answer(rules, content_type="text/plain"))
    assert (await failure(net, site.url("/secret"))).outcome is Outcome.ROBOTS_FORBIDDEN
    site.serve("/api/x", json("{}"))
    found = by_role(
        await net.render(site.serve("/p", script("fetch('/api/x')")), responses={"x": "*/api/x"})
    )
    assert "x" not in found
    assert site.asked["/api/x"] == 0


async def test_a_file_is_no_page(site: Site, net: HttpNet) -> None:
    """Nothing is saved, and no viewer opens."""
    url = site.serve("/p", answer(b"%PDF-1.4", content_type="application/pdf"))
    failed = await failure(net, url)
    assert (failed.outcome, "application/pdf" in failed.message) == (Outcome.REFUSED, True)


async def test_the_source_sees_who_asks_in_which_language_and_nothing_of_earlier_pages(
    site: Site, browser: Browser
) -> None:
    """An honest User-Agent on every request; cookies last no longer than their page."""
    config = replace(net_config(site), pages=Pages(language="de-DE"))
    net = HttpNet(config, HostGates(MANNERS), browser=browser)
    cookie = {"Set-Cookie": "seen=1; Path=/"}
    page = b"<script>fetch('/api?'+navigator.language)</script>"
    url = site.serve("/p", answer(page, headers=cookie))
    site.serve("/api?de-DE", json("{}"))
    await net.render(url)
    await net.render(url)
    await net.aclose()
    asked = [(path, headers) for path, headers in site.requests if path != "/robots.txt"]
    assert [path for path, _ in asked] == ["/p", "/api?de-DE"] * 2
    assert {headers["user-agent"] for _, headers in asked} == {config.user_agent}
    assert {headers["accept-language"] for _, headers in asked} == {"de-DE"}
    assert "text/html" in asked[0][1]["accept"]
    assert [headers.get("cookie") for _, headers in asked] == [None, "seen=1"] * 2


async def test_credentials_go_to_their_host_alone_and_are_never_told(
    site: Site, browser: Browser
) -> None:
    """The page itself does not have them, and no part or error shows them."""
    secret = "hunter2-hunter2"
    config = replace(net_config(site), credentials={"127.0.0.1": {"x-key": secret}})
    net = HttpNet(config, HostGates(MANNERS), browser=browser)
    url = site.serve(f"/p?key={secret}", script(f"fetch('/api?key={secret}')"))
    site.serve(f"/api?key={secret}", json("{}"))
    found = await net.render(url, responses={"api": "*/api*"})
    await net.aclose()
    assert len(found) == 4
    assert all(headers["x-key"] == secret for path, headers in site.requests if "key" in path)
    for part in found:
        assert secret not in f"{part.url_asked} {part.url_reached} {part.headers}"


async def test_a_chromium_that_dies_is_replaced_by_a_fresh_one(
    site: Site, browser: Browser
) -> None:
    """Neither the run nor the item is lost by it."""
    config = replace(net_config(site), retry=RetryPolicy(attempts=3, base=0.01))
    net = HttpNet(config, HostGates(MANNERS), browser=browser)
    url = site.serve("/p", html("<h1>here</h1>"))
    await net.render(url)
    mains = [pid for pid, words in descendants(os.getpid()).items() if is_main(words)]
    assert len(mains) == 1
    os.kill(mains[0], signal.SIGKILL)
    assert "here" in by_role(await net.render(url))["page"].text()
    await net.aclose()


async def test_a_page_whose_process_dies_is_tried_again(site: Site, browser: Browser) -> None:
    """A crash is of the browser and says nothing of the source."""
    config = replace(net_config(site), retry=RetryPolicy(attempts=3, base=0.01))
    net = HttpNet(config, HostGates(MANNERS), browser=browser)
    hangs = script("fetch('/slow')")
    url = site.serve("/p", hangs, html("<h1>here</h1>"))
    site.serve("/slow", json("{}"))
    opening = net.render(url, responses={"slow": "*/slow"}, wait_for="h1")

    async def kill_it() -> None:
        await until(lambda: site.asked["/slow"])
        for pid, words in descendants(os.getpid()).items():
            if "--type=renderer" in words:
                os.kill(pid, signal.SIGKILL)

    found, _ = await asyncio.gather(opening, kill_it())
    await net.aclose()
    assert "here" in by_role(found)["page"].text()


async def test_a_page_that_never_comes_to_an_end_is_given_up(site: Site, browser: Browser) -> None:
    """A minute in all; here less."""
    limits = VisitLimits(total=2.0)
    async with Browser(BrowserConfig(limits=limits)) as own:
        net = HttpNet(net_config(site), HostGates(MANNERS), browser=own)
        failed = await failure(net, site.serve("/p", script("for (;;) {}")))
        assert failed.outcome is Outcome.TIMEOUT
        assert "here" in by_role(await net.render(site.serve("/q", html("here"))))["page"].text()
        await net.aclose()


async def test_a_collector_without_chromium_says_what_to_install(site: Site) -> None:
    """And asks the source nothing."""
    browser = Browser(BrowserConfig(executable=Path("/nowhere/chromium")))
    net = HttpNet(net_config(site), HostGates(MANNERS), browser=browser)
    failed = await failure(net, site.url("/p"))
    await net.aclose()
    assert (failed.outcome, failed.recovery) == (Outcome.NO_BROWSER, Recovery.LATER)
    assert "/nowhere/chromium" in failed.message
    assert site.requests == []


async def test_the_end_of_a_run_leaves_no_process(site: Site) -> None:
    """Neither Chromium nor what drives it."""
    before = set(descendants(os.getpid()))
    async with Browser() as browser:
        net = HttpNet(net_config(site), HostGates(MANNERS), browser=browser)
        await net.render(site.serve("/p", html("x")))
        await net.aclose()
    await until(lambda: set(descendants(os.getpid())) <= before)


async def test_what_pages_have_in_common_is_asked_for_once_where_its_headers_allow_that(
    site: Site, net: HttpNet
) -> None:
    """A script that may be kept, and one that may not; data is asked for anew by every page."""
    head = '<script src="/kept.js"></script><script src="/anew.js"></script>'
    page = html("<script>document.title = kept + anew; fetch('/api');</script>", head)
    for path, control in (("kept", "public, max-age=600"), ("anew", "no-cache, max-age=600")):
        told = {"Cache-Control": control}
        body = f"var {path} = '{path}';".encode()
        site.serve(f"/{path}.js", answer(body, content_type="text/javascript", headers=told))
    site.serve("/api", json("{}"))
    for path in ("/p", "/q", "/r"):
        found = by_role(await net.render(site.serve(path, page)))
        assert "<title>keptanew</title>" in found["page"].text()
    assert {path: site.asked[path] for path in ("/kept.js", "/anew.js", "/api")} == {
        "/kept.js": 1,
        "/anew.js": 3,
        "/api": 3,
    }


async def test_what_a_page_shows_is_judged_as_what_it_serves_would_be(
    site: Site, net: HttpNet
) -> None:
    """An empty shell is a fine document; a challenge that its script draws is no page of the source."""
    shell = "<noscript>Please enable JavaScript</noscript><div id=root></div>"
    assert await net.render(site.serve("/shell", html(shell)))
    draws = """document.title = 'Just a moment...';
    document.body.innerHTML = '<h1>Checking your browser before accessing the site</h1><div id="cf-challenge">';"""
    failed = await failure(net, site.serve("/challenge", script(draws)))
    assert failed.outcome is Outcome.BOT_CHALLENGE


async def test_a_chromium_that_hangs_is_ended_and_replaced(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers nothing, not even that it should end; the next page has another one, and no process is left."""
    monkeypatch.setattr("prw_sdk.fetch.browser_chromium._ANSWERING", 1.0)
    monkeypatch.setattr("prw_sdk.fetch.browser_chromium._CLOSING", 1.0)
    before = set(descendants(os.getpid()))
    async with Browser() as browser:
        config = replace(net_config(site), retry=RetryPolicy(attempts=2, base=0.01))
        net = HttpNet(config, HostGates(MANNERS), browser=browser)
        url = site.serve("/p", html("<h1>here</h1>"))
        await net.render(url)
        (main,) = [pid for pid, words in descendants(os.getpid()).items() if is_main(words)]
        os.kill(main, signal.SIGSTOP)
        assert "here" in by_role(await net.render(url))["page"].text()
        await net.aclose()
    await until(lambda: set(descendants(os.getpid())) <= before)


async def test_a_page_that_grows_without_end_is_no_evidence(site: Site) -> None:
    """Neither is it read in part."""
    async with Browser(BrowserConfig(limits=VisitLimits(rendered=10_000))) as browser:
        net = HttpNet(net_config(site), HostGates(MANNERS), browser=browser)
        grows = script("document.body.append('x'.repeat(20000))")
        failed = await failure(net, site.serve("/p", grows))
        await net.aclose()
    assert failed.outcome is Outcome.TOO_LARGE
