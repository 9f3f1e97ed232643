"""Ids: time-ordered ones for what happens, derived ones for what is named by its parts."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
import uuid

_RANDOM_BITS = 74


def uuid7() -> uuid.UUID:
    """A UUID of version 7 (RFC 9562): time-ordered, and growing within this process.

    Random ids triple the WAL that a decision writes, hence the order (state, "Hard-won rules").
    """
    millis, tail = _clock.tick()
    value = millis << 80 | 0x7 << 76 | (tail >> 62) << 64 | 0b10 << 62 | (tail & (1 << 62) - 1)
    return uuid.UUID(int=value)


class _Clock:
    """Milliseconds since 1970 and 74 bits after them; the pair never goes back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = (0, 0)

    def tick(self) -> tuple[int, int]:
        with self._lock:
            now, (last_ms, last_tail) = time.time_ns() // 1_000_000, self._last
            if now > last_ms:
                # The top bit stays free, so that counting up within one cannot overflow.
                self._last = now, secrets.randbits(_RANDOM_BITS - 1)
            else:
                self._last = last_ms, last_tail + 1 + secrets.randbits(16)
            return self._last


_clock = _Clock()


def new_id(prefix: str) -> str:
    """A fresh id such as ``itm_018f…`` (prefix and 32 hex digits of a UUIDv7)."""
    return f"{prefix}_{uuid7().hex}"


def derived_id(prefix: str, *parts: str) -> str:
    """The id that ``parts`` always give, such as ``lst_9c1e…`` (32 hex digits of a SHA-256).

    Each part is preceded by its length, so that ("ab", "c") and ("a", "bc") differ.
    """
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return f"{prefix}_{digest.hexdigest()[:32]}"
