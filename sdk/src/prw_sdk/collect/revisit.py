"""Asking again for what was fetched before: only whether it still holds (RFC 9110 section 13)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import urldefrag

from prw_sdk.adapter import NO_RESPONSES, Net
from prw_sdk.evidence import Citation, Part, Presence
from prw_sdk.spool import codec
from prw_sdk.spool.blobs import BlobDamaged, BlobMissing
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import ItemKey, KeptCapture

_VALIDATORS = frozenset({"etag", "last-modified"})


class AskingNet(Net, Protocol):
    """A network that can ask whether an earlier answer still holds."""

    async def get(
        self, url: str, *, role: str, accept: str | None = None, earlier: Part | None = None
    ) -> Part:
        """Fetch with GET; with `earlier` a 304 gives its bytes again, cited."""
        ...


class Revisit:
    """The network of one target that was captured before; what it held then is read only where it is asked for."""

    def __init__(self, net: AskingNet, spool: Spool, key: ItemKey) -> None:
        self._net = net
        self._spool = spool
        self._key = key
        self._last: asyncio.Task[Mapping[str, Any] | None] | None = None

    async def get(self, url: str, *, role: str, accept: str | None = None) -> Part:
        """Fetch with GET, or learn that the earlier answer still holds."""
        earlier = await self._earlier(url, role)
        return await self._net.get(url, role=role, accept=accept, earlier=earlier)

    async def render(
        self,
        url: str,
        *,
        role: str = "page",
        responses: Mapping[str, str] = NO_RESPONSES,
        wait_for: str | None = None,
    ) -> tuple[Part, ...]:
        """Open the page in a browser; it is always opened anew."""
        return await self._net.render(url, role=role, responses=responses, wait_for=wait_for)

    async def _earlier(self, url: str, role: str) -> Part | None:
        if self._last is None:
            self._last = asyncio.create_task(asyncio.to_thread(self._load))
        last = await self._last
        if last is None:
            return None
        for part in last["parts"]:
            if part["role"] == role and part["url_asked"] == _whole(url) and _can_be_asked(part):
                return await asyncio.to_thread(self._part, part, last)
        return None

    def _load(self) -> Mapping[str, Any] | None:
        kept: KeptCapture | None = self._spool.ledger.last_capture(self._key)
        if kept is None:
            return None
        found: dict[str, Any] = json.loads(kept.body)
        return found if found["presence"] == Presence.PRESENT else None

    def _part(self, part: Mapping[str, Any], last: Mapping[str, Any]) -> Part | None:
        """The earlier part, citing the capture that first held its bytes; None where they are no longer whole."""
        try:
            found = codec.decode_part(part, self._spool.blobs.get)
        except (BlobMissing, BlobDamaged):
            return None
        cites = found.cites or Citation(codec.captured_at(last), found.sha256)
        return replace(found, cites=cites)


def _can_be_asked(part: Mapping[str, Any]) -> bool:
    return not _VALIDATORS.isdisjoint(name for name, _ in part["headers"])


def _whole(url: str) -> str:
    try:
        return urldefrag(url).url
    except ValueError:
        return url
