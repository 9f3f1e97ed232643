"""A spool as WARC 1.1 (ISO 28500:2017), the archive format that other tools read.

One record a part: what a server answered is a `response`, what a browser made of it a `resource`, and a 304 a
`revisit` of the earlier answer that it stands for. A `metadata` record beside each names source, item and role, so that
nothing of the capture is lost, and says whether it is held. Bodies are kept decoded; headers that spoke of a transfer
coding are left out.
"""

from __future__ import annotations

import base64
import io
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from prw_sdk.evidence import Capture, Part
from prw_sdk.operate.writing import STREAM, opened
from prw_sdk.spool.blobs import BlobDamaged, BlobMissing
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CaptureState, ItemKey, KeptCapture, from_text

Cited = Callable[[Part], tuple[str, datetime] | None]
_VERSION = "1.1"
_NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
# of the transfer, not of the bytes that are kept
_OF_TRANSFER = frozenset({"content-encoding", "transfer-encoding", "content-length"})
# lets the same capture have the same record ids in every export
_IDS = uuid.UUID("6b4a54f6-6a0e-5d0c-9c5e-0f7c7f6d8a11")


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export came to. `damaged` counts captures that are left out since their bytes are not whole."""

    captures: int = 0
    records: int = 0
    damaged: int = 0


def export(spool: Spool, target: Path, source_id: str | None = None) -> Exported:
    """Write every capture of the spool, or of one source, to a file; compressed where its name ends in ``.gz``.

    The file appears whole or not at all; `STREAM` is standard output. Memory is bounded by the bytes of one capture.
    Raises `TargetUnusable`.
    """
    with opened(target, "--warc") as file:
        return _write(spool, file, target, source_id)


def _write(spool: Spool, file: BinaryIO, target: Path, source_id: str | None) -> Exported:
    writer = WARCWriter(file, gzip=target.name.endswith(".gz"), warc_version=_VERSION)
    # a file system's name may be no text
    name = os.fsencode(target.name).decode("utf-8", errors="backslashreplace")
    writer.write_record(writer.create_warcinfo_record(None if target == STREAM else name, _about()))
    captures = records = damaged = 0
    for kept in spool.ledger.captures():
        if source_id not in (None, kept.key.source_id):
            continue
        try:
            capture = spool.capture(kept)
        except (BlobMissing, BlobDamaged):
            damaged += 1
            continue
        captures += 1
        for record in _records(writer, kept, capture, partial(_cited, spool, kept.key)):
            writer.write_record(record)
            records += 1
    return Exported(captures, records, damaged)


def _about() -> dict[str, str]:
    return {"software": "prw-sdk", "format": "WARC File Format 1.1", "robots": "honoured"}


def _cited(spool: Spool, key: ItemKey, part: Part) -> tuple[str, datetime] | None:
    """Address and time of the answer that a 304 stands for, through other 304s; None where it cites nothing.

    Where the spool no longer has it, the time is that of the cited capture.
    """
    if part.cites is None:
        return None
    address, moment, sha256 = _address(part), part.cites.captured_at, part.cites.sha256
    while (found := _part_at(spool, key, moment, sha256)) is not None:
        address = found["url_reached"]
        if found["cites"] is None:
            return address, from_text(found["fetched_at"])
        moment, sha256 = from_text(found["cites"]["captured_at"]), found["cites"]["sha256"]
    return address, moment


def _part_at(
    spool: Spool, key: ItemKey, captured_at: datetime, sha256: str
) -> Mapping[str, Any] | None:
    earlier = spool.looking.capture_at(key, captured_at)
    parts = [] if earlier is None else json.loads(earlier.body)["parts"]
    return next((part for part in parts if part["sha256"] == sha256), None)


def _records(
    writer: WARCWriter, kept: KeptCapture, capture: Capture, cited: Cited
) -> Iterator[Any]:
    held = kept.state is CaptureState.HELD
    roles = frozenset(part.role for part in capture.parts)
    for part in capture.parts:
        main = _main(writer, part, capture, roles, cited)
        yield main
        concerns = main.rec_headers.get_header("WARC-Record-ID")
        yield _metadata(writer, part, capture, concerns, held=held)


def _main(
    writer: WARCWriter, part: Part, capture: Capture, roles: frozenset[str], cited: Cited
) -> Any:
    make = partial(writer.create_warc_record, _address(part))
    headers, found = _headers(part, capture), cited(part)
    body = {"payload": io.BytesIO(part.body), "length": len(part.body)}
    if _is_made(part, roles):
        kind = part.media_type or "application/octet-stream"
        return make("resource", warc_content_type=kind, warc_headers_dict=headers, **body)
    if found is not None:
        headers |= _revisiting(*found)
        return make("revisit", http_headers=_answer(part), warc_headers_dict=headers)
    answer = _answer(part, len(part.body))
    return make("response", http_headers=answer, warc_headers_dict=headers, **body)


def _revisiting(address: str, moment: datetime) -> dict[str, str]:
    return {
        "WARC-Profile": _NOT_MODIFIED,
        "WARC-Refers-To-Target-URI": address,
        "WARC-Refers-To-Date": _date(moment),
    }


def _is_made(part: Part, roles: frozenset[str]) -> bool:
    """Whether a browser made it: a screenshot, or a document beside the source that it was made of."""
    return part.role.endswith(".screenshot") or f"{part.role}.source" in roles


def _headers(part: Part, capture: Capture) -> dict[str, str]:
    named = f"{_named(part, capture)}\0main"
    return {
        "WARC-Date": _date(part.fetched_at),
        "WARC-Record-ID": f"<{uuid.uuid5(_IDS, named).urn}>",
        "WARC-Payload-Digest": _digest(part.sha256),
    }


def _metadata(
    writer: WARCWriter, part: Part, capture: Capture, concerns: str, *, held: bool
) -> Any:
    said = {**_said(part, capture), "held": held}
    # what is held now and let go later is said by two records, and one id names one record
    named = _named(part, capture) + ("\0held" if held else "")
    body = json.dumps(said, ensure_ascii=False, sort_keys=True).encode()
    return writer.create_warc_record(
        _address(part),
        "metadata",
        payload=io.BytesIO(body),
        length=len(body),
        warc_content_type="application/json",
        warc_headers_dict={
            "WARC-Date": _date(part.fetched_at),
            "WARC-Record-ID": f"<{uuid.uuid5(_IDS, named).urn}>",
            "WARC-Concurrent-To": concerns,
        },
    )


def _said(part: Part, capture: Capture) -> Mapping[str, object]:
    return {
        "source_id": capture.source_id,
        "native_record_id": capture.native_record_id,
        "captured_at": _date(capture.captured_at),
        "presence": capture.presence.value,
        "adapter": f"{capture.adapter.name}@{capture.adapter.version}",
        "role": part.role,
        "url_asked": part.url_asked,
        "sha256": part.sha256,
        "charset_declared": part.charset_declared,
        "charset_used": part.charset_used,
    }


def _named(part: Part, capture: Capture) -> str:
    moment = _date(capture.captured_at)
    return "\0".join((capture.source_id, capture.native_record_id, moment, part.role))


def _answer(part: Part, length: int | None = None) -> StatusAndHeaders:
    kept = [(name, value) for name, value in part.headers if name.lower() not in _OF_TRANSFER]
    if part.media_type and not any(name.lower() == "content-type" for name, _ in kept):
        kept.append(("Content-Type", part.media_type))
    if length is not None:
        kept.append(("Content-Length", str(length)))
    return StatusAndHeaders(f"{part.http_status} {_phrase(part.http_status)}", kept, "HTTP/1.1")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _address(part: Part) -> str:
    return part.url_reached or part.url_asked


def _date(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _digest(sha256: str) -> str:
    return "sha256:" + base64.b32encode(bytes.fromhex(sha256)).decode()
