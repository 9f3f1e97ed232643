"""A recorded plan: the settings of a source, the lists that it serves, and the targets that they name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prw_sdk.adapter import NO_RESPONSES, Adapter, NetFailed, Source, Target
from prw_sdk.evidence import Part
from prw_sdk.fetch import charset
from prw_sdk.testing.fixtures import BadFixture

PLAN = "plan.json"
_AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


class NotRecorded(NetFailed):
    """The plan asked for an address that was not recorded, or that was recorded as failing."""

    def __init__(self, url: str, status: int) -> None:
        super().__init__(f"{url} ({status})")
        self.status = status


class PlanNet:
    """The recorded lists as a network."""

    def __init__(self, pages: Mapping[str, tuple[int, Part]]) -> None:
        self._pages = pages

    async def get(self, url: str, *, role: str, accept: str | None = None, **more: Any) -> Part:
        """The recorded answer of an address; raises `NotRecorded` where there is none, or a failed one."""
        status, part = self._pages.get(url, (404, None))
        if part is None or status >= 400:
            raise NotRecorded(url, status)
        return Part(
            role,
            part.sha256,
            part.body,
            part.media_type,
            url,
            url,
            status,
            _AT,
            part.charset_declared,
            part.charset_used,
        )

    async def render(
        self,
        url: str,
        *,
        role: str = "page",
        responses: Mapping[str, str] = NO_RESPONSES,
        **more: Any,
    ) -> tuple[Part, ...]:
        """The recorded answer as the rendered page."""
        return (await self.get(url, role=role),)


@dataclass(frozen=True, slots=True)
class PlanFixture:
    """What is planned from, and what should come of it."""

    source: Source
    pages: Mapping[str, tuple[int, Part]]
    targets: Sequence[Target]

    def net(self) -> PlanNet:
        """A network that serves the recorded lists."""
        return PlanNet(self.pages)


def load_plan(folder: Path, adapter: Adapter) -> PlanFixture | None:
    """The recorded plan of a folder of fixtures; None where it has none. Raises `BadFixture`."""
    path = folder / PLAN
    if not path.exists():
        return None
    try:
        told = json.loads(path.read_text("utf-8"))
        settings = adapter.settings.model_validate(told.get("settings", {}))
        source = Source("src_fixture", settings, told.get("locale", "en_US"), told.get("currency"))
        pages = {page["url"]: _page(folder, page) for page in told["pages"]}
        targets = [Target(one["native_id"], one["url"]) for one in told["targets"]]
    except (OSError, ValueError, KeyError, TypeError, ValidationError) as wrong:
        raise BadFixture(
            f"{path} is no recorded plan ({wrong!r}): write settings, pages (url, file) and targets (native_id, url)"
        ) from wrong
    return PlanFixture(source, pages, targets)


def _page(folder: Path, page: Mapping[str, Any]) -> tuple[int, Part]:
    body = (folder / page["file"]).read_bytes() if "file" in page else b""
    media_type = page.get("media_type", "text/html")
    label = charset.declared(media_type, body, media_type)
    used = charset.used(label, body, media_type)
    status = int(page.get("status", 200))
    digest = sha256(body).hexdigest()
    url = page["url"]
    return status, Part("list", digest, body, media_type, url, url, status, _AT, label, used)
