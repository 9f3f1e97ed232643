"""What is told about one source, for fetching it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from prw_sdk.fetch.breaker import BreakerPolicy
from prw_sdk.fetch.classify import Rule
from prw_sdk.fetch.guard import AddressRules
from prw_sdk.fetch.redact import Redactor
from prw_sdk.fetch.rendering import Pages
from prw_sdk.fetch.retry import RetryPolicy

_SHORTEST_SECRET = 6


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Bounds of one page: seconds to connect, seconds in all, decoded bytes, redirects followed."""

    connect: float = 10.0
    total: float = 30.0
    max_bytes: int = 20 * 1024 * 1024
    max_redirects: int = 8


@dataclass(frozen=True, slots=True)
class NetConfig:
    """How one source is fetched.

    `credentials` holds headers by host; they go to that host alone. `rules_off` names rules of
    `prw_sdk.fetch.classify` that are wrong about this source's pages. `pages` is for the browser.
    """

    user_agent: str
    rules: AddressRules = AddressRules()
    limits: FetchLimits = FetchLimits()
    retry: RetryPolicy = RetryPolicy()
    credentials: Mapping[str, Mapping[str, str]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    breaker: BreakerPolicy = BreakerPolicy()
    rules_off: frozenset[Rule] = frozenset()
    pages: Pages = Pages()

    def redactor(self) -> Redactor:
        """Knows every secret of this source."""
        values = (value for headers in self.credentials.values() for value in headers.values())
        words = {word for value in values for word in (value, *value.split())}
        words |= {part for word in words for part in _basic(word)}
        return Redactor(frozenset(word for word in words if len(word) >= _SHORTEST_SECRET))


def _basic(word: str) -> tuple[str, ...]:
    """User and password of Basic credentials (RFC 7617), together, and the password alone."""
    try:
        pair = base64.b64decode(word, validate=True).decode("utf-8")
    except ValueError:
        return ()
    _, colon, password = pair.partition(":")
    return (pair, password) if colon else ()
