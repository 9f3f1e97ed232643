"""Fixtures: written and read back, made by hand, and mended by whoever reads the message."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from prw_sdk.evidence import AdapterVersion, Capture, Citation, Part, Presence, Region
from prw_sdk.testing import fixtures
from prw_sdk.testing.fixtures import BadFixture
from tests.sdk.small_shop import ORIGIN, PAGES, Small, write_fixtures
from tests.sdk.test_take import AT, part


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """Every part under a name that tells what it is, every detail of the capture."""
    parts = (
        replace(part("<p>ü</p>"), headers=(("etag", '"1"'),), charset_declared="utf-8"),
        part('{"a": 1}', "application/json", "stock/now"),
        replace(part("x", "image/png", "page.screenshot"), charset_used=None),
        replace(part("gone", role="old"), http_status=304, cites=Citation(AT, "0" * 64)),
    )
    capture = Capture(
        "src_a",
        "id/1",
        datetime(2026, 3, 4, tzinfo=UTC),
        AdapterVersion("small", "0.9.0"),
        parts,
        {"locale": "de_DE", "currency": "EUR"},
        Presence.PRESENT,
        Region("DE", "rack"),
    )
    folder = fixtures.write(tmp_path, "one", capture)
    assert sorted(path.name for path in folder.iterdir()) == [
        "capture.json",
        "old.html",
        "page.html",
        "page.screenshot.png",
        "stock-now.json",
    ]
    (one,) = fixtures.load(tmp_path, Small)
    assert (one.case, one.capture, one.expected) == ("one", capture, None)


def test_a_fixture_made_by_hand_needs_little(tmp_path: Path) -> None:
    """What it leaves out is the adapter's, or a default."""
    write_fixtures(tmp_path)
    found = {one.case: one.capture for one in fixtures.load(tmp_path, Small)}
    assert set(found) == set(PAGES)
    wheel = found["wheel"]
    assert wheel.adapter == AdapterVersion("small", "1.0.0")
    assert wheel.part("page").url_reached == f"{ORIGIN}/wheel"
    assert (wheel.part("page").http_status, wheel.part("page").charset_used) == (200, "utf-8")
    assert wheel.config == {"locale": "en_US"}


def test_recording_again_forgets_what_was_looked_at(tmp_path: Path) -> None:
    """What was read of the old page says nothing of the new one."""
    write_fixtures(tmp_path)
    one = fixtures.read(tmp_path / "wheel", Small)
    fixtures.write_expected(one, {"outcome": "records"})
    assert fixtures.read(tmp_path / "wheel", Small).expected == {"outcome": "records"}
    fixtures.write(tmp_path, "wheel", one.capture)
    assert fixtures.read(tmp_path / "wheel", Small).expected is None


def test_a_folder_that_is_not_there_holds_no_fixtures(tmp_path: Path) -> None:
    """And no texts that are allowed."""
    assert fixtures.load(tmp_path / "none", Small) == ()
    assert fixtures.allowed(tmp_path / "none") == ()


def test_allowed_texts_are_lines(tmp_path: Path) -> None:
    """Comments and blank lines are none."""
    (tmp_path / fixtures.ALLOWED).write_text("# the imprint\ninfo@shop.de\n\n", "utf-8")
    assert fixtures.allowed(tmp_path) == ("info@shop.de",)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("{", "cannot be read"),
        ([], "holds no JSON object"),
        ({"parts": [{"role": "page"}]}, "write native_record_id, and for each part role, file"),
        ({"parts": "none"}, "is no capture"),
        ({"native_record_id": "a", "captured_at": "yesterday", "parts": []}, "is no capture"),
    ],
)
def test_a_bad_capture_says_what_to_write(tmp_path: Path, change: Any, said: str) -> None:
    """The message names the file."""
    case = tmp_path / "bad"
    case.mkdir()
    text = change if isinstance(change, str) else json.dumps(change)
    (case / fixtures.CAPTURE).write_text(text, "utf-8")
    with pytest.raises(BadFixture, match=said) as told:
        fixtures.read(case, Small)
    assert str(case / fixtures.CAPTURE) in str(told.value)


def test_missing_or_other_bytes_are_told(tmp_path: Path) -> None:
    """A file that is not there, and one that was changed by hand."""
    write_fixtures(tmp_path)
    one = fixtures.read(tmp_path / "wheel", Small)
    folder = fixtures.write(tmp_path, "written", one.capture)
    (folder / "page.html").write_text("changed", "utf-8")
    with pytest.raises(BadFixture, match="delete sha256 and bytes"):
        fixtures.read(folder, Small)
    (folder / "page.html").unlink()
    with pytest.raises(BadFixture, match="No such file"):
        fixtures.read(folder, Small)


def test_parts_of_one_media_type_may_have_parameters(tmp_path: Path) -> None:
    """The name of the file is made of the type alone."""
    odd: Part = replace(part("a,b"), media_type="Text/CSV; header=present", role="feed")
    capture = Capture("src_a", "1", AT, AdapterVersion("small", "1.0.0"), (odd,))
    assert (fixtures.write(tmp_path, "feed", capture) / "feed.csv").exists()
