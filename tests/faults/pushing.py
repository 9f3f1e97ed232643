"""Spools that are pushed to the real resolver on a real database, and what each side then holds."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg

from prw_base.client import Retry
from prw_resolver.access import service as access
from prw_resolver.access.model import COLLECTOR_SCOPES, ClientGrant, Source
from prw_resolver.bootstrap import build_issuer, open_parts
from prw_sdk.cli.run import push
from prw_sdk.collect import collect
from prw_sdk.report import unwatched
from prw_sdk.spool.blobs import Blobs
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CaptureState
from prw_sdk.testing.server import Site, answer, serving
from prw_sdk.uplink import Drained
from tests.resolver.collecting import CATALOG, found, settings_for
from tests.resolver.serving import Served
from tests.sdk.jobs import QUICK, list_job, page
from tests.sdk.resolver_double import Intake
from tests.sdk.sending import resolver, states

TENANT = "ten_synth_a"
ITEMS = 8
SOURCES = tuple(f"src_{number:02}" for number in range(24))
MARK = b"here a wire is cut"
"""Stands in the midst of the bytes of the long page, many times, so that one at least is in one piece on a wire."""


class Sent(Blobs):
    """The bytes of a spool: says which were taken to be sent, and does something before the n-th are."""

    def __init__(self, folder: Path, at: int = 0, then: Callable[[], None] | None = None) -> None:
        super().__init__(folder)
        self.names: list[str] = []
        self._at, self._then = at, then
        self._lock = threading.Lock()

    def get(self, sha256: str) -> bytes:
        """The bytes, which are about to be sent."""
        with self._lock:
            self.names.append(sha256)
            if len(self.names) == self._at and self._then is not None:
                self._then()
        return super().get(sha256)


@dataclass
class Pushing:
    """A resolver in a process of its own, and spools each of which is a source of its own."""

    dsns: dict[str, str]
    folder: Path
    site: Site
    served: Served
    address: str = ""
    token: str = ""
    _filled: Iterator[str] = field(default_factory=lambda: iter(SOURCES))

    async def fill(self) -> Path:
        """A spool with captures, all of bytes of their own; one page is of several chunks."""
        source_id = next(self._filled)
        names = [f"{source_id}-{number}" for number in range(ITEMS)]
        for name in names:
            self.site.serve(f"/p/{name}", page(f"Thing {name}"))
        self.site.serve(f"/p/{names[-1]}", answer(_long(names[-1])))
        lines = "\n".join(self.site.url(f"/p/{name}") for name in names)
        self.site.serve("/index.txt", answer(lines.encode(), content_type="text/plain"))
        job = list_job(self.site)
        job = replace(job, source=replace(job.source, source_id=source_id))
        folder = self.folder / source_id
        with opened(folder) as spool:
            await collect([job], spool, QUICK)
            assert states(spool) == {CaptureState.KEPT: ITEMS}
        return folder

    async def push(
        self,
        folder: Path,
        retry: Retry | None = None,
        address: str = "",
        at: int = 0,
        then: Callable[[], None] | None = None,
    ) -> tuple[Drained, Sent]:
        """Push a spool: what that came to, and what was sent; `then` is done before the `at`-th bytes are."""
        where = resolver(Intake(address=address or self.address), self.token)
        where = where if retry is None else replace(where, retry=retry)
        with opened(folder) as spool:
            spool.blobs = sent = Sent(folder / "blobs", at, then)
            return await push(spool, where, unwatched), sent

    def stored(self) -> set[str]:
        """The artifacts on record at the resolver."""
        return set(self._column("select sha256 from resolver.artifact"))

    async def check_resumed(self, folder: Path, retry: Retry | None = None) -> None:
        """Push once more: all is stored, each capture once, and nothing is sent that was stored before."""
        before = self.stored()
        drained, sent = await self.push(folder, retry)
        assert before.isdisjoint(sent.names)
        self.check_whole(folder)
        # the checkpoint comes after the captures: with a push that had some to bring
        assert self.reached(folder) == [1] or drained == Drained()

    def check_whole(self, folder: Path) -> None:
        """Every capture of the spool is at the resolver, once, with its bytes and its receipt."""
        with opened(folder) as spool:
            kept = list(spool.ledger.captures())
            bodies = {part.sha256 for one in kept for part in spool.capture(one).parts}
            assert states(spool) == {CaptureState.SUBMITTED: ITEMS}
        assert bodies <= self.stored()
        captured = Counter(
            self._column(
                "select native_record_id from resolver.capture join resolver.receipt "
                "using (tenant_id, capture_id) where source_id = %s",
                folder.name,
            )
        )
        assert captured == Counter(one.key.native_id for one in kept)
        receipts = self._column("select receipt_id from resolver.receipt")
        assert {one.receipt_id for one in kept} <= set(receipts)

    def reached(self, folder: Path) -> list[int]:
        """The revision of the source's checkpoint at the resolver, if it has one."""
        query = "select revision from resolver.collector_checkpoint where source_id = %s"
        return self._column(query, folder.name)

    async def provision(self) -> None:
        """Give the collector a client with every source; one that it had before is superseded."""
        settings = settings_for(self.dsns, self.folder / "state")
        async with open_parts(settings, self.dsns["resolver_app"]) as parts:
            await found(parts, TENANT)
            for name in SOURCES:
                await access.put_source(parts.db, Source(TENANT, CATALOG, name, name, True, {}))
            grant = ClientGrant(TENANT, CATALOG, "ci_list_01", COLLECTOR_SCOPES, "cw_list", SOURCES)
            made = await access.provision_client(build_issuer(settings, parts.db), grant)
            self.token = made.token

    async def revoke(self) -> None:
        """End the collector's client."""
        settings = settings_for(self.dsns, self.folder / "state")
        async with open_parts(settings, self.dsns["resolver_app"]) as parts:
            await access.revoke_client(parts.db, TENANT, "ci_list_01")

    def _column(self, query: str, *values: str) -> list[Any]:
        with psycopg.connect(self.dsns["superuser"]) as conn:
            return [row[0] for row in conn.execute(query.encode(), values).fetchall()]


@contextmanager
def opened(folder: Path) -> Iterator[Spool]:
    """A spool, as another process would open it."""
    spool = Spool(folder)
    try:
        yield spool
    finally:
        spool.close()


@asynccontextmanager
async def pushing(dsns: dict[str, str], folder: Path) -> AsyncIterator[Pushing]:
    """A resolver that serves, a site, and a collector with a token."""
    served = Served(dsns, folder / "state")
    with serving() as site:
        one = Pushing(dsns, folder, site, served)
        await one.provision()
        try:
            one.address = await served.start()
            yield one
        finally:
            await served.stop()


def _long(name: str) -> bytes:
    noise = bytes(number % 251 for number in range(300_000))
    return b"<title>" + name.encode() + b"</title>" + noise + 64 * MARK + noise
