"""Fixtures: that there are enough, that they hold nothing they should not, and that they are read as looked at."""

from __future__ import annotations

import json
from difflib import unified_diff
from typing import Any

import pytest

from prw_sdk.spool import codec
from prw_sdk.testing import fixtures, scrub
from prw_sdk.testing.bench import Bench, fail, fail_with
from prw_sdk.testing.fixtures import Fixture

FEWEST = 3


def test_fixtures_can_be_read(bench: Bench) -> None:
    """Every fixture is a capture with its bytes."""
    fail_with(bench.problems, "mend capture.json, or record it anew")


def test_there_are_enough_fixtures(bench: Bench) -> None:
    """At least three, one of them a failure: a page that is no record, or one that is gone."""
    there = len(bench.cases)
    if there < FEWEST:
        fail(
            f"{bench.subject.fixtures} holds {there} fixtures, and {FEWEST} are needed",
            "→ record them: prw adapter record URL",
        )
    if len(bench.with_records()) == there:
        fail(
            "every fixture gives records, and one should not",
            "→ record a page that is no record (a list, a page that is gone)",
        )
    if not bench.with_records():
        fail("no fixture gives a record", "→ write read, or record a page that is a record")


def test_fixture_is_scrubbed(bench: Bench, case: Fixture) -> None:
    """No cookies, tokens, addresses or numbers of persons."""
    allowed = fixtures.allowed(bench.subject.fixtures)
    fail_with(
        scrub.findings(case.capture, allowed),
        f"scrub it (prw adapter record does), or allow the text in {fixtures.ALLOWED} where it points to nobody",
    )


def test_capture_survives_the_round_trip(bench: Bench, case: Fixture) -> None:
    """Parts come back as they were from the spool's form of a capture."""
    bodies = {part.sha256: part.body for part in case.capture.parts}
    again = codec.decode(codec.encode(case.capture), bodies.__getitem__)
    if again != case.capture:
        fail("the capture is another one after a round trip", "→ record it anew")


def test_output_is_as_it_was_looked_at(bench: Bench, case: Fixture) -> None:
    """What is read is what ``expected.json`` says; the first run writes it, for a person to look at."""
    found = bench.outcome(case.capture)
    if case.expected is None:
        if not (case.folder / fixtures.EXPECTED).exists():
            fixtures.write_expected(case, found)
        fail(f"{case.folder / fixtures.EXPECTED} was written: look at it, then run again")
    if _differs(found, case.expected) and not _is_of_this_version(bench, case):
        fail(
            *_difference(case.expected, found),
            f"→ where that is right, delete {case.folder / fixtures.EXPECTED}, run, and look at it",
        )


def test_changed_output_has_a_new_version(bench: Bench, case: Fixture) -> None:
    """A change of what is read is named, so that stored captures are known to be read differently now."""
    if case.expected is None:
        pytest.skip("nothing was looked at yet")
    found = bench.outcome(case.capture)
    if _differs(found, case.expected) and _is_of_this_version(bench, case):
        fail(
            *_difference(case.expected, found),
            f"→ where that is right, raise version from {bench.adapter.version!r} (where that was never released, "
            f"delete {case.folder / fixtures.EXPECTED}, run, and look at it)",
        )


def _is_of_this_version(bench: Bench, case: Fixture) -> bool:
    return (case.expected or {}).get("adapter_version") == bench.adapter.version


def _differs(found: dict[str, Any], expected: Any) -> bool:
    return _without_version(found) != _without_version(expected)


def _without_version(told: Any) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name != "adapter_version"}


def _difference(expected: Any, found: dict[str, Any]) -> list[str]:
    before, after = (
        json.dumps(_without_version(one), indent=1, ensure_ascii=False, sort_keys=True).splitlines()
        for one in (expected, found)
    )
    lines = list(unified_diff(before, after, "looked at", "read now", lineterm="", n=2))
    return [*lines[:60], *(["…"] if len(lines) > 60 else [])]
