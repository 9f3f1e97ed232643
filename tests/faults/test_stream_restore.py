"""A database that was set back is refused until an operator has fenced its history; then everything goes on (T13)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from typer.testing import CliRunner

from prw.errors import Code, PrwError
from prw_base.client import open_channel
from prw_base.ids import uuid7
from prw_base.scope import Scope
from prw_base.server import provision
from prw_base.server.database import Database
from prw_base.server.postgres import Cluster
from prw_product.follow.client import connector as follow_connector
from prw_product.follow.service import Follower, FollowSettings
from prw_product.rebuild.client import connector
from prw_product.rebuild.service import Rebuilder, RebuildSettings
from prw_resolver.access.model import PRODUCT_SCOPES, ClientGrant
from prw_resolver.bootstrap import build_retention
from prw_resolver.cli import app
from prw_resolver.doctor.service import examine
from prw_resolver.stream.epoch import ControlState, EpochFile, Record, Standing
from prw_resolver.stream.model import Committed, Stream
from prw_resolver.stream.pruner import Pruner
from prw_resolver.stream.watch import Watch
from prw_resolver.vocabulary import service as vocabulary
from tests.faults.rebuilding import QUICK, WAITS
from tests.faults.retaining import PROMPT
from tests.product import looking
from tests.resolver.collecting import CATALOG, Running, running
from tests.resolver.writing import introduction
from tests.support.postgres import RESOLVER
from tests.support.waiting import until

SCOPE = Scope("ten_synth_a", CATALOG)
OLD = Stream(SCOPE.tenant_id, CATALOG, 1)


@contextmanager
def copied(cluster: Cluster, dsns: dict[str, str]) -> Iterator[dict[str, str]]:
    """The database as it is now, beside itself: what a dump that is restored later gives."""
    name = f"restored_{uuid7().hex}"
    with psycopg.connect(dsns["superuser"]) as conn:
        source = conn.info.dbname
    with psycopg.connect(cluster.dsn, autocommit=True) as admin:
        names = (sql.Identifier(name), sql.Identifier(source), sql.Identifier(provision.OWNER))
        admin.execute(sql.SQL("create database {} template {} owner {}").format(*names))
        provision.grant_access(admin, name, RESOLVER.roles)
        try:
            yield provision.dsns(cluster, name, RESOLVER.roles)
        finally:
            admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


async def fill(resolver: Running, number: int, start: int = 0) -> list[Committed]:
    """Commit so many changes of three positions, and let the control plane see them."""
    async with resolver.parts.db.transaction(SCOPE.tenant_id) as conn:
        words = await vocabulary.load(conn, SCOPE.tenant_id, CATALOG)
    made = [
        await resolver.parts.committer.commit(introduction(words, str(name), scope=SCOPE))
        for name in range(start, start + number)
    ]
    await Watch(resolver.parts.db, resolver.parts.epoch).look()
    return made


async def code_of(call: Awaitable[Any]) -> Code:
    """The code with which a call is refused."""
    with pytest.raises(PrwError) as refused:
        await call
    return refused.value.code


class Operator:
    """The operator at the database that was restored."""

    def __init__(self, dsns: dict[str, str], state: Path) -> None:
        self._environment = {
            "PRW_RESOLVER_DATABASE_DSN": dsns["resolver_app"],
            "PRW_RESOLVER_OWNER_DSN": dsns["owner"],
            "PRW_RESOLVER_STATE_FOLDER": str(state),
        }

    async def restore(self, *arguments: str) -> list[dict[str, Any]]:
        """Run a command of ``restore``, as a program of its own would; its rows."""
        return await asyncio.to_thread(self._restore, *arguments)

    def _restore(self, *arguments: str) -> list[dict[str, Any]]:
        result = CliRunner().invoke(app, ["restore", *arguments, "--json"], env=self._environment)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        rows: list[dict[str, Any]] = json.loads(result.stdout)
        return rows


@asynccontextmanager
async def product_of(
    dsns: dict[str, str], resolver: Running, token: str
) -> AsyncIterator[Follower]:
    """A product that follows that resolver, and rebuilds by itself."""
    channel = partial(open_channel, resolver.target, token)
    async with await Database.open(dsns["product_app"], max_size=4) as database:
        settings = RebuildSettings(SCOPE, poll=timedelta(milliseconds=20))
        rebuilder = Rebuilder(database, connector(channel, "product", QUICK), settings)
        following = FollowSettings(SCOPE, 5, WAITS, rebuild=rebuilder.run)
        yield Follower(database, follow_connector(channel, "product"), following)


async def follow_to(follower: Follower, epoch: int, position: int) -> None:
    """Follow until that position of that epoch is applied."""
    task = asyncio.create_task(follower.run())
    await until(lambda: (follower.standing.epoch, follower.standing.progress) == (epoch, position))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_t13_a_restored_history_is_fenced_and_everything_goes_on(
    cluster: Cluster,
    resolver_database: dict[str, str],
    product_database: dict[str, str],
    tmp_path: Path,
) -> None:
    """With a consumer ahead of the backup, and a server of the old epoch that is still alive.

    Refused until the epoch is a new one; then every stale write, event, report, lease and pruning is refused, the
    positions begin anew, and the projection, which had seen more, is rebuilt from what was restored.
    """
    state = tmp_path / "state"
    async with running(resolver_database, state) as before:
        await fill(before, 3)
        grant = ClientGrant(SCOPE.tenant_id, CATALOG, "product-1", PRODUCT_SCOPES)
        token = await before.token(grant)
    with copied(cluster, resolver_database) as restored:
        operator = Operator(restored, state)
        async with running(resolver_database, state) as alive:
            await fill(alive, 2, start=10)
            async with product_of(product_database, alive, token) as follower:
                await follow_to(follower, 1, 15)
            lease = await build_retention(alive.parts).grant(OLD, "product-1")
            await _is_refused(restored, state)
            await operator.restore("begin", "--wait", "0")
            assert await code_of(fill(alive, 1, start=20)) is Code.UNAVAILABLE
            (parted,) = [
                r for r in await operator.restore("complete") if r["tenant_id"] == SCOPE.tenant_id
            ]
            assert (parted["history_epoch"], parted["position"]) == (1, 9)
            await _stale_is_refused(alive, resolver_database, lease.lease_id)
        async with running(restored, state) as after:
            (made,) = await fill(after, 1, start=30)
            assert (made.first_position, made.last_position) == (1, 3)
            async with product_of(product_database, after, token) as follower:
                await follow_to(follower, 2, 3)
            async with await Database.open(restored["resolver_doctor"], 1, 1) as doctor:
                assert await examine(doctor, 2) == []
    applied = "select count(*), max(generation) from product.serving_generation"
    (found,) = looking.rows(product_database["superuser"], applied)
    projected = looking.projection(product_database["superuser"], found[1])
    assert len(projected["applied_revision"]) == 12


async def _is_refused(restored: dict[str, str], state: Path) -> None:
    """Nobody restores silently: it is behind what the control plane has seen of it."""
    with pytest.raises(PrwError, match=r"9 positions, it was seen at 15.*restore begin") as refused:
        async with running(restored, state):
            pass
    assert refused.value.code is Code.EPOCH_FENCED


async def _stale_is_refused(alive: Running, dsns: dict[str, str], lease_id: str) -> None:
    parts, retention = alive.parts, build_retention(alive.parts)
    async with await Database.open(dsns["resolver_pruner"], 1, 1) as database:
        for call in (
            fill(alive, 1, start=20),
            parts.feed.page(OLD, 0),
            parts.feed.report(OLD, "product", "product-1", 15),
            retention.grant(OLD, "product-1"),
            retention.renew(OLD, lease_id, "product-1"),
            Pruner(database, parts.epoch, PROMPT).prune(OLD),
        ):
            assert await code_of(call) is Code.EPOCH_FENCED


async def test_a_restore_that_was_not_begun_is_not_completed(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """VALIDATION_FAILED, and the history goes on."""
    async with running(resolver_database, tmp_path / "state") as resolver:
        await fill(resolver, 1)
        operator = Operator(resolver_database, tmp_path / "state")
        with pytest.raises(PrwError, match="restore begin"):
            await operator.restore("complete")
        (row,) = await operator.restore("status")
        assert (row["state"], row["history_epoch"], row["high_water"]) == ("open", 1, 3)
        await fill(resolver, 1, start=5)


async def test_a_restore_that_was_killed_between_its_steps_is_completed_again(
    resolver_database: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is fenced first, then the epoch is issued: done again, the end is the same."""
    state = tmp_path / "state"
    async with running(resolver_database, state) as resolver:
        await fill(resolver, 2)
    operator = Operator(resolver_database, state)
    for _ in range(2):
        await operator.restore("begin", "--wait", "0")
    with monkeypatch.context() as killed:
        killed.setattr(EpochFile, "complete_restore", _killed)
        with pytest.raises(KeyError):
            await operator.restore("complete")
    assert await operator.restore("complete") == []
    parted = "select history_epoch, position, next_epoch from resolver.history_parting where tenant_id = 'ten_synth_a'"
    with psycopg.connect(resolver_database["superuser"]) as conn:
        assert conn.execute(parted).fetchall() == [(1, 6, 2)]
    async with running(resolver_database, state) as resolver:
        assert resolver.parts.epoch.current() == 2
        await fill(resolver, 1, start=9)


