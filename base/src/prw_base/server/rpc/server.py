"""Build, start, drain and stop a gRPC server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from prw.errors import Code, PrwError
from prw_base.server.rpc.access import Authenticate, declared
from prw_base.server.rpc.layers import Layers, Method
from prw_base.server.termination import terminated

Servicer = TypeVar("Servicer")
log = structlog.get_logger("prw.rpc")


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcSettings:
    """Where and within which limits a server serves.

    ``address`` is ``host:port``; port 0 takes a free one. ``certificate`` and ``key`` (PEM files)
    turn TLS on, ``client_authority`` demands client certificates that it has signed (mTLS). Half of such a set is
    PrwError VALIDATION_FAILED: what was meant to be encrypted is never served in the clear.
    ``write_timeout``: a reader that takes nothing for longer is closed with SLOW_CONSUMER.
    ``recheck_every``: an open call is authorised again this often. ``drain``: how long calls may
    still run after SIGTERM.
    """

    address: str = "127.0.0.1:0"
    max_message_bytes: int = 4 * 1024 * 1024
    max_calls: int = 512
    write_timeout: timedelta = timedelta(seconds=30)
    recheck_every: timedelta = timedelta(seconds=30)
    keepalive: timedelta = timedelta(seconds=30)
    drain: timedelta = timedelta(seconds=10)
    reuse_port: bool = False
    reflection: bool = True
    certificate: Path | None = None
    key: Path | None = field(default=None, repr=False)
    client_authority: Path | None = None

    def __post_init__(self) -> None:
        """Refuse half of a TLS setting."""
        if (self.certificate is None) != (self.key is None):
            raise _tls("a certificate and its key go together", "certificate")
        if self.client_authority is not None and self.certificate is None:
            raise _tls("client certificates need a certificate of the server", "client_authority")


def _tls(message: str, field: str) -> PrwError:
    return PrwError(Code.VALIDATION_FAILED, message, field=field)


class RpcServer:
    """A gRPC server with health, reflection and the layers of this package.

    ``authenticate`` may be None where every method is public. Build it inside a running loop.
    """

    def __init__(
        self, authenticate: Authenticate | None, settings: RpcSettings | None = None
    ) -> None:
        self.settings = settings or RpcSettings()
        self.port = 0
        self.draining = asyncio.Event()
        self._layers = Layers(
            authenticate,
            self.settings.max_calls,
            self.settings.write_timeout,
            self.settings.recheck_every,
        )
        self._server = grpc.aio.server(options=_options(self.settings))
        self._health = health.aio.HealthServicer()
        self._services: list[str] = []
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)

    def add(self, adder: Callable[[Servicer, grpc.aio.Server], None], servicer: Servicer) -> None:
        """Serve ``servicer``; ``adder`` is the generated ``add_…Servicer_to_server``.

        Raises UndeclaredMethod, naming the methods, where one declares no access.
        """
        registrar = _Registrar()
        adder(servicer, cast("grpc.aio.Server", registrar))
        for service, handlers in registrar.services.items():
            access = declared(service, handlers)
            wrapped = {
                name: self._layers.wrap(Method(f"/{service}/{name}", access[name]), handler)
                for name, handler in handlers.items()
            }
            generic = grpc.method_handlers_generic_handler(service, wrapped)
            self._server.add_generic_rpc_handlers((generic,))
            self._services.append(service)

    @property
    def open_calls(self) -> int:
        """How many calls are being served now, streams included."""
        return self._layers.open_calls

    @property
    def address(self) -> str:
        """``host:port`` with the port that was taken, once it is started."""
        return f"{self.settings.address.rpartition(':')[0]}:{self.port}"

    async def start(self) -> int:
        """Bind and serve; returns the port. Raises PrwError VALIDATION_FAILED where the address cannot be had."""
        if self.settings.reflection:
            names = (*self._services, health.SERVICE_NAME, reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, self._server)
        self.port = self._bind()
        await self._server.start()
        await self._tell(serving=True)
        log.info("serving", port=self.port, services=", ".join(self._services))
        return self.port

    def _bind(self) -> int:
        address, credentials = self.settings.address, _credentials(self.settings)
        port = address.rpartition(":")[2]
        if not address.startswith("unix") and not (port.isdecimal() and int(port) < 65536):
            # gRPC would take such a port modulo 65536, or make one up.
            message = f"{address!r} is not host:port"
            raise PrwError(Code.VALIDATION_FAILED, message, field="address")
        try:
            if credentials is None:
                return self._server.add_insecure_port(address)
            return self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            message = f"cannot listen on {address}: it is in use, or none of this machine's"
            raise PrwError(Code.VALIDATION_FAILED, message, field="address") from error

    async def _tell(self, serving: bool) -> None:
        answer = health_pb2.HealthCheckResponse
        status = answer.SERVING if serving else answer.NOT_SERVING
        for service in ("", *self._services):
            await self._health.set(service, status)

    async def stop(self, drain: timedelta | None = None) -> None:
        """Take no new calls, let the open ones end within ``drain``, then cut them off.

        Handlers of endless streams watch ``draining`` and return.
        """
        self.draining.set()
        await self._tell(serving=False)
        await self._server.stop((drain or self.settings.drain).total_seconds())

    async def serve(self) -> None:
        """Start, serve until SIGTERM or SIGINT, and drain."""
        stop = terminated()
        await self.start()
        await stop.wait()
        await self.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


class _Registrar:
    """Stands in for the server while generated code adds its handlers, and only collects them."""

    def __init__(self) -> None:
        self.services: dict[str, Mapping[str, grpc.RpcMethodHandler[Any, Any]]] = {}

    def add_registered_method_handlers(
        self, service_name: str, method_handlers: Mapping[str, grpc.RpcMethodHandler[Any, Any]]
    ) -> None:
        self.services[service_name] = method_handlers

    def add_generic_rpc_handlers(
        self, generic_rpc_handlers: Iterable[grpc.GenericRpcHandler]
    ) -> None:
        """The same handlers once more, without their names."""


def _options(settings: RpcSettings) -> list[tuple[str, Any]]:
    keepalive = int(settings.keepalive.total_seconds() * 1000)
    return [
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.max_send_message_length", settings.max_message_bytes),
        ("grpc.keepalive_time_ms", keepalive),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
        ("grpc.so_reuseport", int(settings.reuse_port)),
    ]


def _credentials(settings: RpcSettings) -> grpc.ServerCredentials | None:
    if settings.certificate is None or settings.key is None:
        return None
    authority = settings.client_authority
    return grpc.ssl_server_credentials(
        [(_pem(settings.key, "key"), _pem(settings.certificate, "certificate"))],
        root_certificates=None if authority is None else _pem(authority, "client_authority"),
        require_client_auth=authority is not None,
    )


def _pem(path: Path, field: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _tls(f"{path} cannot be read: {error.strerror}", field) from error
