"""The suite itself: each check is caught at work by an adapter that is broken in that one way."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from prw_sdk.adapter import Adapter
from prw_sdk.spool import codec
from prw_sdk.spool.checkpoints import Checkpoints
from prw_sdk.spool.model import SavedCheckpoint
from prw_sdk.testing import fixtures
from prw_sdk.testing.suite import check_reading
from tests.sdk import broken_shops as broken
from tests.sdk.conforming import CHECKS, SLOW, bench, failing, look_at
from tests.sdk.small_shop import PAGES, Small, article, page, write_fixtures, write_plan
from tests.sdk.test_verifications_catch import BROKEN as RUNNERS

BROKEN: list[tuple[type[Adapter], set[str]]] = [
    (broken.Undeclared, {"declarations_are_sound"}),
    (broken.SurfaceWithoutFixture, {"every_surface_part_is_in_some_fixture"}),
    (broken.PartWithoutSurface, {"every_part_belongs_to_a_surface"}),
    (broken.UndeclaredName, {"every_stated_name_is_declared"}),
    (broken.NeverStated, {"every_stored_field_is_stated_by_some_fixture"}),
    (broken.NeverRead, {"every_stored_field_is_read_at_its_target"}),
    (broken.ClaimsWhatIsExcluded, {"every_claim_has_a_stated_field"}),
    (broken.OtherMerchantField, {"merchant_is_at_its_field"}),
    (broken.LiteralMerchant, {"merchant_is_no_literal"}),
    (broken.LegacyWithoutFixture, {"legacy_shapes_still_read"}),
    (broken.WrongLocator, {"every_locator_leads_back"}),
    (broken.ModelClaims, {"values_are_as_stated"}),
    (broken.SameRecordTwice, {"record_ids_and_listing_keys_are_unique"}),
    (broken.PriceInTheKey, {"listing_keys_are_stable"}),
    (broken.KeepsState, {"reading_twice_gives_the_same"}),
    (broken.StatesInAnyOrder, {"names_are_stated_in_one_order"}),
    (broken.HashOfTheProcess, {"reading_in_another_process_gives_the_same"}),
    (broken.OpensFiles, {"reading_does_no_io"}),
    (broken.LooksOnce, {"the_first_read_of_a_process_does_no_io"}),
    (broken.AsksTheClock, {"reading_uses_no_clock_and_no_chance"}),
    (broken.ThrowsDice, {"reading_uses_no_clock_and_no_chance"}),
    (broken.AsksTheSource, {"reading_asks_nothing_of_where_and_when"}),
    (broken.ChangesTheConfig, {"reading_leaves_the_capture_alone"}),
    (broken.NoEnd, {"truncated_parts_are_survived"}),
    (broken.NoBytes, {"empty_parts_are_survived"}),
    (broken.NoStock, {"missing_parts_are_survived"}),
    (broken.OwnCharset, {"other_charsets_are_survived"}),
    (broken.StrictText, {"random_damage_is_survived"}),
    (broken.NoDepth, {"pages_made_to_be_slow_are_survived"}),
    (broken.ReadsAbsences, {"an_absence_is_no_record"}),
    (broken.PlansLess, {"plan_names_what_the_lists_hold"}),
    (broken.PlansNoIds, {"plan_names_what_the_lists_hold", "planned_targets_can_be_kept"}),
    (broken.PlansAnyhow, {"planning_twice_names_the_same"}),
    (broken.PassesOver, {"a_plan_taken_up_at_any_checkpoint_passes_over_nothing"}),
    (broken.TellsSecrets, {"what_is_pinned_of_the_settings_holds_no_secret"}),
    (broken.FetchesLess, {"fetch_gives_the_parts_of_the_fixture"}),
    (
        broken.FetchesOtherThings,
        {"verification_1_the_same_batch_replayed_reaches_the_same_fixed_point"},
    ),
    (broken.HidesFailures, {"verification_8_a_poison_item_is_set_aside_and_later_items_go_on"}),
    (
        broken.AsksTheSource,
        {"reading_asks_nothing_of_where_and_when", "what_is_captured_is_read_as_the_fixture"},
    ),
    (
        broken.UndeclaredName,
        {
            "every_stated_name_is_declared",
            "verification_10_every_field_that_a_capture_states_is_stored_or_excluded",
        },
    ),
]
QUICK = frozenset(CHECKS) - SLOW


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The fixtures of the small shop."""
    where = tmp_path / "fixtures"
    write_fixtures(where)
    return where


