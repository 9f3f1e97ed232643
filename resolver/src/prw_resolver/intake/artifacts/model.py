"""What crosses a stream of artifacts: declarations and bytes in, answers out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from prw.errors import PrwError
from prw_resolver.objects.model import ObjectMeta


@dataclass(frozen=True, slots=True)
class Declaration:
    """Bytes to come; `sequence` numbers them on the stream, each greater than the one before."""

    sequence: int
    source_id: str
    meta: ObjectMeta


@dataclass(frozen=True, slots=True)
class Chunk:
    """The next bytes of one artifact; `last` says that they are the last ones."""

    sequence: int
    data: bytes
    last: bool


Sent: TypeAlias = Declaration | Chunk


class Standing(StrEnum):
    """Where an artifact of the stream stands."""

    PENDING = "pending"
    """Its bytes are awaited."""
    STORED = "stored"
    """They are verified and durable."""
    REFUSED = "refused"
    """They are not stored; the answer's error says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the stream says of one artifact."""

    sequence: int
    standing: Standing
    error: PrwError | None = None
