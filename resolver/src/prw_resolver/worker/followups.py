"""Work that accepted changes leave behind in some catalogue: cases to look at again, releases to write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from prw.errors import PrwError
from prw_base.scope import Scope
from prw_base.server.database import Database
from prw_resolver.identity.store import follow_ups_due
from prw_resolver.vocabulary import service as vocabularies
from prw_resolver.vocabulary.definitions import Vocabulary

Act = Callable[[Scope, Vocabulary, int], Awaitable[int]]
"""Does at most so much of one catalogue's work, under its vocabulary; answers how much it did."""


class FollowUps:
    """One kind of follow-up work, in whichever catalogue it is due."""

    def __init__(self, db: Database, act: Act) -> None:
        self._db = db
        self._act = act

    async def __call__(self, most: int) -> int:
        """Do at most `most` in each catalogue; answers how much was done in all of them.

        A catalogue that fails keeps no other waiting; the first failure is raised when all have had their turn.
        """
        async with self._db.transaction(None, read_only=True) as conn:
            scopes = await follow_ups_due(conn)
        done, failures = 0, list[PrwError]()
        for scope in scopes:
            try:
                done += await self._work(scope, most)
            except PrwError as failure:
                failures.append(failure)
        if failures:
            raise failures[0]
        return done

    async def _work(self, scope: Scope, most: int) -> int:
        async with self._db.transaction(scope.tenant_id, read_only=True) as conn:
            vocabulary = await vocabularies.load(conn, scope.tenant_id, scope.catalog_id)
        return await self._act(scope, vocabulary, most)
