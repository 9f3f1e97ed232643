"""Halden Parts through the real collector and a real browser: whole, killed and resumed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from prw_sdk.evidence import Record
from prw_sdk.fetch.browser import missing
from prw_sdk.locate import leads_back
from prw_sdk.testing.server import Site, serving
from tests.browser.pages import descendants
from tests.plugins import halden
from tests.plugins.collecting import collect, kept, read
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")


@pytest.fixture
def site() -> Iterator[Site]:
    """The shop."""
    with serving() as running:
        halden.build(running)
        yield running


def value(record: Record, attribute: str) -> str | None:
    """The first value of an attribute."""
    found = (claim.value_as_stated for claim in record.claims if claim.attribute == attribute)
    return next(found, None)


def check(folder: Path, site: Site) -> None:
    """What one clean run leaves behind."""
    captures = kept(folder)
    names = sorted(capture.native_record_id.rpartition("/")[2] for capture in captures)
    assert names == ["990-1tb", "gone", "mx500", "p44-2tb"]
    for capture in captures:
        roles = {part.role for part in capture.parts}
        policies = {"policy.shipping", "policy.returns", "policy.warranty"}
        assert {"page", "page.source", "page.screenshot", "data"} | policies == roles
    records = {value(record, "core:title"): record for record in read(captures)}
    assert set(records) == {product["title"] for product in halden.PRODUCTS.values()}
    for record in records.values():
        assert record.merchant is not None
        assert record.merchant.value_as_stated == "Halden Parts"
    solidigm = records["Solidigm P44 Pro 2TB NVMe SSD"]
    assert value(solidigm, "offer:price") == "129,00 €"
    assert value(solidigm, "storage:capacity") == "2 TB"
    assert value(solidigm, "policy:returns") == halden.POLICIES["/returns"][0]
    home = next(one for one in captures if one.native_record_id.endswith("p44-2tb"))
    assert all(leads_back(claim, home) for claim in solidigm.claims)


async def test_a_shop_that_needs_a_browser_is_collected_whole(tmp_path: Path, site: Site) -> None:
    """Pages, screenshots, data and policies; each policy is asked for once a run, trackers never."""
    ran = await collect(tmp_path, halden.source(site))
    # the one that the shop lists and does not have is rejected, which is no trouble of the run's
    assert ran.status == 0, ran.told
    check(tmp_path, site)
    asked = [path for path, _ in site.requests]
    assert {path: asked.count(path) for path in halden.POLICIES} == dict.fromkeys(
        halden.POLICIES, 1
    )


@pytest.mark.parametrize("point", ["collect.after_fetch=kill@2", "collect.after_keep=kill@1"])
async def test_a_collector_killed_with_its_browser_open_ends_as_if_it_had_not_been(
    tmp_path: Path, site: Site, point: str
) -> None:
    """And no process of the browser outlives it."""
    # a short one: Chromium has a socket there, whose name may have 107 bytes
    place = tempfile.mkdtemp(prefix="prw")
    mark = f"TMPDIR={place}"
    os.environ["TMPDIR"] = place
    try:
        assert (await collect(tmp_path, halden.source(site), point)).status == -9
        await until(lambda: not with_mark(mark))
        ran = await collect(tmp_path, halden.source(site))
    finally:
        del os.environ["TMPDIR"]
        shutil.rmtree(place, ignore_errors=True)
    assert ran.status == 0, ran.told
    check(tmp_path, site)
    assert not with_mark(mark)
    assert not descendants(os.getpid())


def with_mark(mark: str) -> list[str]:
    """The processes of this machine that were started with that in their environment, wherever they hang now."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and folder.name != str(os.getpid()):
            try:
                if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
    return found
