"""What a page that is open in a browser may ask for, and what of it goes over the wire.

A page may ask with GET alone, over http and https. Of its own site (its host without ``www.``, and every host under
that name) and of the hosts that the source's settings allow it gets documents, scripts, styles, pictures, fonts and
data. Of other hosts it gets what it needs to be shown: scripts, styles, pictures and fonts, unless the host is known
for following visitors about. Films, pings, sockets, prefetches and windows of its own it gets nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

_SHOWN = frozenset({"script", "stylesheet", "image", "font"})
_ANSWERED = _SHOWN | {"document", "xhr", "fetch"}
_DATA = frozenset({"document", "xhr", "fetch"})

TRACKERS = frozenset(
    {
        "2mdn.net",
        "adform.net",
        "adnxs.com",
        "adroll.com",
        "adsrvr.org",
        "amazon-adsystem.com",
        "amplitude.com",
        "appsflyer.com",
        "bat.bing.com",
        "bluekai.com",
        "branch.io",
        "chartbeat.com",
        "chartbeat.net",
        "clarity.ms",
        "contentsquare.net",
        "crazyegg.com",
        "criteo.com",
        "criteo.net",
        "demdex.net",
        "doubleclick.net",
        "everesttech.net",
        "facebook.net",
        "fullstory.com",
        "google-analytics.com",
        "googleadservices.com",
        "googlesyndication.com",
        "googletagmanager.com",
        "googletagservices.com",
        "hotjar.com",
        "hotjar.io",
        "kissmetrics.com",
        "krxd.net",
        "mathtag.com",
        "matomo.cloud",
        "mixpanel.com",
        "moatads.com",
        "mouseflow.com",
        "newrelic.com",
        "nr-data.net",
        "omtrdc.net",
        "optimizely.com",
        "outbrain.com",
        "pinimg.com",
        "quantcount.com",
        "quantserve.com",
        "rubiconproject.com",
        "scorecardresearch.com",
        "segment.com",
        "segment.io",
        "smartadserver.com",
        "snap.licdn.com",
        "statcounter.com",
        "taboola.com",
        "tealiumiq.com",
        "tiqcdn.com",
        "yieldlab.net",
        "zemanta.com",
    }
)
"""Names of hosts that follow visitors about and serve nothing that a page is made of; theirs are all names below."""

_OURS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "priority",
        "purpose",
    }
    | {"range", "te", "transfer-encoding", "upgrade-insecure-requests", "user-agent"}
)
_OF_THE_WIRE = frozenset(
    {
        "alt-svc",
        "connection",
        "content-encoding",
        "content-length",
        "keep-alive",
        "nel",
        "report-to",
    }
    | {"content-disposition", "trailer", "transfer-encoding", "upgrade"}
)


PAGES = ("text/html", "application/xhtml+xml", "application/xml", "text/xml", "text/plain")
"""What a browser shows as a document of its own instead of saving it or handing it to a viewer."""


@dataclass(frozen=True, slots=True)
class VisitLimits:
    """Bounds of one page: seconds in all, to its document, until it has settled, and of quiet that count as settled.

    `requests` and `bytes` bound what the page may ask for in all, `at_once` how many requests it has under way,
    `documents` how often it may go elsewhere, `rendered` what it comes to (characters), `height` the screenshot (CSS
    pixels).
    """

    total: float = 60.0
    document: float = 30.0
    settle: float = 10.0
    calm: float = 0.5
    requests: int = 500
    bytes: int = 64 * 1024 * 1024
    at_once: int = 6
    documents: int = 5
    rendered: int = 20 * 1024 * 1024
    height: int = 16_384


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for, as `prw_sdk.adapter.Net.render` takes it."""

    url: str
    role: str
    responses: Mapping[str, str]
    wait_for: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of a page's: method, address, and what it is for, in Chromium's words (``script``, ``xhr``, …)."""

    method: str
    url: str
    kind: str

    @property
    def is_data(self) -> bool:
        """Whether it asks for a document or for data, which robots rules are about."""
        return self.kind in _DATA


def refusal(asked: Asked, page: str, third_parties: frozenset[str]) -> str | None:
    """Why the page at the address `page` does not get that; None where it does."""
    parts = urlsplit(asked.url)
    host = (parts.hostname or "").lower()
    if parts.scheme not in ("http", "https") or not host:
        return "only http and https are asked"
    if asked.method != "GET":
        return f"only GET is used, not {asked.method}"
    if asked.kind not in _ANSWERED:
        return f"a page gets no {asked.kind}"
    if _is_under(host, (site(page), *third_parties)):
        return None
    if _is_under(host, TRACKERS):
        return "the host follows visitors about"
    return (
        None
        if asked.kind in _SHOWN
        else f"another site's {asked.kind}, which third_parties does not allow"
    )


def site(url: str) -> str:
    """The name that a page's own hosts are under: its host without ``www.``."""
    return (urlsplit(url).hostname or "").lower().removeprefix("www.")


def _is_under(host: str, names: Iterable[str]) -> bool:
    return any(host == name or host.endswith(f".{name}") for name in names if name)


def to_send(headers: Mapping[str, str]) -> dict[str, str]:
    """What of a page's request goes over the wire: all but what our client says itself, and the browser's hints."""
    return {
        name.lower(): value
        for name, value in headers.items()
        if name.lower() not in _OURS and not name.lower().startswith(("sec-", ":"))
    }


def to_page(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What of an answer the page sees: all but what is about bytes that were decoded since; cookies a line each."""
    seen: dict[str, str] = {}
    for name, value in headers:
        low = name.lower()
        if low in _OF_THE_WIRE:
            continue
        glue = "\n" if low == "set-cookie" else ", "
        seen[low] = f"{seen[low]}{glue}{value}" if low in seen else value
    return seen
