"""The real runner over an adapter's fixtures: its own `fetch`, `read` and the network, against a local server.

Every recorded response is served under the address that it was recorded from; secure addresses are asked for without
encryption, since the server has no certificates. What a browser rendered is taken from the fixture.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from w3lib.url import safe_url_string

from prw_sdk.adapter import (
    NO_RESPONSES,
    Adapter,
    AdapterSettings,
    Batch,
    Checkpoint,
    Fetched,
    Net,
    Source,
    Target,
)
from prw_sdk.collect import RunLimits, SourceJob
from prw_sdk.collect.job import Means
from prw_sdk.collect.run import SourceRun
from prw_sdk.evidence import Capture, Part, Presence
from prw_sdk.fetch.config import FetchLimits, NetConfig
from prw_sdk.fetch.gates import HostGates
from prw_sdk.fetch.guard import AddressRules
from prw_sdk.fetch.http import HttpNet
from prw_sdk.fetch.polite import Politeness, user_agent
from prw_sdk.fetch.retry import RetryPolicy
from prw_sdk.report import SourceReport
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CheckpointKey, Item, ItemKey, SavedCheckpoint
from prw_sdk.testing.bench import Bench
from prw_sdk.testing.fixtures import Fixture
from prw_sdk.testing.plans import load_plan
from prw_sdk.testing.server import Site, answer, redirect, serving

TENANT, SOURCE = "ten_check", "src_check"
AT_ONCE = 2
"""Requests that the local server's hosts are given at once."""

MOST_TARGETS = 8


@dataclass
class Stage:
    """A local server with the recorded responses, and what it takes to run the adapter against it."""

    bench: Bench
    site: Site
    folder: Path
    cases: Sequence[Fixture]
    spools: list[Spool] = field(default_factory=list)

    def spool(self, name: str = "spool") -> Spool:
        """The spool of that name; opened anew each time, as another process would."""
        one = Spool(self.folder / name)
        self.spools.append(one)
        return one

    def targets(self) -> tuple[Target, ...]:
        """One target for each fixture."""
        return tuple(target_of(case) for case in self.cases)

    def job(
        self, batch: int = 1, source_id: str = SOURCE, listed: Sequence[Fixture] | None = None
    ) -> SourceJob:
        """A source whose plan lists the fixtures (or those given), and whose checkpoint counts them."""
        cases = self.cases if listed is None else listed
        kept = tuple(part for case in self.cases for part in case.capture.parts)
        adapter = replaying(self.bench.subject.adapter, cases, kept, batch)
        return SourceJob(TENANT, replace(self._source(), source_id=source_id), adapter, self._net())

    def _source(self) -> Source:
        """The source of the recorded plan, since a `fetch` may depend on its settings; else one without any."""
        planned = load_plan(self.bench.subject.fixtures, self.bench.adapter)
        return Source(SOURCE, AdapterSettings()) if planned is None else planned.source

    def _net(self) -> NetConfig:
        hosts = {_host(part.url_asked) for case in self.cases for part in case.capture.parts}
        hosts |= {_host(part.url_reached) for case in self.cases for part in case.capture.parts}
        rules = AddressRules(
            frozenset({*(host for host, _ in hosts), "127.0.0.1"}),
            dict.fromkeys(hosts, ("127.0.0.1", self.site.port)),
        )
        return NetConfig(
            user_agent("conformance@example.org"),
            rules,
            FetchLimits(connect=2, total=5),
            RetryPolicy(attempts=2, base=0.001, cap=0.01, patience=5.0),
        )

    async def run(
        self,
        spool: Spool,
        job: SourceJob | None = None,
        now: datetime | None = None,
        budget: int = 2,
        at_once: int = AT_ONCE,
    ) -> SourceReport:
        """One run of the source, at that moment."""
        job = job or self.job()
        moment = now or datetime.now(UTC)
        manners = Politeness(1000, at_once)
        limits = RunLimits(concurrency=4, attempt_budget=budget, manners=manners)
        gates = HostGates(manners, self.folder / "runtime")
        net = HttpNet(job.net, gates)
        try:
            means = Means.over(spool, clock=lambda: moment)
            return await SourceRun(job, means, limits).go(net)
        finally:
            await net.aclose()
            gates.close()

    def left_behind(self, spool: Spool) -> tuple[list[tuple[str, ...]], dict[str, object]]:
        """Everything that a run leaves for others: which bytes were captured of which target, and the checkpoint."""
        captures = sorted(
            (one.key.native_id, *(part.sha256 for part in spool.capture(one).parts))
            for one in spool.ledger.captures()
        )
        return captures, dict(self.saved(spool).state)

    def saved(self, spool: Spool, source_id: str = SOURCE) -> SavedCheckpoint:
        """The checkpoint of the source, as it is persisted."""
        name = self.bench.subject.adapter.name
        return spool.checkpoints.load(CheckpointKey(TENANT, source_id, name))

    def item(self, spool: Spool, case: Fixture) -> Item | None:
        """What the ledger says of a fixture's target."""
        return spool.ledger.item(ItemKey(TENANT, SOURCE, case.capture.native_record_id))

    def captured(self, spool: Spool) -> dict[str, Capture]:
        """What was captured of each fixture, by its case; with the fixture's own config, since a run has but one."""
        kept = {one.key.native_id: spool.capture(one) for one in spool.ledger.captures()}
        return {
            case.case: replace(kept[case.capture.native_record_id], config=case.capture.config)
            for case in self.cases
            if case.capture.native_record_id in kept
        }

    def break_page(self, case: Fixture, *answers: bytes) -> None:
        """Answer differently at the first address of a fixture."""
        for page in _pages(case.capture.parts[0].url_asked):
            self.site.serve(page, *answers)

    def serve(self, case: Fixture) -> None:
        """Answer as recorded at every address of a fixture."""
        for part in case.capture.parts:
            recorded = _answer(part)
            if part.url_reached != part.url_asked:
                for page in _pages(part.url_asked):
                    self.site.serve(page, redirect(_plain(part.url_reached)))
            for page in _pages(part.url_reached):
                self.site.serve(page, recorded)


