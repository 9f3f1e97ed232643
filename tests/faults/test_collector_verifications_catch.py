"""The ten verifications of a collector, each failed by a runner, an uplink or an adapter that breaks its rule."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from prw.errors import PrwError
from prw_sdk.adapter import Disposition
from prw_sdk.fetch.places import HostPlaces
from prw_sdk.plugins import load
from prw_sdk.spool.model import SavedCheckpoint
from prw_sdk.uplink.checkpoints import ResolverCheckpoints as Remote
from prw_sdk.uplink.checkpoints import _Reached
from tests.faults import test_collector_ten_verifications as ten
from tests.faults.collector_street import street
from tests.sdk import broken_runners

Patch = pytest.MonkeyPatch
Verification = Callable[..., Awaitable[None]]


def _takes_places_that_are_taken(patch: Patch) -> None:
    places = count()
    patch.setattr(HostPlaces, "take", lambda self: next(places))
    patch.setattr(HostPlaces, "leave", lambda self, place: None)


def _overwrites_the_winner(patch: Patch) -> None:
    async def anyway(self: Remote, reached: _Reached, error: PrwError) -> SavedCheckpoint:
        winner = await self.load(reached.expected.key)
        return await self._persist(replace(reached, expected=winner))

    patch.setattr(Remote, "_perhaps_ours", anyway)


def _forgets_a_field(patch: Patch) -> None:
    adapter = load().adapters["schemaorg"]
    disposition = adapter.disposition

    def all_but_names(self: object, name: str, config: Mapping[str, object]) -> Disposition | None:
        return None if name == "name" else disposition(adapter(), name, config)

    patch.setattr(adapter, "disposition", all_but_names)


CAUGHT = (AssertionError, pytest.fail.Exception)

BROKEN: list[tuple[str, Callable[[Patch], None], dict[str, str]]] = [
    ("1", broken_runners.takes_every_page_for_new, {}),
    ("2", broken_runners.keeps_what_it_cannot_keep, {}),
    ("3", broken_runners.hides_that_a_checkpoint_was_refused, {"table": "checkpoints"}),
    ("4", broken_runners.takes_no_turns, {}),
    ("5", broken_runners.takes_every_page_for_new, {"point": "collect.after_blob"}),
    ("6", broken_runners.settles_whatever_was_settled_meanwhile, {}),
    ("7", broken_runners.forgets_what_was_put_off, {}),
    ("8", broken_runners.never_gives_up, {}),
    ("9", _takes_places_that_are_taken, {}),
    ("9", _overwrites_the_winner, {}),
    ("10", _forgets_a_field, {"name": "schemaorg"}),
]


@pytest.mark.parametrize(
    ("number", "break_it", "given"), BROKEN, ids=[f"{one}-{how.__name__}" for one, how, _ in BROKEN]
)
async def test_a_collector_that_breaks_a_rule_fails_the_verification_of_it(
    number: str,
    break_it: Callable[[Patch], None],
    given: dict[str, str],
    tmp_path: Path,
    monkeypatch: Patch,
) -> None:
    """One rule is taken out, and the verification that guards it must say so."""
    (name,) = (one for one in vars(ten) if one.startswith(f"test_verification_{number}_"))
    verification: Verification = getattr(ten, name)
    with street(tmp_path) as here, monkeypatch.context() as patch:
        ten.put_pages(here)
        found = {"here": here, "tmp_path": tmp_path, "monkeypatch": patch, **given}
        wanted = {one: found[one] for one in inspect.signature(verification).parameters}
        break_it(patch)
        with pytest.raises(CAUGHT):
            await verification(**wanted)
