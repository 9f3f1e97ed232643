"""Plugins that would end the process, and what a run says of those that it goes without."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from prw_sdk import plugins
from prw_sdk.collect.reading import foreign
from prw_sdk.evidence import Capture, Record
from prw_sdk.hookspecs import hookimpl
from prw_sdk.plugins import GROUP, Plugins, Problem, RunObservers, load, vocabularies
from prw_sdk.spool.folder import Spool
from tests.sdk import jobs
from tests.sdk.catalogue_adapter import ListAdapter
from tests.sdk.commanding import INSTALLED, invoke, summary
from tests.sdk.jobs import page
from tests.sdk.misbehaving import Site
from tests.sdk.running import item, run

Shop = Callable[..., None]


class Ends(BaseException):
    """No `Exception`, and no wish of the operator."""


@pytest.fixture
def installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], EntryPoint]]:
    """Install a distribution ``acme-shop`` whose plugin ``acme`` is that source text."""
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    def install(text: str) -> EntryPoint:
        meta = tmp_path / "site" / "acme_shop-1.0.dist-info"
        meta.mkdir(parents=True)
        (tmp_path / "site" / "prw_test_acme.py").write_text(text, "utf-8")
        (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-shop\nVersion: 1.0\n")
        (meta / "entry_points.txt").write_text(f"[{GROUP}]\nacme = prw_test_acme\n")
        (point,) = Distribution.at(meta).entry_points
        return point

    yield install
    sys.modules.pop("prw_test_acme", None)


_HOOK = "from prw_sdk.hookspecs import hookimpl\n@hookimpl\ndef prw_adapters():\n    "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys\nsys.exit(0)", "SystemExit"),
        ("class Ends(BaseException): ...\nraise Ends('no licence')", "Ends: no licence"),
        (f"{_HOOK}raise SystemExit(0)", "SystemExit"),
        (f"{_HOOK}raise RuntimeError('no key')", "RuntimeError: no key"),
    ],
)
def test_a_plugin_that_would_end_the_process_is_a_problem_that_names_its_distribution(
    installed: Callable[[str], EntryPoint], text: str, said: str
) -> None:
    """Whatever it raises, at its import or in its hook."""
    found = load([installed(text)])
    (problem,) = found.problems
    assert "acme-shop" in str(problem)
    assert said in str(problem)


def test_an_operator_who_interrupts_while_plugins_load_is_heeded(
    installed: Callable[[str], EntryPoint],
) -> None:
    """Ctrl-C is nobody's defect."""
    with pytest.raises(KeyboardInterrupt):
        load([installed("raise KeyboardInterrupt")])


def test_hooks_that_would_end_the_process_stop_nothing() -> None:
    """Vocabularies and observers are had from the others."""
    module = ModuleType("prw_test_ending")

    @hookimpl
    def prw_vocabulary() -> str:
        raise Ends("words")

    @hookimpl
    def prw_run_observer() -> Callable[[object], None]:
        return lambda event: sys.exit(0)

    module.prw_vocabulary = prw_vocabulary  # type: ignore[attr-defined]  # a module made here
    module.prw_run_observer = prw_run_observer  # type: ignore[attr-defined]  # a module made here
    sys.modules[module.__name__] = module
    try:
        point = EntryPoint("ending", module.__name__, GROUP)
        _, problems = vocabularies([point])
        observers = RunObservers([point])
        observers("started")
    finally:
        del sys.modules[module.__name__]
    assert "Ends: words" in str(problems[0])
    assert "SystemExit" in str(observers.problems[0])


class Leaving(ListAdapter):
    """Ends the process where a page says so."""

    def read(self, capture: Capture) -> list[Record]:
        """Leave, or read."""
        if "leave" in capture.part("page").text():
            sys.exit(0)
        return list(super().read(capture))


async def test_an_adapter_that_would_end_the_process_fails_for_that_page_alone(
    site: Site, shop: Shop, spool: Spool
) -> None:
    """Its page is kept, and the others are read."""
    shop(a=page("leave"), b=page("B"))
    report = await run(jobs.list_job(site, Leaving()), spool)
    assert (report.kept, report.unreadable, report.records) == (2, 1, 1)
    assert "SystemExit" in (item(spool, "a").verdict.error or "")


def test_a_stop_of_the_run_is_no_failure_of_an_adapter() -> None:
    """A cancelled task ends as one."""
    with pytest.raises(asyncio.CancelledError), foreign("fetch"):
        raise asyncio.CancelledError


def test_a_run_says_which_plugins_it_goes_without_and_why(
    shop: Shop, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, as a JSON line where there is no terminal; the other plugins' sources are run."""
    problem = Problem("acme", "could not be loaded: RuntimeError: no key", distribution="acme-shop")
    lacking = Plugins(INSTALLED.adapters, (problem,), INSTALLED.versions)
    monkeypatch.setattr(plugins, "load", lambda: lacking)
    shop(a=page("A"))
    result = invoke("run", "-c", config, "--local", tmp_path / "spool", "--json")
    assert (result.exit_code, summary(result)["stored"]) == (0, 1)
    events = [json.loads(line) for line in result.stderr.splitlines()]
    assert [one for one in events if one["event"] == "left_out"] == [
        {"event": "left_out", "code": "PLUGIN_LEFT_OUT", "error": str(problem)}
    ]
    told = invoke("records", tmp_path / "spool")
    assert str(problem) in told.stderr
