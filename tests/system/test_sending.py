"""A spool sent to a real resolver over PostgreSQL: killed on either side, denied, damaged, twice at once."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from prw.errors import Code, PrwError
from prw_base.client import Retry
from prw_resolver.access import service as access
from prw_resolver.access.model import COLLECTOR_SCOPES, ClientGrant
from prw_resolver.bootstrap import build_issuer, open_parts
from prw_sdk.cli.run import ask_receipts, push, run_sending
from prw_sdk.collect import SourceJob, collect
from prw_sdk.report import unwatched
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CaptureState
from prw_sdk.uplink import Drained, ResolverAddress, Uplink
from tests.resolver.collecting import CATALOG, Running, found, running, settings_for
from tests.resolver.serving import Served
from tests.sdk import jobs
from tests.sdk.jobs import QUICK, page
from tests.sdk.misbehaving import Site, answer, serving

ROOT = Path(__file__).parents[2]
ONE, TWO = "ten_synth_a.src_one", "ten_synth_a.src_two"
Shop = Callable[..., None]
Rows = psycopg.Connection[dict[str, Any]]
QUICKLY = Retry(3, timedelta(milliseconds=10), timedelta(milliseconds=50))


@pytest.fixture
def site() -> Iterator[Site]:
    """A shop."""
    with serving() as running_site:
        yield running_site


@pytest.fixture
def shop(site: Site) -> Shop:
    """Put pages on the site."""

    def put(**pages: bytes) -> None:
        for name, one in pages.items():
            site.serve(f"/p/{name}", one)
        index = "\n".join(site.url(f"/p/{name}") for name in pages)
        site.serve("/index.txt", answer(index.encode(), content_type="text/plain"))

    return put


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    """An empty spool."""
    made = Spool(tmp_path / "spool")
    yield made
    made.close()


@pytest.fixture
async def filled(site: Site, shop: Shop, spool: Spool) -> Spool:
    """Three captures of the first source, one of them an absence."""
    shop(a=page("A"), b=page("B"), gone=answer(b"gone", status=404))
    await collect([job(site)], spool, QUICK)
    return spool


@pytest.fixture
async def resolver(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Running]:
    """A resolver that serves in this process."""
    async with running(resolver_database, tmp_path / "state") as made:
        yield made


@pytest.fixture
async def token(resolver_database: dict[str, str], tmp_path: Path) -> str:
    """A collector's token, in a resolver that is set up and not running."""
    settings = settings_for(resolver_database, tmp_path)
    async with open_parts(settings, resolver_database["resolver_app"]) as parts:
        await found(parts, "ten_synth_a")
        grant = ClientGrant("ten_synth_a", CATALOG, "ci_one", COLLECTOR_SCOPES, "cw_one", (ONE,))
        return (await access.provision_client(build_issuer(settings, parts.db), grant)).token


@pytest.fixture
def superuser(resolver_database: dict[str, str]) -> Iterator[Rows]:
    """A connection that sees every tenant's rows."""
    dsn = resolver_database["superuser"]
    with psycopg.connect(dsn, autocommit=True, row_factory=dict_row) as conn:
        conn.execute("set search_path to resolver")
        yield conn


def job(site: Site, source_id: str = ONE) -> SourceJob:
    """The shop as that source."""
    made = jobs.list_job(site)
    return replace(made, source=replace(made.source, source_id=source_id))


async def address(resolver: Running, sources: Sequence[str] = (ONE,)) -> ResolverAddress:
    """The resolver as a collector calls it that may send those sources."""
    grant = ClientGrant(
        "ten_synth_a", CATALOG, "ci_one", COLLECTOR_SCOPES, "cw_one", tuple(sources)
    )
    return called(resolver.target, await resolver.token(grant))


def called(target: str, token: str) -> ResolverAddress:
    """A resolver there, with that token and quick retries."""
    return ResolverAddress(target, lambda: token, worker="cw_one", instance="ci_one", retry=QUICKLY)


