"""The real runner with one rule taken out: what the verifications of replay safety must catch."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from itertools import count
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

Patch = pytest.MonkeyPatch


def keeps_what_it_cannot_keep(patch: Patch) -> None:
    """Say of what the spool refuses that it is kept."""
    settle = Keeper._settle

    def hide(self: Keeper, fine: Sequence[Any]) -> Iterable[Kept]:
        try:
            return settle(self, fine)
        except SpoolUnusable:
            return [Kept(one.settling, True) for _, one in fine]

    patch.setattr(keeper.Keeper, "_settle", hide)


def hides_that_a_checkpoint_was_refused(patch: Patch) -> None:
    """Go on as if a checkpoint that the spool refuses were persisted."""
    advance = progress.Progress.advance

    async def hide(self: progress.Progress, *arguments: Any) -> bool:
        try:
            return await advance(self, *arguments)
        except SpoolUnusable:
            return False

    patch.setattr(progress.Progress, "advance", hide)


def settles_whatever_was_settled_meanwhile(patch: Patch) -> None:
    """Give a verdict on whatever version there is by now."""
    settle = ledger._settle

    def overwrite(connection: sqlite3.Connection, one: Settling) -> bool:
        row = connection.execute(ledger._SQL["find_item"], asdict(one.item.key)).fetchone()
        return settle(connection, replace(one, expected=row["version"] if row else 0))

    patch.setattr(ledger, "_settle", overwrite)


def takes_no_turns(patch: Patch) -> None:
    """Let every run of a source go at once, with no regard to what another settles."""

    @asynccontextmanager
    async def at_once(self: Spool, *_: object) -> AsyncIterator[bool]:
        yield False

    patch.setattr(Spool, "turn", at_once)
    settles_whatever_was_settled_meanwhile(patch)


def forgets_what_was_put_off(patch: Patch) -> None:
    """Never look for what was put off."""

    def nothing(self: Ledger, *_: object) -> list[Item]:
        return []

    patch.setattr(Ledger, "due", nothing)


def never_gives_up(patch: Patch) -> None:
    """Drop a poison item rather than set it aside."""
    after = vars(attempt)["after_failure"]

    def again(*arguments: Any, **named: Any) -> Verdict:
        verdict: Verdict = after(*arguments, **named)
        is_poison = verdict.outcome is Outcome.POISON
        return replace(verdict, outcome=Outcome.REJECTED) if is_poison else verdict

    patch.setattr(attempt, "after_failure", again)


def is_rude(patch: Patch) -> None:
    """Ask a host of the stage for as much as one likes."""

    def rude(per_second: float, at_once: int) -> Politeness:
        return Politeness(per_second, 16)

    patch.setattr(replay, "Politeness", rude)


def takes_every_page_for_new(patch: Patch) -> None:
    """Find a new fingerprint in every page."""
    numbers = count()
    patch.setattr(codec, "fingerprint", lambda capture: f"{next(numbers):064}")
