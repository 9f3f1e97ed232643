"""Runs at intervals, and collectors that keep nothing: what the command does and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Thread

import pytest
import structlog

from prw.collector.v1.checkpoint_service_pb2 import DEFERRED_OUTCOME_POISON
from prw.collector.v1.collector_service_pb2 import RegisterRequest
from prw.errors import Code, PrwError
from prw_sdk.cli.pace import at_intervals, interval
from prw_sdk.cli.run import Liveness, RunResult
from prw_sdk.cli.secrets import SettingsUnusable
from prw_sdk.fetch.runtime import RuntimeFolderUnusable
from prw_sdk.report import SourceReport
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.sqlite import SpoolUnusable
from prw_sdk.uplink import Binding
from tests.sdk.commanding import invoke, summary
from tests.sdk.jobs import page
from tests.sdk.misbehaving import Site, answer
from tests.sdk.resolver_double import TOKEN, Intake, receiving
from tests.sdk.sending import resolver
from tests.support.waiting import until

Shop = Callable[..., None]
SOON = timedelta(milliseconds=20)


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        (" 2h", timedelta(hours=2)),
        ("1d", timedelta(days=1)),
    ],
)
def test_intervals_are_a_number_and_a_unit(text: str, wait: timedelta) -> None:
    """Seconds, minutes, hours, days."""
    assert interval(text) == wait


@pytest.mark.parametrize("text", ["", "15", "m", "0s", "-5m", "1.5h", "15 m", "2w", "999999d"])
def test_what_is_no_interval_is_told_with_what_to_write(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match="90s, 15m, 2h or 1d"):
        interval(text)


class Runs:
    """Runs that end as a test says, and stop everything after the last."""

    def __init__(self, *ends: RunResult | Exception) -> None:
        self.ends = list(ends)
        self.stop = asyncio.Event()
        self.told: list[RunResult] = []
        self.begun: list[float] = []

    async def once(self, own: asyncio.Event) -> RunResult:
        """The next run."""
        self.begun.append(asyncio.get_running_loop().time())
        end = self.ends.pop(0)
        if not self.ends:
            self.stop.set()
        if isinstance(end, Exception):
            raise end
        return end

    async def go(self, liveness: Liveness | None = None, chance: float = 0.0) -> RunResult:
        """All of them, a short interval apart."""
        told = self.told.append
        return await at_intervals(self.once, SOON, self.stop, told, liveness, lambda: chance)


FINE = RunResult((SourceReport("a", 1),))


async def test_runs_begin_an_interval_apart_and_a_jitter_later() -> None:
    """From start to start."""
    runs = Runs(FINE, FINE, FINE)
    await runs.go(chance=1.0)
    gaps = [after - before for before, after in zip(runs.begun, runs.begun[1:], strict=False)]
    assert all(gap >= 1.1 * SOON.total_seconds() - 0.002 for gap in gaps)
    assert len(runs.told) == 3


@pytest.mark.parametrize(
    "trouble",
    [PrwError(Code.UNAVAILABLE, "down"), PrwError(Code.MISSING_SCOPE, "no"), SpoolUnusable("full")],
)
async def test_a_failed_run_does_not_end_it(trouble: Exception) -> None:
    """The next one begins when it is due."""
    runs = Runs(trouble, FINE)
    assert await runs.go() == FINE
    assert [one.refused is not None for one in runs.told] == [True, False]


async def test_a_revoked_credential_ends_it() -> None:
    """Also where a run was refused as it registered."""
    runs = Runs(PrwError(Code.CREDENTIAL_REVOKED, "revoked"), FINE)
    assert (await runs.go()).is_revoked
    assert len(runs.begun) == 1


async def test_a_run_that_is_denied_stops_itself_and_not_the_next() -> None:
    """Its own stop is not everybody's."""

    class Denied(Runs):
        async def once(self, own: asyncio.Event) -> RunResult:
            """One that is denied meanwhile."""
            own.set()
            return await super().once(own)

    runs = Denied(FINE, FINE, FINE)
    await runs.go()
    assert len(runs.begun) == 3


async def test_a_heartbeat_that_meets_a_revoked_credential_ends_it_between_runs(
    spool: Spool, intake: Intake
) -> None:
    """Within a third of the lease, whenever the next run would be due."""
    intake.fail("Heartbeat", *[PrwError(Code.CREDENTIAL_REVOKED, "revoked")] * 9)
    liveness = Liveness(resolver(intake), spool)
    liveness.registered(Binding("ten", frozenset(), lease=timedelta(milliseconds=30)))
    runs = Runs(FINE, FINE)
    result = await asyncio.wait_for(
        at_intervals(runs.once, timedelta(days=1), runs.stop, runs.told.append, liveness), 10
    )
    assert result.is_revoked
    assert len(runs.begun) == 1


