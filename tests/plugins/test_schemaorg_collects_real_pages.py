"""Real pages served on loopback, and collected by the real runner into a real spool."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from prw_plugin_schemaorg import SchemaOrg
from prw_plugin_schemaorg.settings import SchemaOrgSettings
from prw_sdk.adapter import NotARecord, Source
from prw_sdk.collect import SourceJob, collect
from prw_sdk.locate import leads_back
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import Outcome
from tests.plugins.reading import claims
from tests.sdk.jobs import QUICK, net_config
from tests.sdk.misbehaving import Site, answer, serving

SAMPLES = os.environ.get("PRW_SAMPLES")
pytestmark = pytest.mark.skipif(SAMPLES is None, reason="PRW_SAMPLES names no folder of real pages")

WITHOUT = ("amazon.html", "gh-lst-nas-01.html")


def serve_pages(site: Site) -> list[str]:
    """Put every saved page on the site, and a sitemap that lists them; their names."""
    saved = sorted((Path(SAMPLES or "") / "pages").glob("*.html"))
    for path in saved:
        site.serve(f"/{path.name}", answer(path.read_bytes(), content_type="text/html"))
    rows = "".join(f"<url><loc>{site.url('/' + path.name)}</loc></url>" for path in saved)
    site.serve("/sitemap.xml", answer(f"<urlset>{rows}</urlset>".encode()))
    site.serve("/robots.txt", answer(f"Sitemap: {site.url('/sitemap.xml')}".encode()))
    return [path.name for path in saved]


async def test_every_real_page_is_collected_and_read_or_says_why_not(tmp_path: Path) -> None:
    """From the address to records whose locators lead back in the spooled bytes, or to a reason."""
    adapter, spool = SchemaOrg(), Spool(tmp_path / "spool")
    with serving() as site:
        names = serve_pages(site)
        source = Source("src_real", SchemaOrgSettings(site=site.origin))
        job = SourceJob("ten_synth_a", source, adapter, net_config(site))
        (report,) = await collect([job], spool, QUICK)
    assert report.failure is None
    assert report.outcomes[Outcome.REJECTED] == len(WITHOUT)
    assert report.outcomes[Outcome.STORED] == len(names) - len(WITHOUT)
    unread = []
    for kept in spool.ledger.captures():
        held = spool.capture(kept)
        try:
            records = tuple(adapter.read(held))
        except NotARecord:
            unread.append(held.native_record_id.rpartition("/")[2])
            continue
        assert records
        assert all(leads_back(claim, held) for one in records for claim in claims(one))
    spool.close()
    assert sorted(unread) == sorted(WITHOUT)
