from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prw.errors import Code, PrwError
from prw_base.canonical import canonical_json, sha256_hex
from prw_base.ids import derived_id, new_id, uuid7
from prw_base.principal import Kind, Principal, Role, bind, current, find_current
from prw_base.tables import print_json, print_table

MACHINE = Principal(Kind.MACHINE, "ins_1", "ten_a", "cat_a", "cli_1")


class Colour(StrEnum):
    RED = "red"


def test_new_ids_grow_and_never_repeat() -> None:
    """Ids are time-ordered within a process, also within one millisecond."""
    ids = [new_id("itm") for _ in range(5000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)


def test_a_new_id_is_a_version_7_uuid() -> None:
    """RFC 9562: version 7, the RFC variant, and the present time in front."""
    value = uuid7()
    assert (value.version, value.variant) == (7, "specified in RFC 4122")
    made = datetime.fromtimestamp((value.int >> 80) / 1000, UTC)
    assert abs(datetime.now(UTC) - made) < timedelta(seconds=5)


def test_derived_ids_depend_on_where_parts_end() -> None:
    """("ab", "c") and ("a", "bc") are two listings."""
    assert derived_id("lst", "ab", "c") == derived_id("lst", "ab", "c")
    assert derived_id("lst", "ab", "c") != derived_id("lst", "a", "bc")
    assert len(derived_id("lst", "x")) == len("lst_") + 32


def test_equal_values_have_equal_bytes() -> None:
    """Key order, trailing zeros and time zones do not change a digest."""
    berlin = timezone(timedelta(hours=1))
    first = {"b": Decimal("1.50"), "a": [datetime(2026, 1, 1, 1, tzinfo=berlin), Colour.RED]}
    second = {"a": (datetime(2026, 1, 1, tzinfo=UTC), "red"), "b": Decimal("1.5")}
    assert canonical_json(first) == canonical_json(second)
    assert canonical_json(first) == b'{"a":["2026-01-01T00:00:00.000000Z","red"],"b":"1.5"}'
    assert len(sha256_hex(canonical_json(first))) == 64


@pytest.mark.parametrize(
    "value",
    [1.5, {1: "a"}, datetime(2026, 1, 1), b"x", Decimal("NaN"), object()],  # noqa: DTZ001
)
def test_what_has_no_canonical_form_is_refused(value: object) -> None:
    """A float or a naive time would give equal values different digests."""
    with pytest.raises(TypeError):
        canonical_json(value)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_decimal_keeps_its_value_in_canonical_form(value: Decimal) -> None:
    """No digit is lost, whatever the exponent."""
    text = json.loads(canonical_json(value))
    assert Decimal(text) == value
    assert canonical_json(Decimal(text)) == canonical_json(value)


def test_the_caller_is_bound_within_the_block_only() -> None:
    """Outside of it there is nobody, and code that needs a caller is refused."""
    with bind(MACHINE):
        assert current() is MACHINE
    assert find_current() is None
    with pytest.raises(PrwError) as refused:
        current()
    assert refused.value.code is Code.INVALID_TOKEN


def test_a_higher_role_may_do_what_a_lower_one_may() -> None:
    """Viewer < reviewer < operator_admin; a machine has no role."""
    person = Principal(Kind.PERSON, "per_1", "ten_a", "cat_a", "cli_2", role=Role.REVIEWER)
    assert [person.has_role(role) for role in Role] == [True, True, False]
    assert not MACHINE.has_role(Role.VIEWER)


def test_a_table_is_one_line_of_json_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """Programs read the same rows as people."""
    print_table("Items", ["item_id", "price"], [["itm_1", Decimal("1.20")]], json=True)
    assert json.loads(capsys.readouterr().out) == [{"item_id": "itm_1", "price": "1.20"}]


def test_a_table_for_people_cuts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """An id that is cut off cannot be copied."""
    long = "itm_" + "x" * 120
    print_table("Items", ["item_id", "note"], [[long, None]])
    out = capsys.readouterr().out
    assert long in out
    assert "item id" in out


def test_no_id_is_broken_where_the_terminal_is_narrow(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prose is folded to make room for an id; where that is not enough each row is a block of lines."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    case, title = "case_01a22e80653377bc8f5c4c89a1718aee", "a drive with a title of many words"
    monkeypatch.setenv("COLUMNS", "60")
    print_table("Cases", ["case_id", "title"], [[case, title]])
    table = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "40")
    print_table("Cases", ["case_id", "title"], [[case, title]])
    assert case in table
    assert title not in table
    assert capsys.readouterr().out == f"Cases:\n\n  case id  {case}\n  title    {title}\n"


def test_what_a_source_says_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    """A title with an escape sequence in it stays text."""
    print_table("Cases", ["title"], [["\x1b[2Jgone\r\nnext"]])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert " [2Jgone  next" in out


def test_an_empty_table_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing at all would look like a failure."""
    print_table("Open cases", ["case_id"], [])
    assert capsys.readouterr().out == "Open cases: none\n"


def test_json_keeps_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Umlauts stay readable."""
    print_json({"title": "Größe"})
    assert capsys.readouterr().out == '{"title": "Größe"}\n'
