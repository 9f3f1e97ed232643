"""Where a resolver is, and who calls it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import grpc

from prw_base.client import STANDARD, Retry, Tls, is_loopback, open_channel


@dataclass(frozen=True, slots=True)
class ResolverAddress:
    """Where a resolver is and who is calling. `token` is asked for at each call, so that it may be renewed.

    Without `ca` the system's roots are used. A loopback address is spoken to in plain text, as is one with
    `plaintext` (a private network's own risk). `at_once` captures are sent side by side.
    """

    address: str
    token: Callable[[], str] = field(repr=False)
    ca: bytes | None = None
    plaintext: bool = False
    worker: str | None = None
    instance: str | None = None
    at_once: int = 4
    retry: Retry = STANDARD

    def open(self) -> grpc.aio.Channel:
        """A channel to the resolver; nothing is sent yet."""
        in_clear = self.ca is None and (self.plaintext or is_loopback(self.address))
        tls = None if in_clear else Tls(self.ca)
        return open_channel(self.address, self.token, tls=tls, allow_plaintext=self.plaintext)
