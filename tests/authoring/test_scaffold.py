"""`prw adapter new` and `check`: from a name to a list of what is left to do, and to a green suite."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from prw_sdk.testing.server import Site, answer
from tests.authoring.project import Project, invoke, product


def test_a_new_project_is_checked_without_installation_and_says_what_to_do(
    project: Project,
) -> None:
    """The first check of a scaffold fails with status 1 and names what to declare and what to record."""
    result = invoke("check")
    assert result.exit_code == 1, result.output
    for said in (
        "no surface census: write surfaces",
        "no field inventory: write fields",
        "no merchant_field",
        "prw adapter record URL",
        "inventory.py:",
    ):
        assert said in result.output, said


def test_a_declared_and_recorded_project_passes(project: Project, site: Site) -> None:
    """With an inventory and three fixtures the suite writes what it read, fails once, and is green then."""
    project.declare()
    site.serve("/lamp-1", product())
    site.serve("/lamp-2", product("Floor lamp", "LMP-2"))
    for path in ("/lamp-1", "/lamp-2", "/gone"):
        recorded = project.record(site, path)
        assert recorded.exit_code == 0, recorded.output
    first = invoke("check", "--json")
    assert first.exit_code == 1
    (told,) = json.loads(first.stdout)
    assert [one["what"] for one in told["to_do"]] == ["output is as it was looked at"]
    expected = json.loads((project.folder / "fixtures/lamp-1/expected.json").read_text("utf-8"))
    assert expected["outcome"] == "records"
    second = invoke("check", project.name)
    assert second.exit_code == 0, second.output
    assert "checks passed" in second.output


def test_a_broken_claim_is_a_thing_to_do(project: Project, site: Site) -> None:
    """A field that is declared and stated by no fixture is named in the list."""
    inventory = 'FIELDS = {**FIELDS, "gtin": Stored("core:gtin")}'
    project.declare()
    path = project.folder / "src" / project.package / "inventory.py"
    path.write_text(f"{path.read_text('utf-8')}\n{inventory}\n", "utf-8")
    site.serve("/lamp-1", product())
    assert project.record(site, "/lamp-1").exit_code == 0
    result = invoke("check")
    assert result.exit_code == 1
    assert "'gtin' is stored, and no fixture states it" in result.output


def test_the_checks_process_reaches_no_network(project: Project) -> None:
    """An adapter that connects to the network while it is loaded is refused by the suite's process."""
    module = project.folder / "src" / project.package / "inventory.py"
    # loaded by the command itself it only notes that it was; under pytest it connects
    reaches = """
import sys
if "pytest" in sys.modules:
    import socket
    socket.create_connection(("192.0.2.1", 80), timeout=1)
"""
    module.write_text(f"{module.read_text('utf-8')}{reaches}", "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "from prw_base.cli import main; main()", "adapter", "check"],
        cwd=project.folder,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1
    assert "the network is blocked" in done.stdout


@pytest.mark.parametrize(
    "name", ["Lamp", "lamp_shop", "1lamp", "lamp-", "json", "class", "prw-sdk", "../lamp", "a" * 70]
)
def test_a_name_that_would_not_work_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that are no adapter's, or are taken by Python or a package, are refused with what to write."""
    monkeypatch.chdir(tmp_path)
    result = invoke("new", name)
    assert result.exit_code == 2
    assert "write" in result.stderr
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with something in it is left alone; another one can be named."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept-shop").mkdir()
    (tmp_path / "kept-shop" / "mine.txt").write_text("mine", "utf-8")
    refused = invoke("new", "kept-shop")
    assert refused.exit_code == 2
    assert "--folder" in refused.stderr
    assert [one.name for one in (tmp_path / "kept-shop").iterdir()] == ["mine.txt"]
    assert invoke("new", "kept-shop", "--folder", tmp_path / "other").exit_code == 0
    assert (tmp_path / "other" / "src" / "kept_shop" / "adapter.py").exists()


def test_outside_of_a_project_an_adapter_is_to_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no project is, the message lists what is installed."""
    monkeypatch.chdir(tmp_path)
    result = invoke("check")
    assert result.exit_code == 2
    assert "this folder is no adapter's project: name one (" in result.stderr
    assert "schemaorg" in result.stderr
    unknown = invoke("check", "no-such-adapter")
    assert unknown.exit_code == 2
    assert "no plugin brings the adapter 'no-such-adapter'" in unknown.stderr


def test_the_scaffold_is_as_the_formatter_has_it(project: Project) -> None:
    """What is scaffolded needs no tidying first."""
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length=100", "--check", "."],
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_a_page_of_many_products_has_a_record_for_each(project: Project, site: Site) -> None:
    """The scaffold's reader keeps the records of one page apart."""
    project.declare()
    one, two = (product(f"Lamp {n}", f"L{n}").partition(b"\r\n\r\n")[2] for n in (1, 2))
    site.serve("/both", answer(one + two))
    result = invoke("try", site.url("/both"), "--allow-private", "--json")
    assert result.exit_code == 0, result.output
    records = json.loads(result.stdout)["records"]
    assert len({record["listing_key"] for record in records}) == 2
