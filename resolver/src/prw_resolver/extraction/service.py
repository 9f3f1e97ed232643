"""The two stages of extraction: read a capture with its adapter, and bring what was read into the vocabulary's terms.

Each answers with a step that writes its results into a transaction of the caller, who commits them together with the
stage's inbox row.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from prw_base.server.database import Connection, Database
from prw_resolver.extraction import store
from prw_resolver.extraction.model import Captured, Reading, ReadOutcome, check_bytes, keep
from prw_resolver.extraction.normalise import normalise as normalise_record
from prw_resolver.extraction.pool import ReaderPool
from prw_resolver.jobs.model import as_text
from prw_resolver.vocabulary import service as vocabulary_service
from prw_resolver.vocabulary.model import NormalisedRecord
from prw_sdk.evidence import Presence

Step = Callable[[Connection], Awaitable[None]]
"""Writes a stage's results; may run more than once, each time in another transaction."""

GONE = "the source no longer serves it"


async def extract(pool: ReaderPool, captured: Captured) -> Step:
    """Read the capture; the step keeps records and claims. Raises `ReadFailed`.

    An absence has nothing to read: it is kept as such, with no record.
    """
    reading = await _read(pool, captured)
    records = keep(captured, reading)

    async def write(conn: Connection) -> None:
        await store.add_reading(conn, captured, reading.outcome, as_text(reading.detail), records)

    return write


async def _read(pool: ReaderPool, captured: Captured) -> Reading:
    if captured.evidence.presence is Presence.ABSENT:
        return Reading(ReadOutcome.ABSENT, GONE)
    check_bytes(captured.evidence)
    return await pool.read(captured.evidence)


async def normalise(db: Database, captured: Captured) -> Step:
    """Normalise what was read of the capture; the step keeps values, classes and keys."""
    async with db.transaction(captured.tenant_id, read_only=True) as conn:
        group, records = await store.load_reading(conn, captured)
        vocabulary = await vocabulary_service.load(conn, captured.tenant_id, captured.catalog_id)
    normalised = [normalise_record(captured, record, vocabulary) for record in records]

    async def write(conn: Connection) -> None:
        await store.add_normalised(conn, captured, group, normalised)

    return write


async def load_normalised(conn: Connection, captured: Captured) -> tuple[NormalisedRecord, ...]:
    """The capture's records as identity takes them, in the order in which they were read."""
    return await store.load_normalised(conn, captured)


async def read_outcomes(
    conn: Connection, tenant_id: str, capture_ids: Sequence[str]
) -> Mapping[str, tuple[ReadOutcome, str, int]]:
    """For each named capture that was read: how that ended, in what words, and how many records it gave."""
    return await store.outcomes(conn, tenant_id, capture_ids)
