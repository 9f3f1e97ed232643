"""The documentation is true: its links lead somewhere, and each of its code blocks runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from prw.errors import Code, PrwError
from prw_resolver.access.model import ClientGrant
from prw_sdk.evidence import AdapterVersion, Capture, Part
from prw_sdk.locate import leads_back
from tests.resolver.collecting import CATALOG, running
from tests.support.pages import part_of

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
FENCE = re.compile(
    r"^```(?P<language>\w+)(?: (?P<mark>\w+))?\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"\]\((?P<target>[^)#:]+)(?:#[^)]*)?\)")
WALK = ("walk", "author")
"""Marks of blocks that go on where the one before has ended; an author types what is in the latter."""
MOST_AUTHORED = 60
LONGEST = 280
"""Seconds of one page's blocks; the guide runs the conformance suite three times."""
BY_CI = ("make demo", "make test")
"""What CI itself runs, whole."""


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block; its mark says what it needs to run."""

    page: Path
    language: str
    mark: str
    code: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.code.splitlines()[0][:40]}"


def blocks() -> list[Block]:
    """Every fenced block of every page."""
    return [
        Block(page, found["language"], found["mark"] or "", found["code"])
        for page in PAGES
        for found in FENCE.finditer(page.read_text("utf-8"))
    ]


def scripts() -> list[Block]:
    """The shell blocks that run by themselves; those of one page marked ``walk`` or ``author`` are one script."""
    shell = [block for block in blocks() if block.language == "sh"]
    alone = [block for block in shell if block.mark not in {"demo", *WALK}]
    walks = [
        Block(
            page,
            "sh",
            "walk",
            "".join(held.code for held in shell if held.page == page and held.mark in WALK),
        )
        for page in PAGES
    ]
    return [*alone, *(walk for walk in walks if walk.code)]


SHELL = scripts()
PYTHON = [block for block in blocks() if block.language == "python"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    """A reader who follows a link finds what it names."""
    targets = [found["target"] for found in LINK.finditer(page.read_text("utf-8"))]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


@pytest.mark.timeout(LONGEST + 20)
@pytest.mark.parametrize("block", [b for b in SHELL if b.code.strip() not in BY_CI], ids=str)
def test_a_shell_block_runs(block: Block, tmp_path: Path) -> None:
    """A command in the docs works as it stands, in a folder of its own."""
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    paths = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": paths}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr}"


def test_an_adapter_takes_its_author_few_lines() -> None:
    """From nothing to a green suite, the guide has its author write at most sixty lines."""
    written = [block.code for block in blocks() if block.mark == "author"]
    assert written
    assert sum(len(code.splitlines()) for code in written) <= MOST_AUTHORED


def defined(page: str) -> dict[str, Any]:
    """What the Python blocks of a page define, run one after the other."""
    names: dict[str, Any] = {}
    for block in PYTHON:
        if block.page.name == page:
            exec(compile(block.code, str(block), "exec"), names)  # noqa: S102  the docs' own code
    return names


async def test_the_contracts_calls_read_a_stream(
    resolver_database: dict[str, str], tmp_path: Path
) -> None:
    """The example of the page on calling the services reads from a resolver that serves."""
    example = defined("contract.md")
    async with running(resolver_database, tmp_path / "state") as resolver:
        grant = ClientGrant("ten_synth_a", CATALOG, "reader", ("changes:read",))
        token = await resolver.token(grant)
        assert await example["read_all"](resolver.target, token) == 0
        assert not await example["is_pruned"](resolver.target, token, 1, 0)
        with pytest.raises(PrwError) as refused:
            await example["is_pruned"](resolver.target, token, 1, 7)
    assert refused.value.code is Code.CURSOR_AHEAD


def test_the_guides_adapter_loads_and_reads_a_page() -> None:
    """The adapter of the author's guide is whole: its declarations hold, and its locators lead back."""
    adapter = defined("write-an-adapter.md")["LumenWeb"]
    assert isinstance(adapter, type)
    capture = _capture(part_of(PRODUCT))
    (record,) = adapter().read(capture)
    assert {claim.attribute: claim.value_as_stated for claim in record.claims} == {
        "core:title": "Strata P5 & heatsink",
        "core:mpn": "CVN-SP5-1T0-HS",
    }
    assert record.merchant is not None
    assert record.merchant.value_as_stated == "Lumen Parts"
    assert all(leads_back(claim, capture) for claim in record.claims)


PRODUCT = """<!doctype html><html><body><dl class="facts">
<dt>Name</dt><dd>Strata P5 &amp; heatsink</dd><dt>Part number</dt><dd>CVN-SP5-1T0-HS</dd>
<dt>Sold by</dt><dd>Lumen Parts</dd><dt>You may also like</dt><dd>others</dd></dl></body></html>"""


def _capture(part: Part) -> Capture:
    return Capture(
        source_id="src_lumen",
        native_record_id=part.url_asked,
        captured_at=part.fetched_at,
        adapter=AdapterVersion("lumen-web", "1.0.0"),
        parts=(part,),
    )
