from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, cast

import grpc
import psycopg
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from prw.errors import Code, PrwError
from prw.grpc_errors import from_rpc_error
from prw_base import logs
from prw_base.client import NEVER, call, open_channel, receive
from prw_base.deadline import remaining
from prw_base.principal import Kind, Principal, Role
from prw_base.server.rpc import RpcServer, RpcSettings, UndeclaredMethod
from tests.base.echo import SERVICE, Echo, Stub, adder, asked
from tests.support.waiting import until

SECOND = timedelta(seconds=5)
MACHINE = Principal(
    Kind.MACHINE, "ins_1", "ten_a", "cat_a", "cli_1", scopes=frozenset({"captures:write"})
)
PERSON = Principal(Kind.PERSON, "per_1", "ten_a", "cat_a", "cli_2", role=Role.REVIEWER)
CALLS = ("Open", "Unary", "Either", "Person", "Down", "Up", "Both")


@dataclass
class World:
    """A running server whose callers and behaviour a test sets."""

    callers: dict[str, Principal] = field(
        default_factory=lambda: {"machine": MACHINE, "person": PERSON}
    )
    acts: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    echo: Echo = field(init=False)
    server: RpcServer = field(init=False)

    async def authenticate(self, token: str) -> Principal:
        """The port that a server gets."""
        if token == "broken":
            raise psycopg.OperationalError("the database is away")
        if token not in self.callers:
            raise PrwError(Code.CREDENTIAL_REVOKED, "revoked")
        return self.callers[token]

    async def act(self) -> None:
        """What a test makes the service do."""
        for act in self.acts:
            await act()

    @asynccontextmanager
    async def stub(self, token: str | None = "machine") -> AsyncIterator[Stub]:
        """A client with ``token``."""
        async with open_channel(f"127.0.0.1:{self.server.port}", token) as channel:
            yield Stub(channel)


