"""Small parts that every program shares: page tokens, the bound of a backoff, durable and private files."""

from __future__ import annotations

import stat
from datetime import timedelta
from pathlib import Path

import pytest

from prw.errors import Code, PrwError
from prw_base.backoff import longest_wait
from prw_base.files import make_folder, read_token, write_private
from prw_base.paging import make_token
from prw_base.paging import read_token as read_page_token

SECOND = timedelta(seconds=1)


def test_a_page_token_leads_back_to_its_row_and_to_no_other_query() -> None:
    """The next page begins after the row that ended this one, for the same question only."""
    token = make_token(("2026-01-01", "case_1"), "cases")
    assert read_page_token(token, "cases", parts=2) == ("2026-01-01", "case_1")
    assert read_page_token("", "cases") is None
    for query, parts in (("merchants", 2), ("cases", 1)):
        with pytest.raises(PrwError) as refused:
            read_page_token(token, query, parts)
        assert (refused.value.code, refused.value.field) == (Code.VALIDATION_FAILED, "page_token")


def test_a_wait_doubles_up_to_its_cap() -> None:
    """However many failures there were, the bound stays a time."""
    waits = [longest_wait(failures, SECOND, 5 * SECOND) for failures in (0, 1, 2, 3, 4, 10_000)]
    assert [wait.total_seconds() for wait in waits] == [1, 1, 2, 4, 5, 5]


def test_a_token_file_is_read_without_its_end_of_line_or_refused_by_the_setting_s_name(
    tmp_path: Path,
) -> None:
    """INVALID_TOKEN names the setting for a missing file, an empty one, and one that is no text."""
    folder = tmp_path / "keys" / "mine"
    make_folder(folder)
    write_private(folder / "token", b"abc\n")
    assert read_token(folder / "token", "token_file") == "abc"
    assert stat.S_IMODE((folder / "token").stat().st_mode) == 0o600
    (folder / "empty").touch()
    (folder / "bytes").write_bytes(b"\xff\xfe")
    for name in ("missing", "empty", "bytes"):
        with pytest.raises(PrwError) as refused:
            read_token(folder / name, "token_file")
        assert (refused.value.code, refused.value.field) == (Code.INVALID_TOKEN, "token_file")
