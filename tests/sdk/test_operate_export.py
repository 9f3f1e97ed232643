"""What other tools are given of a spool: WARC, JSON lines, CSV, Parquet; and items page by page."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from prw_sdk.evidence import AdapterVersion, Capture, Citation, Part
from prw_sdk.operate import warc
from prw_sdk.operate.tables import NAMES
from prw_sdk.spool import codec
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import Item, ItemKey, NewCapture, Outcome, RunEnd, Settling, Verdict
from tests.sdk.commanding import invoke
from tests.sdk.jobs import page
from tests.sdk.misbehaving import answer

Shop = Callable[..., None]
AT = datetime(2026, 10, 11, 8, 0, 0, 123456, tzinfo=UTC)


def part(body: bytes, role: str = "page", **other: Any) -> Part:
    """A part that was fetched a second after its capture began."""
    return replace(
        Part(
            role=role,
            sha256=hashlib.sha256(body).hexdigest(),
            body=body,
            media_type="text/html; charset=utf-8",
            url_asked="https://shop.example/p/1",
            url_reached="https://shop.example/p/one",
            http_status=200,
            fetched_at=AT + timedelta(seconds=1),
            headers=(("etag", '"1"'), ("content-encoding", "gzip")),
        ),
        **other,
    )


def keep(
    spool: Spool, name: str, parts: tuple[Part, ...], at: datetime = AT, *, held: bool = False
) -> None:
    """Keep a capture as a run does."""
    run = spool.ledger.begin_run("ten_synth_a", "src_one", at)
    for one in parts:
        spool.blobs.put(one.body)
    capture = Capture("src_one", name, at, AdapterVersion("list", "1.0.0"), parts)
    key = ItemKey("ten_synth_a", "src_one", name)
    known = spool.ledger.item(key)
    version = 0 if known is None else known.version
    item = Item(key, "u", Verdict(Outcome.STORED), version, run.generation, at)
    settling = Settling(version, item, NewCapture(at, codec.encode(capture)), held)
    assert spool.ledger.settle_all([settling]) == [True]
    spool.ledger.finish_run(run, at, RunEnd(release=not held))


def read(path: Path) -> list[tuple[str, dict[str, str], bytes, Any]]:
    """Every record as warcio reads it, which checks each digest: type, headers, payload, HTTP headers."""
    found = []
    with path.open("rb") as file:
        for record in ArchiveIterator(file, check_digests="raise"):
            body = record.content_stream().read()
            headers = dict(record.rec_headers.headers)
            found.append((record.rec_type, headers, body, record.http_headers))
    return found


def test_a_warc_is_read_back_by_another_tool_byte_for_byte(spool: Spool, tmp_path: Path) -> None:
    """A response for each answer, a resource for a screenshot; address, moment, digest and status are the part's."""
    body, image = b"<html>\xff\x00 one</html>", b"\x89PNG\r\n\r\nx"
    parts = (part(body), part(image, "page.screenshot", media_type="image/png", headers=()))
    keep(spool, "p1", parts)
    done = warc.export(spool, tmp_path / "out.warc.gz")
    assert (done.captures, done.records, done.damaged) == (1, 4, 0)
    info, response, said, resource, _ = read(tmp_path / "out.warc.gz")
    assert info[0] == "warcinfo"
    assert (response[0], response[2]) == ("response", body)
    assert (resource[0], resource[2]) == ("resource", image)
    assert response[1]["WARC-Target-URI"] == "https://shop.example/p/one"
    assert response[1]["WARC-Date"] == "2026-10-11T08:00:01.123456Z"
    assert response[3].get_statuscode() == "200"
    assert response[3].get_header("etag") == '"1"'
    assert response[3].get_header("content-encoding") is None
    assert resource[1]["Content-Type"] == "image/png"
    assert said[1]["WARC-Concurrent-To"] == response[1]["WARC-Record-ID"]
    assert json.loads(said[2])["url_asked"] == "https://shop.example/p/1"


