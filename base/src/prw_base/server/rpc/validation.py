"""Request limits, declared in the proto and checked in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import protovalidate
from google.protobuf.message import DecodeError, Message

from prw.errors import Code, PrwError


class Garbled:
    """Stands for bytes that are no message of the method; refused like one that breaks a rule."""


def tolerant(deserialize: Callable[[bytes], Any] | None) -> Callable[[bytes], Any]:
    """``deserialize`` with a value for its failure, which would never reach the table of errors."""

    def read(data: bytes) -> Any:
        try:
            return data if deserialize is None else deserialize(data)
        except (DecodeError, ValueError):
            return Garbled()

    return read


def check(message: Message | Garbled) -> None:
    """Raise PrwError VALIDATION_FAILED with the first field of ``message`` that breaks its rule."""
    if isinstance(message, Garbled):
        raise PrwError(
            Code.VALIDATION_FAILED, "not a message of this method; a text must be valid UTF-8"
        )
    violations = protovalidate.collect_violations(message, fail_fast=True)
    if not violations:
        return
    violation = violations[0].proto
    field = ".".join(map(_element, violation.field.elements)) if violation.field else None
    raise PrwError(Code.VALIDATION_FAILED, violation.message or violation.rule_id, field=field)


def _element(element: protovalidate.FieldPathElementPb) -> str:
    subscript = element.subscript
    name = element.field_name
    return name if subscript is None else f"{name}[{subscript.value}]"
