"""The resolver as it is served: a page goes in, and an accepted item comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from prw.collector.v1 import evidence_pb2 as pb
from prw_plugin_schemaorg.adapter import SchemaOrg
from tests.resolver.collecting import capture, part
from tests.resolver.serving import Served, calling
from tests.support.waiting import until

PAGE = b"""<!doctype html><html lang="de"><head><title>Lumen X1</title>
<script type="application/ld+json">{"@context": "https://schema.org", "@type": "Product",
 "name": "Lumen X1 NVMe SSD 1 TB", "brand": {"@type": "Brand", "name": "Lumen"}, "mpn": "LX1-1T0",
 "gtin13": "4006381333931", "offers": {"@type": "Offer", "price": "89.90", "priceCurrency": "EUR",
 "itemCondition": "https://schema.org/NewCondition", "availability": "https://schema.org/InStock",
 "seller": {"@type": "Organization", "name": "Lumen Shop"}}}</script>
</head><body><h1>Lumen X1 NVMe SSD 1 TB</h1></body></html>"""


@pytest.mark.parametrize("in_process", [True, False])
async def test_a_page_of_a_trusted_shop_becomes_a_released_item(
    resolver_database: dict[str, str],
    superuser: psycopg.Connection[dict[str, Any]],
    token: str,
    tmp_path: Path,
    in_process: bool,
) -> None:
    """Upload to release, whether workers are in the server or beside it; the relay marks it as published (AW-03)."""
    served = Served(resolver_database, tmp_path, workers=in_process)
    worker = Served(resolver_database, tmp_path, program="work")
    try:
        if not in_process:
            await worker.start()
        async with calling(await served.start(), token) as collector:
            await collector.put(PAGE)
            adapter = pb.AdapterVersion(name=SchemaOrg.name, version=SchemaOrg.version)
            page = capture(parts=[part(PAGE)], config={"locale": "de-DE"}, adapter=adapter)
            submitted = await collector.submit(page)

            async def decided() -> bool:
                read = await collector.receipt(submitted.receipt_id)
                early = (pb.RECEIPT_STATUS_STORED, pb.RECEIPT_STATUS_RESOLVING)
                return read.status not in early

            in_time: bool = await until(decided)
            assert in_time
            receipt = await collector.receipt(submitted.receipt_id)
            assert receipt.status == pb.RECEIPT_STATUS_RESOLVED
            assert [record.outcome for record in receipt.records] == ["accepted"]
            released = (
                "select from outbox where aggregate_type = 'release' and published_at is not null"
            )
            await until(lambda: superuser.execute(released).fetchall())
    finally:
        await served.stop()
        await worker.stop()
    processes = [ran.process for ran in (served, worker) if ran.process is not None]
    assert [process.returncode for process in processes] == [0] * (1 if in_process else 2)
