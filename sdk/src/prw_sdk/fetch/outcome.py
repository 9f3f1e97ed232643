"""How a fetch can end other than with a part, and what each ending allows next."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from prw_sdk.adapter import NetFailed
from prw_sdk.evidence import Part


class Recovery(StrEnum):
    """What may follow a failed fetch.

    `ABSENT` is the source's own statement that the target is gone. `REJECTED` is terminal. `RETRY` may be asked
    again at once (with backoff) and later; `LATER` only in a later run, since asking again now changes nothing.
    """

    ABSENT = "absent"
    REJECTED = "rejected"
    RETRY = "retry"
    LATER = "later"


class Outcome(StrEnum):
    """Why a fetch gave no part."""

    NOT_FOUND = "not_found"
    GONE = "gone"
    ROBOTS_FORBIDDEN = "robots_forbidden"
    ROBOTS_UNREACHABLE = "robots_unreachable"
    PRIVATE_ADDRESS = "private_address"
    BAD_URL = "bad_url"
    TOO_MANY_REDIRECTS = "too_many_redirects"
    REFUSED = "refused"
    RATE_LIMITED = "rate_limited"
    HOST_BUSY = "host_busy"
    UPSTREAM = "upstream"
    TIMEOUT = "timeout"
    NETWORK = "network"
    TRUNCATED = "truncated"
    UNDECODABLE = "undecodable"
    TOO_LARGE = "too_large"
    SOFT_NOT_FOUND = "soft_not_found"
    CONSENT_WALL = "consent_wall"
    BOT_CHALLENGE = "bot_challenge"
    LOGIN_PAGE = "login_page"
    CIRCUIT_OPEN = "circuit_open"
    NO_BROWSER = "no_browser"
    BROWSER_FAILED = "browser_failed"

    @property
    def recovery(self) -> Recovery:
        """What this ending allows next (`if_source_fetch`: never retry a 4xx but 408 and 429)."""
        return _RECOVERY[self]

    @property
    def is_of_host(self) -> bool:
        """Whether the target was not even asked for, since its host is not to be asked now."""
        return self in (Outcome.HOST_BUSY, Outcome.ROBOTS_UNREACHABLE, Outcome.CIRCUIT_OPEN)


_RECOVERY = {
    Outcome.NOT_FOUND: Recovery.ABSENT,
    Outcome.GONE: Recovery.ABSENT,
    Outcome.ROBOTS_FORBIDDEN: Recovery.REJECTED,
    Outcome.ROBOTS_UNREACHABLE: Recovery.LATER,
    Outcome.PRIVATE_ADDRESS: Recovery.REJECTED,
    Outcome.BAD_URL: Recovery.REJECTED,
    Outcome.TOO_MANY_REDIRECTS: Recovery.REJECTED,
    Outcome.REFUSED: Recovery.REJECTED,
    Outcome.RATE_LIMITED: Recovery.RETRY,
    Outcome.HOST_BUSY: Recovery.LATER,
    Outcome.UPSTREAM: Recovery.RETRY,
    Outcome.TIMEOUT: Recovery.RETRY,
    Outcome.NETWORK: Recovery.RETRY,
    Outcome.TRUNCATED: Recovery.RETRY,
    Outcome.UNDECODABLE: Recovery.RETRY,
    Outcome.TOO_LARGE: Recovery.LATER,
    Outcome.SOFT_NOT_FOUND: Recovery.REJECTED,
    Outcome.CONSENT_WALL: Recovery.LATER,
    Outcome.BOT_CHALLENGE: Recovery.LATER,
    Outcome.LOGIN_PAGE: Recovery.REJECTED,
    Outcome.CIRCUIT_OPEN: Recovery.LATER,
    Outcome.NO_BROWSER: Recovery.LATER,
    Outcome.BROWSER_FAILED: Recovery.RETRY,
}


class FetchFailed(NetFailed):
    """A GET that gave no usable answer.

    `url` is the address asked for (redacted), `status` the HTTP status where there was one, `retry_after` what the
    source asked us to wait, and `part` the answer itself: where it is evidence (a real 404 or 410), and for diagnosis
    where a page was recognised as something other than what was asked for (a login page, a bot challenge).
    """

    def __init__(
        self,
        outcome: Outcome,
        message: str,
        *,
        url: str,
        status: int | None = None,
        retry_after: timedelta | None = None,
        part: Part | None = None,
    ) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.message = message
        self.url = url
        self.status = status
        self.retry_after = retry_after
        self.part = part

    @property
    def recovery(self) -> Recovery:
        """What may follow."""
        return self.outcome.recovery

    @property
    def code(self) -> str:
        """A stable upper-case code for ledgers and run reports, such as ``UPSTREAM_503``."""
        if self.outcome in (Outcome.UPSTREAM, Outcome.REFUSED) and self.status is not None:
            return f"UPSTREAM_{self.status}"
        return self.outcome.value.upper()


def of_status(status: int) -> Outcome | None:
    """The ending that an HTTP status stands for, or None for an answer that is evidence (2xx)."""
    if 200 <= status < 300 and status != 206:
        return None
    named = {206: Outcome.TRUNCATED, 404: Outcome.NOT_FOUND, 410: Outcome.GONE}
    named |= {408: Outcome.TIMEOUT, 429: Outcome.RATE_LIMITED}
    if status in named:
        return named[status]
    return Outcome.UPSTREAM if status >= 500 else Outcome.REFUSED
