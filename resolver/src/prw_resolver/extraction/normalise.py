"""From a record's claims to its values, class and keys. Pure: no clock, no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from prw_resolver.extraction.model import Captured, KeptClaim, KeptRecord, Normalised
from prw_resolver.vocabulary.definitions import AttributeDefinition, Vocabulary
from prw_resolver.vocabulary.keys import classify, make_keys
from prw_resolver.vocabulary.model import SELLER, NormalisedRecord, Value, ValueType
from prw_resolver.vocabulary.normalisers import Said, Settled, settle
from prw_resolver.vocabulary.statement import Statement
from prw_resolver.vocabulary.texts import is_web_address
from prw_sdk.evidence import Selector, SelectorType

CURRENCY = "offer:currency"


@dataclass(slots=True)
class _Found:
    """What has been settled of a record so far."""

    values: dict[str, Value] = field(default_factory=dict)
    ordinals: dict[str, int] = field(default_factory=dict)
    ambiguous: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


def normalise(captured: Captured, record: KeptRecord, vocabulary: Vocabulary) -> Normalised:
    """Read every attribute of the vocabulary out of the record's claims; tell its class and make its keys."""
    found = _Found()
    for definition in _in_order(vocabulary):
        _settle(captured, record, definition, found)
    stated = frozenset(claim.claim.attribute for claim in record.claims)
    class_id = classify(vocabulary, list(found.values.values()), stated)
    foreign = set(_foreign(vocabulary, class_id, found.values))
    values = tuple(value for key, value in found.values.items() if key not in foreign)
    unmapped = {key for key in stated if vocabulary.attribute(key) is None} | (foreign & stated)
    return Normalised(
        _record(captured, record, vocabulary, class_id, values, tuple(found.ambiguous)),
        {key: ordinal for key, ordinal in found.ordinals.items() if key not in foreign},
        tuple(sorted(unmapped)),
        tuple(found.unreadable),
    )


def _in_order(vocabulary: Vocabulary) -> Sequence[AttributeDefinition]:
    """The currency first, since the amounts of a record are in the one that it states."""
    return sorted(vocabulary.attributes, key=lambda held: (held.key != CURRENCY, held.key))


def _settle(
    captured: Captured, record: KeptRecord, definition: AttributeDefinition, found: _Found
) -> None:
    said = _said(captured, record, definition.key, found)
    if said and definition.type is ValueType.MONEY and CURRENCY in found.ambiguous:
        found.ambiguous.append(definition.key)
        return
    hinted = _said(captured, record, definition.hints_from, found) if definition.hints else []
    verdict = settle(definition, said, hinted)
    found.unreadable.extend(f"{definition.key}: {what}" for what in verdict.unreadable)
    if verdict.ambiguous:
        found.ambiguous.append(definition.key)
    if verdict.settled is not None:
        _keep(captured, definition, verdict.settled, found)


def _said(
    captured: Captured, record: KeptRecord, attribute: str, found: _Found
) -> list[Said[KeptClaim]]:
    return [
        Said(_statement(captured, held, found.values.get(CURRENCY)), held)
        for held in record.claims
        if held.claim.attribute == attribute
    ]


def _statement(captured: Captured, held: KeptClaim, currency: Value | None) -> Statement:
    return Statement(
        text=held.claim.value_as_stated,
        locale=captured.locale,
        machine=is_machine_form(held.claim.locator.selector),
        currency=None if currency is None else currency.value,
        market_currency=captured.currency,
        base_url=captured.url,
    )


def is_machine_form(selector: Selector) -> bool:
    """Whether what stands there was written for machines: a JSON value, or an attribute ``content``."""
    while selector.refined_by is not None:
        selector = selector.refined_by
    return selector.type is SelectorType.JSON_POINTER or selector.attribute == "content"


def _keep(
    captured: Captured,
    definition: AttributeDefinition,
    settled: Settled[KeptClaim],
    found: _Found,
) -> None:
    source = settled.source
    found.values[definition.key] = Value(
        attribute=definition.key,
        definition_version=definition.version,
        value=settled.reading.value,
        unit=settled.reading.unit,
        basis=settled.basis,
        quote=None if source is None else source.quote(captured.capture_id),
    )
    if source is not None:
        found.ordinals[definition.key] = source.ordinal


def _foreign(
    vocabulary: Vocabulary, class_id: str | None, values: Mapping[str, Value]
) -> Iterator[str]:
    """Attributes that do not belong to the record's class (INV-07); without a class none is told to be foreign."""
    if class_id is None:
        return
    for definition in vocabulary.attributes:
        if definition.key in values and not vocabulary.applies(definition, class_id):
            yield definition.key


def _record(
    captured: Captured,
    record: KeptRecord,
    vocabulary: Vocabulary,
    class_id: str | None,
    values: tuple[Value, ...],
    ambiguous: tuple[str, ...],
) -> NormalisedRecord:
    held = {value.attribute: value for value in values}
    rules = () if class_id is None else vocabulary.rules(class_id, captured.generation)
    return NormalisedRecord(
        tenant_id=captured.tenant_id,
        catalog_id=captured.catalog_id,
        capture_id=captured.capture_id,
        record_id=record.record_id,
        source_id=captured.evidence.source_id,
        listing_key=record.listing_key,
        observed_at=captured.evidence.captured_at,
        class_id=class_id,
        generation=captured.generation,
        title=_text(held, "core:title"),
        url=_text(held, "offer:url") or _text(held, "core:url") or _reached(captured),
        merchant=held.get(SELLER) if record.has_merchant else None,
        values=values,
        keys=() if class_id is None else make_keys(rules, class_id, captured.generation, values),
        ambiguous=ambiguous,
    )


def _reached(captured: Captured) -> str:
    """The page's own address where it is one of the web: whatever a collector says, nothing else becomes a link."""
    return captured.url if is_web_address(captured.url) else ""


def _text(held: Mapping[str, Value], attribute: str) -> str:
    value = held.get(attribute)
    return "" if value is None else value.value
