"""What a source names no more is asked for once more, so that the source itself says that it is gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import Outcome
from tests.sdk.catalogue_adapter import ListAdapter
from tests.sdk.jobs import list_job, page
from tests.sdk.misbehaving import Site, answer
from tests.sdk.running import item, run


class WholeList(ListAdapter):
    """Its list names everything that there is."""

    name = "whole-list"
    lists_everything = True


def relist(site: Site, *names: str) -> None:
    """Another list than before."""
    lines = "\n".join(site.url(f"/p/{name}") for name in names)
    site.serve("/index.txt", answer(lines.encode(), content_type="text/plain"))


async def test_what_vanished_from_a_whole_list_becomes_absent(
    site: Site, shop: Callable[..., None], tmp_path: Path
) -> None:
    """Its 404 is an absence; what is only unlisted still stands, and is no new capture."""
    shop(a=page("A"), b=page("B"), c=page("C"))
    spool = Spool(tmp_path / "spool")
    await run(list_job(site, WholeList()), spool)
    relist(site, "a")
    site.serve("/p/b", answer(status=404))
    report = await run(list_job(site, WholeList()), spool)
    outcomes = {name: item(spool, name).verdict.outcome for name in "abc"}
    assert outcomes == {"a": Outcome.UNCHANGED, "b": Outcome.ABSENT, "c": Outcome.UNCHANGED}
    assert (report.planned, report.kept) == (3, 1)
    spool.close()


async def test_a_list_that_names_only_what_is_new_says_nothing_of_the_rest(
    site: Site, shop: Callable[..., None], tmp_path: Path
) -> None:
    """An adapter that does not say so is never asked for more than it plans."""
    shop(a=page("A"), b=page("B"))
    spool = Spool(tmp_path / "spool")
    await run(list_job(site), spool)
    relist(site, "a")
    site.serve("/p/b", answer(status=404))
    await run(list_job(site), spool)
    assert item(spool, "b").verdict.outcome is Outcome.STORED
    spool.close()


async def test_an_empty_list_is_no_reason_to_ask_for_everything(
    site: Site, shop: Callable[..., None], tmp_path: Path
) -> None:
    """A run that finds nothing is a failure, and hides it behind nothing."""
    shop(a=page("A"))
    spool = Spool(tmp_path / "spool")
    await run(list_job(site, WholeList()), spool)
    relist(site)
    report = await run(list_job(site, WholeList()), spool)
    assert report.failure is not None
    assert report.failure.code == "FOUND_NOTHING"
    assert item(spool, "a").verdict.outcome is Outcome.STORED
    spool.close()
