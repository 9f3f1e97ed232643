"""The command `prw adapter` over a project of a test's own."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from prw_sdk.adapter import Source
from prw_sdk.cli.adapter import app
from prw_sdk.collect import SourceJob, collect
from prw_sdk.spool.folder import Spool
from prw_sdk.testing.server import Site, answer
from prw_sdk.testing.subject import find
from tests.sdk.jobs import QUICK, net_config

INVENTORY = """
from prw_sdk.adapter import Excluded, Stored

SURFACES = {"product-page": Stored("page")}
FIELDS = {
    "name": Stored("core:title"),
    "mpn": Stored("core:mpn"),
    "offers.price": Stored("offer:price"),
    "offers.seller.name": Stored("offer:seller"),
    "image": Excluded("pictures, which are no facts of the record"),
}
MERCHANT_FIELD = "offers.seller.name"
"""


def invoke(*arguments: object) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def product(name: str = "Lamp", mpn: str = "LMP-1", **more: object) -> bytes:
    """A page that says in JSON-LD what it sells."""
    stated = {
        "@context": "https://schema.org",
        "@type": "Product",
        "name": name,
        "mpn": mpn,
        "image": "https://img.example/1.jpg",
        "offers": {"@type": "Offer", "price": 39.9, "seller": {"name": "Lamp Street"}},
        **more,
    }
    script = f'<script type="application/ld+json">\n{json.dumps(stated)}\n</script>'
    return answer(f"<!doctype html><title>{mpn}</title>\n{script}".encode())


@dataclass(frozen=True, slots=True)
class Project:
    """An adapter's project."""

    name: str
    folder: Path

    @property
    def package(self) -> str:
        """Its import package."""
        return self.name.replace("-", "_")

    def scaffold(self) -> None:
        """Make it, in the current folder."""
        result = invoke("new", self.name)
        assert result.exit_code == 0, result.output

    def declare(self, inventory: str = INVENTORY) -> None:
        """Write what the source states."""
        path = self.folder / "src" / self.package / "inventory.py"
        path.write_text(inventory, "utf-8")

    def record(self, site: Site, path: str, *more: object) -> Result:
        """Record a page of the site."""
        return invoke("record", site.url(path), "--allow-private", *more)

    def collected(self, site: Site, pages: int) -> Path:
        """A spool with that many pages, by a run of the adapter as it is now."""
        links = []
        for number in range(pages):
            site.serve(f"/p{number}", product(f"Lamp {number}", f"LMP-{number}"))
            links.append(f'<a href="/p{number}">{number}</a>')
        site.serve("/", answer("".join(links).encode()))
        adapter = find(self.name, self.folder).adapter()
        settings = adapter.settings.model_validate({"listing": site.url("/")})
        source = Source("src_lamps", settings, currency="EUR")
        folder = self.folder.parent / "spool"
        spool = Spool(folder)
        try:
            job = SourceJob("local", source, adapter, net_config(site))
            (report,) = asyncio.run(collect([job], spool, QUICK))
        finally:
            spool.close()
        assert report.failure is None, report
        return folder


def lines(result: Result) -> list[dict[str, Any]]:
    """The JSON lines of a command."""
    return [json.loads(line) for line in result.stdout.splitlines()]
