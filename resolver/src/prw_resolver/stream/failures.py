"""What a refused commit means, by the condition that the database names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from prw.errors import Code, PrwError

RAISED_BY_US = "PRW01"

CONSTRAINTS = {
    "catalog_item_key_owner": Code.KEY_TAKEN,
    "review_case_open": Code.STALE_CASE_REVISION,
    "job_inbox_pkey": Code.IDEMPOTENCY_CONFLICT,
}


FATE_OF_ALL = frozenset({Code.UNAVAILABLE, Code.EPOCH_FENCED})
"""No member of a group is at fault, so halving the group finds none."""


def refused(error: psycopg.Error) -> PrwError | None:
    """The typed error for a condition that a commit can meet; None for anything unforeseen.

    A unique violation of any other row means that somebody else made that revision first.
    """
    detail = error.diag.message_detail or str(error)
    if error.sqlstate == RAISED_BY_US:
        return PrwError(Code(error.diag.message_primary or ""), detail)
    if isinstance(error, psycopg.errors.ProgramLimitExceeded):
        return PrwError(Code.VALIDATION_FAILED, f"a value is too long to be kept: {error}")
    if isinstance(error, psycopg.errors.UniqueViolation):
        code = CONSTRAINTS.get(error.diag.constraint_name or "", Code.STALE_FACT_REVISION)
        return PrwError(code, detail)
    return None


@contextmanager
def refusals_typed() -> Iterator[None]:
    """Within the block, what the database refuses by a condition of ours is raised as its typed error."""
    try:
        yield
    except psycopg.Error as error:
        typed = refused(error)
        if typed is None:
            raise
        raise typed from error