def test_what_a_browser_made_is_told_from_what_was_served(spool: Spool, tmp_path: Path) -> None:
    """The rendered document is a resource; the one that it was made of is the response."""
    keep(spool, "p1", (part(b"<p>made</p>"), part(b"<p>served</p>", "page.source")))
    warc.export(spool, tmp_path / "out.warc")
    found = {one[0]: one[2] for one in read(tmp_path / "out.warc")}
    assert (found["resource"], found["response"]) == (b"<p>made</p>", b"<p>served</p>")


def test_an_answer_that_nothing_changed_is_a_revisit_of_the_first(
    spool: Spool, tmp_path: Path
) -> None:
    """Of the answer itself, also where the one before was no more than a 304."""
    body = b"<html>one</html>"
    keep(spool, "p1", (part(body),))
    for days in (1, 2):
        cites = Citation(AT + timedelta(days=days - 1), hashlib.sha256(body).hexdigest())
        moment = AT + timedelta(days=days)
        again = part(body, http_status=304, cites=cites, fetched_at=moment)
        keep(spool, "p1", (again,), moment)
    warc.export(spool, tmp_path / "out.warc")
    first, *revisits = [
        one for one in read(tmp_path / "out.warc") if one[0] in ("response", "revisit")
    ]
    assert [one[0] for one in revisits] == ["revisit", "revisit"]
    for revisit in revisits:
        assert revisit[1]["WARC-Refers-To-Date"] == first[1]["WARC-Date"]
        assert revisit[1]["WARC-Refers-To-Target-URI"] == first[1]["WARC-Target-URI"]
        assert revisit[1]["WARC-Payload-Digest"] == first[1]["WARC-Payload-Digest"]
        assert (revisit[2], revisit[3].get_statuscode()) == (b"", "304")


def test_two_exports_of_one_capture_name_its_records_alike(spool: Spool, tmp_path: Path) -> None:
    """So that archives that overlap can be merged."""
    keep(spool, "p1", (part(b"one"),))
    for name in ("a.warc", "b.warc"):
        warc.export(spool, tmp_path / name)
    first, second = (
        [one[1]["WARC-Record-ID"] for one in read(tmp_path / name)][1:]
        for name in ("a.warc", "b.warc")
    )
    assert first == second


def test_damaged_captures_are_left_out_and_told(shop: Shop, config: Path, tmp_path: Path) -> None:
    """Exit status 1; the others are exported."""
    shop(a=page("A"), gone=answer(b"gone", status=404))
    invoke("run", "-c", config, "--local", tmp_path / "spool")
    next((tmp_path / "spool" / "blobs").glob("*/*")).write_bytes(b"?")
    out = tmp_path / "out.warc.gz"
    result = invoke("export", tmp_path / "spool", "--warc", out, "--json")
    (row,) = json.loads(result.stdout)
    assert (result.exit_code, row["captures"], row["damaged"]) == (1, 1, 1)
    assert len(read(out)) == 3
    assert [path.name for path in tmp_path.glob("*.new")] == []


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_records_are_the_same_in_every_format(
    shop: Shop, config: Path, tmp_path: Path, format: str
) -> None:
    """A record or the reason why there is none, a line each."""
    shop(a=page('A, "quoted"'), gone=answer(status=404))
    invoke("run", "-c", config, "--local", tmp_path / "spool")
    out = tmp_path / f"out.{format}"
    assert invoke("records", tmp_path / "spool", "--format", format, "--out", out).exit_code == 0
    rows = {row["native_record_id"]: row for row in _rows(out, format)}
    assert set(rows) == {"a", "gone"}
    assert rows["gone"]["code"] == "ABSENT"
    assert set(rows["a"]) <= {*NAMES}
    claims = rows["a"]["claims"]
    (claim,) = claims if format == "jsonl" else json.loads(claims)
    assert claim["value_as_stated"].startswith('A, "quoted"')
    assert claim["locator"]["part_role"] == "page"


def _rows(path: Path, format: str) -> list[dict[str, Any]]:
    if format == "jsonl":
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    if format == "csv":
        return list(csv.DictReader(io.StringIO(path.read_text("utf-8"), newline="")))
    parquet = pytest.importorskip("pyarrow.parquet")
    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