@pytest.mark.parametrize(
    ("adapter", "caught"), BROKEN, ids=[f"{one.__name__}-{len(names)}" for one, names in BROKEN]
)
def test_a_broken_adapter_is_caught_by_the_check_for_that(
    folder: Path, tmp_path: Path, adapter: type[Adapter], caught: set[str]
) -> None:
    """By that one alone, of all the checks that need no runner and no other process."""
    if not bench(adapter, folder).subject.faults:
        look_at(adapter, folder)
    assert failing(bench(adapter, folder), QUICK | caught, tmp_path).keys() == caught


def test_a_sound_adapter_is_caught_by_nothing(folder: Path, tmp_path: Path) -> None:
    """Every check passes, the runner's included."""
    look_at(Small, folder)
    assert failing(bench(Small, folder), frozenset(CHECKS), tmp_path) == {}


def _config_with_a_key(where: Path) -> None:
    _describe(where / "wheel", config={"locale": "en_US", "api_key": "x"})


def _no_capture(where: Path) -> None:
    (where / "wheel" / fixtures.CAPTURE).write_text("{", "utf-8")


def _other_bytes(where: Path) -> None:
    document = json.loads((where / "wheel" / fixtures.CAPTURE).read_text("utf-8"))
    document["parts"][0]["sha256"] = "0" * 64
    (where / "wheel" / fixtures.CAPTURE).write_text(json.dumps(document), "utf-8")


def _no_failure(where: Path) -> None:
    (where / "about" / "page.html").write_bytes(page(article("A-1", "About", "1.00")))


def _a_customer(where: Path) -> None:
    body = PAGES["about"].replace(b"Small shop", b"Write to jane.roe@mail.shop.com")
    (where / "about" / "page.html").write_bytes(body)


def _describe(case: Path, **described: Any) -> None:
    document = json.loads((case / fixtures.CAPTURE).read_text("utf-8"))
    (case / fixtures.CAPTURE).write_text(json.dumps({**document, **described}), "utf-8")


BAD_FIXTURES: list[tuple[Callable[[Path], None], set[str]]] = [
    (_config_with_a_key, {"config_is_plain_json_without_secrets"}),
    (_no_capture, {"fixtures_can_be_read", "there_are_enough_fixtures"}),
    (_other_bytes, {"fixtures_can_be_read", "there_are_enough_fixtures"}),
    (_no_failure, {"there_are_enough_fixtures"}),
    (_a_customer, {"fixture_is_scrubbed"}),
]


@pytest.mark.parametrize(("change", "caught"), BAD_FIXTURES)
def test_a_bad_fixture_is_caught(
    folder: Path, tmp_path: Path, change: Callable[[Path], None], caught: set[str]
) -> None:
    """Unreadable, too few, without a failure, with somebody's address in it."""
    change(folder)
    one = bench(Small, folder)
    for case in one.cases:
        fixtures.write_expected(case, one.outcome(case.capture))
    quick = QUICK - {"every_stored_field_is_stated_by_some_fixture"}
    assert failing(bench(Small, folder), quick, tmp_path).keys() == caught


def test_what_was_never_looked_at_is_written_and_fails_once(folder: Path, tmp_path: Path) -> None:
    """The second run holds the first one's word."""
    first = failing(bench(Small, folder), QUICK, tmp_path / "1")
    assert first.keys() == {"output_is_as_it_was_looked_at"}
    assert "was written: look at it" in first["output_is_as_it_was_looked_at"]
    assert failing(bench(Small, folder), QUICK, tmp_path / "2") == {}


