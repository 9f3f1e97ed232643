"""Channels and calls to our services: token, deadline, retries; no database driver.

Retries follow the contract ("Deadlines and retries"): exponential with full jitter, RetryInfo
honoured, and only where the table of errors says that the same call may be sent again.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar

import grpc
import stamina

from prw.errors import Code, PrwError
from prw.grpc_errors import from_rpc_error
from prw_base.backoff import longest_wait

Request = TypeVar("Request")
Response = TypeVar("Response")
T = TypeVar("T")

TokenSource = Callable[[], str]
"""Gives the bearer token for the next call, a fresh one where the last has aged."""

MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM bytes: the authority of the server, and for mTLS our own key and certificate."""

    authority: bytes | None = None
    key: bytes | None = None
    certificate: bytes | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and after which waits a call is sent again.

    ``base`` is the first upper bound of a wait; it doubles each time up to ``cap``. ``codes``
    narrows which errors are tried again; None means every one that the table calls retryable.
    """

    attempts: int = 8
    base: timedelta = timedelta(seconds=1)
    cap: timedelta = timedelta(minutes=5)
    codes: frozenset[Code] | None = None

    def may_repeat(self, error: PrwError) -> bool:
        """Whether ``error`` allows the same call again."""
        return error.retryable and (self.codes is None or error.code in self.codes)

    def wait(self, failures: int, error: PrwError, chance: float) -> timedelta:
        """The wait after the ``failures``-th failure, for a ``chance`` in [0, 1).

        Full jitter: evenly between zero and the bound, but never less than the server asked for.
        """
        bound = longest_wait(failures, self.base, self.cap)
        return max(bound * chance, error.retry_after or timedelta(0))


STANDARD: Final = Retry()
"""Register, declare, put, submit, receipts, exports."""
DECISION: Final = Retry(codes=frozenset({Code.UNAVAILABLE, Code.STORAGE_UNAVAILABLE}))
"""Decisions: network errors and 503, with the same idempotency key."""
PUBLIC_QUERY: Final = Retry(attempts=2)
"""Public queries: once."""
NEVER: Final = Retry(attempts=1)
AT_A_PROMPT: Final = Retry(
    attempts=3, base=timedelta(milliseconds=300), cap=timedelta(seconds=2), codes=DECISION.codes
)
"""A person waits for the answer: a server that restarts is met again, one that is away is told of within seconds."""


def open_channel(
    target: str,
    token: str | TokenSource | None = None,
    *,
    tls: Tls | None = None,
    allow_plaintext: bool = False,
) -> grpc.aio.Channel:
    """A channel to ``host:port`` that sends ``token`` as bearer token with every call.

    Raises ValueError where a token would cross a network unencrypted: without ``tls`` only a
    loopback address is accepted, unless ``allow_plaintext`` (a private network's own risk).
    """
    if tls is None and token is not None and not (allow_plaintext or is_loopback(target)):
        raise ValueError(f"{target}: a token is sent over TLS only, or to this machine")
    interceptors = [] if token is None else _bearer(token)
    if tls is None:
        return grpc.aio.insecure_channel(target, _OPTIONS, interceptors=interceptors)
    credentials = grpc.ssl_channel_credentials(tls.authority, tls.key, tls.certificate)
    return grpc.aio.secure_channel(target, credentials, _OPTIONS, interceptors=interceptors)


def is_loopback(target: str) -> bool:
    """Whether ``target`` is a Unix socket or an address of this machine's loopback."""
    if target.startswith(("unix:", "unix-abstract:")):
        return True
    host = target.rsplit(":", 1)[0].strip("[]")
    return host in ("localhost", "::1") or host.startswith("127.")


async def call(
    method: grpc.aio.UnaryUnaryMultiCallable[Request, Response],
    request: Request,
    timeout: timedelta,
    retry: Retry = STANDARD,
) -> Response:
    """One call, sent again as ``retry`` says; ``timeout`` bounds each attempt.

    Raises PrwError, never grpc.RpcError.
    """

    async def attempt() -> Response:
        return await method(request, timeout=timeout.total_seconds())

    return await retrying(attempt, retry)


async def retrying(work: Callable[[], Awaitable[T]], retry: Retry = STANDARD) -> T:
    """``work`` as often as ``retry`` allows; for calls that ``call`` does not fit, such as streams.

    ``work`` raises PrwError or grpc.RpcError; this raises PrwError.
    """
    backoff = _Backoff(retry)
    async for attempt in stamina.retry_context(
        on=backoff, attempts=retry.attempts, timeout=None, wait_jitter=0
    ):
        with attempt:
            return await _typed(work)
    raise AssertionError("unreachable")


async def _typed(work: Callable[[], Awaitable[T]]) -> T:
    try:
        return await work()
    except grpc.RpcError as error:
        raise from_rpc_error(error) from error


async def receive(stream: AsyncIterator[T]) -> AsyncIterator[T]:
    """The messages of a response stream; a call that fails raises PrwError."""
    try:
        async for message in stream:
            yield message
    except grpc.RpcError as error:
        raise from_rpc_error(error) from error


class _Backoff:
    """Counts the failures of one call, so that each wait is drawn from the right bound."""

    def __init__(self, retry: Retry) -> None:
        self._retry = retry
        self._failures = 0

    def __call__(self, error: Exception) -> bool | float:
        if not isinstance(error, PrwError) or not self._retry.may_repeat(error):
            return False
        self._failures += 1
        return self._retry.wait(self._failures, error, random.random()).total_seconds()  # noqa: S311  jitter


_OPTIONS: Final[list[tuple[str, Any]]] = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # Which errors may be tried again is ours to say, not the transport's.
    ("grpc.enable_retries", 0),
    # A server that restarts is found again within a second or two, not minutes.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 5_000),
]


