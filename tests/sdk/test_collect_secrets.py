"""A source that shows the credential it is asked with: what is kept as evidence, and what is not to show it."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from prw_sdk.adapter import Batch, Checkpoint, Fetched, Net, Source, Target
from prw_sdk.collect import SourceJob, collect
from prw_sdk.evidence import Capture, Record
from prw_sdk.operate import warc
from prw_sdk.report import Event
from prw_sdk.spool.folder import Spool
from tests.sdk import jobs
from tests.sdk.catalogue_adapter import ListAdapter
from tests.sdk.jobs import QUICK, page
from tests.sdk.misbehaving import Site, answer, redirect
from tests.sdk.running import run

Shop = Callable[..., None]
PASSWORD = "s3cr3t-pass"
BASIC = base64.b64encode(f"shop:{PASSWORD}".encode()).decode()
SHOWN = (BASIC, PASSWORD)


class Telling(ListAdapter):
    """Puts what it saw into what it raises."""

    async def fetch(self, target: Target, net: Net) -> Fetched:
        """One page, and a complaint about some."""
        fetched = await super().fetch(target, net)
        if target.native_id == "odd":
            raise ValueError(f"what is {fetched.parts[0].text()}")
        return fetched

    def read(self, capture: Capture) -> Iterable[Record]:
        """Its title, or a complaint."""
        if capture.native_record_id == "unread":
            raise ValueError(f"what is {capture.part('page').text()}")
        return super().read(capture)


class Lost(ListAdapter):
    """Cannot plan, and says why in full."""

    async def plan(
        self, source: Source, checkpoint: Checkpoint | None, net: Net
    ) -> AsyncIterator[Batch]:
        """No batch."""
        raise ValueError(f"what is {PASSWORD}")
        yield Batch(())


def with_credential(job: SourceJob) -> SourceJob:
    """The same, asked with a password."""
    credentials = {"127.0.0.1": {"Authorization": f"Basic {BASIC}"}}
    return replace(job, net=replace(job.net, credentials=credentials))


def echoing(site: Site, shop: Shop) -> None:
    """Pages that show it in every place."""
    told = f"<title>{BASIC} {PASSWORD}</title>".encode()
    headers = {"ETag": f'"{BASIC}"', "Link": f"<http://a.example/?k={PASSWORD}>; rel=next"}
    shop(
        head=answer(told, headers=headers, content_type=f"text/html; k={PASSWORD}"),
        moved=redirect(site.url(f"/p/there?key={PASSWORD}")),
        failing=answer(told, status=400),
        gone=answer(told, status=404, headers=headers),
        odd=answer(told),
        unread=answer(told),
    )
    site.serve(f"/p/there?key={PASSWORD}", page("there"))


async def test_a_credential_that_a_source_shows_is_in_its_bytes_alone(
    site: Site, shop: Shop, spool: Spool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither events, nor the ledger, nor the documents of captures, nor logs show it."""
    echoing(site, shop)
    seen: list[Event] = []
    job = with_credential(jobs.list_job(site, Telling()))
    (report,) = await collect([job], spool, QUICK, watch=seen.append)
    assert (report.planned, report.kept) == (6, 4)
    items = spool.ledger.items("ten_synth_a", "src_list", ["head", "odd", "failing", "unread"])
    assert "what is" in (items["odd"].verdict.error or "")
    captures = list(spool.ledger.captures())
    told = [*map(str, seen), str(report), *map(str, items.values())]
    told += [one.body.decode() for one in captures] + list(capfd.readouterr())
    assert [(secret, text) for text in told for secret in SHOWN if secret in text] == []
    bodies = [part.body for one in captures for part in spool.capture(one).parts]
    assert any(PASSWORD.encode() in body for body in bodies)


async def test_no_header_of_an_archive_shows_it(
    site: Site, shop: Shop, spool: Spool, tmp_path: Path
) -> None:
    """Neither of WARC nor of HTTP; the bytes are as they were served."""
    echoing(site, shop)
    await run(with_credential(jobs.list_job(site, Telling())), spool)
    file = tmp_path / "spool.warc"
    warc.export(spool, file, None)
    with file.open("rb") as stream:
        for record in ArchiveIterator(stream):
            told = str(record.rec_headers) + str(record.http_headers)
            if record.rec_type != "response":
                told += record.content_stream().read().decode("utf-8", "replace")
            assert not [secret for secret in SHOWN if secret in told]


async def test_a_plan_that_fails_with_it_does_not_tell_it(
    site: Site, shop: Shop, spool: Spool
) -> None:
    """What is shown is why the run failed, without it."""
    echoing(site, shop)
    report = await run(with_credential(jobs.list_job(site, Lost())), spool)
    assert report.failure is not None
    assert "what is [redacted]" in report.failure.message
