"""Fixtures: recorded captures in folders that a person can read and mend.

``fixtures/<case>/capture.json`` is the capture (as the spool writes it, indented), with the name of a ``file`` beside
it for every part; ``expected.json`` is what the adapter read of it when somebody last looked at it. A capture made by
hand needs no more than ``native_record_id`` and, for each part, ``role``, ``file``, ``url_asked`` and ``media_type``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from prw_sdk.adapter import Adapter
from prw_sdk.evidence import Capture, Presence
from prw_sdk.fetch import charset
from prw_sdk.spool import codec

CAPTURE = "capture.json"
EXPECTED = "expected.json"
ALLOWED = "allowed.txt"
"""Texts, one a line, that `prw_sdk.testing.scrub` may find in the fixtures of this folder."""

_MOMENT = "2026-01-02T03:04:05.678901Z"
_DEFAULTS: Mapping[str, object] = {
    "schema_version": codec.SCHEMA_VERSION,
    "source_id": "src_fixture",
    "captured_at": _MOMENT,
    "config": {"locale": "en_US"},
    "presence": Presence.PRESENT.value,
    "execution_region": {},
    "egress": {},
}
_PART_DEFAULTS: Mapping[str, object] = {
    "charset_declared": None,
    "http_status": 200,
    "headers": [],
    "fetched_at": _MOMENT,
    "cites": None,
}
_ENDINGS = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/json": "json",
    "application/ld+json": "json",
    "application/xml": "xml",
    "text/xml": "xml",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "text/plain": "txt",
    "image/png": "png",
    "image/jpeg": "jpg",
    "application/pdf": "pdf",
}


class BadFixture(Exception):
    """A fixture that cannot be read; the message says which file, and what to write."""


@dataclass(frozen=True, slots=True)
class Fixture:
    """One recorded capture. `expected` is None until the first run has written it."""

    case: str
    folder: Path
    capture: Capture
    expected: Mapping[str, Any] | None = None


def load(folder: Path, adapter: Adapter | type[Adapter]) -> tuple[Fixture, ...]:
    """Every fixture of a folder, in order of names; none where the folder is missing. Raises `BadFixture`."""
    cases = sorted(path.parent for path in folder.glob(f"*/{CAPTURE}"))
    return tuple(read(case, adapter) for case in cases)


def read(case: Path, adapter: Adapter | type[Adapter]) -> Fixture:
    """One fixture; what its capture leaves out is that of the adapter, or a default. Raises `BadFixture`."""
    document = _json(case / CAPTURE)
    expected = _json(case / EXPECTED) if (case / EXPECTED).exists() else None
    made_by = {"name": adapter.name, "version": adapter.version}
    bodies: dict[str, bytes] = {}
    try:
        parts = [_part(case, part, bodies) for part in document.get("parts", [])]
        whole = {**_DEFAULTS, "adapter": made_by, **document, "parts": parts}
        capture = codec.decode(json.dumps(whole).encode(), bodies.__getitem__)
    except (KeyError, TypeError, ValueError, AttributeError) as wrong:
        raise BadFixture(
            f"{case / CAPTURE} is no capture ({wrong!r}): write native_record_id, and for each part role, file, "
            "url_asked and media_type, or record it anew"
        ) from wrong
    return Fixture(case.name, case, capture, expected)


def allowed(folder: Path) -> tuple[str, ...]:
    """The texts that the folder's ``allowed.txt`` lets stand; a line that starts with ``#`` is a comment."""
    path = folder / ALLOWED
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def write(folder: Path, case: str, capture: Capture) -> Path:
    """Write a capture as ``folder/case``, without ``expected.json``; the folder of the case.

    The capture is written as it is: scrub it first (`prw_sdk.testing.scrub.scrubbed`).
    """
    where = folder / case
    where.mkdir(parents=True, exist_ok=True)
    (where / EXPECTED).unlink(missing_ok=True)
    document = json.loads(codec.encode(capture))
    for part, described in zip(capture.parts, document["parts"], strict=True):
        described["file"] = _file_name(part.role, part.media_type)
        (where / described["file"]).write_bytes(part.body)
    _write_json(where / CAPTURE, document)
    return where


def write_expected(fixture: Fixture, outcome: Mapping[str, Any]) -> None:
    """Note what was read of a fixture, for a person to look at."""
    _write_json(fixture.folder / EXPECTED, outcome)


def _part(case: Path, described: Mapping[str, Any], bodies: dict[str, bytes]) -> dict[str, Any]:
    path = case / described["file"]
    try:
        body = path.read_bytes()
    except OSError as missing:
        raise BadFixture(f"{path}: {missing.strerror}; {CAPTURE} names it as a part") from missing
    digest = sha256(body).hexdigest()
    if described.get("sha256", digest) != digest:
        raise BadFixture(
            f"{path} does not hold the bytes that {CAPTURE} says (sha256): record it anew, or delete sha256 and bytes "
            "there where it was changed on purpose"
        )
    bodies[digest] = body
    label = described.get("charset_declared")
    whole = {**_PART_DEFAULTS, "url_reached": described["url_asked"], "sha256": digest}
    whole["charset_used"] = charset.used(label, body, described["media_type"])
    return {**whole, **described}


def _file_name(role: str, media_type: str) -> str:
    safe = re.sub(r"[^A-Za-z0-9._-]", "-", role).strip(".-") or "part"
    ending = _ENDINGS.get(media_type.partition(";")[0].strip().lower(), "bin")
    return safe if safe.endswith(f".{ending}") else f"{safe}.{ending}"


def _json(path: Path) -> Any:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as wrong:
        raise BadFixture(f"{path} cannot be read: {wrong}") from wrong
    if not isinstance(found, dict):
        raise BadFixture(f"{path} holds no JSON object")
    return found


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", "utf-8")
