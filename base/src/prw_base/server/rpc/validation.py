"""Request limits, declared in the proto and checked in one place."""

from __future__ import annotations

import protovalidate
from google.protobuf.message import Message

from prw.errors import Code, PrwError


def check(message: Message) -> None:
    """Raise PrwError VALIDATION_FAILED with the first field of ``message`` that breaks its rule."""
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