def _killed(*_: Any) -> Record:
    raise KeyError("killed")


def test_a_promoted_or_other_database_is_refused(tmp_path: Path) -> None:
    """By its timeline, its identity or its positions; going on is not. Fails where one of them is not looked at."""
    file = EpochFile(tmp_path / "epoch.json")
    file.claim("7", 1, 100)
    for standing in (Standing("8", 1, 100), Standing("7", 2, 100), Standing("7", 1, 99)):
        with pytest.raises(PrwError) as refused:
            file.advance(standing)
        assert refused.value.code is Code.EPOCH_FENCED
    file.advance(Standing("7", 1, 120))
    assert file.read() == Record(1, "7", 1, 120)


def test_a_control_plane_of_an_older_release_is_read(tmp_path: Path) -> None:
    """It held the epoch and the database; the rest is noted at the first start."""
    path = tmp_path / "epoch.json"
    path.write_text(json.dumps({"history_epoch": 3, "system_identifier": "7"}))
    file = EpochFile(path)
    assert file.read() == Record(3, "7", 0, 0, ControlState.OPEN)
    file.claim("7", 1, 40)
    assert (file.current(), file.read().high_water) == (3, 40)


async def test_a_server_whose_database_is_exchanged_stops_writing(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """A pool that reaches a promoted standby or a copy: seen at the next look, and refused from then on."""
    async with running(resolver_database, tmp_path / "state") as resolver:
        await fill(resolver, 2)
        with psycopg.connect(resolver_database["superuser"]) as conn:
            conn.execute("update resolver.stream_cursor set position = 3")
        await Watch(resolver.parts.db, resolver.parts.epoch).look()
        assert await code_of(fill(resolver, 1, start=9)) is Code.EPOCH_FENCED
