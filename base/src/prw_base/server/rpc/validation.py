"""Request limits, declared in the proto and checked in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import protovalidate
from google.protobuf.descriptor import FieldDescriptor
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
    """Raise PrwError VALIDATION_FAILED with the first field of ``message`` that breaks its rule.

    Beside the rules of the proto one holds for every text: it has no NUL, which PostgreSQL keeps in none.
    """
    if isinstance(message, Garbled):
        raise PrwError(
            Code.VALIDATION_FAILED, "not a message of this method; a text must be valid UTF-8"
        )
    violations = protovalidate.collect_violations(message, fail_fast=True)
    if violations:
        violation = violations[0].proto
        field = ".".join(map(_element, violation.field.elements)) if violation.field else None
        raise PrwError(Code.VALIDATION_FAILED, violation.message or violation.rule_id, field=field)
    for field, text in _texts(message):
        if "\0" in text:
            raise PrwError(Code.VALIDATION_FAILED, "holds a NUL character", field=field)


def _texts(value: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """Every text in ``value`` with the path of its field; a map's are those of the map."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, Message):
        for descriptor, held in value.ListFields():
            yield from _texts_of(descriptor, held, f"{field}.{descriptor.name}".lstrip("."))


def _texts_of(descriptor: FieldDescriptor, held: Any, field: str) -> Iterator[tuple[str, str]]:
    if not descriptor.is_repeated:
        yield from _texts(held, field)
    elif _is_map(descriptor):
        for key, value in held.items():
            yield from ((field, text) for one in (key, value) for _, text in _texts(one))
    else:
        for index, one in enumerate(held):
            yield from _texts(one, f"{field}[{index}]")


def _is_map(descriptor: FieldDescriptor) -> bool:
    entry = descriptor.message_type
    return entry is not None and entry.GetOptions().map_entry


def _element(element: protovalidate.FieldPathElementPb) -> str:
    subscript = element.subscript
    name = element.field_name
    return name if subscript is None else f"{name}[{subscript.value}]"
