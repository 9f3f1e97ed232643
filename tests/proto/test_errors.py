from __future__ import annotations

import pickle
from datetime import timedelta

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc.aio import AioRpcError, Metadata

from prw.errors import TABLE, Code, JobCode, PrwError
from prw.grpc_errors import STATUS_KEY, from_rpc_error, status_code, to_status

CONTRACT = {
    (401, "UNAUTHENTICATED"): "INVALID_TOKEN CREDENTIAL_REVOKED SESSION_EXPIRED",
    (403, "PERMISSION_DENIED"): "MISSING_SCOPE TENANT_SCOPE_DENIED SOURCE_SCOPE_DENIED"
    " INSTANCE_SCOPE_DENIED ATTRIBUTION_DENIED PERMISSION_DENIED FORBIDDEN",
    (404, "NOT_FOUND"): "NOT_FOUND UNKNOWN_INSTANCE",
    (409, "ABORTED"): "STALE_CASE_REVISION STALE_FACT_REVISION REPLAY_IN_PROGRESS"
    " REBUILD_IN_PROGRESS CHECKPOINT_CONFLICT KEY_TAKEN SLOW_CONSUMER",
    (409, "ALREADY_EXISTS"): "IDEMPOTENCY_CONFLICT IMMUTABLE_METADATA_CONFLICT",
    (409, "FAILED_PRECONDITION"): "ITEM_NOT_ACTIVE",
    (410, "FAILED_PRECONDITION"): "EXPORT_EXPIRED LEASE_EXPIRED CURSOR_PRUNED CURSOR_AHEAD"
    " EPOCH_FENCED",
    (413, "INVALID_ARGUMENT"): "ARTIFACT_TOO_LARGE",
    (422, "INVALID_ARGUMENT"): "VALIDATION_FAILED DIGEST_MISMATCH UNKNOWN_ADAPTER_VERSION"
    " BASKET_SPANS_MERCHANTS INVALID_DESTINATION",
    (422, "FAILED_PRECONDITION"): "ARTIFACT_NOT_STORED",
    (429, "RESOURCE_EXHAUSTED"): "RATE_LIMITED",
    (500, "INTERNAL"): "INTERNAL",
    (503, "UNAVAILABLE"): "STORAGE_UNAVAILABLE UNAVAILABLE OVERLOADED",
}


def arrived(error: PrwError) -> PrwError:
    """``error`` as a caller gets it: through the wire's trailing metadata."""
    trailing = Metadata((STATUS_KEY, to_status(error).SerializeToString()))
    sent = AioRpcError(status_code(error.code), Metadata(), trailing, error.message)
    return from_rpc_error(sent)


def test_the_table_is_the_contract_and_nothing_else() -> None:
    """Every code has the HTTP and the gRPC status of the contract (contract, "Errors")."""
    table: dict[tuple[int, str], set[str]] = {}
    for code, entry in TABLE.items():
        table.setdefault((entry.http, entry.grpc), set()).add(code.value)
    assert table == {statuses: set(codes.split()) for statuses, codes in CONTRACT.items()}


def test_every_code_has_a_row_that_says_what_to_do() -> None:
    """A code without meaning and remedy would reach a person as a riddle."""
    assert set(TABLE) == set(Code)
    assert all(entry.meaning and entry.remedy for entry in TABLE.values())


def test_only_429_and_503_may_be_sent_again() -> None:
    """401, 403, 409 and 422 are never retried (contract, "Deadlines and retries")."""
    assert {entry.http for entry in TABLE.values() if entry.retryable} == {429, 503}


def test_codes_of_jobs_are_kept_apart() -> None:
    """A job's code is never a call's, but for the names that both have."""
    shared = {"DIGEST_MISMATCH", "STORAGE_UNAVAILABLE"}
    assert set(JobCode.__members__) & set(Code.__members__) == shared


@pytest.mark.parametrize("code", list(Code))
def test_an_error_survives_the_wire(code: Code) -> None:
    """Code, message, field, wait and details arrive as they were sent."""
    sent = PrwError(
        code,
        "nämlich so",
        field="parts[0].sha256",
        retry_after=timedelta(seconds=3, milliseconds=250),
        details={"winner": "run_2"},
    )
    got = arrived(sent)
    assert (got.code, got.message, got.field) == (code, sent.message, sent.field)
    assert (got.retry_after, got.details) == (sent.retry_after, sent.details)


@pytest.mark.parametrize("code", list(Code))
def test_what_may_be_sent_again_says_when(code: Code) -> None:
    """RetryInfo stands where the call may be retried, and nowhere else."""
    details = to_status(PrwError(code, "x")).details
    told = any(detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR) for detail in details)
    assert told is TABLE[code].retryable


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (grpc.StatusCode.UNAVAILABLE, Code.UNAVAILABLE),
        (grpc.StatusCode.DEADLINE_EXCEEDED, Code.UNAVAILABLE),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, Code.VALIDATION_FAILED),
        (grpc.StatusCode.UNIMPLEMENTED, Code.INTERNAL),
        (grpc.StatusCode.UNKNOWN, Code.INTERNAL),
    ],
)
def test_a_status_of_the_transport_gets_a_code(status: grpc.StatusCode, code: Code) -> None:
    """A call that never reached our code still ends with a code of the table."""
    assert from_rpc_error(AioRpcError(status, Metadata(), Metadata(), "gone")).code is code


def test_an_error_crosses_a_process_boundary() -> None:
    """Adapters run in a process pool, whose errors are pickled."""
    error = PrwError(Code.NOT_FOUND, "no", field="id", details={"a": "b"})
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  made one line up
    assert (again.code, again.field, again.details, str(again)) == (
        Code.NOT_FOUND,
        "id",
        {"a": "b"},
        str(error),
    )


def test_a_problem_has_the_same_code_on_http() -> None:
    """RFC 9457 with the code of the table and its HTTP status."""
    problem = PrwError(Code.VALIDATION_FAILED, "too long", field="id").problem()
    assert (problem["status"], problem["code"], problem["field"]) == (
        422,
        "VALIDATION_FAILED",
        "id",
    )
