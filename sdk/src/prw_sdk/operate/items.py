"""What became of every item of a spool, page by page."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass

from prw_sdk.spool.folder import Spool
from prw_sdk.spool.looking import START, Wanted
from prw_sdk.spool.model import Item, ItemKey

COLUMNS = (
    *("source", "item", "outcome", "code", "attempts", "retry_at", "updated_at", "url", "error"),
)
LONGEST_PAGE = 1000


class CursorUnusable(ValueError):
    """The cursor is none that a page has given."""


@dataclass(frozen=True, slots=True)
class ItemPage:
    """Some items, and the cursor of the page after them; None where there is none."""

    items: Sequence[Item]
    cursor: str | None = None


def page(spool: Spool, wanted: Wanted, cursor: str | None = None, limit: int = 100) -> ItemPage:
    """At most `limit` items (1 to `LONGEST_PAGE`) from after the cursor (replay rule 10).

    Raises `CursorUnusable`. Items that are settled meanwhile stay where they are, so no page skips one.
    """
    after = START if cursor is None else _key(cursor)
    limit = max(1, min(limit, LONGEST_PAGE))
    found = spool.looking.items(wanted, after, limit + 1)
    shown = found[:limit]
    return ItemPage(shown, _cursor(shown[-1].key) if len(found) > limit else None)


def row(item: Item) -> tuple[object, ...]:
    """An item as a row of `COLUMNS`."""
    said, key = item.verdict, item.key
    named = (key.source_id, key.native_id, said.outcome.value, said.code, said.attempts)
    return (*named, said.retry_at, item.updated_at, item.url, said.error)


def _cursor(key: ItemKey) -> str:
    text = json.dumps([key.tenant, key.source_id, key.native_id], ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _key(cursor: str) -> ItemKey:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        tenant, source_id, native_id = map(str, json.loads(text))
        # half a character can be written in JSON, and nothing in a ledger is one
        f"{tenant}{source_id}{native_id}".encode()
    except (ValueError, TypeError, RecursionError, binascii.Error) as wrong:
        raise CursorUnusable(
            "--after: no such cursor: give the one that the page before printed"
        ) from wrong
    return ItemKey(tenant, source_id, native_id)