def states(spool: Spool) -> dict[CaptureState, int]:
    """How many captures are in each state."""
    found: dict[CaptureState, int] = {}
    for (_, state), n in spool.ledger.states().items():
        found[state] = found.get(state, 0) + n
    return found


def counts(superuser: Rows) -> list[int]:
    """Captures, receipts and jobs of the resolver."""
    tables = ("capture", "receipt", "procrastinate_jobs")
    return [len(superuser.execute(f"select from {table}").fetchall()) for table in tables]


async def program(code: str, *arguments: str, faults: str = "") -> tuple[int, str, str]:
    """Run Python code in a process of its own: its status, and what it wrote."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, *arguments),
        cwd=ROOT,
        env=os.environ | {"PRW_FAULTS": faults},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


PRW = "from prw_base.cli import main; main()"
PUSH = (
    "import asyncio, sys; from pathlib import Path\n"
    "from prw_sdk.cli.run import push; from prw_sdk.report import unwatched\n"
    "from prw_sdk.spool.folder import Spool; from prw_sdk.uplink import ResolverAddress\n"
    "folder, target, token = sys.argv[1:]\n"
    "there = ResolverAddress(target, lambda: token, worker='cw_one', instance='ci_one')\n"
    "asyncio.run(push(Spool(Path(folder)), there, unwatched))\n"
)


@pytest.mark.parametrize(
    "point",
    [f"uplink.after_{step}=kill@{hit}" for step in ("put", "submit", "mark") for hit in (1, 3)],
)
async def test_a_push_that_is_killed_and_repeated_has_one_effect(
    filled: Spool, resolver: Running, superuser: Rows, point: str
) -> None:
    """Crash after a remote effect and before its note, then replay (replay rule 6)."""
    there = await address(resolver)
    arguments = (str(filled.folder), there.address, there.token())
    status, _, err = await program(PUSH, *arguments, faults=point)
    assert status == -signal.SIGKILL, err
    await push(filled, there, unwatched)
    assert states(filled) == {CaptureState.SUBMITTED: 3}
    assert counts(superuser) == [3, 3, 3]
    receipts = {row["receipt_id"] for row in superuser.execute("select receipt_id from receipt")}
    assert {capture.receipt_id for capture in filled.ledger.captures()} == receipts


@pytest.mark.parametrize(
    "point",
    [
        *("intake.before_commit=kill@2", "intake.after_commit=kill@2"),
        *("objects.after_fsync=kill@1", "objects.after_link=kill@2"),
    ],
)
async def test_a_resolver_killed_in_the_middle_costs_a_second_push_and_nothing_else(
    filled: Spool,
    resolver_database: dict[str, str],
    token: str,
    tmp_path: Path,
    superuser: Rows,
    point: str,
) -> None:
    """What it did before it died is found again by its key."""
    served = Served(resolver_database, tmp_path)
    try:
        with pytest.raises(PrwError) as caught:
            await push(filled, called(await served.start(point), token), unwatched)
        assert caught.value.code is Code.UNAVAILABLE
        there = called(await served.start(), token)
        await push(filled, there, unwatched)
        assert await push(filled, there, unwatched) == Drained()
    finally:
        await served.stop()
    assert states(filled) == {CaptureState.SUBMITTED: 3}
    assert counts(superuser) == [3, 3, 3]


async def test_two_pushes_at_once_over_one_spool_have_one_effect(
    filled: Spool, resolver: Running, superuser: Rows
) -> None:
    """Both end well, and each capture has one receipt (replay rule 2)."""
    there, second = await address(resolver), Spool(filled.folder)
    await asyncio.gather(*(push(one, there, unwatched) for one in (filled, second)))
    second.close()
    assert states(filled) == {CaptureState.SUBMITTED: 3}
    assert counts(superuser) == [3, 3, 3]


async def test_a_gap_between_keeping_and_sending_is_found_by_the_next_push_in_pages(
    filled: Spool, resolver: Running, superuser: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bounded repair scan of replay rules 9 and 10: what was kept and never announced is sent."""
    limits: list[int] = []
    kept = filled.ledger.kept

    def by_one(after: int) -> Any:
        limits.append(after)
        return kept(after, 1)

    monkeypatch.setattr(filled.ledger, "kept", by_one)
    await push(filled, await address(resolver), unwatched)
    assert (counts(superuser), len(limits)) == ([3, 3, 3], 4)


