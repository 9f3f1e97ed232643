"""Fetching one page as a run would: guarded, polite, through the adapter's own ``fetch``."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, NoReturn
from urllib.parse import urldefrag, urlsplit

import typer

from prw_base.cli import FAILED, TRY_AGAIN
from prw_sdk.adapter import Adapter, Target
from prw_sdk.cli.adapter_subject import Unusable, fail, source_of
from prw_sdk.collect.attempt import Maker
from prw_sdk.collect.reading import AdapterFailed, foreign
from prw_sdk.collect.returned import parts_of
from prw_sdk.evidence import Capture, Part, Presence
from prw_sdk.fetch.guard import AddressRules
from prw_sdk.fetch.http import HttpNet, NetConfig
from prw_sdk.fetch.outcome import FetchFailed, Outcome, Recovery
from prw_sdk.fetch.polite import HostGates, Politeness, user_agent
from prw_sdk.fetch.runtime import RuntimeFolderUnusable

Url = Annotated[str, typer.Argument(metavar="URL", help="The address of one record's page.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--setting", metavar="K=V", help="A setting of the source; V may be JSON. Repeatable."
    ),
]
Identity = Annotated[
    str | None,
    typer.Option("--id", metavar="ID", help="The target's id, as plan gives it (default: URL)."),
]
Locale = Annotated[str, typer.Option("--locale", help="The market's language, such as de_DE.")]
Currency = Annotated[
    str | None, typer.Option("--currency", metavar="CODE", help="The market's currency (ISO 4217).")
]
Private = Annotated[
    bool,
    typer.Option("--allow-private", help="Let the URL's host be a private or local address."),
]
Contact = Annotated[
    str | None,
    typer.Option(
        "--contact",
        envvar="PRW_COLLECT_CONTACT",
        metavar="MAIL",
        help="A mail address or URL where the source can reach you; part of the User-Agent.",
    ),
]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be fetched, and how."""

    url: str
    native_id: str | None = None
    settings: tuple[str, ...] = ()
    locale: str = "en_US"
    currency: str | None = None
    allow_private: bool = False
    contact: str | None = None

    def target(self) -> Target:
        """The target; its id is the address unless one is given."""
        url = urldefrag(self.url).url
        return Target(self.native_id or url, url)

    def net(self) -> NetConfig:
        """The rules of the network; raises `Unusable`."""
        try:
            parts = urlsplit(self.url)
            host, _ = parts.hostname or "", parts.port
        except ValueError as bad:
            raise Unusable(f"URL {self.url!r}: {bad}") from bad
        if parts.scheme not in ("http", "https") or not host:
            raise Unusable(f"URL {self.url!r}: write a whole address, https://shop.example/p/1")
        private = frozenset({f"[{host}]" if ":" in host else host} if self.allow_private else ())
        contact = (self.contact or "").strip() or ("localhost" if self.allow_private else "")
        if not contact:
            raise Unusable(
                "--contact: write a mail address or URL where the source can reach you "
                "(or set PRW_COLLECT_CONTACT); it goes into the User-Agent"
            )
        return NetConfig(user_agent(contact), AddressRules(private))


def fetch_once(adapter: Adapter, asked: Asked) -> Capture:
    """The capture of one target, as a run would keep it; an absence where the source says that it is gone.

    Raises `FetchFailed`, `AdapterFailed` and `Unusable`.
    """
    source = source_of(adapter, asked.settings, asked.locale, asked.currency)
    target, at = asked.target(), datetime.now(UTC)
    maker = Maker(source, adapter)
    try:
        parts = asyncio.run(_parts(adapter, target, asked.net()))
    except FetchFailed as failed:
        if failed.recovery is not Recovery.ABSENT or failed.part is None:
            raise
        return maker.capture(target, at, (failed.part,), Presence.ABSENT)
    except RuntimeFolderUnusable as unusable:
        raise Unusable(str(unusable)) from unusable
    return maker.capture(target, at, parts, Presence.PRESENT)


async def _parts(adapter: Adapter, target: Target, config: NetConfig) -> tuple[Part, ...]:
    async with AsyncExitStack() as stack:
        browser = None
        if adapter.uses_browser:
            # only adapters that render need it, and it is slow to import
            from prw_sdk.fetch.browser import Browser  # noqa: PLC0415

            browser = await stack.enter_async_context(Browser())
        gates = HostGates(Politeness())
        stack.callback(gates.close)
        net = HttpNet(config, gates, browser=browser)
        stack.push_async_callback(net.aclose)
        with foreign("fetch"):
            fetched = await adapter.fetch(target, net)
        return parts_of(fetched)


def not_fetched(error: FetchFailed | AdapterFailed) -> NoReturn:
    """End the command with one line on why there is no page."""
    if isinstance(error, AdapterFailed):
        fail(f"ADAPTER_ERROR: {error}: mend the adapter's fetch or config", FAILED)
    advice = ""
    if error.outcome is Outcome.PRIVATE_ADDRESS:
        fail(
            f"PRIVATE_ADDRESS: {error.url} leads to no public address: add --allow-private if meant"
        )
    if error.outcome is Outcome.ROBOTS_FORBIDDEN:
        advice = "; the source's robots.txt is honoured: choose another page"
    later = error.recovery in (Recovery.RETRY, Recovery.LATER)
    fail(f"{error.code}: {error.url}: {error.message}{advice}", TRY_AGAIN if later else FAILED)
