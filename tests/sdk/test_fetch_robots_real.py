"""Real robots.txt files: each is read, and says for us what it says to a person."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from prw_sdk.fetch.polite import PRODUCT, RobotsAnswer, parse


def samples() -> Path:
    """The folder of robots.txt files, one a host."""
    folder = os.environ.get("PRW_SAMPLES")
    if not folder:
        pytest.skip("PRW_SAMPLES does not name the real material")
    return Path(folder) / "robots"


def test_every_real_file_is_read() -> None:
    """Whatever is in it: rules come out, and the front page and robots.txt itself have an answer."""
    files = sorted(samples().iterdir())
    assert files
    for file in files:
        rules = parse(RobotsAnswer(200, file.read_bytes()))
        assert rules is not None, file.name
        assert rules.can_fetch(f"https://{file.name}/robots.txt", PRODUCT) in (True, False)
        delay = rules.crawl_delay(PRODUCT)
        assert delay is None or delay >= 0


@pytest.mark.parametrize(
    ("host", "path", "allowed"),
    [
        ("www.amazon.com", "/gp/cart", False),
        ("www.amazon.com", "/dp/B08GLX7TNT", True),
        ("www.etsy.com", "/api/v3", False),
        ("store.steampowered.com", "/login/?a=1&guestpasskey=2", False),
        ("store.steampowered.com", "/app/620", True),
        ("www.ikea.com", "/us/en/catalog/availability/1", False),
        ("www.ikea.com", "/us/en/p/x?filter=red", False),
        ("www.ikea.com", "/us/en/p/x", True),
        ("www.newegg.com", "/Common/BML/x", False),
        ("shop.lego.com", "/de-DE/checkout/1", False),
        ("shop.lego.com", "/de-DE/p/1", True),
    ],
)
def test_real_rules_mean_what_they_say(host: str, path: str, allowed: bool) -> None:
    """Read from the files by eye: groups, wildcards, end marks, and the longest match."""
    rules = parse(RobotsAnswer(200, (samples() / host).read_bytes()))
    assert rules is not None
    assert rules.can_fetch(f"https://{host}{path}", PRODUCT) is allowed


def test_a_real_crawl_delay_is_found() -> None:
    """Ten seconds, in the group for everybody."""
    rules = parse(RobotsAnswer(200, (samples() / "www.prestashop.com").read_bytes()))
    assert rules is not None
    assert rules.crawl_delay(PRODUCT) == 10
