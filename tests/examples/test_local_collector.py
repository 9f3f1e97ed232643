"""The collector in thirty lines: it runs, keeps what it fetched, and prints what was stated."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import prw_examples.local_collector as script
from prw_sdk.spool.folder import Spool
from prw_sdk.testing.server import answer, serving

PRODUCT = b"""<!doctype html><script type="application/ld+json">{"@type": "Product", "name": "Drive",
"sku": "D-1", "offers": {"price": "12.90", "priceCurrency": "EUR", "seller": {"name": "Halden Parts"}}}</script>"""


def test_it_has_at_most_thirty_lines() -> None:
    """As the guide says."""
    assert len(Path(script.__file__).read_text("utf-8").splitlines()) <= 30


async def test_it_collects_into_a_spool_and_prints_records(tmp_path: Path) -> None:
    """Run twice: the second run finds nothing new, and prints the same."""
    with serving() as site:
        urls = f"<urlset><url><loc>{site.url('/p')}</loc></url></urlset>".encode()
        site.serve("/sitemap.xml", answer(urls, content_type="application/xml"))
        site.serve("/p", answer(PRODUCT))
        first = await run(site.origin, tmp_path / "spool", f"127.0.0.1:{site.port}")
        second = await run(site.origin, tmp_path / "spool", f"127.0.0.1:{site.port}")
        listing = site.url("/p") + "#seller=Halden%20Parts"
        assert first == second == f"{listing}\tDrive\t12.90\n"
    spool = Spool.existing(tmp_path / "spool")
    assert len(list(spool.ledger.captures())) == 1
    spool.close()


async def run(*arguments: object) -> str:
    """Run the script; what it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "prw_examples.local_collector"),
        *map(str, arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()
