"""Finding products by the pages of categories: next links, overlaps, ends, and taking up where a walk was cut off."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from prw_plugin_schemaorg import SchemaOrg
from prw_plugin_schemaorg.settings import SchemaOrgSettings
from prw_plugin_schemaorg.walk import TooMuch
from prw_sdk.adapter import Checkpoint, Source
from tests.plugins.nets import Missing, Pages

SITE = "https://shop.example"


def page(*products: str, following: str = "") -> bytes:
    """A page of a category, with links around its products."""
    tiles = "".join(f'<li class="tile"><a href="{one}">x</a></li>' for one in products)
    after = f'<a rel="nofollow next" href="{following}">more</a>' if following else ""
    return f'<nav><a href="/help">Help</a></nav><ul>{tiles}</ul>{after}'.encode()


async def planned(net: Pages, checkpoint: Checkpoint | None = None, **settings: Any) -> list[str]:
    """The paths that are planned."""
    told = {"categories": [f"{SITE}/lamps"], "links": ".tile"} | settings
    source = Source("src_test", SchemaOrgSettings.model_validate(told))
    batches = [batch async for batch in SchemaOrg().plan(source, checkpoint, net)]
    return [one.native_id.removeprefix(SITE) for batch in batches for one in batch.targets]


async def test_all_pages_of_a_category_are_read() -> None:
    """Only what `links` selects, each once, however pages overlap; the next link may be relative."""
    bodies: dict[str, bytes | int] = {f"{SITE}/lamps": page("/p/2", "/p/1", following="?page=2")}
    bodies[f"{SITE}/lamps?page=2"] = page("/p/2", "/p/3", "https://other.example/p/4")
    net = Pages(bodies, "text/html")
    assert await planned(net) == ["/p/1", "/p/2", "/p/3"]
    assert net.asked == [f"{SITE}/lamps", f"{SITE}/lamps?page=2"]


async def test_a_walk_is_taken_up_within_its_category() -> None:
    """After the last product of the checkpoint, and with the categories behind (replay rule 4)."""
    bodies: dict[str, bytes | int] = {f"{SITE}/lamps": page("/p/1", "/p/2")}
    bodies[f"{SITE}/shades"] = page("/p/2", "/p/3")
    both = [f"{SITE}/lamps", f"{SITE}/shades"]
    reached = Checkpoint({"sitemap": f"{SITE}/lamps", "after": f"{SITE}/p/1"})
    found = await planned(Pages(bodies, "text/html"), reached, categories=both)
    assert found == ["/p/2", "/p/3"]


async def test_pages_that_lead_in_a_circle_end() -> None:
    """A last page that names the first as the next one is the last."""
    bodies: dict[str, bytes | int] = {f"{SITE}/lamps": page("/p/1", following="/lamps?page=2")}
    bodies[f"{SITE}/lamps?page=2"] = page("/p/2", following="/lamps")
    assert await planned(Pages(bodies, "text/html")) == ["/p/1", "/p/2"]


async def test_a_list_that_grew_shorter_ends_and_a_failing_one_does_not() -> None:
    """A later page that is gone is the end; a first one that is gone, or a fault, fails the plan."""
    bodies: dict[str, bytes | int] = {f"{SITE}/lamps": page("/p/1", following="/lamps?page=2")}
    assert await planned(Pages(bodies, "text/html")) == ["/p/1"]
    with pytest.raises(Missing, match="503"):
        await planned(Pages({**bodies, f"{SITE}/lamps?page=2": 503}, "text/html"))
    with pytest.raises(Missing, match="404"):
        await planned(Pages({}, "text/html"))


async def test_a_category_without_end_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found is planned, and then the run is told."""
    monkeypatch.setattr("prw_plugin_schemaorg.categories.MOST_PAGES", 3)
    bodies: dict[str, bytes | int] = {
        f"{SITE}/lamps?page={n}": page(f"/p/{n}", following=f"?page={n + 1}") for n in range(1, 9)
    }
    source = Source(
        "src_test", SchemaOrgSettings(categories=(f"{SITE}/lamps?page=1",), links=".tile a")
    )
    found: list[str] = []

    async def walk() -> None:
        async for batch in SchemaOrg().plan(source, None, Pages(bodies, "text/html")):
            found.extend(one.native_id for one in batch.targets)

    with pytest.raises(TooMuch, match="`categories`"):
        await walk()
    assert found == [f"{SITE}/p/{n}" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"categories": [f"{SITE}/lamps"]}, "links"),
        ({"categories": [f"{SITE}/lamps"], "links": "a["}, "links"),
        ({"categories": [f"{SITE}/lamps"], "links": "a", "next_page": "!"}, "next_page"),
    ],
)
def test_selectors_that_mean_nothing_are_refused(settings: dict[str, Any], field: str) -> None:
    """With the setting to mend."""
    with pytest.raises(ValidationError, match=field):
        SchemaOrgSettings(**settings)
