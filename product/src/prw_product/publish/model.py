"""Generations of the projection, and what a release makes public."""

from __future__ import annotations

from dataclasses import dataclass

from prw_base.scope import Scope


@dataclass(frozen=True, slots=True)
class Generation:
    """One projection of a scope: the tables of schema ``projection_<number>``.

    It belongs to one history epoch for ever; another epoch is projected by another generation.
    """

    scope: Scope
    number: int
    history_epoch: int

    @property
    def ids(self) -> dict[str, object]:
        """What names it, as the parameters that its statements share."""
        named = {"history_epoch": self.history_epoch, "generation": self.number}
        return {**self.scope.ids, **named}


@dataclass(frozen=True, slots=True)
class Attribute:
    """One value: canonical text and a UCUM-style unit (or ISO 4217 code), or an empty unit."""

    key: str
    value: str
    unit: str
    definition_version: int = 0

    def as_json(self) -> dict[str, object]:
        """The value as the projection's tables keep it."""
        return {
            "key": self.key,
            "value": self.value,
            "unit": self.unit,
            "definition_version": self.definition_version,
        }


@dataclass(frozen=True, slots=True)
class ReleasedListing:
    """A listing that a release makes public at one revision of its mapping."""

    listing_id: str
    mapping_revision: int


@dataclass(frozen=True, slots=True)
class Release:
    """What of an item is public, as one publication says (if_product_query).

    ``position`` is the release's place in the stream; it settles which of two releases that name
    one listing at the same mapping revision is the later one.
    """

    release_id: str
    item_id: str
    item_revision: int
    publication_revision: int
    class_id: str
    title: str
    attributes: tuple[Attribute, ...]
    listings: tuple[ReleasedListing, ...]
    position: int


MAX_FILTER_BYTES = 512
"""Longer values are shown but cannot be filtered by: a B-tree entry has at most 2,704 bytes."""


def is_filterable(attribute: Attribute) -> bool:
    """Whether items may be found by this value."""
    return len(attribute.value.encode()) <= MAX_FILTER_BYTES
