"""A record with a person's corrections: read by the same normalisers, classified and keyed again. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from prw.errors import Code, PrwError
from prw_resolver.vocabulary.definitions import Vocabulary
from prw_resolver.vocabulary.keys import classify, make_keys
from prw_resolver.vocabulary.model import SELLER, Basis, NormalisedRecord, Value
from prw_resolver.vocabulary.normalisers import NORMALISERS
from prw_resolver.vocabulary.statement import Statement, Unreadable


def correct(
    record: NormalisedRecord, corrections: Mapping[str, str], vocabulary: Vocabulary
) -> NormalisedRecord:
    """The record with these values, by attribute key, as a person writes them.

    Raises VALIDATION_FAILED for an attribute that is not published, or a text that its normaliser cannot read.
    """
    if not corrections:
        return record
    corrected = [_read(key, text, vocabulary) for key, text in corrections.items()]
    merchant = next((value for value in corrected if value.attribute == SELLER), record.merchant)
    touched = {value.attribute: value.value for value in corrected}
    values = (
        *(value for value in record.values if value.attribute not in touched),
        *(value for value in corrected if value.attribute != SELLER),
    )
    class_id = record.class_id or classify(
        vocabulary, values, frozenset(value.attribute for value in values)
    )
    rules = () if class_id is None else vocabulary.rules(class_id, record.generation)
    return replace(
        record,
        class_id=class_id,
        title=touched.get("core:title", record.title),
        url=touched.get("offer:url", touched.get("core:url", record.url)),
        merchant=merchant,
        values=values,
        keys=() if class_id is None else make_keys(rules, class_id, record.generation, values),
        ambiguous=tuple(key for key in record.ambiguous if key not in touched),
    )


def _read(key: str, text: str, vocabulary: Vocabulary) -> Value:
    definition = vocabulary.attribute(key)
    if definition is None:
        raise PrwError(
            Code.VALIDATION_FAILED, f"{key} is no published attribute", field="corrections"
        )
    try:
        reading = NORMALISERS[definition.normaliser](Statement(text), definition)
    except Unreadable as reason:
        raise PrwError(Code.VALIDATION_FAILED, f"{key}: {reason}", field="corrections") from reason
    if reading is None:
        raise PrwError(Code.VALIDATION_FAILED, f"{key}: {text!r} says nothing", field="corrections")
    return Value(key, definition.version, reading.value, reading.unit, Basis.CORRECTED, None)