@contextmanager
def served() -> Iterator[Intake]:
    """A resolver in a thread of its own, since the command has a loop of its own."""
    loop = asyncio.new_event_loop()
    context = receiving()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(context.__aenter__(), loop).result(10)
    finally:
        ending = context.__aexit__(None, None, None)
        asyncio.run_coroutine_threadsafe(ending, loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture
def double() -> Iterator[Intake]:
    """A resolver that the command may call."""
    with served() as intake:
        yield intake


@pytest.fixture
def sending(config: Path, double: Intake, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings with that resolver."""
    section = f'[resolver]\naddress="{double.address}"\nworker="cw"\ninstance="ci"\n'
    section += "retry = { base = 0.001, cap = 0.01, attempts = 2 }\n"
    config.write_text(config.read_text("utf-8") + section, "utf-8")
    monkeypatch.setenv("PRW_COLLECT_RESOLVER__TOKEN", TOKEN)
    return config


def test_a_collector_that_keeps_nothing_leaves_no_folder(
    shop: Shop, sending: Path, double: Intake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the spool of the settings nor a temporary one; the resolver has captures and checkpoint."""
    shop(a=page("A"), b=page("B"))
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    result = invoke("run", "-c", sending, "--ephemeral", "--json")
    assert result.exit_code == 0, result.stderr
    assert (summary(result)["submitted"], len(double.captures)) == (2, 2)
    assert double.checkpoints["src_list", "list", ""].state == '{"done":2}'
    assert not (sending.parent / "spool").exists()
    assert list(place.glob("prw-collect-*")) == []


def test_the_settings_may_say_that_nothing_is_kept(
    shop: Shop, sending: Path, double: Intake
) -> None:
    """As `keep = false`."""
    shop(a=page("A"))
    sending.write_text("keep = false\n" + sending.read_text("utf-8"), "utf-8")
    assert invoke("run", "-c", sending).exit_code == 0
    assert not (sending.parent / "spool").exists()
    assert len(double.checkpoints) == 1


def test_poison_of_a_collector_that_keeps_nothing_is_revived_at_the_resolver(
    site: Site, shop: Shop, sending: Path, double: Intake
) -> None:
    """Replay rule 13: a repair path, also where there is no folder to repair."""
    shop(a=page("A"), b=answer(status=500))
    run = ("run", "-c", sending, "--ephemeral", "--json")
    assert invoke(*run).exit_code == 1
    (deferred,) = double.checkpoints["src_list", "list", ""].deferred
    deferred.outcome = DEFERRED_OUTCOME_POISON
    deferred.ClearField("retry_at")
    site.serve("/p/b", page("B"))
    assert summary(invoke(*run))["poison"] == 1
    assert [key[1] for key in double.captures if key[1] == "b"] == []
    assert json.loads(invoke("retry", "-c", sending, "--item", "other", "--json").stdout) == [
        {"spool": "resolver", "revived": 0}
    ]
    assert json.loads(invoke("retry", "-c", sending, "--json").stdout)[0]["revived"] == 1
    assert invoke(*run).exit_code == 0
    assert [key[1] for key in double.captures if key[1] == "b"] == ["b"]
    assert list(double.checkpoints["src_list", "list", ""].deferred) == []


@pytest.mark.parametrize("call", ["Register", "StoreArtifacts", "SubmitCapture", "Heartbeat"])
def test_a_revoked_credential_is_exit_status_4_and_says_what_to_do(
    shop: Shop, sending: Path, double: Intake, call: str
) -> None:
    """Whatever call meets it; what is kept waits."""
    shop(a=page("A"))
    double.fail(call, *[PrwError(Code.CREDENTIAL_REVOKED, "revoked")] * 99)
    result = invoke("run", "-c", sending)
    assert result.exit_code == 4
    assert "Provision it again" in result.stderr
    assert "prw resolver client provision" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--every", "soon"), "15m"),
        (("--every", "5m", "--once"), "give one of them"),
        (("--ephemeral", "--local", "spool"), "give one"),
    ],
)
def test_what_contradicts_itself_is_wrong_usage(
    config: Path, arguments: tuple[str, ...], said: str
) -> None:
    """Exit status 2, before anything is fetched."""
    local = () if "--local" in arguments else ("--local", config.parent / "spool")
    result = invoke("run", "-c", config, *local, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_run_at_intervals_goes_on_after_a_failure_and_ends_in_order(
    site: Site, shop: Shop, config: Path, tmp_path: Path
) -> None:
    """A plan that fails once, a second run that is fine, and SIGTERM between runs."""
    shop(a=page("A"))
    site.serve("/index.txt", answer(status=503))
    program = (
        "import sys; from tests.sdk.commanding import INSTALLED\n"
        "from prw_sdk import plugins; plugins.load = lambda: INSTALLED\n"
        "from prw_sdk.cli.app import app; app(sys.argv[1:])\n"
    )
    arguments = ["run", "-c", str(config), "--local", str(tmp_path / "spool")]
    with subprocess.Popen(
        [sys.executable, "-u", "-c", program, *arguments, "--every", "1s", "--json"],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ.copy(),
        text=True,
    ) as process:
        assert process.stdout is not None
        (first,) = json.loads(process.stdout.readline())
        index = answer(site.url("/p/a").encode(), content_type="text/plain")
        site.serve("/index.txt", index)
        rows = (json.loads(line)[0] for line in process.stdout)
        second = next(row for row in rows if row["ended"] == "done")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in (0, 130)
    assert first["ended"].startswith("UPSTREAM_503")
    assert second["stored"] + second["unchanged"] == 1


@pytest.mark.parametrize(
    "trouble",
    [SettingsUnusable("resolver.token_file: gone"), RuntimeFolderUnusable("runtime folder /x: no")],
)
async def test_settings_that_cannot_be_used_are_a_refusal_at_first_and_a_failed_run_later(
    trouble: Exception,
) -> None:
    """A token file that is put anew may be missing for a moment; one that never was there is a mistake."""
    with pytest.raises(type(trouble)):
        await Runs(trouble, FINE).go()
    runs = Runs(FINE, trouble, FINE)
    assert await runs.go() == FINE
    said = [one.refused.message for one in runs.told if one.refused is not None]
    assert said == [str(trouble)]


async def test_heartbeats_go_on_after_one_that_could_not_be_made(
    spool: Spool, intake: Intake
) -> None:
    """Whatever it died of; only a revoked credential ends them."""
    stop, tokens = asyncio.Event(), iter(["", TOKEN])

    def token() -> str:
        given = next(tokens, TOKEN)
        if not given:
            raise SettingsUnusable("resolver.token_file: /t: No such file or directory")
        return given

    liveness = Liveness(replace(resolver(intake), token=token), spool)
    liveness.registered(Binding("ten", frozenset(), lease=timedelta(milliseconds=30)))
    with structlog.testing.capture_logs() as logged:
        beating = asyncio.create_task(liveness.beat(stop))
        await until(lambda: len(intake.heartbeats) >= 2)
        stop.set()
        await asyncio.wait_for(beating, 10)
    assert [one["said"] for one in logged if "heartbeat" in one["event"]] == [
        "resolver.token_file: /t: No such file or directory"
    ]


def test_a_run_whose_token_is_gone_while_it_sends_keeps_what_it_fetched(
    shop: Shop, sending: Path, double: Intake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends as one that could not send, with what is missing; the next run sends."""
    monkeypatch.delenv("PRW_COLLECT_RESOLVER__TOKEN")
    file = tmp_path / "token"
    file.write_text(TOKEN)
    text = sending.read_text("utf-8").replace('worker="cw"', f'worker="cw"\ntoken_file="{file}"')
    sending.write_text(text, "utf-8")
    shop(a=page("A"))

    class Registered(list[RegisterRequest]):
        def append(self, request: RegisterRequest) -> None:
            """The file is gone as soon as the collector is known."""
            super().append(request)
            file.unlink()

    double.registered = Registered()
    result = invoke("run", "-c", sending, "--json")
    assert (summary(result)["kept"], len(double.captures)) == (1, 0)
    assert result.exit_code == 1
    assert "token_file" in result.stderr
    file.write_text(TOKEN)
    double.registered = []
    assert invoke("run", "-c", sending, "--json").exit_code == 0
    assert len(double.captures) == 1


def test_a_collector_that_keeps_nothing_passes_nothing_that_a_bad_run_held(
    site: Site, shop: Shop, sending: Path, double: Intake
) -> None:
    """The resolver's checkpoint stays where it was, and the next run sends both."""
    bounds = 'bounds = [{ measure = "records", minimum = 2 }]\ncurrency = "EUR"'
    sending.write_text(sending.read_text("utf-8").replace('currency = "EUR"', bounds), "utf-8")
    shop(a=page("A"), b=answer(b"no title"))
    run = ("run", "-c", sending, "--ephemeral", "--json")
    assert invoke(*run).exit_code == 1
    assert (len(double.captures), double.checkpoints) == (0, {})
    site.serve("/p/b", page("B"))
    assert invoke(*run).exit_code == 0
    assert len(double.captures) == 2
    assert double.checkpoints["src_list", "list", ""].state == '{"done":2}'
