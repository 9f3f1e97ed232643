"""A capture as canonical JSON, its bodies by reference: what the ledger keeps and the uplink sends."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from prw_base.canonical import canonical_json, sha256_hex
from prw_sdk.evidence import (
    AdapterVersion,
    Capture,
    Citation,
    Egress,
    Part,
    Presence,
    Region,
)
from prw_sdk.spool.model import from_text, to_text

SCHEMA_VERSION = 1


def config_digest(config: Mapping[str, object]) -> str:
    """The digest of a capture's config."""
    return sha256_hex(canonical_json(config))


def fingerprint(capture: Capture) -> str:
    """A digest of what the capture says of its target; equal for two captures that say the same.

    An answer that the earlier bytes still hold (304) says what these said. The same bytes in another charset say
    something else; an absence is the same absence whatever its error page looks
    like.
    """
    parts = [[part.role, part.sha256, _status(part), part.charset_used] for part in capture.parts]
    said = {
        "adapter": capture.adapter.name,
        "config": dict(capture.config),
        "presence": capture.presence,
        "parts": [] if capture.presence is Presence.ABSENT else parts,
    }
    return sha256_hex(canonical_json(said))


def _status(part: Part) -> int:
    return part.http_status if part.cites is None else 200


def encode(capture: Capture) -> bytes:
    """The capture's canonical JSON; raises TypeError for a config that is not plain JSON."""
    return canonical_json(
        {
            "schema_version": SCHEMA_VERSION,
            "source_id": capture.source_id,
            "native_record_id": capture.native_record_id,
            "captured_at": to_text(capture.captured_at),
            "adapter": {"name": capture.adapter.name, "version": capture.adapter.version},
            "config": dict(capture.config),
            "config_digest": config_digest(capture.config),
            "presence": capture.presence,
            "parts": [_encode_part(part) for part in capture.parts],
            "execution_region": {
                "country": capture.execution_region.country,
                "label": capture.execution_region.label,
                "declared_by": capture.execution_region.declared_by,
            },
            "egress": {
                "country": capture.egress.country,
                "verified": capture.egress.verified,
            },
        }
    )


def _encode_part(part: Part) -> dict[str, object]:
    cites = part.cites
    return {
        "role": part.role,
        "sha256": part.sha256,
        "bytes": len(part.body),
        "media_type": part.media_type,
        "charset_declared": part.charset_declared,
        "charset_used": part.charset_used,
        "url_asked": part.url_asked,
        "url_reached": part.url_reached,
        "http_status": part.http_status,
        "headers": [list(header) for header in part.headers],
        "fetched_at": to_text(part.fetched_at),
        "cites": cites and {"captured_at": to_text(cites.captured_at), "sha256": cites.sha256},
    }


def decode(body: bytes, blob: Callable[[str], bytes]) -> Capture:
    """The capture of a canonical JSON, with its bytes read through `blob`."""
    data: dict[str, Any] = json.loads(body)
    return Capture(
        source_id=data["source_id"],
        native_record_id=data["native_record_id"],
        captured_at=from_text(data["captured_at"]),
        adapter=AdapterVersion(**data["adapter"]),
        parts=tuple(decode_part(part, blob) for part in data["parts"]),
        config=data["config"],
        presence=Presence(data["presence"]),
        execution_region=Region(**data["execution_region"]),
        egress=Egress(**data["egress"]),
    )


def captured_at(data: Mapping[str, Any]) -> datetime:
    """When a capture, read as JSON, was made."""
    return from_text(data["captured_at"])


def decode_part(data: Mapping[str, Any], blob: Callable[[str], bytes]) -> Part:
    """One part of a capture that was read as JSON."""
    cites = data["cites"]
    return Part(
        role=data["role"],
        sha256=data["sha256"],
        body=blob(data["sha256"]),
        media_type=data["media_type"],
        url_asked=data["url_asked"],
        url_reached=data["url_reached"],
        http_status=data["http_status"],
        fetched_at=from_text(data["fetched_at"]),
        charset_declared=data["charset_declared"],
        charset_used=data["charset_used"],
        headers=tuple((name, value) for name, value in data["headers"]),
        cites=cites and Citation(from_text(cites["captured_at"]), cites["sha256"]),
    )
