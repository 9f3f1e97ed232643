"""One way to write a value as bytes, so that equal values have equal digests everywhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum


def canonical_json(value: object) -> bytes:
    """``value`` as JSON in UTF-8 with sorted keys and no spaces.

    A Decimal becomes a string without exponent and trailing zeros, a datetime RFC 3339 in UTC with
    microseconds, an enum its value, a set a sorted list. Raises TypeError for a float (it has no
    exact decimal form), a naive datetime, a key that is no string, and every other type.
    """
    text = json.dumps(
        _plain(value), ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )
    return text.encode()


def sha256_hex(data: bytes) -> str:
    """The SHA-256 of ``data`` in 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def decimal_text(value: Decimal) -> str:
    """``value`` without exponent and trailing zeros: 1.50 and 1.5 are both ``1.5``, 1E+3 ``1000``.

    Raises TypeError for what is not finite.
    """
    if not value.is_finite():
        raise TypeError(f"{value} has no canonical form")
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return _plain(value.value)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Decimal):
        return decimal_text(value)
    if isinstance(value, date):
        return _plain_date(value)
    return _plain_collection(value)


def _plain_date(value: date) -> str:
    if not isinstance(value, datetime):
        return value.isoformat()
    if value.tzinfo is None:
        raise TypeError("a datetime without a time zone has no canonical form")
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _plain_collection(value: object) -> object:
    if isinstance(value, Mapping):
        return {_key(key): _plain(member) for key, member in value.items()}
    if isinstance(value, Set):
        return sorted((_plain(member) for member in value), key=canonical_json)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_plain(member) for member in value]
    raise TypeError(f"{type(value).__name__} has no canonical form")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError("a key of a canonical object is a string")
    return key.value if isinstance(key, Enum) else key
