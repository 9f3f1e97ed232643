"""Pages that a site puts in a page's place, and pages that only look like them."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from prw_sdk.fetch.answer import Headers
from prw_sdk.fetch.classify import Classifier, Rule
from prw_sdk.fetch.http import HttpNet
from prw_sdk.fetch.outcome import FetchFailed, Outcome, Recovery
from prw_sdk.fetch.parting import Page
from prw_sdk.fetch.polite import HostGates, Politeness
from tests.sdk.jobs import net_config
from tests.sdk.misbehaving import Site, answer, redirect

ASKED = "https://shop.example/p/drive-2tb"
NAVIGATION = "<nav>" + "<a href='/c'>Drives</a> <a href='/d'>Displays</a> " * 20 + "</nav>"
PRODUCT = '<script type="application/ld+json">{"@type": "Product", "name": "A drive"}</script>'


def page(
    markup: str,
    *,
    status: int = 200,
    reached: str = ASKED,
    media_type: str = "text/html",
    **headers: str,
) -> Page:
    """An answer with that markup."""
    named = [("content-type", media_type)]
    named += [(name.replace("_", "-"), value) for name, value in headers.items()]
    now = datetime(2026, 11, 30, tzinfo=UTC)
    return Page(ASKED, reached, status, Headers.of(named), markup.encode(), now)


def document(title: str, body: str) -> str:
    """A page with a title."""
    return f"<!doctype html><html><head><title>{title}</title></head><body>{body}</body></html>"


def told(one: Page, *off: Rule) -> Outcome | None:
    """What it is taken for."""
    return Classifier(frozenset(off)).outcome(one)


@pytest.mark.parametrize(
    ("title", "heading"),
    [
        ("Page not found | Lumen Parts", "Sorry"),
        ("Lumen Parts", "404"),
        ("404 Not Found", ""),
        ("Error 404 - Lumen", ""),
        ("Fehler 404", "Seite nicht gefunden"),
        ("Lumen", "Der Artikel wurde leider nicht gefunden"),
        ("Page introuvable", ""),
        ("Producto no encontrado", ""),
        ("Pagina non trovata", ""),
        ("Lumen", "Sorry, we couldn't find that page"),
        ("Lumen", "This product no longer exists"),
    ],
)
def test_a_page_that_only_says_that_nothing_was_found_is_no_page(title: str, heading: str) -> None:
    """A soft 404: the status says 200, the words say something else."""
    shown = document(title, f"{NAVIGATION}<h1>{heading}</h1><p>Back to the front page</p>")
    assert told(page(shown)) is Outcome.SOFT_NOT_FOUND
    assert Outcome.SOFT_NOT_FOUND.recovery is Recovery.REJECTED


@pytest.mark.parametrize("to", ["/404", "/error/not-found.html", "/", "/de/", "/index.html"])
def test_a_page_that_leads_to_another_place_is_no_page(to: str) -> None:
    """Redirected to the page for missing pages, or to the front page."""
    moved = page(document("Lumen Parts", NAVIGATION), reached="https://shop.example" + to)
    assert told(moved) is Outcome.SOFT_NOT_FOUND


@pytest.mark.parametrize(
    ("title", "body"),
    [
        ("Peugeot 404 headlight | Lumen", "<h1>Headlight for Peugeot 404</h1>"),
        ("404 lamps for your home", "<h1>404 lamps</h1>"),
        ("Room 404: the novel", "<h1>Room 404</h1>"),
        ("A drive", "<h1>A drive</h1><p>Lost pages? Page not found? Ask us.</p>"),
        ("Not Found: a board game", f"{PRODUCT}<h1>Not found</h1>"),
        ("Page not found", f"<h1>Guide</h1>{'<p>What a 404 is, at length.</p>' * 200}"),
    ],
)
def test_a_page_about_a_number_or_with_content_is_a_page(title: str, body: str) -> None:
    """A word in a title decides nothing beside content or product markup."""
    assert told(page(document(title, body))) is None


@pytest.mark.parametrize(
    "markup",
    [
        document("Just a moment...", "<script>window._cf_chl_opt={cvId:'3'}</script>"),
        document("", "<script src='https://ct.captcha-delivery.com/i.js'></script>"),
        document("Access denied", '<div id="px-captcha"></div>'),
        document("", '<div id="sec-if-cpt-container"></div>'),
        document("", "Request unsuccessful. Incapsula incident ID: 1-2"),
        document("Pardon Our Interruption", "<p>As you were browsing ...</p>"),
        document("Robot Check", "<form action='/errors/validateCaptcha'></form>"),
        document("Shop", "<p>Please verify you are human</p><div class='cf-turnstile'></div>"),
        document("Shop", "<p>Ich bin kein Roboter</p><div class='g-recaptcha'></div>"),
    ],
    ids=["cf", "datadome", "px", "akamai", "incapsula", "distil", "amazon", "turnstile", "re"],
)
@pytest.mark.parametrize("status", [200, 403, 429, 503])
def test_a_challenge_is_one_whatever_its_status(markup: str, status: int) -> None:
    """It is put off: tomorrow, or elsewhere, the page may be served."""
    assert told(page(markup, status=status)) is Outcome.BOT_CHALLENGE
    assert Outcome.BOT_CHALLENGE.recovery is Recovery.LATER


@pytest.mark.parametrize(
    "one",
    [
        page("{}", status=403, media_type="application/json", cf_mitigated="challenge"),
        page("", status=202, x_amzn_waf_action="challenge"),
        page("", status=405, x_amzn_waf_action="captcha"),
        page(
            '{"url": "https://geo.captcha-delivery.com/captcha/?x"}',
            status=403,
            media_type="application/json",
        ),
        page("Access Denied ... errors.edgesuite.net/18.6f", status=403),
        page(document("Line", ""), reached="https://shop.queue-it.net/?c=shop"),
    ],
)
def test_a_challenge_is_told_by_headers_and_by_refusals_too(one: Page) -> None:
    """Also where the answer is no markup at all."""
    assert told(one) is Outcome.BOT_CHALLENGE


@pytest.mark.parametrize(
    "one",
    [
        page(
            document("A drive", f"{PRODUCT}<div class='g-recaptcha'></div>Please verify you are ok")
        ),
        page(document("Contact", "<form><div class='g-recaptcha'></div>Write to us</form>")),
        page(
            document(
                "A drive",
                "<script src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'></script>"
                "<script>window._pxAppId='PX1'</script><script src='//js.datadome.co/tags.js'>"
                "</script><p>A drive, 99 EUR</p>",
            )
        ),
        page("forbidden", status=403),
        page("busy", status=503),
        page("slow down", status=429),
        page("<title>Just a moment...</title>", media_type="application/json"),
        page("_cf_chl_opt", status=404),
    ],
)
def test_what_guards_put_into_every_page_is_no_challenge(one: Page) -> None:
    """Sensors, contact forms, and plain refusals."""
    assert told(one) is None


@pytest.mark.parametrize(
    ("one", "outcome"),
    [
        (
            page(document("Log in", "x"), reached="https://shop.example/account/login?next=%2Fp"),
            Outcome.LOGIN_PAGE,
        ),
        (page("<html>", reached="https://shop.example/password"), Outcome.LOGIN_PAGE),
        (page("<html>", reached="https://login.shop.example/?r=1"), Outcome.LOGIN_PAGE),
        (
            page(document("Sign in | Lumen", "<form><input type='password'></form>")),
            Outcome.LOGIN_PAGE,
        ),
        (
            page(document("Lumen", "<h1>Bitte anmelden</h1><input name=p type=password>")),
            Outcome.LOGIN_PAGE,
        ),
        (page(document("x", ""), reached="https://consent.shop.example/m"), Outcome.CONSENT_WALL),
        (page(document("x", ""), reached="https://shop.example/cookiewall"), Outcome.CONSENT_WALL),
        (page(document("Before you continue to Lumen", "<p>We use")), Outcome.CONSENT_WALL),
        (page(document("Wir brauchen Ihre Zustimmung", "<p>Cookies")), Outcome.CONSENT_WALL),
    ],
)
def test_walls_and_logins_are_told(one: Page, outcome: Outcome) -> None:
    """By where a redirect leads, or by a page that says nothing else."""
    assert told(one) is outcome


@pytest.mark.parametrize(
    "one",
    [
        page(document("A drive", f"{PRODUCT}<h1>Log in</h1><input type='password'>")),
        page(document("A drive", f"<h1>A drive</h1><input type='password'>{NAVIGATION}")),
        page(document("Log in with one key: the YubiKey 5", "<h1>YubiKey 5</h1> 50 EUR")),
        page(
            document("A drive", "<div id='cookie-banner'>We use cookies. Accept all</div>A drive")
        ),
        page(document("Privacy notice", "<p>What we keep of you, and why.</p>" * 200)),
        page(document("A drive", PRODUCT), reached="https://shop.example/"),
        page(document("A drive", "A drive"), reached="https://shop.example/p/drive-2tb-v2"),
        page("<?xml version='1.0'?><urlset/>", media_type="application/xml", reached=ASKED[:21]),
    ],
)
def test_a_page_with_a_login_or_a_banner_beside_its_content_is_a_page(one: Page) -> None:
    """Product markup, content, or no markup at all: none of these is a wall."""
    assert told(one) is None


def test_a_rule_that_is_switched_off_says_nothing() -> None:
    """Each by itself; the others still hold."""
    missing = page(document("Page not found", ""))
    challenge = page("x", status=403, cf_mitigated="challenge")
    assert told(missing, Rule.SOFT_NOT_FOUND) is None
    assert told(missing, Rule.BOT_CHALLENGE) is Outcome.SOFT_NOT_FOUND
    assert told(challenge, Rule.BOT_CHALLENGE) is None
    assert {rule.outcome.value for rule in Rule} == {rule.value for rule in Rule}


def test_a_page_that_a_browser_has_yet_to_open_is_judged_by_no_word_of_it() -> None:
    """An empty shell is a fine document; a refusal is none."""
    shell = page(document("Just a moment...", '<div class="cf-turnstile"></div>are you human'))
    assert told(shell) is Outcome.BOT_CHALLENGE
    assert Classifier().outcome(shell, is_raw=True) is None
    assert Classifier().outcome(page("", status=403, cf_mitigated="challenge"), is_raw=True)


async def test_such_a_page_is_a_failure_that_carries_the_answer(site: Site, net: HttpNet) -> None:
    """For diagnosis; nothing of it becomes a part, and no attempt is spent on asking again."""
    url = site.serve("/p/1", answer(document("Page not found", "").encode()))
    with pytest.raises(FetchFailed) as failed:
        await net.get(url, role="page")
    assert (failed.value.outcome, failed.value.status) == (Outcome.SOFT_NOT_FOUND, 200)
    assert failed.value.code == "SOFT_NOT_FOUND"
    assert failed.value.part is not None
    assert b"Page not found" in failed.value.part.body
    assert site.asked["/p/1"] == 1


async def test_a_redirect_to_a_login_is_a_failure(site: Site, net: HttpNet) -> None:
    """With the address that was asked for."""
    url = site.serve("/p/1", redirect("/login?next=/p/1"))
    site.serve("/login?next=/p/1", answer(document("Shop", "<input type=password>").encode()))
    with pytest.raises(FetchFailed) as failed:
        await net.get(url, role="page")
    assert (failed.value.outcome, failed.value.url) == (Outcome.LOGIN_PAGE, url)


async def test_a_source_can_switch_a_rule_off(site: Site) -> None:
    """Through its settings (`NetConfig.rules_off`)."""
    config = replace(net_config(site), rules_off=frozenset({Rule.SOFT_NOT_FOUND}))
    net = HttpNet(config, HostGates(Politeness(1000, 16)))
    body = document("Page not found", "").encode()
    assert (await net.get(site.serve("/p/1", answer(body)), role="page")).body == body
    await net.aclose()


def _samples() -> Path:
    folder = os.environ.get("PRW_SAMPLES")
    if not folder:
        pytest.skip("PRW_SAMPLES does not name the real material")
    return Path(folder)


def test_no_real_page_is_taken_for_anything_else() -> None:
    """Shop pages as they were saved, each with all that guards and cookie banners put into it."""
    files = sorted((_samples() / "pages").glob("*.html"))
    assert files
    for file in files:
        found = replace(page(""), body=file.read_bytes())
        assert told(found) is None, file.name
        stripped = file.read_bytes().replace(b"Product", b"Thing")
        assert told(replace(found, body=stripped)) is None, f"{file.name} without markup"


def test_no_real_answer_of_an_interface_is_taken_for_anything_else() -> None:
    """Search results of a marketplace."""
    files = sorted((_samples() / "ebay").glob("*.json"))
    assert files
    for file in files:
        body = file.read_text("utf-8")
        assert json.loads(body) is not None
        assert told(page(body, media_type="application/json")) is None, file.name
