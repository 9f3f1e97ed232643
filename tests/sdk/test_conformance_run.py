"""`pytest --adapter NAME` as an author runs it: in a project of its own, installed or not."""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from prw_sdk.testing.guard import Reached, offline, without_chance, without_io
from prw_sdk.testing.subject import NoSuchAdapter, find
from tests.sdk import broken_shops
from tests.sdk.small_shop import Small, write_fixtures

ROOT = Path(__file__).resolve().parents[2]
MODULE = """
from tests.sdk.small_shop import Small
from prw_sdk.hookspecs import hookimpl


class Demo(Small):
    name = "demo"
    {more}


@hookimpl
def prw_adapters():
    return [Demo]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with an adapter that is not installed, and its fixtures."""
    folder = tmp_path / "demo"
    (folder / "src").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "demo"\n[project.entry-points."prw.adapters"]\ndemo = "prw_demo"\n'
        "[tool.pytest.ini_options]\n",
        "utf-8",
    )
    (folder / "src" / "prw_demo.py").write_text(MODULE.format(more="pass"), "utf-8")
    write_fixtures(folder / "fixtures")
    return folder


def check(
    project: Path, *arguments: str, adapter: str = "demo"
) -> subprocess.CompletedProcess[str]:
    """One run of the suite in that project."""
    command = [sys.executable, "-m", "pytest", "-q", f"--adapter={adapter}", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    return subprocess.run(
        command,
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_the_suite_runs_in_a_project_that_is_not_installed(project: Path) -> None:
    """The first run writes what was read and fails; the second passes, quickly."""
    first = check(project)
    assert first.returncode == 1, first.stdout + first.stderr
    assert "was written: look at it, then run again" in first.stdout
    second = check(project)
    assert second.returncode == 0, second.stdout + second.stderr
    assert " passed" in second.stdout
    assert "skipped" not in second.stdout


def test_a_faulty_declaration_is_told_with_what_to_write(project: Path) -> None:
    """The to-do list comes first; the rest waits for it."""
    module = MODULE.format(more="merchant_field = ''\n    fields = {}")
    (project / "src" / "prw_demo.py").write_text(module, "utf-8")
    done = check(project)
    assert done.returncode == 1
    assert "write fields = {...}" in done.stdout
    assert 'write merchant_field = "..."' in done.stdout
    assert "1 failed" in done.stdout


def test_an_adapter_that_there_is_not_is_an_error_of_usage(project: Path) -> None:
    """The message says which ones there are."""
    done = check(project, adapter="other")
    assert done.returncode == 4
    said = next(line for line in done.stderr.splitlines() if "no plugin brings" in line)
    assert "the adapter 'other'; there are: " in said
    assert " demo," in said


def test_a_project_without_fixtures_is_told_how_to_record_one(
    project: Path, tmp_path: Path
) -> None:
    """Wherever they should be."""
    done = check(project, f"--adapter-fixtures={tmp_path / 'none'}", "-k", "enough")
    assert done.returncode == 1
    assert "prw adapter record URL" in done.stdout


def test_a_plugin_that_cannot_be_loaded_is_told_why(project: Path) -> None:
    """Nothing else is known of it."""
    (project / "src" / "prw_demo.py").write_text("import no_such_module", "utf-8")
    done = check(project)
    assert done.returncode == 4
    assert "No module named 'no_such_module'" in done.stderr


def test_other_runs_of_pytest_are_left_alone(project: Path) -> None:
    """Without the option the plugin collects nothing and costs no imports."""
    (project / "test_own.py").write_text(
        "import sys\n\ndef test_own():\n    assert 'prw_sdk.testing.bench' not in sys.modules\n",
        "utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-q"]
    done = subprocess.run(
        command, cwd=project, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_own_tests_that_are_named_run_beside_the_suite_and_offline(project: Path) -> None:
    """They may not reach beyond this machine either."""
    (project / "test_own.py").write_text(
        "import socket\n\ndef test_own():\n    socket.create_connection(('192.0.2.1', 80), 1)\n",
        "utf-8",
    )
    done = check(project, "test_own.py", "-k", "own or sound")
    assert "the network is blocked: socket.getaddrinfo to '192.0.2.1'" in done.stdout
    assert "1 failed, 1 passed" in done.stdout


def test_an_installed_adapter_has_its_fixtures_beside_its_project(tmp_path: Path) -> None:
    """Whatever the folder that the suite is run in."""
    subject = find("schemaorg", tmp_path)
    assert subject.adapter.name == "schemaorg"
    assert subject.fixtures == ROOT / "plugins" / "schemaorg" / "fixtures"
    with pytest.raises(NoSuchAdapter, match="schemaorg"):
        find("nothing", tmp_path)


def test_the_network_is_blocked_and_loopback_is_not() -> None:
    """By address and by name, and only as long as it is asked for."""
    with offline():
        with pytest.raises(Reached, match=r"socket\.getaddrinfo to 'shop\.example'"):
            socket.getaddrinfo("shop.example", 80)
        assert socket.getaddrinfo("127.0.0.1", 80)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", 1), 1)


def test_what_reading_reaches_for_is_noted_although_it_is_hidden() -> None:
    """Files, processes, sockets; imports are let through."""
    with without_io(Small) as reached:
        for reach in (
            lambda: Path("/etc/hosts").read_text("utf-8"),
            lambda: subprocess.run(["true"], check=False),
            lambda: socket.create_connection(("127.0.0.1", 1), 1),
            lambda: list(Path("/").iterdir()),
        ):
            with pytest.raises(Reached):
                reach()
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("prw_sdk_no_such_module")
    assert [one.partition("(")[0] for one in reached] == [
        "open",
        "subprocess.Popen",
        "socket.getaddrinfo",
        "os.listdir",
    ]


def test_what_uses_a_clock_is_noted_and_put_back() -> None:
    """However it was imported."""
    names = vars(broken_shops)
    before = names["datetime"]
    with without_chance(broken_shops.AsksTheClock) as used:
        assert isinstance(before.now(), names["datetime"])
        names["datetime"](2026, 1, 2)
        names["datetime"].now()
        names["random"].choice([1])
    assert used == ["datetime.now", "random.choice"]
    assert names["datetime"] is before
