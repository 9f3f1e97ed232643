"""`prw adapter diff` and `coverage`: a spool read again by a version that reads otherwise."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from prw_sdk.spool.folder import Spool
from prw_sdk.testing.server import Site
from tests.authoring.project import INVENTORY, Project, invoke, lines

OTHER = INVENTORY.replace('"mpn": Stored("core:mpn"),', '"mpn": Excluded("a number of the shop"),')


def told(project: Project, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as a user runs it; it has one thread, so that readers are forked."""
    program = [sys.executable, "-c", "from prw_base.cli import main; main()", "adapter"]
    return subprocess.run(
        [*program, *(str(one) for one in arguments)],
        cwd=project.folder,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_a_spool_that_reads_as_before_has_no_differences(project: Project, site: Site) -> None:
    """What the run read is what is read again: status 0."""
    project.declare()
    spool = project.collected(site, 3)
    result = invoke("diff", spool, "--json")
    assert result.exit_code == 0, result.output
    (summary,) = lines(result)
    assert summary == {
        "same": 3,
        "changed": 0,
        "not_read_before": 0,
        "not_readable": 0,
        "claims": [],
    }


def test_removed_claims_are_told_by_capture_and_counted(project: Project, site: Site) -> None:
    """A field that is stored no more shows as a removed claim of each capture, over several processes in order."""
    project.declare()
    spool = project.collected(site, 40)
    project.declare(OTHER)
    done = told(project, "diff", spool, "--json", "--processes", 2)
    assert done.returncode == 1, done.stderr
    *captures, summary = (json.loads(line) for line in done.stdout.splitlines())
    assert summary["claims"] == [{"attribute": "core:mpn", "how": "removed", "claims": 40}]
    assert len({one["native_id"] for one in captures}) == 40
    assert all(len(one["changes"]) == 1 for one in captures)
    kept = Spool(spool)
    assert [one["native_id"] for one in captures] == [
        one.key.native_id for one in kept.ledger.captures()
    ]
    kept.close()


def test_a_saved_reading_is_what_later_ones_are_held_against(project: Project, site: Site) -> None:
    """With --save the new reading counts; the next diff finds nothing."""
    project.declare()
    spool = project.collected(site, 2)
    project.declare(OTHER)
    assert told(project, "diff", spool, "--save").returncode == 1
    again = told(project, "diff", spool)
    assert again.returncode == 0, again.stdout
    project.declare()
    back = told(project, "diff", spool)
    assert back.returncode == 1
    assert "+ 0 core:mpn: 'LMP-0'" in back.stdout


def test_another_checkout_can_be_compared_with(project: Project, site: Site) -> None:
    """--against reads with the modules of that folder, and --save of nothing is needed."""
    project.declare()
    spool = project.collected(site, 2)
    older = project.folder.parent / "older"
    shutil.copytree(project.folder, older)
    project.declare(OTHER)
    done = told(project, "diff", spool, "--against", older)
    assert done.returncode == 1, done.stderr
    assert "- 0 core:mpn: 'LMP-1'" in done.stdout
    same = told(project, "diff", spool, "--against", project.folder)
    assert same.returncode == 0, same.stdout


def test_a_spool_of_which_nothing_is_known_says_how_to_begin(project: Project, site: Site) -> None:
    """A spool of an earlier release holds no readings: the message names --save and --against."""
    project.declare()
    spool = project.collected(site, 1)
    _forget(spool)
    result = invoke("diff", spool)
    assert result.exit_code == 2
    assert "--save" in result.stderr
    assert "--against" in result.stderr
    assert invoke("diff", spool, "--save").exit_code == 0
    assert invoke("diff", spool).exit_code == 0


def _forget(folder: Path) -> None:
    spool = Spool(folder)
    with spool.readings._file.writing() as connection:
        connection.execute("DELETE FROM readings")
    spool.close()


def test_a_reader_that_breaks_is_told_and_the_rest_is_read(project: Project, site: Site) -> None:
    """What an adapter raises is a line of its capture, and status 1."""
    project.declare()
    spool = project.collected(site, 3)
    module = project.folder / "src" / project.package / "adapter.py"
    text = module.read_text("utf-8")
    mark = '        """A record for each Product of the page."""\n'
    assert mark in text
    broken = f'{mark}        if capture.native_record_id.endswith("p1"):\n            raise ValueError("oh")\n'
    module.write_text(text.replace(mark, broken), "utf-8")
    done = told(project, "diff", spool)
    assert done.returncode == 1
    assert "READ_FAILED: read raised ValueError: oh" in done.stdout
    covered = told(project, "coverage", spool)
    assert covered.returncode == 1
    assert "not read: 1 captures" in covered.stdout
    assert "2 captures of pages" in covered.stdout


def test_coverage_counts_every_declared_field(project: Project, site: Site) -> None:
    """Each declared field has its captures, its share and its kinds; what is never met is named."""
    project.declare(INVENTORY.replace('"image"', '"gtin": Stored("core:gtin"),\n    "image"'))
    spool = project.collected(site, 3)
    result = invoke("coverage", spool, "--json", "--verify")
    assert result.exit_code == 0, result.output
    (covered,) = json.loads(result.stdout)
    fields = {one["field"]: one for one in covered["fields"]}
    assert fields["offers.price"] == {
        "field": "offers.price",
        "how": "stored",
        "target": "offer:price",
        "captures": 3,
        "share": 1.0,
        "kinds": ["number"],
        "names": ["offers.price"],
    }
    assert covered["never"] == ["gtin"]
    assert covered["parts"] == {"page": 3}
    shapes = {one["attribute"]: one for one in covered["locators"]}
    assert shapes["core:mpn"]["claims"] == 3
    assert shapes["core:mpn"]["astray"] == 0


def test_coverage_names_what_nobody_declared(project: Project, site: Site) -> None:
    """Replay rule 14 over a whole spool, on several processes: an undeclared name ends with status 1."""
    project.declare()
    spool = project.collected(site, 40)
    project.declare(INVENTORY.replace('    "mpn": Stored("core:mpn"),\n', ""))
    done = told(project, "coverage", spool, "--processes", 2)
    assert done.returncode == 1, done.stderr
    assert "met, and not declared: mpn" in done.stdout
    assert "40 captures of pages" in done.stdout


def test_damaged_evidence_is_told(project: Project, site: Site) -> None:
    """A capture whose bytes are not whole is a line, and the rest is read."""
    project.declare()
    spool = project.collected(site, 2)
    blob = next(one for one in (spool / "blobs").glob("*/*") if one.is_file())
    blob.write_bytes(b"cut")
    result = invoke("diff", spool)
    assert result.exit_code == 1
    assert "EVIDENCE_DAMAGED" in result.output


def test_a_folder_that_is_no_spool_is_refused(project: Project, tmp_path: Path) -> None:
    """No empty spool is made where none is; a source that is not there is told with those that are."""
    assert project.folder.is_dir()
    for command in ("diff", "coverage"):
        result = invoke(command, tmp_path / "nowhere")
        assert result.exit_code == 2
        assert "holds no spool" in result.stderr
    assert not (tmp_path / "nowhere").exists()


def test_a_reader_process_that_dies_is_told(project: Project, site: Site) -> None:
    """An adapter that takes its process down ends the command with what to do, and never hangs it."""
    project.declare()
    spool = project.collected(site, 40)
    module = project.folder / "src" / project.package / "adapter.py"
    text = module.read_text("utf-8")
    mark = '        """A record for each Product of the page."""\n'
    dies = f"{mark}        import os\n        os._exit(9)\n"
    module.write_text(text.replace(mark, dies), "utf-8")
    done = told(project, "coverage", spool, "--processes", 2)
    assert done.returncode == 2, done.stdout
    assert "--processes 1" in done.stderr
