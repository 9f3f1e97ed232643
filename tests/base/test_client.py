from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta

import pytest
import stamina
from grpc.aio import AioRpcError, Metadata

from prw.errors import Code, PrwError
from prw.grpc_errors import status_code
from prw_base.client import DECISION, NEVER, STANDARD, Retry, open_channel, retrying

SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def without_waiting() -> Iterator[None]:
    """Retries happen, their waits do not."""
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


class Flaky:
    """Fails with each of ``errors`` in turn, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self) -> str:
        """One attempt."""
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


async def test_what_passes_is_tried_again() -> None:
    """UNAVAILABLE and its like, at most eight attempts (contract, "Deadlines and retries")."""
    work = Flaky(*[PrwError(Code.UNAVAILABLE, "away")] * 7)
    assert await retrying(work) == "done"
    assert work.calls == 8


async def test_after_eight_attempts_the_error_is_the_answer() -> None:
    """The caller decides what then."""
    work = Flaky(*[PrwError(Code.RATE_LIMITED, "slow down")] * 20)
    with pytest.raises(PrwError, match="RATE_LIMITED"):
        await retrying(work)
    assert work.calls == 8


@pytest.mark.parametrize(
    "code",
    [
        Code.INVALID_TOKEN,
        Code.CREDENTIAL_REVOKED,
        Code.MISSING_SCOPE,
        Code.IDEMPOTENCY_CONFLICT,
        Code.STALE_CASE_REVISION,
        Code.VALIDATION_FAILED,
        Code.INTERNAL,
    ],
)
async def test_what_would_fail_again_is_not_tried_again(code: Code) -> None:
    """Never 401, 403, 409, 422."""
    work = Flaky(PrwError(code, "no"))
    with pytest.raises(PrwError):
        await retrying(work)
    assert work.calls == 1


async def test_a_decision_is_not_repeated_when_it_is_rate_limited() -> None:
    """Only network errors and 503, with the same idempotency key."""
    limited, away = (Flaky(PrwError(code, "x")) for code in (Code.RATE_LIMITED, Code.UNAVAILABLE))
    with pytest.raises(PrwError):
        await retrying(limited, DECISION)
    assert await retrying(away, DECISION) == "done"
    assert (limited.calls, away.calls) == (1, 2)


async def test_an_error_of_the_transport_is_typed() -> None:
    """Callers never see grpc.RpcError."""
    status = status_code(Code.UNAVAILABLE)
    work = Flaky(AioRpcError(status, Metadata(), Metadata(), "refused"))
    with pytest.raises(PrwError) as ended:
        await retrying(work, NEVER)
    assert ended.value.code is Code.UNAVAILABLE


def test_waits_double_with_full_jitter_up_to_the_cap() -> None:
    """Base 1 s, cap 5 min, evenly between zero and the bound."""
    error = PrwError(Code.UNAVAILABLE, "away")
    bounds = [STANDARD.wait(n, error, 1.0).total_seconds() for n in (1, 2, 3, 9, 10, 99)]
    assert bounds == [1, 2, 4, 256, 300, 300]
    assert STANDARD.wait(5, error, 0.0) == timedelta(0)
    assert STANDARD.wait(3, error, 0.5) == 2 * SECOND


def test_the_servers_word_on_waiting_is_kept() -> None:
    """RetryInfo is a lower bound, above the cap too."""
    error = PrwError(Code.RATE_LIMITED, "x", retry_after=timedelta(minutes=7))
    assert STANDARD.wait(1, error, 0.1) == timedelta(minutes=7)


def test_only_named_codes_are_repeated() -> None:
    """A policy narrows the table and never widens it."""
    retry = Retry(codes=frozenset({Code.NOT_FOUND}))
    assert not retry.may_repeat(PrwError(Code.NOT_FOUND, "x"))
    assert not retry.may_repeat(PrwError(Code.UNAVAILABLE, "x"))


async def test_a_token_does_not_cross_a_network_unencrypted() -> None:
    """Plaintext is for this machine only, unless somebody takes the risk by name."""
    with pytest.raises(ValueError, match="TLS"):
        open_channel("resolver.example:443", "token")
    for target in ("127.0.0.1:1", "localhost:1", "[::1]:1", "unix:/tmp/x"):
        await open_channel(target, "token").close()
    await open_channel("resolver.example:443", "token", allow_plaintext=True).close()


def test_the_client_brings_no_database_driver() -> None:
    """An adapter author installs none (architecture, "Workspace")."""
    code = "import prw_base.client, sys; print('psycopg' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "False"
