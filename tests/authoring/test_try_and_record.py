"""`prw adapter try` and `record`: one page, its claims in their evidence, and a fixture without secrets."""

from __future__ import annotations

import json

import pytest

from prw_sdk.testing.server import Site, answer, redirect
from tests.authoring.project import Project, invoke, product


def test_claims_are_shown_with_the_text_around_them(project: Project, site: Site) -> None:
    """Each claim is quoted where its locator leads, marked in what stands before and after it."""
    project.declare()
    result = invoke("try", site.serve("/lamp", product("Lamp & shade")), "--allow-private")
    assert result.exit_code == 0, result.output
    assert "core:title Lamp & shade" in result.output
    assert '"name": "»Lamp & shade«", "mpn"' in result.output
    assert "stored: mpn, name, offers.price, offers.seller.name" in result.output
    assert "excluded: image" in result.output


def test_the_quoted_place_is_the_claims_own(project: Project, site: Site) -> None:
    """Of a value that stands in many places the one is quoted that the locator leads to."""
    project.declare()
    offers = {"price": 5, "seller": {"name": "5"}}
    page = product("5", "5", sizes=[5, 5], offers=offers)
    result = invoke("try", site.serve("/lamp", page), "--allow-private", "--json")
    claims = json.loads(result.stdout)["records"][0]["claims"]
    around = {one["attribute"]: one["evidence"]["before"][-10:] for one in claims}
    assert all(one["leads_back"] for one in claims)
    assert around["offer:price"].endswith('"price": ')
    assert around["offer:seller"].endswith('"name": "')
    assert {one["evidence"]["line"] for one in claims} == {3}


def test_names_that_nobody_declared_are_told(project: Project, site: Site) -> None:
    """Replay rule 14 while the page is looked at: an undeclared name ends the command with status 1."""
    project.declare()
    result = invoke("try", site.serve("/lamp", product(colour="red")), "--allow-private")
    assert result.exit_code == 1
    assert "not declared: colour" in result.output


def test_a_page_that_is_no_record_says_why(project: Project, site: Site) -> None:
    """The reason of `NotARecord` is shown."""
    project.declare()
    result = invoke("try", site.serve("/about", answer(b"<h1>About</h1>")), "--allow-private")
    assert result.exit_code == 1
    assert "NOT_A_RECORD: its JSON-LD holds no Product" in result.output


def test_what_a_page_says_moves_no_cursor(project: Project, site: Site) -> None:
    """Control characters of a source do not reach the terminal."""
    project.declare()
    result = invoke("try", site.serve("/lamp", product("La\u001b[2Jmp")), "--allow-private")
    assert "\u001b[2J" not in result.output


def test_a_recorded_fixture_holds_no_secrets(project: Project, site: Site) -> None:
    """Cookies, tokens and addresses of persons are replaced, and what was replaced is told."""
    project.declare()
    head, _, body = product().partition(b"\r\n\r\n")
    person = b'<a href="mailto:jane.roe@lampstreet.de">Jane</a><script>var csrf_token = "a1b2c3d4e5f6a7b8"</script>'
    page = answer(body + person, headers={"Set-Cookie": "session=0123456789abcdef"})
    assert head
    result = invoke("record", site.serve("/lamp", page), "--allow-private")
    assert result.exit_code == 0, result.output
    assert "scrubbed: page, line 4: an e-mail address" in result.output
    kept = "".join(one.read_text("utf-8") for one in (project.folder / "fixtures/lamp").iterdir())
    for secret in ("jane.roe@", "a1b2c3d4e5f6a7b8", "0123456789abcdef"):
        assert secret not in kept
    assert "4 claims" in result.output


def test_a_page_that_is_gone_is_recorded_as_an_absence(project: Project, site: Site) -> None:
    """A 404 makes the failure that a suite needs."""
    result = project.record(site, "/gone/lamp-9.html")
    assert result.exit_code == 0, result.output
    assert "ABSENT: the source says that it is gone (404)" in result.output
    stored = json.loads((project.folder / "fixtures/lamp-9/capture.json").read_text("utf-8"))
    assert stored["presence"] == "absent"


def test_a_fixture_is_not_written_over_unless_it_is_meant(project: Project, site: Site) -> None:
    """A second recording of one case needs another name, or leave to replace it."""
    site.serve("/lamp", product())
    assert project.record(site, "/lamp", "--case", "one").exit_code == 0
    again = project.record(site, "/lamp", "--case", "one")
    assert again.exit_code == 2
    assert "--replace" in again.stderr
    assert project.record(site, "/lamp", "--case", "one", "--replace").exit_code == 0


def test_settings_are_checked_by_name(project: Project, site: Site) -> None:
    """A setting that the adapter has not is refused with those that it has."""
    url = site.serve("/lamp", product())
    result = invoke("try", url, "--allow-private", "--setting", "colour=red")
    assert result.exit_code == 2
    assert "colour" in result.stderr
    assert "listing, links" in result.stderr
    assert invoke("try", url, "--allow-private", "--setting", "colour").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("ftp://shop.example/1", "--contact", "a@example.org"), 2, "write a whole address"),
        (("https://shop.example/1",), 2, "--contact"),
        (("https://[::1/1", "--contact", "a@example.org"), 2, "URL"),
        (("http://127.0.0.1:1/x", "--contact", "a@example.org"), 2, "--allow-private"),
        (("https://shop.example/1", "--adapter", "no-such"), 2, "no plugin brings"),
    ],
)
def test_wrong_usage_is_one_line_that_says_what_to_do(
    project: Project, arguments: tuple[str, ...], status: int, said: str
) -> None:
    """Errors of usage name the option, and end with status 2."""
    assert project.folder.is_dir()
    result = invoke("try", *arguments)
    assert result.exit_code == status, result.output
    assert said in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_source_that_refuses_is_told_by_its_code(project: Project, site: Site) -> None:
    """What the source answers is one line with its code; a refusal is final, an outage may be tried again."""
    assert project.folder.is_dir()
    refused = invoke("try", site.serve("/no", answer(status=403)), "--allow-private")
    assert refused.exit_code == 1
    assert "UPSTREAM_403" in refused.stderr
    looping = invoke("try", site.serve("/loop", redirect(site.url("/loop"))), "--allow-private")
    assert looping.exit_code == 1
    assert "TOO_MANY_REDIRECTS" in looping.stderr


def test_robots_rules_hold_for_authors_as_well(project: Project, site: Site) -> None:
    """A page that robots.txt forbids is not fetched by hand either."""
    assert project.folder.is_dir()
    site.serve("/robots.txt", answer(b"User-agent: *\nDisallow: /\n", content_type="text/plain"))
    result = invoke("try", site.serve("/lamp", product()), "--allow-private")
    assert result.exit_code == 1
    assert "ROBOTS_FORBIDDEN" in result.stderr
    assert site.asked["/lamp"] == 0


def test_escaped_and_folded_values_are_quoted_as_they_are_written(
    project: Project, site: Site
) -> None:
    """A value that the page writes with escapes is shown as it stands there."""
    project.declare()
    script = (
        b'{"@type": "Product", "name": "caf\\u00e9 \\/ bar", "offers": {"seller": {"name": "A"}}}'
    )
    page = answer(b'<script type="application/ld+json">' + script + b"</script>")
    result = invoke("try", site.serve("/lamp", page), "--allow-private", "--json")
    claims = json.loads(result.stdout)["records"][0]["claims"]
    evidence = {one["attribute"]: one["evidence"]["text"] for one in claims}
    assert evidence["core:title"] == "caf\\u00e9 \\/ bar"
