"""Generate the Python messages, stubs and their types from the `.proto` files beside this program.

`python proto/generate.py` writes `proto/src`; with `--check` it writes to a temporary folder and says what differs.
"""

from __future__ import annotations

import argparse
import filecmp
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).resolve().parent
GENERATED = ("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*_pb2_grpc.pyi")
PACKAGE = '"""Generated from the contract by proto/generate.py; do not edit."""\n'


def main() -> int:
    """Generate, or compare where `--check` is given; the exit status is 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, report drift")
    target = ROOT / "src"
    if not parser.parse_args().check:
        _remove_generated(target)
        _generate(target)
        return 0
    with tempfile.TemporaryDirectory() as fresh:
        _generate(Path(fresh))
        drift = sorted(_drift(Path(fresh), target))
    print("\n".join(f"drift: {line}" for line in drift) or "generated code matches the contract")
    return 1 if drift else 0


def _generate(target: Path) -> None:
    protos = sorted(str(path.relative_to(ROOT)) for path in _protos())
    services = [name for name in protos if _declares_service(ROOT / name)]
    _protoc(protos, f"--python_out={target}", f"--mypy_out=quiet:{target}")
    if services:
        _protoc(
            services, f"--grpc_python_out={target}", f"--mypy_grpc_out=quiet,only_async:{target}"
        )
    for folder in _packages(target):
        (folder / "__init__.py").write_text(PACKAGE, encoding="utf-8")


def _protos() -> Iterator[Path]:
    yield from (ROOT / "prw").rglob("*.proto")
    # The Python protovalidate carries no google.protobuf module for its own options, which every message imports.
    yield from (ROOT / "buf").rglob("*.proto")


def _declares_service(path: Path) -> bool:
    return any(line.startswith("service ") for line in path.read_text("utf-8").splitlines())


def _protoc(protos: list[str], *outputs: str) -> None:
    scripts = Path(sys.executable).parent
    plugins = [
        f"--plugin={name}={scripts / name}" for name in ("protoc-gen-mypy", "protoc-gen-mypy_grpc")
    ]
    well_known = files("grpc_tools") / "_proto"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT}", f"-I{well_known}"]
    subprocess.run([*command, *plugins, *outputs, *protos], check=True)


def _packages(target: Path) -> list[Path]:
    """Folders below `prw` on the way to generated modules; `buf` stays a namespace that others may share."""
    top = target / "prw"
    modules = [path.parent for path in top.rglob("*_pb2.py")]
    return sorted(
        {folder for leaf in modules for folder in (leaf, *leaf.parents) if top in folder.parents}
    )


def _generated(target: Path) -> set[Path]:
    found = {path for pattern in GENERATED for path in target.rglob(pattern)}
    found |= {folder / "__init__.py" for folder in _packages(target)}
    return {path.relative_to(target) for path in found if path.exists()}


def _remove_generated(target: Path) -> None:
    for name in _generated(target):
        (target / name).unlink()
    for cache in target.rglob("__pycache__"):
        shutil.rmtree(cache)


def _drift(fresh: Path, kept: Path) -> Iterator[str]:
    wanted, present = _generated(fresh), _generated(kept)
    yield from (f"missing {name}" for name in wanted - present)
    yield from (f"left over {name}" for name in present - wanted)
    for name in wanted & present:
        if not filecmp.cmp(fresh / name, kept / name, shallow=False):
            yield f"differs {name}"


if __name__ == "__main__":
    sys.exit(main())
