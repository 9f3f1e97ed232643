"""Which failures are the job's and which the database's, and what code a failure has."""

from __future__ import annotations

import psycopg

from prw.errors import Code, JobCode, PrwError
from prw_resolver.extraction.model import ReadFailed
from prw_resolver.jobs.model import Failure, Stage

WORKER_LOST = "WORKER_LOST"
"""The worker that had the job fell silent."""

_FINAL = frozenset(
    {
        Code.DIGEST_MISMATCH,
        Code.UNKNOWN_ADAPTER_VERSION,
        Code.VALIDATION_FAILED,
        Code.TENANT_SCOPE_DENIED,
    }
)


class TenantMismatch(Exception):
    """A job names a tenant or a catalogue that its capture does not have."""


def is_database_away(error: BaseException) -> bool:
    """Whether the database did not answer at all: no failure of the job, which is worked again once it does."""
    if not isinstance(error, psycopg.OperationalError):
        return False
    # Without a state the server did not say it: the connection is gone. 57P01… is a shutdown.
    return error.sqlstate is None or error.sqlstate.startswith(("57P", "08"))


def failure_of(stage: Stage, error: Exception) -> Failure:
    """What a stage's exception means for its job (if_resolution_job, "retries")."""
    match error:
        case ReadFailed():
            return Failure(stage, error.code, error.detail, error.code.retryable)
        case PrwError():
            return Failure(stage, error.code, error.message, error.code not in _FINAL)
        case TenantMismatch():
            return Failure(stage, JobCode.TENANT_MISMATCH, str(error), retryable=False)
        case TimeoutError():
            return Failure(stage, "TIMEOUT", "the job took longer than it may", retryable=True)
    final = isinstance(error, psycopg.DataError | psycopg.errors.ProgramLimitExceeded)
    return Failure(stage, _code(error), _words(error), not final)


def _code(error: Exception) -> str:
    match error:
        case psycopg.DataError() | psycopg.errors.ProgramLimitExceeded():
            return JobCode.SCHEMA_INVALID
        case psycopg.Error():
            return JobCode.DB_UNAVAILABLE
    return Code.INTERNAL


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