@contextmanager
def staged(bench: Bench, folder: Path) -> Iterator[Stage]:
    """A stage for those fixtures that can be fetched again; `Stage.cases` is empty where there are none."""
    with serving() as site:
        stage = Stage(bench, site, folder, tuple(_playable(bench))[:MOST_TARGETS])
        for case in stage.cases:
            stage.serve(case)
        try:
            yield stage
        finally:
            for spool in stage.spools:
                spool.close()


def target_of(case: Fixture) -> Target:
    """The target that a fixture was fetched as."""
    return Target(case.capture.native_record_id, case.capture.parts[0].url_asked)


def replaying(
    adapter: type[Adapter], cases: Sequence[Fixture], kept: tuple[Part, ...], batch: int = 1
) -> Adapter:
    """The adapter with a plan that lists the fixtures, over a network that knows the addresses of what was kept."""
    config = dict(cases[0].capture.config) if cases else {}

    def plan(
        self: Adapter, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        return _batches([target_of(case) for case in cases], checkpoint, batch)

    async def fetch(self: Adapter, target: Target, net: Net) -> Fetched:
        fetched = await adapter.fetch(self, target, ReplayNet(net, kept))
        return Fetched(tuple(fetched.parts))

    def pinned(self: Adapter, source: Source) -> Mapping[str, object]:
        if isinstance(source.settings, adapter.settings):
            adapter.config(self, source)
        return config

    members = {"plan": plan, "fetch": fetch, "config": pinned, "bounds": ()}
    made: type[Adapter] = type(adapter.__name__, (adapter,), members)
    return made()


async def _batches(
    targets: Sequence[Target], checkpoint: Checkpoint | None, size: int
) -> AsyncIterator[Batch]:
    done = int(str(checkpoint.state["done"])) if checkpoint else 0
    for at in range(0 if done >= len(targets) else done, len(targets), size):
        some = tuple(targets[at : at + size])
        yield Batch(some, Checkpoint({"done": at + len(some)}))


class ReplayNet:
    """The runner's network, asked without encryption; parts have the addresses that the adapter asked for."""

    def __init__(self, net: Net, kept: Sequence[Part] = ()) -> None:
        self._net = net
        self._kept = kept
        self._secure = {_host(part.url_asked) for part in kept if _is_secure(part.url_asked)}
        self._secure |= {_host(part.url_reached) for part in kept if _is_secure(part.url_reached)}

    async def get(self, url: str, *, role: str, accept: str | None = None, **more: Any) -> Part:
        """As `Net.get`."""
        part = await self._net.get(_plain(url), role=role, accept=accept, **more)
        return replace(part, url_asked=url, url_reached=self._as_recorded(part.url_reached, url))

    async def render(
        self,
        url: str,
        *,
        role: str = "page",
        responses: Mapping[str, str] = NO_RESPONSES,
        **more: Any,
    ) -> tuple[Part, ...]:
        """What the browser gave when the fixture was recorded, once the page's address has answered."""
        await self._net.get(_plain(url), role=role)
        roles = {role, f"{role}.source", f"{role}.screenshot", *responses}
        first = next(
            (part for part in self._kept if part.role == role and part.url_asked == url), None
        )
        if first is None:
            return ()
        at = self._kept.index(first)
        found: dict[str, Part] = {}
        for part in (*self._kept[at:], *self._kept[:at]):
            if part.role in roles and (part is first or part.role not in found):
                found[part.role] = part
        return tuple(found.values())

    def _as_recorded(self, url: str, asked: str) -> str:
        pieces = urlsplit(url)
        is_secure = _is_secure(asked) or (pieces.hostname or "", pieces.port or 80) in self._secure
        return urlunsplit(pieces._replace(scheme="https")) if is_secure else url


def _playable(bench: Bench) -> Iterator[Fixture]:
    """Fixtures of pages that are there, each under addresses of its own; those with records first."""
    served: dict[str, str] = {}
    ids: set[str] = set()
    for case in sorted(bench.cases, key=lambda one: not bench.records(one)):
        parts = case.capture.parts
        if not parts or case.capture.presence is Presence.ABSENT:
            continue
        if not all(part.http_status == 200 and part.cites is None for part in parts):
            continue
        native_id = case.capture.native_record_id
        if native_id in ids or any(served.get(p.url_asked, p.sha256) != p.sha256 for p in parts):
            continue
        ids.add(native_id)
        served.update((part.url_asked, part.sha256) for part in parts)
        yield case


def _answer(part: Part) -> bytes:
    charset = "" if part.charset_declared is None else f"; charset={part.charset_declared}"
    return answer(part.body, content_type=f"{part.media_type}{charset}")


def _is_secure(url: str) -> bool:
    return url.lower().startswith("https:")


def _plain(url: str) -> str:
    return f"http{url[5:]}" if _is_secure(url) else url


def _host(url: str) -> tuple[str, int]:
    pieces = urlsplit(url)
    return pieces.hostname or "", pieces.port or 80


def _pages(url: str) -> Iterable[str]:
    """How the server may be asked for an address, as the client writes it."""
    for written in dict.fromkeys((url, safe_url_string(url))):
        pieces = urlsplit(written)
        query = f"?{pieces.query}" if pieces.query else ""
        yield f"{pieces.hostname or ''}{pieces.path or '/'}{query}"