def test_changed_output_is_named_until_the_version_is_raised(folder: Path, tmp_path: Path) -> None:
    """And then until somebody has looked at it."""
    look_at(Small, folder)
    same = failing(bench(broken.ModelClaims, folder), QUICK, tmp_path / "1")
    assert same.keys() == {"changed_output_has_a_new_version", "values_are_as_stated"}
    assert "raise version from '1.0.0'" in same["changed_output_has_a_new_version"]
    raised = type("ModelClaims", (broken.ModelClaims,), {"version": "1.0.1"})
    other = failing(bench(raised, folder), QUICK, tmp_path / "2")
    assert other.keys() == {"output_is_as_it_was_looked_at", "values_are_as_stated"}


def test_a_legacy_shape_that_is_read_no_more_is_caught(folder: Path, tmp_path: Path) -> None:
    """A fixture of that version gives no record."""
    old = type("Old", (Small,), {"legacy": ("0.9.0",)})
    _describe(folder / "about", adapter={"name": "small", "version": "0.9.0"})
    look_at(old, folder)
    found = failing(bench(old, folder), QUICK, tmp_path / "1")
    assert found.keys() == {"legacy_shapes_still_read"}
    _describe(folder / "frame", adapter={"name": "small", "version": "0.9.0"})
    assert failing(bench(old, folder), QUICK, tmp_path / "2") == {}


def test_a_slow_reader_is_caught(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it takes longer than is allowed."""
    look_at(Small, folder)
    monkeypatch.setattr(check_reading, "SLOWEST", 0.0)
    assert failing(bench(Small, folder), QUICK, tmp_path).keys() == {"reading_is_quick"}


def test_a_capture_that_does_not_survive_is_caught(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the spool's form of it forgets something."""
    look_at(Small, folder)
    decode = codec.decode
    one = bench(Small, folder)
    monkeypatch.setattr(
        codec, "decode", lambda body, blob: replace(decode(body, blob), source_id="src_forgot")
    )
    found = failing(one, frozenset({"capture_survives_the_round_trip"}), tmp_path)
    assert found.keys() == {"capture_survives_the_round_trip"}


def test_a_checkpoint_that_any_run_may_overwrite_is_caught(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runner's own rules are under check as well."""
    look_at(Small, folder)
    advance = Checkpoints.advance

    def overwrite(
        self: Checkpoints, expected: SavedCheckpoint, state: Any, now: datetime
    ) -> SavedCheckpoint:
        return advance(self, self.load(expected.key), state, now)

    monkeypatch.setattr(Checkpoints, "advance", overwrite)
    name = "verification_9_overlapping_workers_keep_to_the_limit_and_one_winner_stands"
    assert failing(bench(Small, folder), frozenset({name}), tmp_path).keys() == {name}


def test_a_plan_that_asks_for_what_was_not_recorded_is_told(folder: Path, tmp_path: Path) -> None:
    """The message says which address is missing."""
    look_at(Small, folder)
    write_plan(folder, ["wheel"])
    document = json.loads((folder / "plan.json").read_text("utf-8"))
    (folder / "plan.json").write_text(json.dumps({**document, "pages": []}), "utf-8")
    found = failing(bench(Small, folder), frozenset({"planning_twice_names_the_same"}), tmp_path)
    assert "articles.txt (404)" in found["planning_twice_names_the_same"]


ELSEWHERE = {
    "output_is_as_it_was_looked_at",
    "changed_output_has_a_new_version",
    "reading_is_quick",
    "capture_survives_the_round_trip",
}
"""Checks that a test of this file by another name catches at work."""


def test_every_check_is_caught_at_work() -> None:
    """Here, or as a verification with a broken runner; a check that catches nothing is none."""
    here = {name for _, names in [*BROKEN, *BAD_FIXTURES] for name in names} | ELSEWHERE
    runner = {name for name in CHECKS if name.startswith(tuple(f"{one}_" for _, one in RUNNERS))}
    assert CHECKS.keys() - here - runner == set()


def test_there_are_at_least_twenty_five_checks() -> None:
    """Each under a name of its own."""
    assert len(CHECKS) >= 25
    assert sum("verification" in name for name in CHECKS) == 10
