"""The one place where the product's parts are put together, from frozen settings."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial

import grpc
import uvicorn

from prw.catalog.v1.catalog_service_pb2_grpc import add_CatalogServiceServicer_to_server
from prw.errors import Code, PrwError
from prw_base.client import Tls, open_channel
from prw_base.files import read_token
from prw_base.scope import Scope
from prw_base.server.database import Database
from prw_base.server.provision import PRODUCT_DATABASE, PRODUCT_ROLES
from prw_base.server.rpc import RpcServer
from prw_base.server.settings import Dsns, open_database_server
from prw_product.follow.client import connector
from prw_product.follow.model import Standing
from prw_product.follow.service import Follower, FollowSettings
from prw_product.rebuild.client import Connect
from prw_product.rebuild.client import connector as export_connector
from prw_product.rebuild.model import Watch
from prw_product.rebuild.service import Rebuilder, RebuildSettings, unwatched
from prw_product.serve.http import make_app
from prw_product.serve.rpc import CatalogServicer
from prw_product.serve.service import Catalogue
from prw_product.settings import ProductSettings


def scope_of(settings: ProductSettings) -> Scope:
    """The one catalogue that is projected here."""
    return Scope(settings.tenant_id, settings.catalog_id)


def databases(settings: ProductSettings) -> AbstractContextManager[Dsns]:
    """The product's database, while the block lasts; see ``open_database_server``."""
    return open_database_server(settings, PRODUCT_DATABASE, PRODUCT_ROLES)


@asynccontextmanager
async def open_database(settings: ProductSettings, dsn: str) -> AsyncIterator[Database]:
    """The pool of the login ``product_app``."""
    async with await Database.open(dsn, max_size=settings.database_pool) as database:
        yield database


def build_catalogue(settings: ProductSettings, database: Database) -> Catalogue:
    """The public queries of the scope."""
    return Catalogue(database, scope_of(settings))


def build_follower(
    settings: ProductSettings, database: Database, *, patient: bool = False
) -> Follower:
    """What follows the resolver; ``patient`` also waits for a first token that is not refused.

    Raises PrwError INVALID_TOKEN where no token is set.
    """
    _require_token(settings)
    channel = partial(_open_resolver, settings)
    following = FollowSettings(
        scope_of(settings),
        settings.batch_size,
        read_token=None if settings.token_file is None else partial(_read_token, settings),
        patient=patient,
        rebuild=build_rebuilder(settings, database).run if settings.rebuild_by_itself else None,
    )
    return Follower(database, connector(channel, settings.consumer_id), following)


def build_rebuilder(
    settings: ProductSettings, database: Database, watch: Watch = unwatched
) -> Rebuilder:
    """What builds the projection anew. Raises PrwError INVALID_TOKEN where no token is set."""
    rebuilding = RebuildSettings(scope_of(settings))
    return Rebuilder(database, connect_exports(settings), rebuilding, watch)


def connect_exports(settings: ProductSettings) -> Connect:
    """What opens the resolver's exports. Raises PrwError INVALID_TOKEN where no token is set."""
    _require_token(settings)
    return export_connector(partial(_open_resolver, settings), settings.consumer_id)


def _require_token(settings: ProductSettings) -> None:
    if settings.token is None and settings.token_file is None:
        raise PrwError(
            Code.INVALID_TOKEN,
            "following and rebuilding need a token: set token or token_file",
            field="token_file",
        )


def _open_resolver(settings: ProductSettings) -> grpc.aio.Channel:
    authority = settings.resolver_authority
    try:
        return open_channel(
            settings.resolver_address,
            partial(_read_token, settings),
            tls=None if authority is None else Tls(authority.read_bytes()),
            allow_plaintext=settings.resolver_plaintext,
        )
    except (ValueError, OSError) as error:
        raise PrwError(Code.VALIDATION_FAILED, str(error), field="resolver_address") from error


def _read_token(settings: ProductSettings) -> str:
    if settings.token_file is not None:
        return read_token(settings.token_file, "token_file")
    return "" if settings.token is None else settings.token.get_secret_value()


def build_rpc_server(settings: ProductSettings, catalogue: Catalogue) -> RpcServer:
    """The gRPC server with CatalogService, not yet started; every method of it is public."""
    server = RpcServer(None, settings.rpc)
    server.add(add_CatalogServiceServicer_to_server, CatalogServicer(catalogue))
    return server


class HttpServer(uvicorn.Server):
    """The HTTP server on a socket of its own; the program, not it, listens for signals."""

    def __init__(
        self, settings: ProductSettings, catalogue: Catalogue, standing: Standing | None
    ) -> None:
        super().__init__(
            uvicorn.Config(
                make_app(catalogue, standing),
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                limit_concurrency=settings.max_calls,
                timeout_graceful_shutdown=10,
                ssl_certfile=settings.certificate,
                ssl_keyfile=settings.certificate_key,
            )
        )
        self.socket = _listen(settings.http_address)
        scheme = "http" if settings.certificate is None else "https"
        host, port = self.socket.getsockname()[:2]
        self.url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the program."""
        yield

    async def run_until_stopped(self) -> None:
        """Serve until ``should_exit`` is set and open requests have ended."""
        await self.serve([self.socket])


def _listen(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, int(port)), family=family, backlog=2048)
    except (OSError, ValueError) as error:
        message = f"cannot listen on {address}: {error}"
        raise PrwError(Code.VALIDATION_FAILED, message, field="http_address") from error
