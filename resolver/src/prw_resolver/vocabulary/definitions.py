"""What a published vocabulary consists of: classes, attribute definitions, identity rules.

The same models read the packaged file and the rows that were published from it, so that a definition means the same
in both. All are frozen; a definition never changes under its version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from prw_resolver.vocabulary.model import ValueType

AttributeKey = Annotated[str, Field(pattern=r"^[a-z]+:[a-z_]+$")]
ClassId = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Version = Annotated[int, Field(ge=1)]


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error
    return text


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Several(StrEnum):
    """What several claims of one attribute in one record mean."""

    AGREE = "agree"
    """They must come out equal; where they differ the attribute is ambiguous."""
    FIRST = "first"
    """They say the same in other words; the first one is kept."""


class Default(_Frozen):
    """The value of an attribute on which a record says nothing, and why that is right."""

    value: str
    reason: Annotated[str, Field(min_length=10)]


class Hint(_Frozen):
    """A pattern that reads an attribute out of another claim, such as a pack size out of a title.

    `value` is what a match means; without it the group named ``value`` is handed to the normaliser. Every hint is
    tried whatever the page's language is, since shops mix them: a hint too many costs a review, one too few merges
    two articles.
    """

    language: Annotated[str, Field(pattern=r"^[a-z]{2}$")]
    pattern: str
    value: str | None = None

    _is_pattern = field_validator("pattern")(_pattern)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.value is None and "value" not in re.compile(self.pattern).groupindex:
            raise ValueError(f"the hint {self.pattern!r} needs a value or a group named value")
        return self


class AttributeDefinition(_Frozen):
    """One version of one attribute.

    `unit` is UCUM-style and empty for texts; `contradiction` names the kind of contradiction that another value of
    this attribute is (capacity, condition, pack, model, …), and is empty where another value contradicts nothing.
    `words` gives for each canonical value the words that mean it; `placeholders` are words that mean nothing at all.
    """

    key: AttributeKey
    version: Version
    title: str
    type: ValueType
    normaliser: str
    unit: str = ""
    applies_to: Annotated[tuple[ClassId, ...], Field(min_length=1)] = ("thing",)
    several: Several = Several.AGREE
    public: bool = False
    contradiction: str = ""
    default: Default | None = None
    hints_from: AttributeKey = "core:title"
    hints: tuple[Hint, ...] = ()
    words: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    placeholders: tuple[str, ...] = ()
    aliases: Mapping[str, str] = Field(default_factory=dict)
    suffixes: tuple[str, ...] = ()

    @property
    def assumed(self) -> bool:
        """Whether silence means something, so that an unreadable statement must not be taken for silence."""
        return self.default is not None or bool(self.hints)


class Recognition(_Frozen):
    """How records of a class are told: all of `needs` known, and one of `words` in a text or one of `or_states` stated.

    `unless` names patterns that rule the class out.
    """

    version: Version
    needs: tuple[AttributeKey, ...] = ()
    texts: tuple[AttributeKey, ...] = ("core:title",)
    words: tuple[str, ...] = ()
    or_states: tuple[AttributeKey, ...] = ()
    unless: tuple[str, ...] = ()

    _are_patterns = field_validator("words", "unless")(lambda texts: tuple(map(_pattern, texts)))


class ClassDefinition(_Frozen):
    """A class of things; it inherits the attributes and identity rules of its parent."""

    id: ClassId
    title: str
    parent: ClassId | None = None
    recognition: Recognition | None = None


class IdentityRule(_Frozen):
    """One rule: a record that has a value of each of these attributes has a key."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    attributes: Annotated[tuple[AttributeKey, ...], Field(min_length=1)]


class Generation(_Frozen):
    """The numbered set of identity rules of a catalog; rules are given by class and inherited where none are."""

    number: Version
    rules: Mapping[ClassId, tuple[IdentityRule, ...]]


class Vocabulary(_Frozen):
    """Everything that is published for a catalog, each definition at its newest version."""

    classes: tuple[ClassDefinition, ...]
    attributes: tuple[AttributeDefinition, ...]
    generations: tuple[Generation, ...]

    def attribute(self, key: str) -> AttributeDefinition | None:
        """The definition of that attribute, or None."""
        return next((held for held in self.attributes if held.key == key), None)

    def lineage(self, class_id: str) -> Iterator[ClassDefinition]:
        """The class, its parent, and so on up to the root; raises KeyError for a class that is not published."""
        by_id = {held.id: held for held in self.classes}
        current: str | None = class_id
        while current is not None:
            yield by_id[current]
            current = by_id[current].parent

    def applies(self, definition: AttributeDefinition, class_id: str) -> bool:
        """Whether the attribute belongs to that class or one it inherits from (INV-07)."""
        return any(held.id in definition.applies_to for held in self.lineage(class_id))

    def rules(self, class_id: str, generation: int) -> tuple[IdentityRule, ...]:
        """The rules of the class in that generation: its own, or those of the nearest class above.

        Raises KeyError for a generation or a class that is not published.
        """
        of_generation = {held.number: held for held in self.generations}[generation]
        for held in self.lineage(class_id):
            if held.id in of_generation.rules:
                return of_generation.rules[held.id]
        return ()

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        for complaint in _faults(self):
            raise ValueError(complaint)
        return self


def _faults(vocabulary: Vocabulary) -> Iterator[str]:
    yield from _repeated("class", [held.id for held in vocabulary.classes])
    yield from _repeated("attribute", [held.key for held in vocabulary.attributes])
    yield from _repeated("generation", [str(held.number) for held in vocabulary.generations])
    known: set[str] = set()
    for held in vocabulary.classes:
        if held.parent is not None and held.parent not in known:
            yield f"class {held.id}: its parent {held.parent} must stand before it"
        known.add(held.id)
    for definition in vocabulary.attributes:
        for class_id in definition.applies_to:
            if class_id not in known:
                yield f"attribute {definition.key}: applies to {class_id}, which is no class"
    yield from _rule_faults(vocabulary, known)


def _rule_faults(vocabulary: Vocabulary, classes: set[str]) -> Iterator[str]:
    attributes = {held.key for held in vocabulary.attributes}
    for generation in vocabulary.generations:
        for class_id, rules in generation.rules.items():
            if class_id not in classes:
                yield f"generation {generation.number}: {class_id} is no class"
            yield from _repeated(f"rule of {class_id}", [rule.name for rule in rules])
            for key, rule in _undefined(rules, attributes):
                yield f"rule {rule} of {class_id}: {key} is not defined"


def _undefined(rules: Iterable[IdentityRule], defined: set[str]) -> Iterator[tuple[str, str]]:
    for rule in rules:
        for key in sorted(set(rule.attributes) - defined):
            yield key, rule.name


def _repeated(what: str, names: list[str]) -> Iterator[str]:
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{what} {name} stands twice"
