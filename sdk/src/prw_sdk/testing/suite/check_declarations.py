"""Declarations: the census and the inventory, total in both directions (rules 14 and 15)."""

from __future__ import annotations

import re

from prw_base.canonical import canonical_json
from prw_sdk.adapter import Adapter, Stored, covers
from prw_sdk.testing.bench import Bench, fail, fail_with
from prw_sdk.testing.fixtures import Fixture

_SECRET = re.compile(r"passw|secret|token|api_?key|authorization|cookie|credential", re.IGNORECASE)


def test_declarations_are_sound(bench: Bench) -> None:
    """What `prw_sdk.plugins.load` would refuse, with what to write instead."""
    fail_with(bench.subject.faults, "write it in the adapter's class")


def test_every_surface_part_is_in_some_fixture(bench: Bench) -> None:
    """The census: a surface that is stored is read back out of a capture that this adapter can make."""
    roles = {part.role for case in bench.cases for part in case.capture.parts}
    missing = [
        f"surface {name!r} is stored as part {how.target!r}, which no fixture holds"
        for name, how in bench.adapter.surfaces.items()
        if isinstance(how, Stored) and how.target not in roles
    ]
    fail_with(missing, "record a page that has it, or exclude the surface with its reason")


def test_every_part_belongs_to_a_surface(bench: Bench) -> None:
    """The census, the other way: nothing is fetched that it does not name."""
    declared = {how.target for how in bench.adapter.surfaces.values() if isinstance(how, Stored)}
    roles = {part.role for case in bench.cases for part in case.capture.parts}
    undeclared = [f"part {role!r} belongs to no surface" for role in sorted(roles - declared)]
    fail_with(undeclared, 'declare it in surfaces: "what the publisher calls it": Stored("role")')


def test_every_stated_name_is_declared(bench: Bench, case: Fixture) -> None:
    """Rule 14: a name on the page that no declaration covers fails with its name."""
    unknown = [f"{name!r} is stated, and not declared" for name in bench.account(case).unknown]
    fail_with(
        unknown, "declare it in fields: Stored under an attribute, or Excluded with what it is"
    )


def test_every_stored_field_is_stated_by_some_fixture(bench: Bench) -> None:
    """Rule 14, the other way: what is declared as stored, the source was seen to state."""
    stated = bench.stated()
    missing = [
        f"field {name!r} is stored, and no fixture states it"
        for name in bench.stored_fields()
        if not any(covers(name, one) for one in stated)
    ]
    fail_with(missing, "record a page that states it, or take the field out of the declarations")


def test_every_stored_field_is_read_at_its_target(bench: Bench) -> None:
    """Rule 14: what a fixture states and the inventory stores is among its records' claims, at the target named."""
    stated = bench.stated()
    lost = [
        f"field {name!r} is stored under {target!r}, and no record of a fixture that states it carries that"
        for name, target in bench.stored_fields().items()
        if (cases := [case for one in stated if covers(name, one) for case in stated[one]])
        and not any(target in bench.attributes(case) for case in cases)
    ]
    fail_with(lost, "read it, or exclude it with its reason")


def test_every_claim_has_a_stated_field(bench: Bench, case: Fixture) -> None:
    """What is excluded is not claimed, and what is claimed was stated: both halves see the same names."""
    targets = set(bench.account(case).targets.values())
    strange = [
        f"a record claims {key!r}, which no stated name of this capture is stored under"
        for key in sorted(bench.attributes(case) - targets)
    ]
    fail_with(strange, "let stated list the name that it is read from, and declare it as stored")


def test_merchant_is_at_its_field(bench: Bench) -> None:
    """Rule 15: the merchant comes from the field that the adapter names for it."""
    named = [case for case in bench.with_records() if any(r.merchant for r in bench.records(case))]
    field = bench.adapter.merchant_field
    if not named:
        fail(
            "no fixture has a record with a merchant",
            f"→ record a page that states {field!r}; a listing without a merchant is never accepted by rule",
        )
    stated = bench.stated()
    if not any(covers(field, name) and case in named for name in stated for case in stated[name]):
        fail(
            f"records have merchants, and none of their captures states {field!r}",
            "→ name in merchant_field what the merchant is read from, and let stated list it",
        )


def test_config_is_plain_json_without_secrets(bench: Bench, case: Fixture) -> None:
    """What is pinned in every capture can be sent, and holds nothing that opens a door."""
    config = case.capture.config
    try:
        canonical_json(config)
    except TypeError as wrong:
        fail(
            f"config is not plain JSON: {wrong}",
            "→ pin texts, whole numbers, booleans, lists of them",
        )
    secret = [f"config pins {name!r}" for name in _names(config) if _SECRET.search(name)]
    fail_with(secret, "leave it out of config: read has no use for a credential")


def _names(value: object) -> list[str]:
    if isinstance(value, dict):
        inner = [name for one in value.values() for name in _names(one)]
        return [*map(str, value), *inner]
    if isinstance(value, list | tuple):
        return [name for one in value for name in _names(one)]
    return []


def test_legacy_shapes_still_read(bench: Bench) -> None:
    """An older raw shape that is registered has a fixture of that version, and is read."""
    adapter: Adapter = bench.adapter
    lost = []
    for version in adapter.legacy:
        cases = [case for case in bench.cases if case.capture.adapter.version == version]
        if not cases:
            lost.append(f"no fixture is a capture of version {version}")
        elif not any(bench.records(case) for case in cases):
            lost.append(f"no capture of version {version} gives a record")
    fail_with(lost, "keep a capture of that version as a fixture, and let read understand it")
