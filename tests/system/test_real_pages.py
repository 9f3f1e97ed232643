"""Saved pages of real shops, served on loopback and walked as far as they go: collector, intake, stages, review."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from prw_base.files import write_private
from prw_base.server.database import Database
from prw_base.server.postgres import Cluster
from prw_examples.demo.audit.evidence import Vault, untraceable
from prw_examples.demo.layout import COLLECTOR, SCOPE, WORKER
from prw_resolver.access import service as access
from prw_resolver.access.model import COLLECTOR_SCOPES, ClientGrant, Source
from prw_resolver.bootstrap import build_issuer
from prw_resolver.settings import ResolverSettings
from tests.sdk.misbehaving import Site, answer, serving
from tests.support.walk import DONE, Walk, walking

SAMPLES = os.environ.get("PRW_SAMPLES")
pytestmark = pytest.mark.skipif(SAMPLES is None, reason="PRW_SAMPLES names no folder of real pages")

SOURCE = "src_real"
WITHOUT = frozenset({"amazon.html", "gh-lst-nas-01.html"})
"""Pages that carry no Product markup."""

_READ = """
select c.capture_id, c.native_record_id, e.outcome, e.detail,
       (select count(*) from resolver.record r where r.capture_id = c.capture_id) as records,
       (select count(*) from resolver.normalised_record n where n.capture_id = c.capture_id) as normalised,
       (select count(*) from resolver.record_outcome o where o.capture_id = c.capture_id) as decided
  from resolver.capture c left join resolver.extraction e using (tenant_id, capture_id)
"""
_CLAIMS = """
select capture_id, record_id, attribute, value_as_stated, part_role, sha256, selector from resolver.claim
 order by capture_id, record_id, ordinal
"""


@dataclass(frozen=True, slots=True)
class Page:
    """What became of a page in the resolver, with its claims."""

    name: str
    outcome: str | None
    detail: str | None
    records: int
    normalised: int
    decided: int
    claims: tuple[dict[str, Any], ...]


@pytest.fixture
def site() -> Iterator[Site]:
    """A shop that has every saved page, and a sitemap that lists them."""
    with serving() as shop:
        names = [path.name for path in saved()]
        for path in saved():
            shop.serve(f"/{path.name}", answer(path.read_bytes(), content_type="text/html"))
        rows = "".join(f"<url><loc>{shop.url('/' + name)}</loc></url>" for name in names)
        shop.serve("/sitemap.xml", answer(f"<urlset>{rows}</urlset>".encode()))
        yield shop


def saved() -> list[Path]:
    """The saved pages."""
    return sorted((Path(SAMPLES or "") / "pages").glob("*.html"))


async def test_every_real_page_is_walked_to_its_records_or_to_a_reason(
    cluster: Cluster, tmp_path: Path, site: Site
) -> None:
    """Product markup becomes records whose claims lead back to the stored bytes; a page without says so."""
    async with walking(cluster, tmp_path / "walk") as walk:
        await provision(walk, site)
        assert await walk.collect(SOURCE) == DONE
        standing = await walk.at_rest()
        assert standing.resolver.captures == len(saved()) > len(WITHOUT)
        pages = read(walk)
        assert {page.name for page in pages} == {path.name for path in saved()}
        for page in pages:
            assert_walked(page)
        await assert_leads_back(walk, pages)


def assert_walked(page: Page) -> None:
    """Records, each with its claims, normalised and decided on; or none, and why."""
    if page.name in WITHOUT:
        assert (page.outcome, page.records) == ("not_a_record", 0), page
        assert page.detail
        return
    assert page.outcome == "records", page
    assert page.records == page.normalised == page.decided > 0, page
    titled = {claim["record_id"] for claim in page.claims if claim["attribute"] == "core:title"}
    assert len(titled) == page.records, page


async def assert_leads_back(walk: Walk, pages: list[Page]) -> None:
    """Every claim of every record, in the bytes that the resolver keeps."""
    async with walk.books() as books:
        vault = Vault(walk.layout.objects, SCOPE.tenant_id, await books.documents())
    claims = [quoting(claim) for page in pages for claim in page.claims]
    assert len(claims) > 40
    assert untraceable(claims, vault) == []
    # The check itself sees a word that does not stand there.
    assert untraceable([quoting(pages[0].claims[0] | {"value_as_stated": "absent"})], vault)


def quoting(claim: dict[str, Any]) -> dict[str, Any]:
    """A claim as the audit takes a fact with its evidence."""
    return {
        "aggregate_type": claim["attribute"],
        "aggregate_id": claim["record_id"],
        "revision": 1,
        "evidence": [claim | {"quote": claim["value_as_stated"]}],
    }


def read(walk: Walk) -> list[Page]:
    """What the resolver made of each page, those with claims first."""
    with psycopg.connect(walk.resolver_dsns["superuser"], row_factory=dict_row) as conn:
        claims = conn.execute(_CLAIMS.encode()).fetchall()
        rows = conn.execute(_READ.encode()).fetchall()
    counts = ("outcome", "detail", "records", "normalised", "decided")
    pages = [
        Page(
            name=row["native_record_id"].rpartition("/")[2],
            claims=tuple(one for one in claims if one["capture_id"] == row["capture_id"]),
            **{name: row[name] for name in counts},
        )
        for row in rows
    ]
    return sorted(pages, key=lambda page: (-len(page.claims), page.name))


async def provision(walk: Walk, site: Site) -> None:
    """Put the shop on record, grant it to the collector, and tell the collector of it."""
    settings = ResolverSettings(state_folder=walk.layout.root)
    async with await Database.open(walk.resolver_dsns["resolver_app"], max_size=2) as db:
        market = {"locale": "en_US"}
        tenant, catalog = SCOPE.tenant_id, SCOPE.catalog_id
        await access.put_source(db, Source(tenant, catalog, SOURCE, "Real", True, market))
        grant = ClientGrant(tenant, catalog, COLLECTOR, COLLECTOR_SCOPES, WORKER, (SOURCE,))
        provisioned = await access.provision_client(build_issuer(settings, db), grant)
    write_private(walk.layout.token("collector"), provisioned.token.encode())
    told = walk.layout.sources.read_text("utf-8") + _SETTINGS.format(
        origin=site.origin, port=site.port
    )
    walk.layout.sources.write_text(told, "utf-8")


_SETTINGS = """
[[source]]
id = "src_real"
adapter = "schemaorg"
locale = "en_US"
allow_private = ["127.0.0.1:{port}"]

[source.settings]
site = "{origin}"
"""
