"""Make `.venv` from the lock with nothing but Python; do nothing where it is already right.

What counts as right is written into a stamp at the very end, so an environment that was half made, moved,
copied, made from another lock, or whose Python was replaced is made anew. Where only a member's declarations changed,
the members are installed again.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / ".made-from"
LOCK = ROOT / "requirements.lock"


def main() -> int:
    """Make the environment unless its stamp says it is right; two at once wait for each other."""
    with (ROOT / ".venv.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        wanted, found = _stamp(), _found()
        if found[:1] != wanted[:1]:
            _make()
        if found != wanted:
            _install_members()
            STAMP.write_text("\n".join(wanted), encoding="utf-8")
    return 0


def _found() -> list[str]:
    return STAMP.read_text("utf-8").splitlines() if STAMP.exists() and _works() else []


def _works() -> bool:
    """Whether it still starts and finds its packages: the Python below it may have been replaced."""
    program = VENV / "bin" / "python"
    if not program.exists():
        return False
    tried = subprocess.run([program, "-c", "import prw_base"], check=False, capture_output=True)
    return tried.returncode == 0


def _stamp() -> list[str]:
    """Two hashes: what the environment is and where it stands; what the members declare."""
    base = _hash(str(VENV).encode(), LOCK.read_bytes())
    return [base, _hash(*((member / "pyproject.toml").read_bytes() for member in members()))]


def _hash(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def members() -> list[Path]:
    """The workspace's distributions, as the root pyproject.toml names them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    workspace = settings["tool"]["uv"]["workspace"]
    found = {path for pattern in workspace["members"] for path in ROOT.glob(pattern)}
    return sorted(path for path in found if (path / "pyproject.toml").exists())


def _make() -> None:
    print("making .venv from requirements.lock (about a minute, downloads aside)", flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    _pip("--require-hashes", "-r", str(LOCK))


def _install_members() -> None:
    editable = [part for member in members() for part in ("-e", str(member))]
    _pip("--no-deps", "--no-build-isolation", *editable)


def _pip(*arguments: str) -> None:
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--quiet", *arguments], check=True)


if __name__ == "__main__":
    sys.exit(main())
