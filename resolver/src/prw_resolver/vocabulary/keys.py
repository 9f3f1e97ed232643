"""The making of identity keys, and the telling of classes. Pure: the same record and rules give the same keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from prw_base.canonical import canonical_json, sha256_hex
from prw_resolver.vocabulary.definitions import IdentityRule, Recognition, Vocabulary
from prw_resolver.vocabulary.model import IdentityKey, Value
from prw_resolver.vocabulary.statement import HINTED


def make_keys(
    rules: Sequence[IdentityRule], class_id: str, generation: int, values: Sequence[Value]
) -> tuple[IdentityKey, ...]:
    """One key for each rule of whose attributes the record has every one.

    An attribute without a value, or with an empty one, gives no key: a blank never matches a blank. The canonical
    form is the canonical JSON of the rule's name and its attributes with value and unit; class and generation stand
    beside it, since lookups join on them.
    """
    held = {value.attribute: value for value in values if value.value}
    return tuple(
        _key(rule, class_id, generation, held)
        for rule in rules
        if all(attribute in held for attribute in rule.attributes)
    )


def _key(
    rule: IdentityRule, class_id: str, generation: int, held: Mapping[str, Value]
) -> IdentityKey:
    pairs = [[a, held[a].value, held[a].unit] for a in sorted(rule.attributes)]
    canonical = canonical_json({"rule": rule.name, "attributes": pairs})
    return IdentityKey(
        rule.name, class_id, generation, sha256_hex(canonical), canonical.decode(), rule.attributes
    )


def classify(vocabulary: Vocabulary, values: Sequence[Value], stated: frozenset[str]) -> str | None:
    """The deepest published class whose recognition fits, or None.

    `stated` has the attributes of which the record makes a claim.
    """
    held = {value.attribute: value.value for value in values}
    fitting = [
        candidate.id
        for candidate in vocabulary.classes
        if candidate.recognition is not None and _fits(candidate.recognition, held, stated)
    ]
    return max(fitting, key=lambda class_id: len(list(vocabulary.lineage(class_id))), default=None)


def _fits(recognition: Recognition, held: Mapping[str, str], stated: frozenset[str]) -> bool:
    if any(key not in held for key in recognition.needs):
        return False
    texts = list(_texts(recognition, held))
    if any(
        re.search(pattern, text, re.IGNORECASE) for pattern in recognition.unless for text in texts
    ):
        return False
    if any(key in stated for key in recognition.or_states):
        return True
    return any(
        re.search(pattern, text, re.IGNORECASE) for pattern in recognition.words for text in texts
    )


def _texts(recognition: Recognition, held: Mapping[str, str]) -> Iterator[str]:
    return (held[key][:HINTED] for key in recognition.texts if key in held)
