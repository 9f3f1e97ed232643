"""Pages that state what would break a database, a price or a page, all the way to the public catalogue."""

from __future__ import annotations

from pathlib import Path

import httpx
from psycopg import connect

from prw_base.server.postgres import Cluster
from prw_examples.street import Street
from tests.support.doctored import Doctored
from tests.support.soundness import assert_sound
from tests.support.walk import Walk, walking

TITLED = "http://lumenparts.example/p/kestrel-kx990-1tb"
PRICED = "http://lumenparts.example/p/kestrel-kx990-2tb"
LINKED = "http://lumenparts.example/p/kestrel-kx990-4tb"

TITLE = "Kestrel KX990 1TB PCIe 4.0 NVMe M.2 SSD"
# As it stands in JSON: a NUL, half a character, and markup around markup.
HOSTILE = r"Kestrel KX990 1TB \u0000 \ud800 <<b>script>alert(1)<</b>/script> NVMe SSD"


async def test_hostile_statements_reach_the_public_page_as_harmless_text(
    cluster: Cluster, tmp_path: Path
) -> None:
    """No capture is stuck or lost, nothing is a dead letter, and a page of ours runs nothing of theirs."""
    shopfronts = Doctored()
    shopfronts.rewrite(TITLED, TITLE, HOSTILE)
    shopfronts.rewrite(PRICED, "154.90", "99999999999999999999.123456789")
    shopfronts.rewrite(LINKED, '"@type": "Offer"', '"@type": "Offer", "url": "javascript:alert(1)"')
    with Street.start(shopfronts=shopfronts) as street:
        async with walking(cluster, tmp_path / "walk", street) as walk:
            await walk.collect_all()
            await walk.at_rest()
            await assert_sound(walk)
            assert dead_letters(walk) == 0
            pages = await public_pages(walk)
    assert any("\ufffd" in page for page in pages)
    assert not any("<script" in page or 'href="javascript' in page for page in pages)
    assert not any("99999999999" in page for page in pages)


def dead_letters(walk: Walk) -> int:
    """How many stages of any capture failed, once or for good."""
    with connect(walk.resolver_dsns["superuser"]) as conn:
        row = conn.execute("select count(*) from resolver.stage_failure").fetchone()
    assert row is not None
    return int(row[0])


async def public_pages(walk: Walk) -> list[str]:
    """The page of every public item, as a browser gets it."""
    async with httpx.AsyncClient(base_url=walk.product.told["url"], trust_env=False) as client:
        items = (await client.get("/v1/items", params={"page_size": 500})).json()["items"]
        answers = [await client.get(f"/items/{item['item_id']}") for item in items]
    assert {answer.status_code for answer in answers} == {200}
    return [answer.text for answer in answers]
