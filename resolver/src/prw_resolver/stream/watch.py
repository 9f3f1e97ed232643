"""Keeps the control plane's high-water mark near the database, and stops writing where the database is another one.

A server's pool may reach a promoted standby or a copy without a restart: then the timeline, the identity or the
positions differ, and nothing is accepted into a history that lost something (fail closed).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

import psycopg
import structlog

from prw.errors import Code, PrwError
from prw_base.server.database import Database
from prw_resolver.stream import store
from prw_resolver.stream.epoch import EpochFile

INTERVAL = timedelta(seconds=1)

log = structlog.get_logger(__name__)


class Watch:
    """Looks at the database every second, and once more at the end."""

    def __init__(
        self, database: Database, epoch: EpochFile, *, interval: timedelta = INTERVAL
    ) -> None:
        self._database = database
        self._epoch = epoch
        self._interval = interval

    async def run(self, stop: asyncio.Event) -> None:
        """Look until the stop."""
        while not stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self._interval.total_seconds())
            await self.look()

    async def look(self) -> None:
        """Raise the mark, or distrust the database. What does not answer now is asked again."""
        try:
            history_epoch = self._epoch.current()
            async with self._database.transaction(None, read_only=True) as conn:
                standing = await store.standing(conn, history_epoch)
            self._epoch.advance(standing)
        except psycopg.Error as error:
            log.warning("watch.database_unavailable", error=type(error).__name__)
        except PrwError as error:
            if error.code is Code.EPOCH_FENCED:
                log.error("watch.database_not_trusted", reason=error.message)
                self._epoch.distrust(error)
