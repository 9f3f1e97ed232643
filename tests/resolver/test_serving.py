"""The resolver as it is served: a page goes in, and an accepted item comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from prw.collector.v1 import evidence_pb2 as pb
from prw_plugin_schemaorg.adapter import SchemaOrg
from prw_resolver.access.model import COLLECTOR_SCOPES, ClientGrant
from prw_resolver.access.service import provision_client
from prw_resolver.bootstrap import build_issuer, open_parts
from tests.resolver.collecting import CATALOG, capture, found, part, settings_for
from tests.resolver.serving import Served, calling
from tests.support.waiting import until

PAGE = b"""<!doctype html><html lang="de"><head><title>Lumen X1</title>
<script type="application/ld+json">{"@context": "https://schema.org", "@type": "Product",
 "name": "Lumen X1 NVMe SSD 1 TB", "brand": {"@type": "Brand", "name": "Lumen"}, "mpn": "LX1-1T0",
 "gtin13": "4006381333931", "offers": {"@type": "Offer", "price": "89.90", "priceCurrency": "EUR",
 "itemCondition": "https://schema.org/NewCondition", "availability": "https://schema.org/InStock",
 "seller": {"@type": "Organization", "name": "Lumen Shop"}}}</script>
</head><body><h1>Lumen X1 NVMe SSD 1 TB</h1></body></html>"""


async def test_a_page_of_a_trusted_shop_becomes_a_released_item(
    resolver_database: dict[str, str],
    superuser: psycopg.Connection[dict[str, Any]],
    tmp_path: Path,
) -> None:
    """Upload, capture, extraction, identity and release in one served process, workers included."""
    settings = settings_for(resolver_database, tmp_path)
    async with open_parts(settings, resolver_database["resolver_app"]) as parts:
        await found(parts, "ten_synth_a")
        sources = ("ten_synth_a.src_one",)
        grant = ClientGrant("ten_synth_a", CATALOG, "ci_one", COLLECTOR_SCOPES, "cw_one", sources)
        token = (await provision_client(build_issuer(settings, parts.db), grant)).token
    served = Served(resolver_database, tmp_path, workers=True)
    try:
        async with calling(await served.start(), token) as collector:
            await collector.put(PAGE)
            adapter = pb.AdapterVersion(name=SchemaOrg.name, version=SchemaOrg.version)
            page = capture(parts=[part(PAGE)], config={"locale": "de-DE"}, adapter=adapter)
            submitted = await collector.submit(page)

            async def decided() -> bool:
                read = await collector.receipt(submitted.receipt_id)
                early = (pb.RECEIPT_STATUS_STORED, pb.RECEIPT_STATUS_RESOLVING)
                return read.status not in early

            await until(decided)
            receipt = await collector.receipt(submitted.receipt_id)
            assert receipt.status == pb.RECEIPT_STATUS_RESOLVED
            assert [record.outcome for record in receipt.records] == ["accepted"]
            released = "select from outbox where aggregate_type = 'release'"
            await until(lambda: superuser.execute(released).fetchall())
    finally:
        await served.stop()
    assert served.process is not None
    assert served.process.returncode == 0