async def test_a_source_that_is_denied_holds_up_no_other(
    site: Site, filled: Spool, resolver: Running, superuser: Rows
) -> None:
    """Its captures wait in the spool until it is granted, and are told."""
    await collect([job(site, TWO)], filled, QUICK)
    drained = await push(filled, await address(resolver), unwatched)
    assert (drained.submitted, drained.refused) == (3, 0)
    assert {name: error.code for name, error in drained.denied.items()} == {
        TWO: Code.SOURCE_SCOPE_DENIED
    }
    assert states(filled) == {CaptureState.SUBMITTED: 3, CaptureState.KEPT: 3}
    drained = await push(filled, await address(resolver, (ONE, TWO)), unwatched)
    assert drained == Drained(submitted=3)
    assert counts(superuser) == [6, 6, 6]


async def test_a_run_leaves_out_a_source_that_is_denied_and_fetches_nothing_of_it(
    site: Site, shop: Shop, spool: Spool, resolver: Running
) -> None:
    """Only granted sources are fetched (if_source_fetch)."""
    shop(a=page("A"))
    with serving() as other:
        both = [job(site), job(other, TWO)]
        result = await run_sending(both, spool, QUICK, await address(resolver), unwatched)
        assert other.requests == []
    assert result.drained.submitted == 1
    assert list(result.drained.denied) == [TWO]
    failures = [report.failure and report.failure.code for report in result.sources]
    assert failures == [None, "SOURCE_SCOPE_DENIED"]


async def test_a_capture_whose_key_was_used_for_another_body_is_set_aside(
    filled: Spool, resolver: Running, tmp_path: Path
) -> None:
    """IDEMPOTENCY_CONFLICT: told, never sent again by itself, and no obstacle to later ones."""
    there = await address(resolver)
    await push(filled, there, unwatched)
    changed = sqlite3.connect(filled.folder / "ledger.sqlite")
    with changed:
        changed.execute("UPDATE captures SET state = 'kept', receipt_id = NULL")
        changed.execute(
            "UPDATE captures SET body = CAST(replace(CAST(body AS TEXT), ?, ?) AS BLOB)"
            " WHERE native_id = 'a'",
            ('"http_status":200', '"http_status":203'),
        )
    changed.close()
    assert await push(filled, there, unwatched) == Drained(submitted=2, refused=1)
    (refused,) = [one for one in filled.ledger.captures() if one.state is CaptureState.REFUSED]
    assert (refused.key.native_id, refused.code) == ("a", "IDEMPOTENCY_CONFLICT")


@pytest.mark.parametrize("damage", ["other bytes", "cut short", "missing"])
async def test_damaged_evidence_is_found_before_it_is_sent_and_mended_by_fetching_again(
    site: Site, filled: Spool, resolver: Running, superuser: Rows, damage: str
) -> None:
    """The same bytes come again from the source, and the capture that waited is sent as it was."""
    first = next(one for one in filled.ledger.captures() if one.key.native_id == "a")
    sha256 = filled.capture(first).parts[0].sha256
    path = filled.blobs.path(sha256)
    body = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(body[:-1] if damage == "cut short" else body[:-1] + b"?")
    there = await address(resolver)
    assert await push(filled, there, unwatched) == Drained(submitted=2, refused=1)
    assert superuser.execute("select from artifact where sha256 = %s", [sha256]).fetchall() == []
    (refused,) = [one for one in filled.ledger.captures() if one.state is CaptureState.REFUSED]
    assert refused.code == "EVIDENCE_DAMAGED"
    assert filled.ledger.revive(None, "a", datetime.now(UTC)) == 2
    result = await run_sending([job(site)], filled, QUICK, there, unwatched)
    assert result.refused is None
    await push(filled, there, unwatched)
    assert states(filled) == {CaptureState.SUBMITTED: 3}
    assert path.read_bytes() == body


