"""How quotes and records stand in the database: one form in JSON values, written and read here alone."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import TypeAdapter

from prw_resolver.vocabulary.model import NormalisedRecord, Quote

_QUOTES = TypeAdapter(tuple[Quote, ...])
_RECORD = TypeAdapter(NormalisedRecord)


def quotes_json(quotes: Iterable[Quote]) -> list[object]:
    """Quotes as evidence is stored."""
    stored: list[object] = _QUOTES.dump_python(tuple(quotes), mode="json")
    return list(stored)


def quotes_from_json(stored: object) -> tuple[Quote, ...]:
    """The quotes that `quotes_json` wrote; raises pydantic.ValidationError for anything else."""
    return _QUOTES.validate_python(stored)


def record_json(record: NormalisedRecord) -> object:
    """A record as a case keeps it."""
    stored: object = _RECORD.dump_python(record, mode="json")
    return stored


def record_from_json(stored: object) -> NormalisedRecord:
    """The record that `record_json` wrote; raises pydantic.ValidationError for anything else."""
    return _RECORD.validate_python(stored)
