"""Captures made of stored pages, and what a record says in a form that is easy to compare."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from prw_plugin_schemaorg import SchemaOrg
from prw_sdk.evidence import AdapterVersion, Capture, Claim, Part, Presence, Record
from prw_sdk.fetch import charset

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
CONFIG: Mapping[str, object] = {"locale": "en_US"}


def capture(
    body: bytes,
    url: str,
    *,
    content_type: str = "text/html",
    config: Mapping[str, object] = CONFIG,
    presence: Presence = Presence.PRESENT,
) -> Capture:
    """A capture of one page as the collector makes it."""
    media_type = content_type.partition(";")[0]
    label = charset.declared(content_type, body, media_type)
    part = Part(
        role="page",
        sha256=hashlib.sha256(body).hexdigest(),
        body=body,
        media_type=media_type,
        url_asked=url,
        url_reached=url,
        http_status=200,
        fetched_at=AT,
        charset_declared=label,
        charset_used=charset.used(label, body, media_type),
    )
    adapter = AdapterVersion(SchemaOrg.name, SchemaOrg.version)
    return Capture("src_test", url, AT, adapter, (part,), config, presence)


def claims(record: Record) -> Iterator[Claim]:
    """All statements of a record, its merchant included."""
    yield from record.claims
    if record.merchant is not None:
        yield record.merchant


def plain(record: Record) -> dict[str, Any]:
    """A record without its locators."""
    stated: dict[str, Any] = {}
    for claim in record.claims:
        stated.setdefault(claim.attribute, []).append(claim.value_as_stated)
    return {
        "listing_key": record.listing_key,
        "merchant": None if record.merchant is None else record.merchant.value_as_stated,
        "claims": {name: texts[0] if len(texts) == 1 else texts for name, texts in stated.items()},
    }