class _Signing:
    """Adds the token to a call's metadata."""

    def __init__(self, token: str | TokenSource) -> None:
        self._token = token

    def signed(self, details: grpc.aio.ClientCallDetails) -> grpc.aio.ClientCallDetails:
        token = self._token if isinstance(self._token, str) else self._token()
        metadata = grpc.aio.Metadata(*(details.metadata or ()))
        metadata.add("authorization", f"Bearer {token}")
        return grpc.aio.ClientCallDetails(
            details.method, details.timeout, metadata, details.credentials, details.wait_for_ready
        )


class _UnaryUnary(_Signing, grpc.aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(
        self, continuation: Any, client_call_details: grpc.aio.ClientCallDetails, request: Any
    ) -> Any:
        return await continuation(self.signed(client_call_details), request)


class _UnaryStream(_Signing, grpc.aio.UnaryStreamClientInterceptor):
    async def intercept_unary_stream(
        self, continuation: Any, client_call_details: grpc.aio.ClientCallDetails, request: Any
    ) -> Any:
        return await continuation(self.signed(client_call_details), request)


class _StreamUnary(_Signing, grpc.aio.StreamUnaryClientInterceptor):
    async def intercept_stream_unary(
        self,
        continuation: Any,
        client_call_details: grpc.aio.ClientCallDetails,
        request_iterator: Any,
    ) -> Any:
        return await continuation(self.signed(client_call_details), request_iterator)


class _StreamStream(_Signing, grpc.aio.StreamStreamClientInterceptor):
    async def intercept_stream_stream(
        self,
        continuation: Any,
        client_call_details: grpc.aio.ClientCallDetails,
        request_iterator: Any,
    ) -> Any:
        return await continuation(self.signed(client_call_details), request_iterator)


def _bearer(token: str | TokenSource) -> list[grpc.aio.ClientInterceptor]:
    # grpc.aio takes an interceptor for the first kind of call that it fits, hence one for each.
    return [_UnaryUnary(token), _UnaryStream(token), _StreamUnary(token), _StreamStream(token)]
