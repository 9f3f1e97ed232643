"""The values that every room above works with: normalised values, identity keys and the record that carries them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

SELLER = "offer:seller"
"""The attribute of the claim that names a record's merchant (rule 15)."""


class Basis(StrEnum):
    """What a normalised value rests on."""

    STATED = "stated"
    """A claim of that very attribute."""
    HINT = "hint"
    """Read out of another claim, such as a pack size in a title."""
    DEFAULT = "default"
    """The published default of the definition, with its reason there."""
    CORRECTED = "corrected"
    """A person's correction, recorded in a decision."""


class ValueType(StrEnum):
    """How a definition's values are written canonically."""

    TEXT = "text"
    IDENTIFIER = "identifier"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    QUANTITY = "quantity"
    MONEY = "money"
    ENUM = "enum"


@dataclass(frozen=True, slots=True)
class Quote:
    """Where a value stands in stored evidence: INV-05 asks for capture and locator.

    `selector` is the locator's selector as JSON values (`type`, `value`, `attribute`, `refined_by`).
    """

    capture_id: str
    part_role: str
    sha256: str
    attribute: str
    quote: str
    selector: Mapping[str, object]
    origin: str = "adapter"


@dataclass(frozen=True, slots=True)
class Value:
    """One normalised value under a published definition.

    `value` is canonical text: decimal digits for quantities and money, ``true``/``false`` for truth values. `unit`
    is UCUM-style, or the ISO 4217 code of an amount. `quote` is None for a default only.
    """

    attribute: str
    definition_version: int
    value: str
    unit: str
    basis: Basis
    quote: Quote | None


@dataclass(frozen=True, slots=True)
class IdentityKey:
    """One key by one rule of one generation; `identity_hash` is the hex SHA-256 of `canonical`."""

    rule: str
    class_id: str
    generation: int
    identity_hash: str
    canonical: str
    attributes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NormalisedRecord:
    """One record of a capture, ready to be identified.

    `class_id` is None where no published class fits; such a record is never accepted by rule. `values` holds at most
    one value for each attribute: where a record states two that differ, the attribute is listed in `ambiguous` and
    has no value. `url` is the listing's own page.
    """

    tenant_id: str
    catalog_id: str
    capture_id: str
    record_id: str
    source_id: str
    listing_key: str
    observed_at: datetime
    class_id: str | None
    generation: int
    title: str
    url: str
    merchant: Value | None
    values: tuple[Value, ...]
    keys: tuple[IdentityKey, ...]
    ambiguous: tuple[str, ...] = ()

    def value(self, attribute: str) -> Value | None:
        """The record's value of that attribute, or None."""
        return next((held for held in self.values if held.attribute == attribute), None)
