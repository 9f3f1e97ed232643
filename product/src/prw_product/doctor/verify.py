"""Whether the projection is what was accepted: digests of both sides, as of the projection's progress."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from prw.errors import Code, PrwError
from prw_base.scope import Scope
from prw_base.server.database import Database
from prw_product.publish.model import Generation
from prw_product.publish.store import enter_serving
from prw_product.rebuild import store
from prw_product.rebuild.client import ExportClient
from prw_product.rebuild.model import StateDigest

TIMEOUT = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Compared:
    """One type of aggregate on both sides; None where a side has none."""

    type: str
    ours: StateDigest | None
    theirs: StateDigest | None

    @property
    def same(self) -> bool:
        """Whether both sides hold the same."""
        return self.ours == self.theirs


@dataclass(frozen=True, slots=True)
class Verified:
    """What was compared: the generation, as of its progress."""

    generation: Generation
    position: int
    types: tuple[Compared, ...]


async def verify(database: Database, scope: Scope, client: ExportClient) -> Verified:
    """Compare the serving generation with the resolver's accepted state. Reads, and changes nothing.

    Raises NOT_FOUND where nothing serves, UNAVAILABLE where a change above progress is applied already (one before it
    is missing or waits), and what the resolver refuses.
    """
    async with database.transaction(
        scope.tenant_id, TIMEOUT, read_only=True, snapshot=True
    ) as conn:
        generation = await enter_serving(conn, scope)
        if generation is None:
            raise PrwError(Code.NOT_FOUND, "nothing serves this catalogue yet: follow first")
        position = await store.find_rest(conn, generation)
        if position is None:
            raise PrwError(
                Code.UNAVAILABLE,
                "changes beyond a missing one are applied: verify once it is there",
            )
        ours = await store.digests(conn, scope)
    theirs = await client.read_digests(generation.history_epoch, position)
    kinds = sorted({*ours, *theirs})
    types = tuple(Compared(kind, ours.get(kind), theirs.get(kind)) for kind in kinds)
    return Verified(generation, position, types)
