"""What stands around every method: limit, errors, access, deadline, validation."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

import grpc
import psycopg
import structlog
from structlog.contextvars import bound_contextvars

from prw.errors import Code, PrwError
from prw.grpc_errors import abort
from prw_base.deadline import bind_remaining
from prw_base.ids import new_id
from prw_base.principal import bind
from prw_base.server.database import as_prw_error
from prw_base.server.rpc import validation
from prw_base.server.rpc.access import Access, Authenticate, bearer_token

Context = grpc.aio.ServicerContext[Any, Any]
"""A call as its handler sees it."""
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

log = structlog.get_logger("prw.rpc")

BUSY_RETRY_AFTER = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Method:
    """A method as it is served: its path and its declaration."""

    path: str
    access: Access


class Layers:
    """Wraps the handlers of one server."""

    def __init__(
        self,
        authenticate: Authenticate | None,
        max_calls: int,
        write_timeout: timedelta,
        recheck_every: timedelta,
    ) -> None:
        self._authenticate = authenticate
        self._max_calls = max_calls
        self.open_calls = 0
        self._write_timeout = write_timeout.total_seconds()
        self._recheck_every = recheck_every.total_seconds()

    def wrap(self, method: Method, handler: Handler) -> Handler:
        """``handler`` with everything around it. Responses must be async generators or awaitables.

        Raises TypeError for a streaming method that is not an async generator.
        """
        if self._authenticate is None and not method.access.public:
            raise TypeError(f"{method.path} is not public, and this server knows no callers")
        incoming = self._each if handler.request_streaming else self._one
        streams = handler.response_streaming
        make = _MAKERS[handler.request_streaming, streams]
        inner = getattr(handler, make.__name__.removesuffix("_rpc_method_handler"))
        if streams and not inspect.isasyncgenfunction(inner):
            raise TypeError(f"{method.path} streams, so it must be an async generator")
        outer = self._streaming if streams else self._unary
        wrapped: Handler = make(
            outer(method, inner, incoming),
            request_deserializer=validation.tolerant(handler.request_deserializer),
            response_serializer=handler.response_serializer,
        )
        return wrapped

    def _unary(self, method: Method, inner: Any, incoming: Callable[[Any], Any]) -> Any:
        async def answer(request: Any, context: Context) -> Any:
            async with self._around(method, context):
                return await inner(incoming(request), context)

        return answer

    def _streaming(self, method: Method, inner: Any, incoming: Callable[[Any], Any]) -> Any:
        async def answer(request: Any, context: Context) -> None:
            async with (
                self._around(method, context),
                aclosing(inner(incoming(request), context)) as replies,
            ):
                async for reply in replies:
                    await self._write(context, reply)

        return answer

    def _one(self, request: Any) -> Any:
        validation.check(request)
        return request

    async def _each(self, requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            validation.check(request)
            yield request

    async def _write(self, context: Context, reply: Any) -> None:
        try:
            async with asyncio.timeout(self._write_timeout):
                await context.write(reply)
        except TimeoutError:
            message = f"nothing was read for {self._write_timeout:g} s"
            raise PrwError(Code.SLOW_CONSUMER, message) from None

    @asynccontextmanager
    async def _around(self, method: Method, context: Context) -> AsyncIterator[None]:
        with bound_contextvars(rpc=method.path):
            try:
                async with AsyncExitStack() as stack:
                    stack.enter_context(self._admitted())
                    stack.enter_context(bind_remaining(context.time_remaining()))
                    await stack.enter_async_context(self._authorised(method, context))
                    yield
            except PrwError as refused:
                await abort(context, refused)
            except (grpc.aio.AbortError, asyncio.CancelledError):
                raise
            except Exception as error:  # noqa: BLE001  the boundary: logged, then told as INTERNAL
                await abort(context, _told(error))

    @contextmanager
    def _admitted(self) -> Iterator[None]:
        if self.open_calls >= self._max_calls:
            raise PrwError(Code.OVERLOADED, "too many calls at once", retry_after=BUSY_RETRY_AFTER)
        self.open_calls += 1
        try:
            yield
        finally:
            self.open_calls -= 1

    @asynccontextmanager
    async def _authorised(self, method: Method, context: Context) -> AsyncIterator[None]:
        if method.access.public or self._authenticate is None:
            yield
            return
        token = bearer_token(context.invocation_metadata())
        principal = await self._authenticate(token)
        method.access.check(principal)
        with bind(principal):
            async with self._rechecked(method, token):
                yield

    @asynccontextmanager
    async def _rechecked(self, method: Method, token: str) -> AsyncIterator[None]:
        """Authorise again while the call is open; a refusal ends the call with its code."""
        refusals: list[PrwError] = []
        call = asyncio.current_task()

        async def recheck() -> None:
            try:
                await self._authorise_for_ever(method, token)
            except PrwError as refused:
                refusals.append(refused)
                if call is not None:
                    call.cancel()

        checker = asyncio.create_task(recheck())
        try:
            yield
        except asyncio.CancelledError:
            if not refusals or call is None:
                raise
            call.uncancel()
            raise refusals[0] from None
        finally:
            checker.cancel()

    async def _authorise_for_ever(self, method: Method, token: str) -> None:
        while self._authenticate is not None:
            await asyncio.sleep(self._recheck_every)
            try:
                method.access.check(await self._authenticate(token))
            except PrwError as refused:
                if not refused.retryable:
                    raise
            except psycopg.OperationalError:
                # Not being able to ask is no answer; the next call of this caller is refused.
                log.warning("callers cannot be checked: the database does not answer")


def _told(error: Exception) -> PrwError:
    """What the caller may know of an exception that no use case raised on purpose."""
    known = as_prw_error(error) if isinstance(error, psycopg.Error) else None
    if known is not None:
        log.warning("the database failed a call", reason=str(error), code=known.code)
        return known
    error_id = new_id("err")
    log.error("unexpected error", error_id=error_id, exc_info=error)
    return PrwError(Code.INTERNAL, f"unexpected error {error_id}", details={"error_id": error_id})


_MAKERS: dict[tuple[bool, bool], Any] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}