def test_parquet_without_its_extra_says_what_to_install(
    shop: Shop, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit status 2, and no file."""
    shop(a=page("A"))
    invoke("run", "-c", config, "--local", tmp_path / "spool")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    out = tmp_path / "out.parquet"
    result = invoke("records", tmp_path / "spool", "--format", "parquet", "--out", out)
    assert (result.exit_code, out.exists()) == (2, False)
    assert "pip install 'prw-sdk[parquet]'" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("--format", "parquet"), "--out FILE"), (("--out", "x.csv"), "--format")],
)
def test_a_file_and_a_format_are_asked_for_together(
    shop: Shop, config: Path, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """Parquet is nothing for a terminal, and a file's name says nothing of its format."""
    shop(a=page("A"))
    invoke("run", "-c", config, "--local", tmp_path / "spool")
    result = invoke("records", tmp_path / "spool", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_items_are_listed_page_by_page_and_each_once(
    shop: Shop, config: Path, tmp_path: Path
) -> None:
    """Replay rule 10: a cursor and a limit; filters by outcome and code."""
    shop(**{f"p{n}": page("x") for n in range(5)}, bad=answer(status=500), gone=answer(status=404))
    invoke("run", "-c", config, "--local", tmp_path / "spool")
    seen: list[str] = []
    more: tuple[str, ...] = ()
    while True:
        listed = json.loads(
            invoke("items", tmp_path / "spool", "--limit", 2, "--json", *more).stdout
        )
        seen += [one["item"] for one in listed["items"]]
        if listed["after"] is None:
            break
        more = ("--after", listed["after"])
    assert seen == sorted(seen)
    assert len(seen) == len(set(seen)) == 7
    by_code = invoke("items", tmp_path / "spool", "--code", "UPSTREAM_500", "--json")
    assert [one["item"] for one in json.loads(by_code.stdout)["items"]] == ["bad"]
    absent = invoke("items", tmp_path / "spool", "--outcome", "absent")
    assert "gone" in absent.stdout
    assert "p1" not in absent.stdout
    wrong = invoke("items", tmp_path / "spool", "--after", "nonsense")
    assert (wrong.exit_code, "--after" in wrong.stderr) == (2, True)


@pytest.mark.parametrize(
    "command",
    [("export", "--warc", "out"), ("records",), ("items",), ("retry",)],
)
def test_a_source_that_the_spool_has_never_had_is_refused(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """Exit status 2 with the sources that there are, and nothing is written; one without captures is none of these."""
    monkeypatch.chdir(tmp_path)
    keep(spool, "p1", (part(b"one"),))
    spool.ledger.begin_run("ten_synth_a", "src_two", AT)
    wrong = invoke(command[0], spool.folder, *command[1:], "--source", "nope", "--json")
    assert (wrong.exit_code, wrong.stdout, Path("out").exists()) == (2, "", False)
    assert "--source nope: " in wrong.stderr
    assert "src_one, src_two" in wrong.stderr
    empty = invoke(command[0], spool.folder, *command[1:], "--source", "src_two", "--json")
    assert empty.exit_code == 0


def test_what_is_held_is_marked_in_every_format(spool: Spool, tmp_path: Path) -> None:
    """A capture that awaits the judgement of its run is told from one that counts; its mark has an id of its own."""
    ids = []
    keep(spool, "p1", (part(b"one"),), held=True)
    for held in (True, False):
        warc.export(spool, tmp_path / "out.warc")
        (said,) = [one for one in read(tmp_path / "out.warc") if one[0] == "metadata"]
        assert json.loads(said[2])["held"] is held
        ids.append(said[1]["WARC-Record-ID"])
        for format in ("jsonl", "csv", "parquet"):
            out = tmp_path / "records"
            invoke("records", spool.folder, "--format", format, "--out", out)
            (row,) = _rows(out, format)
            assert row["held"] == (held if format == "jsonl" else str(held).lower())
        shown = invoke("records", spool.folder).stdout
        assert ("held" in shown.splitlines()[-2]) == held
        spool.ledger.revive("src_one", None, AT)
    assert ids[0] != ids[1]
