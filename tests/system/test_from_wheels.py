"""The distributions as their users get them: wheels in an environment that knows nothing of this repository."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECTS = (*ROOT.glob("*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml"))
DISTRIBUTIONS = sorted(path.parent for path in PROJECTS if (path.parent / "src").is_dir())
OURS = ("prw", "_editable_impl_prw")
PRW = "import sys; from prw_base.cli import main; sys.argv[0] = 'prw'; sys.exit(main())"
LOOK = """
import sys
from pathlib import Path
import prw_sdk
from prw.errors import Code, PrwError
from prw_sdk.plugins import load
from prw_sdk.spool.folder import Spool
assert Path(prw_sdk.__file__).is_relative_to(sys.prefix), prw_sdk.__file__
assert (Path(prw_sdk.__file__).parent / "py.typed").is_file()
assert PrwError(Code.CHECKPOINT_CONFLICT, "x").entry.http == 409
assert load().adapters == {}
Spool(Path("spool")).close()
"""


def wheel(project: Path, folder: Path) -> Path:
    """The wheel of a distribution, built in that folder by its own build backend."""
    command = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    name = tomllib.loads((project / "pyproject.toml").read_text())["project"]["name"]
    (found,) = folder.glob(f"{name.replace('-', '_')}-*.whl")
    return found


@pytest.mark.parametrize("project", DISTRIBUTIONS, ids=lambda one: one.name)
def test_a_wheel_holds_every_file_of_its_packages(project: Path, tmp_path: Path) -> None:
    """Templates, SQL, examples, marks of types, pages: whatever lies in the sources, and nothing else."""
    source = project / "src"
    files = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel(project, tmp_path)) as built:
        held = {name for name in built.namelist() if ".dist-info/" not in name}
    assert held == files


def test_what_is_generated_from_anothers_proto_comes_with_its_licence(tmp_path: Path) -> None:
    """The licence lies with the description of the distribution."""
    with zipfile.ZipFile(wheel(ROOT / "proto", tmp_path)) as built:
        (licence,) = (name for name in built.namelist() if name.endswith("validate/LICENSE"))
        assert b"Apache License" in built.read(licence)


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An environment with the wheels of the SDK, the locked dependencies, and nothing of the checkout."""
    home = tmp_path / "home"
    venv.create(home, symlinks=True)
    (packages,) = home.glob("lib/python*/site-packages")
    for one in Path(sysconfig.get_path("purelib")).iterdir():
        # dependencies are taken as they are installed here: what is locked, without asking anybody for it
        if not one.name.startswith(OURS) and one.suffix != ".pth":
            (packages / one.name).symlink_to(one)
    for name in ("proto", "base", "sdk"):
        with zipfile.ZipFile(wheel(ROOT / name, tmp_path)) as built:
            built.extractall(packages)
    return home / "bin" / "python"


def run(python: Path, folder: Path, *program: str) -> subprocess.CompletedProcess[str]:
    """A program in that environment, which is told nothing of this one."""
    bare = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        (str(python), *program),
        cwd=folder,
        env={**bare, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_sdk_from_its_wheels_scaffolds_and_checks_an_adapter(
    python: Path, tmp_path: Path
) -> None:
    """A new adapter's first run of the suite fails with what there is to do; the spool has its schema."""
    looked = run(python, tmp_path, "-c", LOOK)
    assert looked.returncode == 0, looked.stderr
    made = run(python, tmp_path, "-c", PRW, "adapter", "new", "demo")
    assert made.returncode == 0, made.stderr
    checked = run(python, tmp_path / "demo", "-c", PRW, "adapter", "check")
    assert checked.returncode == 1, checked.stdout + checked.stderr
    told = " ".join(checked.stdout.split())
    assert "demo 0.1.0: 3 things to do" in told
    assert "no surface census" in told
    assert "0 fixtures, and 3 are needed" in told
    example = run(python, tmp_path, "-c", PRW, "collect", "example")
    assert tomllib.loads(example.stdout)["source"]
