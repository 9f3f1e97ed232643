"""The ten verifications themselves: each is caught at work by a runner that is broken in that one way."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from prw_sdk.collect import attempt, keeper, progress
from prw_sdk.collect.keeper import Keeper, Kept
from prw_sdk.fetch.polite import Politeness
from prw_sdk.spool import codec, ledger
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.ledger import Ledger
from prw_sdk.spool.model import Item, Outcome, Settling, Verdict
from prw_sdk.spool.sqlite import SpoolUnusable
from prw_sdk.testing import replay
from tests.sdk.conforming import CHECKS, bench, failing, look_at
from tests.sdk.small_shop import Small, write_fixtures

Patch = pytest.MonkeyPatch


def _keeps_what_it_cannot_keep(patch: Patch) -> None:
    settle = Keeper._settle

    def hide(self: Keeper, fine: Sequence[Any]) -> Iterable[Kept]:
        try:
            return settle(self, fine)
        except SpoolUnusable:
            return [Kept(one.settling, True) for _, one in fine]

    patch.setattr(keeper.Keeper, "_settle", hide)


def _hides_that_a_checkpoint_was_refused(patch: Patch) -> None:
    advance = progress.Progress.advance

    async def hide(self: progress.Progress, *arguments: Any) -> bool:
        try:
            return await advance(self, *arguments)
        except SpoolUnusable:
            return False

    patch.setattr(progress.Progress, "advance", hide)


def _settles_whatever_was_settled_meanwhile(patch: Patch) -> None:
    settle = ledger._settle

    def overwrite(connection: sqlite3.Connection, one: Settling) -> bool:
        row = connection.execute(ledger._SQL["find_item"], asdict(one.item.key)).fetchone()
        return settle(connection, replace(one, expected=row["version"] if row else 0))

    patch.setattr(ledger, "_settle", overwrite)


def _takes_no_turns(patch: Patch) -> None:
    @asynccontextmanager
    async def at_once(self: Spool, *_: object) -> AsyncIterator[bool]:
        yield False

    patch.setattr(Spool, "turn", at_once)
    _settles_whatever_was_settled_meanwhile(patch)


def _forgets_what_was_put_off(patch: Patch) -> None:
    def nothing(self: Ledger, *_: object) -> list[Item]:
        return []

    patch.setattr(Ledger, "due", nothing)


def _never_gives_up(patch: Patch) -> None:
    after = vars(attempt)["after_failure"]

    def again(*arguments: Any, **named: Any) -> Verdict:
        verdict: Verdict = after(*arguments, **named)
        is_poison = verdict.outcome is Outcome.POISON
        return replace(verdict, outcome=Outcome.REJECTED) if is_poison else verdict

    patch.setattr(attempt, "after_failure", again)


def _is_rude(patch: Patch) -> None:
    def rude(per_second: float, at_once: int) -> Politeness:
        return Politeness(per_second, 16)

    patch.setattr(replay, "Politeness", rude)


def _takes_every_page_for_new(patch: Patch) -> None:
    numbers = count()
    patch.setattr(codec, "fingerprint", lambda capture: f"{next(numbers):064}")


BROKEN: list[tuple[Callable[[Patch], None], str]] = [
    (_takes_every_page_for_new, "verification_1"),
    (_keeps_what_it_cannot_keep, "verification_2"),
    (_hides_that_a_checkpoint_was_refused, "verification_3"),
    (_takes_no_turns, "verification_4"),
    (_takes_every_page_for_new, "verification_5"),
    (_settles_whatever_was_settled_meanwhile, "verification_6"),
    (_forgets_what_was_put_off, "verification_7"),
    (_never_gives_up, "verification_8"),
    (_is_rude, "verification_9"),
]


@pytest.mark.parametrize(("break_it", "caught"), BROKEN, ids=[name for _, name in BROKEN])
def test_a_broken_runner_is_caught_by_the_verification_of_that(
    tmp_path: Path, monkeypatch: Patch, break_it: Callable[[Patch], None], caught: str
) -> None:
    """The real runner with one rule taken out."""
    write_fixtures(tmp_path / "fixtures")
    look_at(Small, tmp_path / "fixtures")
    (name,) = (one for one in CHECKS if one.startswith(f"{caught}_"))
    assert failing(bench(Small, tmp_path / "fixtures"), frozenset({name}), tmp_path / "sound") == {}
    with monkeypatch.context() as patch:
        break_it(patch)
        found = failing(bench(Small, tmp_path / "fixtures"), frozenset({name}), tmp_path / "broken")
    assert found.keys() == {name}
