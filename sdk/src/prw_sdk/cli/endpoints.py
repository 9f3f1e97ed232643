"""Endpoints as settings write them."""

from __future__ import annotations

import ipaddress

from prw_sdk.fetch.guard import Endpoint


def endpoint(text: str) -> Endpoint:
    """``host:port`` as a pair; IPv6 addresses stand in brackets. Raises ValueError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is not host:port")
    return host.strip("[]").lower(), int(port)


def must_be_address(text: str) -> None:
    """Whether an endpoint is an IP address and a port; raises ValueError."""
    host, _ = endpoint(text)
    try:
        ipaddress.ip_address(host)
    except ValueError as name:
        raise ValueError(f"{text!r} is not address:port; resolve leads to an IP address") from name