@asynccontextmanager
async def serving(settings: RpcSettings | None = None) -> AsyncIterator[World]:
    """A world with a server on a free port."""
    world = World()
    world.echo = Echo(world.act)
    world.server = RpcServer(world.authenticate, settings or RpcSettings(drain=timedelta(0)))
    world.server.add(adder(*CALLS), world.echo)
    async with world.server:
        yield world


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A world with the usual settings."""
    async with serving() as running:
        yield running


async def refused(answer: Awaitable[Any]) -> PrwError:
    """The error that a call ends with."""
    with pytest.raises(PrwError) as raised:
        await answer
    return raised.value


async def ask(world: World, method: str, token: str | None = "machine", sent: str = "x") -> Any:
    """The answer of one unary call that is not sent again."""
    async with world.stub(token) as stub:
        answer = await call(getattr(stub, method), asked(sent), SECOND, NEVER)
    return answer.value


async def down(world: World, sent: str = "2", token: str = "machine") -> list[str]:
    """What a response stream gives."""
    async with world.stub(token) as stub:
        return [m.value async for m in receive(stub.Down(asked(sent), timeout=5))]


async def both(world: World, *sent: str, token: str = "machine") -> list[str]:
    """What a two-way stream gives."""

    async def requests() -> AsyncIterator[Any]:
        for one in sent:
            yield asked(one)

    async with world.stub(token) as stub:
        return [m.value async for m in receive(stub.Both(requests(), timeout=5))]


async def test_the_caller_is_bound_in_every_kind_of_call(world: World) -> None:
    """A use case reads who calls, whatever the transport does."""
    assert await ask(world, "Unary") == "ins_1:x"
    assert await down(world) == ["ins_1:0", "ins_1:1"]
    assert await both(world, "a", "b") == ["ins_1:a", "ins_1:b"]


async def test_a_public_method_needs_no_token(world: World) -> None:
    """Released data only."""
    assert await ask(world, "Open", token=None) == "nobody:x"


@pytest.mark.parametrize(
    ("method", "token", "code"),
    [
        ("Unary", None, Code.INVALID_TOKEN),
        ("Unary", "unknown", Code.CREDENTIAL_REVOKED),
        ("Unary", "person", Code.PERMISSION_DENIED),
        ("Either", "machine", Code.MISSING_SCOPE),
        ("Either", "person", None),
        ("Person", "person", Code.FORBIDDEN),
        ("Person", "machine", Code.PERMISSION_DENIED),
        ("Unary", "broken", Code.UNAVAILABLE),
    ],
)
async def test_a_method_is_open_to_whom_it_declares(
    world: World, method: str, token: str | None, code: Code | None
) -> None:
    """Scope or role, or both (contract, "Identity of callers")."""
    if code is None:
        assert await ask(world, method, token) == "per_1:x"
    else:
        assert (await refused(ask(world, method, token))).code is code
        assert world.echo.seen == []


async def test_a_denied_stream_ends_with_its_code(world: World) -> None:
    """Streams pass the same layers."""
    assert (await refused(down(world, token="person"))).code is Code.PERMISSION_DENIED
    assert (await refused(both(world, "a", token="nobody"))).code is Code.CREDENTIAL_REVOKED


async def test_a_field_that_breaks_its_rule_is_named(world: World) -> None:
    """Limits are declared in the proto; the request never reaches the method."""
    error = await refused(ask(world, "Unary", sent=""))
    assert (error.code, error.field) == (Code.VALIDATION_FAILED, "receipt_id")
    assert world.echo.seen == []


@pytest.mark.parametrize("sent", [b"\xff\xff\xff", b"\x0a\x02\xc3\x28", b"\x0a\x7f"])
async def test_bytes_that_are_no_message_are_refused_like_a_broken_rule(
    world: World, sent: bytes
) -> None:
    """VALIDATION_FAILED, with or without UTF-8; not an INTERNAL whose id no log has."""
    async with open_channel(f"127.0.0.1:{world.server.port}", "machine") as channel:
        method: Any = channel.unary_unary(f"/{SERVICE}/Unary")
        with pytest.raises(grpc.RpcError) as raised:
            await method(sent, timeout=5)
    assert from_rpc_error(raised.value).code is Code.VALIDATION_FAILED


async def test_every_message_of_a_request_stream_is_validated(world: World) -> None:
    """The first may be good and the second not."""
    error = await refused(both(world, "a", ""))
    assert (error.code, error.field) == (Code.VALIDATION_FAILED, "receipt_id")


async def test_a_refusal_arrives_as_it_was_raised(world: World) -> None:
    """Code, message, field and details, on unary calls and on streams after their first message."""

    async def refuse() -> None:
        raise PrwError(Code.CHECKPOINT_CONFLICT, "moved", details={"winner": "run_2"})

    world.acts.append(refuse)
    for answer in (ask(world, "Unary"), down(world), both(world, "a")):
        error = await refused(answer)
        assert (error.code, error.details) == (Code.CHECKPOINT_CONFLICT, {"winner": "run_2"})


@pytest.mark.usefixtures("logs_as_before")
async def test_an_unexpected_error_tells_an_id_and_nothing_else(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """INTERNAL with an id that the log also has (contract, "Errors")."""
    logs.configure(json=True)

    async def fail() -> None:
        raise ZeroDivisionError("the secret recipe")

    world.acts.append(fail)
    error = await refused(ask(world, "Unary"))
    assert error.code is Code.INTERNAL
    assert "recipe" not in error.message
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    logged = next(line for line in lines if line.get("error_id") == error.details["error_id"])
    assert "the secret recipe" in logged["exception"]
    assert logged["rpc"] == f"/{SERVICE}/Unary"


async def test_the_callers_deadline_reaches_the_method(world: World) -> None:
    """So that the unit of work can pass it on to SQL."""
    left: list[timedelta | None] = []

    async def look() -> None:
        left.append(remaining())

    world.acts.append(look)
    await ask(world, "Unary")
    assert left[0] is not None
    # The transport rounds a deadline up.
    assert timedelta(0) < left[0] <= SECOND + timedelta(milliseconds=100)


async def test_a_passed_deadline_is_unavailable(world: World) -> None:
    """The caller may ask again."""
    never = asyncio.Event()

    async def hang() -> None:
        await never.wait()

    world.acts.append(hang)
    async with world.stub() as stub:
        late = call(stub.Unary, asked(), timedelta(milliseconds=100), NEVER)
        assert (await refused(late)).code is Code.UNAVAILABLE


async def test_too_many_calls_at_once_are_told_when_to_come_back() -> None:
    """A full queue is OVERLOADED with RetryInfo."""
    go, begun = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        begun.set()
        await go.wait()

    async with serving(RpcSettings(max_calls=1)) as world:
        world.acts.append(hold)
        first = asyncio.create_task(ask(world, "Unary"))
        await begun.wait()
        error = await refused(ask(world, "Unary"))
        assert (error.code, error.retry_after) == (Code.OVERLOADED, timedelta(seconds=1))
        go.set()
        assert await first == "ins_1:x"


async def test_a_message_above_the_limit_is_refused_for_good() -> None:
    """It would be too large the next time too."""
    async with serving(RpcSettings(max_message_bytes=1000)) as world:
        error = await refused(ask(world, "Unary", sent="x" * 2000))
        assert error.code is Code.VALIDATION_FAILED
        assert not error.retryable


async def test_an_open_stream_ends_when_its_caller_is_revoked() -> None:
    """Re-authorised periodically, and closed with CREDENTIAL_REVOKED (contract, "Who is stopped")."""
    never = asyncio.Event()

    async def hang() -> None:
        await never.wait()

    async with serving(RpcSettings(recheck_every=timedelta(milliseconds=30))) as world:
        world.acts.append(hang)
        async with world.stub() as stub:
            stream = stub.Down(asked("1"))
            assert (await stream.read()).value == "ins_1:0"
            del world.callers["machine"]
            assert (await refused(anext(receive(stream)))).code is Code.CREDENTIAL_REVOKED


async def test_an_open_stream_ends_when_its_scope_is_taken() -> None:
    """The binding may lose a scope while the credential stays."""
    never = asyncio.Event()

    async def hang() -> None:
        await never.wait()

    async with serving(RpcSettings(recheck_every=timedelta(milliseconds=30))) as world:
        world.acts.append(hang)
        async with world.stub() as stub:
            stream = stub.Down(asked("1"))
            assert (await stream.read()).value == "ins_1:0"
            world.callers["machine"] = replace(MACHINE, scopes=frozenset())
            assert (await refused(anext(receive(stream)))).code is Code.MISSING_SCOPE


async def test_a_reader_that_takes_nothing_is_closed() -> None:
    """Its stream ends with SLOW_CONSUMER, and the server holds one message of it, not all."""
    settings = RpcSettings(write_timeout=timedelta(milliseconds=200))
    async with serving(settings) as world, world.stub() as stub:
        world.echo.padding = "x" * 100_000
        stream = stub.Down(asked("2000000"))
        await until(lambda: world.server.open_calls == 1)
        await until(lambda: world.server.open_calls == 0)
        with pytest.raises(PrwError) as ended:
            async for _ in receive(stream):
                pass
        assert ended.value.code is Code.SLOW_CONSUMER


@pytest.mark.parametrize("method", ["Undeclared", "Empty"])
async def test_a_method_that_declares_nothing_keeps_the_server_from_starting(method: str) -> None:
    """And the message names it."""
    server = RpcServer(World().authenticate)
    with pytest.raises(UndeclaredMethod, match=f"{SERVICE}/{method}"):
        server.add(adder("Unary", method), Echo(World().act))


async def test_a_server_without_callers_serves_public_methods_only() -> None:
    """Whoever forgets to pass the port learns it at start."""
    RpcServer(None).add(adder("Open"), Echo(World().act))
    with pytest.raises(TypeError, match="Unary"):
        RpcServer(None).add(adder("Unary"), Echo(World().act))


async def test_health_tells_serving_and_then_draining(world: World) -> None:
    """Load balancers stop sending before calls are cut."""
    async with open_channel(f"127.0.0.1:{world.server.port}") as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        for service in ("", SERVICE):
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        watch = stub.Watch(health_pb2.HealthCheckRequest(service=SERVICE))
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        stopping = asyncio.create_task(world.server.stop(timedelta(seconds=5)))
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        watch.cancel()
        await stopping


async def test_reflection_lists_the_services(world: World) -> None:
    """A person with a generic client sees what there is."""
    async with open_channel(f"127.0.0.1:{world.server.port}") as channel:
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(cast("Any", channel))
        request = cast("Any", reflection_pb2).ServerReflectionRequest(list_services="")
        answers = stub.ServerReflectionInfo(iter([request]))
        names = [s.name for s in (await answers.read()).list_services_response.service]
    assert SERVICE in names


async def test_calls_end_before_the_server_does() -> None:
    """Graceful drain: what has begun is finished, and new calls are refused."""
    go, begun = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        begun.set()
        await go.wait()

    async with serving() as world:
        world.acts.append(hold)
        open_call = asyncio.create_task(ask(world, "Unary"))
        await begun.wait()
        stopping = asyncio.create_task(world.server.stop(SECOND))
        await world.server.draining.wait()
        go.set()
        assert await open_call == "ins_1:x"
        await stopping
