"""Addresses that may be asked for: absolute http and https URLs, in the one spelling that goes over the wire.

What an address already says in percent signs stays as it is, since signatures are made over it; what may not stand in
a URL is escaped, dot segments are resolved (robots rules are about paths), names of hosts become ASCII (UTS 46), and
user information and fragments are dropped.
"""

from __future__ import annotations

import ipaddress
import posixpath
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, urldefrag, urljoin, urlsplit

import idna

LONGEST = 4096
_PORTS = {"http": 80, "https": 443}
_PLAIN = re.compile(
    r"(https?)://((?:(?!xn--)[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?\.){1,4}[a-z0-9]{1,24})(:\d{1,5})?/"
)
_QUIET = re.compile(r"[A-Za-z0-9\-._~:/?@!$&'()*+,;=]*")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_KEPT = "!$&'()*+,;=:@/?[]~"
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_DOTS = re.compile(r"/(\.|%2e){1,2}(/|$)", re.IGNORECASE)


class BadAddress(ValueError):
    """The text is no address that may be asked for; the message says why."""


@dataclass(frozen=True, slots=True)
class Address:
    """`text` is the whole address in ASCII; `netloc` names host and port as robots rules and limits know them."""

    text: str
    scheme: str
    host: str
    port: int
    netloc: str
    path: str

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"{self.scheme}://{self.netloc}"


def parse(text: str) -> Address:
    """The address; raises `BadAddress`."""
    if len(text) > LONGEST:
        raise BadAddress(f"longer than {LONGEST} characters")
    begin = _PLAIN.match(text)
    if begin is None or "/." in text or not _QUIET.fullmatch(text, begin.end()):
        return _parse_odd(text)
    return _made(begin[1], begin[2], int((begin[3] or ":0")[1:]), text[begin.end() - 1 :])


def _parse_odd(text: str) -> Address:
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError as bad:
        raise BadAddress(f"not a URL: {bad}") from bad
    if parts.scheme not in _PORTS or not host:
        raise BadAddress("only absolute http and https URLs are fetched")
    return _made(parts.scheme, _ascii_host(host), port or 0, _target(parts))


def _made(scheme: str, host: str, port: int, path: str) -> Address:
    if port > 65535:
        raise BadAddress(f"there is no port {port}")
    usual = _PORTS[scheme]
    shown = f"[{host}]" if ":" in host else host
    netloc = shown if port in (0, usual) else f"{shown}:{port}"
    text = f"{scheme}://{netloc}{path}"
    if len(text) > LONGEST:
        raise BadAddress(f"longer than {LONGEST} characters")
    return Address(text, scheme, host, port or usual, netloc, path)


def _ascii_host(host: str) -> str:
    if ":" in host:
        return _ipv6(host)
    name = host.lower() if host.isascii() else _from_unicode(host)
    labels = name.removesuffix(".").split(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise BadAddress(f"not the name of a host: {host[:80]!r}")
    for label in labels:
        if label.startswith("xn--"):
            _from_unicode(label)
    return name


def _ipv6(host: str) -> str:
    try:
        return ipaddress.IPv6Address(host).compressed if "%" not in host else _no_scope(host)
    except ValueError as bad:
        raise BadAddress(f"not an IPv6 address: {host[:80]!r}") from bad


def _no_scope(host: str) -> str:
    raise BadAddress(f"an address with a scope is no public one: {host[:80]!r}")


def _from_unicode(host: str) -> str:
    try:
        if host.startswith("xn--"):
            idna.decode(host)
            return host
        return idna.encode(host, uts46=True).decode("ascii").lower()
    except UnicodeError as bad:
        raise BadAddress(f"not the name of a host: {host[:80]!r}: {bad}") from bad


def _target(parts: SplitResult) -> str:
    path = _escaped(parts.path) or "/"
    if _DOTS.search(path):
        path = _resolved(path)
    return f"{path}?{_escaped(parts.query)}" if parts.query else path


def _escaped(text: str) -> str:
    try:
        return quote(_BARE_PERCENT.sub("%25", text), safe=_KEPT + "%")
    except UnicodeEncodeError as bad:
        raise BadAddress("holds half of a character") from bad


def _resolved(path: str) -> str:
    dotted = re.sub(r"%2e", ".", path, flags=re.IGNORECASE)
    ends = "/" if dotted.endswith(("/", "/.", "/..")) else ""
    whole = posixpath.normpath("/" + dotted.lstrip("/")).rstrip("/") + ends
    return whole or "/"


def joined(base: str, reference: str) -> str:
    """Where a reference found at `base` leads, without its fragment; as it stands where that is no address."""
    try:
        return urldefrag(urljoin(base, reference.strip())).url
    except ValueError:
        return reference


def whole(text: str) -> str:
    """The address of the whole document; as it stands where it is none."""
    if "#" not in text:
        return text
    try:
        return urldefrag(text).url
    except ValueError:
        return text