async def test_what_became_of_the_captures_is_asked_in_batches_and_not_too_often(
    filled: Spool, resolver: Running
) -> None:
    """Not more often than every 30 s a receipt (if_receipt_get)."""
    there = await address(resolver)
    await push(filled, there, unwatched)
    assert await ask_receipts(filled, there) == 3
    assert await ask_receipts(filled, there) == 0
    assert filled.ledger.receipt_statuses() == {(ONE, "stored"): 3}
    async with Uplink(there, filled) as uplink:
        assert await uplink.ask_receipts(datetime.now(UTC) + timedelta(seconds=29)) == 0
        assert await uplink.ask_receipts(datetime.now(UTC) + timedelta(seconds=31)) == 3


@pytest.fixture
def settings(tmp_path: Path, resolver: Running) -> Callable[[str], Path]:
    """Write the settings of a collector with that token."""

    def write(token: str) -> Path:
        path = tmp_path / "sources.toml"
        path.write_text(
            f'contact = "ops@example.org"\n[resolver]\naddress = "{resolver.target}"\n'
            f'token = "{token}"\nworker = "cw_one"\ninstance = "ci_one"\n'
            "retry = { base = 0.01, cap = 0.05, attempts = 3 }\n",
            "utf-8",
        )
        return path

    return write


async def test_the_command_shows_what_the_resolver_says_of_what_was_sent(
    filled: Spool, resolver: Running, settings: Callable[[str], Path]
) -> None:
    """`prw collect push`, then `prw collect status --receipts`."""
    config = str(settings((await address(resolver)).token()))
    folder = str(filled.folder)
    status, out, err = await program(PRW, "collect", "push", folder, "-c", config, "--json")
    assert (status, json.loads(out)[0]["submitted"]) == (0, 3), err
    asking = ("collect", "status", folder, "-c", config, "--receipts", "--json")
    status, out, err = await program(PRW, *asking)
    assert status == 0, err
    (row,) = json.loads(out)
    assert (row["submitted"], row["receipts_stored"], row["damaged"]) == (3, 3, 0)


async def test_a_revoked_credential_stops_the_command_with_a_remedy_and_status_4(
    filled: Spool, resolver: Running, settings: Callable[[str], Path], superuser: Rows
) -> None:
    """Nothing is sent, nothing is lost, and no attempt is repeated."""
    there = await address(resolver)
    config = settings(there.token())
    await access.revoke_client(resolver.parts.db, "ten_synth_a", "ci_one")
    status, _, err = await program(PRW, "collect", "push", str(filled.folder), "-c", str(config))
    assert status == 4
    assert "CREDENTIAL_REVOKED" in err
    assert "operator" in err.lower()
    assert states(filled) == {CaptureState.KEPT: 3}
    assert counts(superuser) == [0, 0, 0]


async def test_a_denied_source_ends_the_command_with_status_4_after_the_others_are_sent(
    site: Site, filled: Spool, resolver: Running, settings: Callable[[str], Path]
) -> None:
    """The line names the source."""
    await collect([job(site, TWO)], filled, QUICK)
    config = settings((await address(resolver)).token())
    status, out, err = await program(
        PRW, "collect", "push", str(filled.folder), "-c", str(config), "--json"
    )
    assert (status, json.loads(out)[0]["submitted"]) == (4, 3), err
    assert TWO in err
