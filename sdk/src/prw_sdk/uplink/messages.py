"""A capture of the spool as the contract's message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from prw.collector.v1.evidence_pb2 import (
    PRESENCE_ABSENT,
    PRESENCE_PRESENT,
    AdapterVersion,
    Capture,
    Citation,
    Egress,
    Header,
    Part,
    Region,
)
from prw_sdk.spool.model import from_text

_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*")
_UNKNOWN_TYPE = "application/octet-stream"


def normal_type(media_type: str) -> str:
    """A media type as the object store keeps it: lower case, without parameters."""
    bare = media_type.partition(";")[0].strip().lower()
    return bare if _MEDIA_TYPE.fullmatch(bare) and len(bare) <= 127 else _UNKNOWN_TYPE


def capture_message(data: Mapping[str, Any]) -> Capture:
    """The capture of the spool's canonical JSON as the contract's message."""
    present = data["presence"] == "present"
    return Capture(
        schema_version=data["schema_version"],
        source_id=data["source_id"],
        native_record_id=data["native_record_id"],
        captured_at=_timestamp(data["captured_at"]),
        adapter=AdapterVersion(**data["adapter"]),
        config=json_format.ParseDict(data["config"], Struct()),
        config_digest=data["config_digest"],
        parts=[_part_message(part) for part in data["parts"]],
        presence=PRESENCE_PRESENT if present else PRESENCE_ABSENT,
        execution_region=Region(**data["execution_region"]),
        egress=Egress(**data["egress"]),
    )


def _part_message(data: Mapping[str, Any]) -> Part:
    cites = data["cites"]
    return Part(
        role=data["role"],
        sha256=data["sha256"],
        bytes=data["bytes"],
        media_type=data["media_type"],
        charset_declared=data["charset_declared"] or "",
        charset_used=data["charset_used"] or "",
        url_asked=data["url_asked"],
        url_reached=data["url_reached"],
        http_status=data["http_status"],
        headers=[Header(name=name, value=value) for name, value in data["headers"]],
        fetched_at=_timestamp(data["fetched_at"]),
        cites=cites
        and Citation(captured_at=_timestamp(cites["captured_at"]), sha256=cites["sha256"]),
    )


def _timestamp(text: str) -> Timestamp:
    return to_timestamp(from_text(text))


def to_timestamp(moment: datetime) -> Timestamp:
    """A moment as a message."""
    stamp = Timestamp()
    stamp.FromDatetime(moment)
    return stamp
