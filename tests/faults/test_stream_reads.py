"""What a reader of the stream gets while it is pruned and written between any two statements (AW-03, I5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from prw.errors import Code, PrwError
from tests.faults.retaining import STREAM, Retaining, retaining
from tests.support.interleaving import interrupted


@pytest.fixture
async def held(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Retaining]:
    """Twelve positions, published."""
    async with retaining(resolver_database, tmp_path) as made:
        yield made


@pytest.mark.parametrize("size", [5, 100])
async def test_i5_a_page_is_whole_whatever_happens_between_its_statements(
    held: Retaining, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """I5: no hole, nothing beyond the cursor, and a page that is not full ends at it; or CURSOR_PRUNED.

    Seen to fail where floor, rows and cursor are read by more than one statement.
    """
    codes: list[Code] = []
    struck, pages = 0, 0
    for strike in range(1, 6):

        async def prune_and_write(strike: int = strike) -> None:
            nonlocal struck
            if len(statements) == strike:
                await held.pruner.prune(STREAM)
                await held.fill(4, start=100 * strike)
                struck += 1

        after = held.pruned_through
        with interrupted(monkeypatch, prune_and_write) as statements:
            try:
                page = await held.rooms.feed.page(STREAM, after, size)
            except PrwError as error:
                codes.append(error.code)
                continue
        positions = [change.position for change in page.changes]
        assert positions == list(range(after + 1, after + 1 + len(positions)))
        assert positions[-1] <= page.cursor_position
        assert len(positions) == size or positions[-1] == page.cursor_position
        pages += 1
    assert struck >= 2
    assert pages
    assert set(codes) == {Code.CURSOR_PRUNED}


_NOTIFIERS = """
select p.oid::regprocedure::text from pg_proc p
 where p.pronamespace = 'resolver'::regnamespace and p.prosrc ~* 'notify'
   and (p.proname !~ '^procrastinate_' or exists (select from pg_trigger t where t.tgfoid = p.oid))
"""


def test_no_function_of_a_stream_notifies(resolver_database: dict[str, str]) -> None:
    """NOTIFY in the committing transaction takes a lock of the whole database: no function, no trigger does it."""
    with psycopg.connect(resolver_database["superuser"]) as conn:
        found: list[Any] = conn.execute(_NOTIFIERS).fetchall()
        (functions,) = conn.execute(
            "select count(*) from pg_proc where pronamespace = 'resolver'::regnamespace"
            " and proname ~ '^stream_'"
        ).fetchone() or (0,)
    assert found == []
    assert functions > 5
