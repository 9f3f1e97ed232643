"""Whether accepted facts lead back to the bytes that they rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from prw.errors import PrwError
from prw_base.canonical import canonical_json
from prw_examples.demo.audit.store import Fact
from prw_resolver.objects import envelope
from prw_resolver.objects.model import ObjectKey
from prw_sdk.evidence import Part, Selector, SelectorType
from prw_sdk.locate import fold, resolve

Quote = Mapping[str, Any]
Document = Mapping[str, Any]


class Vault:
    """The stored bytes of one tenant, read from the object store's own files."""

    def __init__(self, objects: Path, tenant_id: str, documents: Mapping[str, Document]) -> None:
        self._objects = objects
        self._tenant_id = tenant_id
        self._documents = documents
        self._parts: dict[tuple[str, str, str], Part | None] = {}

    def part(self, capture_id: str, role: str, sha256: str) -> Part | None:
        """A capture's part of that role and digest with its bytes; None where any of these is not so."""
        named = (capture_id, role, sha256)
        if named not in self._parts:
            self._parts[named] = self._read(*named)
        return self._parts[named]

    def _read(self, capture_id: str, role: str, sha256: str) -> Part | None:
        document = self._documents.get(capture_id, {"parts": ()})
        for part in document["parts"]:
            if part["role"] == role and part["sha256"] == sha256:
                body = self._body(sha256)
                return None if body is None else _part(part, body)
        return None

    def _body(self, sha256: str) -> bytes | None:
        path = self._objects.joinpath("evidence", *ObjectKey(self._tenant_id, sha256).path)
        try:
            stored = envelope.read(path)
        except PrwError:  # what is damaged leads back to nothing
            return None
        return None if stored is None else stored.body


def untraceable(facts: Iterable[Fact], vault: Vault) -> list[str]:
    """The revisions of facts that rest on nothing, or on something that is not where they say it stands."""
    leads_back = _remembering(vault)
    return [
        f"{fact['aggregate_type']} {fact['aggregate_id']} revision {fact['revision']}"
        for fact in facts
        if not fact["evidence"] or not all(map(leads_back, fact["evidence"]))
    ]


def _remembering(vault: Vault) -> Callable[[Quote], bool]:
    known: dict[bytes, bool] = {}

    def leads_back(quote: Quote) -> bool:
        named = canonical_json(dict(quote))
        if named not in known:
            known[named] = _leads_back(quote, vault)
        return known[named]

    return leads_back


def _leads_back(quote: Quote, vault: Vault) -> bool:
    part = vault.part(quote["capture_id"], quote["part_role"], quote["sha256"])
    stated = fold(quote["quote"])
    found = None if part is None else resolve(part, _selector(quote["selector"]))
    return bool(stated) and found is not None and fold(found) == stated


def _selector(stored: Mapping[str, Any]) -> Selector:
    refined = stored.get("refined_by")
    return Selector(
        SelectorType(stored["type"]),
        stored["value"],
        stored.get("attribute"),
        None if refined is None else _selector(refined),
    )


def _part(stored: Mapping[str, Any], body: bytes) -> Part:
    return Part(
        role=stored["role"],
        sha256=stored["sha256"],
        body=body,
        media_type=stored["media_type"],
        url_asked=stored["url_asked"],
        url_reached=stored["url_reached"],
        http_status=stored["http_status"],
        fetched_at=datetime.fromisoformat(stored["fetched_at"]),
        charset_declared=stored["charset_declared"],
        charset_used=stored["charset_used"],
    )
