"""The one place where the resolver's parts are put together, from frozen settings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial

from prw.collector.v1 import artifact_service_pb2_grpc as artifacts_grpc
from prw.collector.v1 import capture_service_pb2_grpc as captures_grpc
from prw.collector.v1 import collector_service_pb2_grpc as collectors_grpc
from prw_base.server.database import Database
from prw_base.server.postgres import open_cluster
from prw_base.server.provision import RESOLVER_DATABASE, RESOLVER_ROLES, provision
from prw_base.server.rpc import RpcServer, RpcSettings
from prw_base.server.tokens import Signer, Verifier, jwks, load_or_create_key
from prw_resolver.access.service import Access, Issuer, authenticate
from prw_resolver.intake.rpc import ArtifactService, CaptureService, CollectorService
from prw_resolver.intake.service import Intake
from prw_resolver.objects.local import LocalObjectStore
from prw_resolver.objects.port import ObjectStore
from prw_resolver.settings import ResolverSettings


@dataclass(frozen=True, slots=True)
class Dsns:
    """Where the database is, for the server's login and for the one that may become the owner."""

    app: str
    owner: str


@dataclass(frozen=True, slots=True)
class Parts:
    """What the programs are made of; open as long as the process runs."""

    settings: ResolverSettings
    db: Database
    objects: ObjectStore
    access: Access


@contextmanager
def databases(settings: ResolverSettings) -> Iterator[Dsns]:
    """The database that the settings name, or else the embedded one of the state folder.

    An embedded server that this process started is stopped at the end; one that was running is left running.
    """
    if settings.database_dsn is not None:
        app = settings.database_dsn.get_secret_value()
        owner = settings.owner_dsn.get_secret_value() if settings.owner_dsn else app
        yield Dsns(app, owner)
        return
    cluster = open_cluster(settings.state_folder)
    try:
        dsns = provision(cluster, RESOLVER_DATABASE, RESOLVER_ROLES)
        yield Dsns(dsns["resolver_app"], dsns["owner"])
    finally:
        if cluster.started_here:
            cluster.stop()


@asynccontextmanager
async def open_parts(settings: ResolverSettings, dsn: str) -> AsyncIterator[Parts]:
    """Open the pool, the object store and the keys. `dsn` is that of the login `resolver_app`."""
    async with await Database.open(dsn, max_size=settings.database_pool) as db:
        yield Parts(
            settings=settings,
            db=db,
            objects=LocalObjectStore.open(settings.objects),
            access=Access(db, build_verifier(settings)),
        )


def build_verifier(settings: ResolverSettings) -> Verifier:
    """What verifies the tokens that this resolver signed."""
    key = load_or_create_key(settings.signing_key)
    return Verifier(jwks(key), settings.token_issuer, settings.token_audience)


def build_issuer(settings: ResolverSettings, db: Database) -> Issuer:
    """What provisions callers and signs their tokens."""
    key = load_or_create_key(settings.signing_key)
    signer = Signer(key, settings.token_issuer, settings.token_audience)
    return Issuer(db, signer, settings.token_lifetime)


def build_intake(parts: Parts) -> Intake:
    """What collectors hand things over to."""
    return Intake(
        db=parts.db,
        objects=parts.objects,
        artifact_limit=parts.settings.artifact_limit,
        upload_lifetime=parts.settings.upload_lifetime,
    )


def build_server(parts: Parts) -> RpcServer:
    """The gRPC server with every service of the resolver, not yet started."""
    server = RpcServer(partial(authenticate, parts.access), rpc_settings(parts.settings))
    intake = build_intake(parts)
    server.add(collectors_grpc.add_CollectorServiceServicer_to_server, CollectorService(intake))
    server.add(artifacts_grpc.add_ArtifactServiceServicer_to_server, ArtifactService(intake))
    server.add(captures_grpc.add_CaptureServiceServicer_to_server, CaptureService(intake))
    return server


def rpc_settings(settings: ResolverSettings) -> RpcSettings:
    """Where and within which limits gRPC is served."""
    return RpcSettings(
        address=settings.address,
        max_calls=settings.max_calls,
        certificate=settings.certificate,
        key=settings.certificate_key,
        client_authority=settings.client_authority,
    )
