"""The one place where the resolver's parts are put together, from frozen settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from pydantic import SecretStr

from prw.changes.v1 import change_service_pb2_grpc as changes_grpc
from prw.changes.v1 import export_service_pb2_grpc as exports_grpc
from prw.collector.v1 import artifact_service_pb2_grpc as artifacts_grpc
from prw.collector.v1 import capture_service_pb2_grpc as captures_grpc
from prw.collector.v1 import checkpoint_service_pb2_grpc as checkpoints_grpc
from prw.collector.v1 import collector_service_pb2_grpc as collectors_grpc
from prw.operator.v1 import review_service_pb2_grpc as reviews_grpc
from prw_base.server.database import Database
from prw_base.server.provision import RESOLVER_DATABASE, RESOLVER_ROLES
from prw_base.server.rpc import RpcServer
from prw_base.server.settings import Dsns, open_database_server
from prw_base.server.tokens import Signer, Verifier, jwks, load_or_create_key
from prw_resolver.access.service import Access, Issuer, authenticate
from prw_resolver.catalog.service import ReleasePolicy
from prw_resolver.export.objects import Folder
from prw_resolver.export.rpc import ExportServicer
from prw_resolver.export.service import Exports, ExportSettings
from prw_resolver.extraction.pool import ReaderPool
from prw_resolver.identity.service import Identifier
from prw_resolver.intake.artifacts.rpc import ArtifactServicer
from prw_resolver.intake.checkpoints.rpc import CheckpointServicer
from prw_resolver.intake.collectors.rpc import CollectorServicer
from prw_resolver.intake.rpc import CaptureServicer
from prw_resolver.intake.service import Intake
from prw_resolver.jobs.queue import JobQueue
from prw_resolver.objects.local import LocalObjectStore
from prw_resolver.objects.port import ObjectStore
from prw_resolver.review.rpc import ReviewServicer
from prw_resolver.review.service import Review
from prw_resolver.settings import ResolverSettings
from prw_resolver.stream import store
from prw_resolver.stream.committer import Committer
from prw_resolver.stream.epoch import Epoch, EpochFile
from prw_resolver.stream.pruner import Pruner
from prw_resolver.stream.relay import Relay
from prw_resolver.stream.retained import Budget, PruneSettings
from prw_resolver.stream.retention import Retention
from prw_resolver.stream.rpc import ChangeServicer
from prw_resolver.stream.service import Feed
from prw_resolver.stream.signal import Signal
from prw_resolver.vocabulary import service as vocabulary
from prw_resolver.worker.followups import FollowUps
from prw_resolver.worker.model import WorkerSettings
from prw_resolver.worker.parts import WorkerParts
from prw_resolver.worker.service import Worker

RELAY_ROLE = "resolver_relay"
PRUNER_ROLE = "resolver_pruner"
DOCTOR_ROLE = "resolver_doctor"


@dataclass(frozen=True, slots=True)
class Parts:
    """What the programs are made of; open as long as the process runs."""

    settings: ResolverSettings
    db: Database
    objects: ObjectStore
    access: Access
    epoch: EpochFile
    committer: Committer
    signal: Signal
    feed: Feed
    exports: Exports


def databases(settings: ResolverSettings) -> AbstractContextManager[Dsns]:
    """The resolver's database, while the block lasts; see `open_database_server`."""
    return open_database_server(settings, RESOLVER_DATABASE, RESOLVER_ROLES)


@asynccontextmanager
async def open_parts(settings: ResolverSettings, dsn: str) -> AsyncIterator[Parts]:
    """Open the pool, the object store, the keys and the stream's writer.

    `dsn` is that of the login `resolver_app`. Raises EPOCH_FENCED for a database that the control plane does not know.
    """
    async with await Database.open(dsn, max_size=settings.database_pool) as db:
        epoch, signal = await open_epoch(settings, db), Signal()
        committer, feed = Committer(db, epoch, signal), Feed(db, epoch)
        exports = _build_exports(settings, db, epoch, feed)
        yield Parts(
            settings=settings,
            db=db,
            objects=LocalObjectStore.open(settings.objects),
            access=Access(db, build_verifier(settings)),
            epoch=epoch,
            committer=committer,
            signal=signal,
            feed=feed,
            exports=exports,
        )
        await exports.close()
        await committer.close()


def _build_exports(settings: ResolverSettings, db: Database, epoch: Epoch, feed: Feed) -> Exports:
    retention = Retention(db, epoch, lifetime=settings.lease_lifetime)
    limits = ExportSettings(settings.exports_kept, settings.exports_at_once)
    return Exports(db, feed, retention, Folder(settings.exports), limits)


