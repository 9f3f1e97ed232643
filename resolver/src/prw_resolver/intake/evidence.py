"""Make the capture that an adapter reads out of a stored document and the stored bytes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from prw_resolver.objects.model import ObjectKey
from prw_resolver.objects.port import ObjectStore
from prw_sdk.evidence import (
    AdapterVersion,
    Capture,
    Citation,
    Egress,
    Part,
    Presence,
    Region,
)


async def rebuild(objects: ObjectStore, tenant_id: str, document: Mapping[str, Any]) -> Capture:
    """The capture of a normalised `document`, equal to the one that the collector's adapter had."""
    parts = [await _part(objects, tenant_id, part) for part in document["parts"]]
    return Capture(
        source_id=document["source_id"],
        native_record_id=document["native_record_id"],
        captured_at=datetime.fromisoformat(document["captured_at"]),
        adapter=AdapterVersion(**document["adapter"]),
        parts=tuple(parts),
        config=document["config"],
        presence=Presence(document["presence"]),
        execution_region=Region(**document["execution_region"]),
        egress=Egress(**document["egress"]),
    )


async def _part(objects: ObjectStore, tenant_id: str, part: Mapping[str, Any]) -> Part:
    stored = await objects.get(ObjectKey(tenant_id, part["sha256"]))
    return Part(
        role=part["role"],
        sha256=part["sha256"],
        body=stored.body,
        media_type=part["media_type"],
        url_asked=part["url_asked"],
        url_reached=part["url_reached"],
        http_status=part["http_status"],
        fetched_at=datetime.fromisoformat(part["fetched_at"]),
        charset_declared=part["charset_declared"],
        charset_used=part["charset_used"],
        headers=tuple((name, value) for name, value in part["headers"]),
        cites=_citation(part["cites"]),
    )


def _citation(cites: Mapping[str, Any] | None) -> Citation | None:
    if cites is None:
        return None
    return Citation(datetime.fromisoformat(cites["captured_at"]), cites["sha256"])
