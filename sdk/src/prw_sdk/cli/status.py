"""How a spool stands: its items, its captures, what the resolver said of them, and bytes that are no longer there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prw_base.tables import print_table
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CaptureState, Item, KeptCapture, Outcome

RECEIPTS = ("stored", "resolving", "resolved", "in_review", "rejected", "failed")
"""What a resolver says of a receipt; 0 everywhere until it is asked."""

COLUMNS = (
    "source",
    *(one.value for one in Outcome),
    *(one.value for one in CaptureState),
    *(f"receipts_{name}" for name in RECEIPTS),
    "damaged",
)
_DAMAGES_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Standing:
    """How a spool stands. `damages` names the captures whose bytes are not whole."""

    outcomes: Mapping[tuple[str, Outcome], int]
    states: Mapping[tuple[str, CaptureState], int]
    receipts: Mapping[tuple[str, str], int]
    troubled: Sequence[Item]
    damages: Sequence[KeptCapture]

    def rows(self) -> list[tuple[object, ...]]:
        """A row of `COLUMNS` for each source."""
        damaged = Counter(capture.key.source_id for capture in self.damages)
        return [
            (
                source,
                *(self.outcomes.get((source, one), 0) for one in Outcome),
                *(self.states.get((source, one), 0) for one in CaptureState),
                *(self.receipts.get((source, name), 0) for name in RECEIPTS),
                damaged[source],
            )
            for source in sorted({source for source, _ in (*self.outcomes, *self.states)})
        ]

    def print_troubles(self) -> None:
        """Everything that waits for a later run or a person."""
        if self.troubled:
            title = "Put off and set aside (`prw collect retry` gives another chance)"
            print_table(title, _TROUBLED, [_troubled(item) for item in self.troubled])
        if self.damages:
            title = "Damaged (`prw collect retry`, then `run`, fetches them again)"
            shown = [_damaged(capture) for capture in self.damages[:_DAMAGES_SHOWN]]
            print_table(title, ("source", "item", "captured_at", "state"), shown)


_TROUBLED = ("source", "item", "outcome", "code", "attempts", "retry_at", "error")


def _troubled(item: Item) -> tuple[object, ...]:
    said = item.verdict
    named = (item.key.source_id, item.key.native_id, said.outcome.value)
    return (*named, said.code, said.attempts, said.retry_at, said.error)


def _damaged(capture: KeptCapture) -> tuple[object, ...]:
    key = capture.key
    return (key.source_id, key.native_id, capture.captured_at, capture.state.value)


def look(spool: Spool, verify: bool = False) -> Standing:
    """How the spool stands; with `verify` every kept byte is read, without it only lengths are compared."""
    blobs = spool.blobs

    def is_there(part: Mapping[str, Any]) -> bool:
        return (
            blobs.is_whole(part["sha256"]) if verify else blobs.has(part["sha256"], part["bytes"])
        )

    ledger = spool.ledger
    return Standing(
        ledger.outcomes(),
        ledger.states(),
        ledger.receipt_statuses(),
        ledger.troubled(),
        list(_damages(ledger.captures(), is_there)),
    )


def _damages(
    captures: Iterator[KeptCapture], is_there: Callable[[Mapping[str, Any]], bool]
) -> Iterator[KeptCapture]:
    for capture in captures:
        if not all(is_there(part) for part in json.loads(capture.body)["parts"]):
            yield capture