async def open_epoch(settings: ResolverSettings, db: Database) -> EpochFile:
    """The control plane, founded for this database at the first start and checked at every other.

    Raises EPOCH_FENCED for a database that is another, on another timeline, or behind what was seen of it; UNAVAILABLE
    while a restore is under way.
    """
    epoch = control_plane(settings)
    history_epoch = epoch.current() if epoch.exists else 1
    async with db.transaction(None, read_only=True) as conn:
        standing = await store.standing(conn, history_epoch)
    epoch.claim(standing.system_identifier, standing.timeline, standing.positions)
    return epoch


def control_plane(settings: ResolverSettings) -> EpochFile:
    """Where the trusted epoch is."""
    return EpochFile(settings.control / "epoch.json")


def read_epoch(settings: ResolverSettings) -> int:
    """The trusted epoch, without claiming anything. Raises UNAVAILABLE where it was never founded."""
    return control_plane(settings).current()


def doctor_dsn(settings: ResolverSettings, dsns: Dsns) -> str | None:
    """The DSN of the doctor's login; None where the settings name none."""
    given = settings.doctor_dsn
    return dsns.logins.get(DOCTOR_ROLE) if given is None else given.get_secret_value()


def build_identifier(parts: Parts) -> Identifier:
    """What decides records by rule."""
    return Identifier(parts.db, parts.committer)


def build_releases(parts: Parts) -> ReleasePolicy:
    """What publishes whatever is accepted."""
    return ReleasePolicy(parts.db, parts.committer)


@asynccontextmanager
async def open_worker(parts: Parts, dsn: str) -> AsyncIterator[Worker]:
    """A worker with its own connections to the queue and its own reading processes, not yet running."""
    settings = parts.settings
    async with ReaderPool(settings.readers) as readers, JobQueue.open(dsn) as queue:
        identifier = build_identifier(parts)
        reconsider = FollowUps(parts.db, identifier.reconsider)
        release = FollowUps(parts.db, build_releases(parts).release_due)
        worker_parts = WorkerParts(
            db=parts.db,
            objects=parts.objects,
            readers=readers,
            identify=identifier.identify,
            absent=identifier.absent,
            follow_ups=(reconsider, release),
            settings=WorkerSettings(concurrency=settings.worker_concurrency),
        )
        yield Worker(worker_parts, queue)


@asynccontextmanager
async def open_relay(settings: ResolverSettings, dsns: Dsns) -> AsyncIterator[Relay | None]:
    """The relay under its own login, not yet running; None where the settings name no login for it."""
    async with _open_login(dsns, RELAY_ROLE, settings.relay_dsn) as db:
        yield None if db is None else Relay(db)


@asynccontextmanager
async def open_pruner(parts: Parts, dsns: Dsns) -> AsyncIterator[Pruner | None]:
    """The pruner under its own login, not yet running; None where the settings name no login for it."""
    async with _open_login(dsns, PRUNER_ROLE, parts.settings.pruner_dsn) as db:
        yield None if db is None else Pruner(db, parts.epoch, _prune_settings(parts.settings))


def _prune_settings(settings: ResolverSettings) -> PruneSettings:
    budget = Budget(settings.alarm_positions, settings.alarm_bytes, settings.alarm_age)
    return PruneSettings(settings.retention_age, settings.prune_interval, budget)


@asynccontextmanager
async def _open_login(
    dsns: Dsns, role: str, given: SecretStr | None
) -> AsyncIterator[Database | None]:
    dsn = dsns.logins.get(role) if given is None else given.get_secret_value()
    if dsn is None:
        yield None
        return
    async with await Database.open(dsn, max_size=1) as db:
        yield db


def build_retention(parts: Parts) -> Retention:
    """What leases and consumers hold, and how operators change it."""
    return Retention(parts.db, parts.epoch, lifetime=parts.settings.lease_lifetime)


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
        put_limit=parts.settings.put_limit,
        clock_skew=parts.settings.clock_skew,
        lease=parts.settings.lease,
        reports_kept=parts.settings.reports_kept,
    )


def build_server(parts: Parts) -> RpcServer:
    """The gRPC server with every service of the resolver, not yet started."""
    server = RpcServer(partial(authenticate, parts.access), parts.settings.rpc)
    intake = build_intake(parts)
    server.add(collectors_grpc.add_CollectorServiceServicer_to_server, CollectorServicer(intake))
    server.add(checkpoints_grpc.add_CheckpointServiceServicer_to_server, CheckpointServicer(intake))
    artifacts = ArtifactServicer(intake, server.draining)
    server.add(artifacts_grpc.add_ArtifactServiceServicer_to_server, artifacts)
    server.add(captures_grpc.add_CaptureServiceServicer_to_server, CaptureServicer(intake))
    review = Review(parts.db, parts.committer, vocabulary.load)
    server.add(reviews_grpc.add_ReviewServiceServicer_to_server, ReviewServicer(review))
    changes = ChangeServicer(parts.feed, parts.signal, server.draining)
    server.add(changes_grpc.add_ChangeServiceServicer_to_server, changes)
    server.add(exports_grpc.add_ExportServiceServicer_to_server, ExportServicer(parts.exports))
    return server
