"""Calling a resolver: the channel, the credential, and how often a call is tried."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TypeVar

import grpc
import stamina

from prw.errors import PrwError
from prw.grpc_errors import from_rpc_error

T = TypeVar("T")
Metadata = Sequence[tuple[str, str]]

_OPTIONS = (
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # the channel's own backoff may grow to minutes; ours decides when to try again
    ("grpc.max_reconnect_backoff_ms", 5_000),
)


@dataclass(frozen=True, slots=True)
class CallRetry:
    """Backoff of a call with full jitter: seconds, their cap, and attempts (the contract's figures)."""

    base: float = 1.0
    cap: float = 300.0
    attempts: int = 8


@dataclass(frozen=True, slots=True)
class ResolverAddress:
    """Where a resolver is and who is calling. `token` is asked for at each call, so that it may be renewed.

    Without `ca` the system's roots are used; `plaintext` is for a resolver on the same machine or behind a proxy of
    the same host, and the default there.
    """

    address: str
    token: Callable[[], str] = field(repr=False)
    ca: bytes | None = None
    plaintext: bool = False
    worker: str | None = None
    instance: str | None = None
    at_once: int = 4
    retry: CallRetry = CallRetry()


def open_channel(resolver: ResolverAddress) -> grpc.aio.Channel:
    """A channel to the resolver; nothing is sent yet."""
    if resolver.ca is None and (resolver.plaintext or _is_loopback(resolver.address)):
        return grpc.aio.insecure_channel(resolver.address, options=_OPTIONS)
    credentials = grpc.ssl_channel_credentials(resolver.ca)
    return grpc.aio.secure_channel(resolver.address, credentials, options=_OPTIONS)


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Caller:
    """Makes calls with the credential, retrying those that may succeed later."""

    def __init__(self, token: Callable[[], str], retry: CallRetry) -> None:
        self._token = token
        self._retry = retry

    async def __call__(self, call: Callable[[Metadata], Awaitable[T]]) -> T:
        """The call's answer; raises `PrwError` once it is refused or the attempts are spent."""
        async for attempt in stamina.retry_context(
            on=_CallBackoff(self._retry), attempts=self._retry.attempts, timeout=None
        ):
            with attempt:
                return await self._once(call)
        raise AssertionError("a retry loop ends by returning or raising")

    async def _once(self, call: Callable[[Metadata], Awaitable[T]]) -> T:
        try:
            return await call((("authorization", f"Bearer {self._token()}"),))
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error


class _CallBackoff:
    def __init__(self, retry: CallRetry) -> None:
        self._retry = retry
        self._failures = 0

    def __call__(self, error: Exception) -> float | bool:
        if not isinstance(error, PrwError) or not error.retryable:
            return False
        window = min(self._retry.cap, self._retry.base * 2**self._failures)
        self._failures += 1
        wait = random.uniform(0, window)  # noqa: S311  # jitter keeps no secret
        asked = 0.0 if error.retry_after is None else error.retry_after.total_seconds()
        return min(max(wait, asked), self._retry.cap)
