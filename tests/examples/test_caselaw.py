"""The portal of the High Court of Varn: every decision with the court that made it, whoever publishes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from prw_examples.caselaw import CaseLaw, portal
from prw_sdk.adapter import declaration_faults
from prw_sdk.evidence import Record, SelectorType
from prw_sdk.testing.server import Site, answer, serving
from tests.plugins.collecting import collect, kept, read


@pytest.fixture
def site() -> Iterator[Site]:
    """The portal."""
    with serving() as running:
        portal.build(running)
        yield running


def courts(records: tuple[Record, ...]) -> dict[str, str | None]:
    """Who decided, by the portal's number."""
    return {
        record.listing_key: None if record.merchant is None else record.merchant.value_as_stated
        for record in records
    }


def test_its_declarations_are_sound() -> None:
    """Census, inventory and the field of the court."""
    assert declaration_faults(CaseLaw) == ()


async def test_the_court_is_that_of_the_ecli_and_where_there_is_none_the_record_s_own(
    tmp_path: Path, site: Site
) -> None:
    """Replay rule 15: a publisher is not a court; the portal's own name is on no decision of another court's."""
    ran = await collect(tmp_path, portal.source(site))
    assert ran.status == 0, ran.told
    records = read(kept(tmp_path))
    assert courts(records) == {
        "2024-117": "HGVAR",
        "2024-204": "DCOST",
        "2023-009": "Magistrates of Oststrand",
    }
    other = next(record for record in records if record.listing_key == "2024-204")
    assert other.merchant is not None
    inner = other.merchant.locator.selector.refined_by
    assert inner is not None
    assert (inner.type, inner.value) == (SelectorType.TEXT_QUOTE, "DCOST")


async def test_row_page_and_document_of_each_decision_are_kept(tmp_path: Path, site: Site) -> None:
    """Raw holds every response that states something of the record; a withdrawn one has no document."""
    await collect(tmp_path, portal.source(site))
    roles = {
        capture.native_record_id: [part.role for part in capture.parts]
        for capture in kept(tmp_path)
    }
    assert roles.pop("2022-500") == ["detail", "row"]
    assert set(map(tuple, roles.values())) == {("detail", "row", "document")}


@pytest.mark.parametrize(
    "point",
    ["collect.after_fetch=kill@1", "collect.after_keep=kill@2", "collect.after_checkpoint=kill@1"],
)
async def test_a_killed_collector_goes_on_where_it_was(
    tmp_path: Path, site: Site, point: str
) -> None:
    """The end is that of one clean run; a decision that is gone by then is an absence."""
    assert (await collect(tmp_path, portal.source(site), point)).status == -9
    ran = await collect(tmp_path, portal.source(site))
    assert ran.status == 0, ran.told
    captures = kept(tmp_path)
    assert len(captures) == len({capture.native_record_id for capture in captures}) == 4
    site.serve("/decisions/2024-117", answer(b"gone", status=410))
    again = await collect(tmp_path, portal.source(site))
    assert again.summary["absent"] == 1
