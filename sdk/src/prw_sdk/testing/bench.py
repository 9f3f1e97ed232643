"""The bench that an adapter is checked on: the adapter, its fixtures, and what was read of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import pytest

from prw_sdk.account.capture import Account, account, attributes, stated_kinds
from prw_sdk.adapter import Adapter, NotARecord, Stored
from prw_sdk.evidence import Capture, Part, Record
from prw_sdk.testing import fixtures
from prw_sdk.testing.fixtures import BadFixture, Fixture
from prw_sdk.testing.reading import outcome, read
from prw_sdk.testing.subject import Subject


class Bench:
    """One adapter under test; fixtures are read once, and so is every capture of theirs."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.problems: list[str] = []
        self.cases = tuple(self._load())
        self._read: dict[str, tuple[Record, ...]] = {}

    def _load(self) -> Iterator[Fixture]:
        for folder in sorted(self.subject.fixtures.glob(f"*/{fixtures.CAPTURE}")):
            try:
                yield fixtures.read(folder.parent, self.subject.adapter)
            except BadFixture as bad:
                self.problems.append(str(bad))

    @cached_property
    def adapter(self) -> Adapter:
        """An instance."""
        return self.fresh()

    def fresh(self) -> Adapter:
        """Another instance; a check that needs one is left out while the declarations are not sound."""
        if self.subject.faults:
            pytest.skip("first mend what test_declarations_are_sound says")
        return self.subject.adapter()

    def records(self, case: Fixture) -> tuple[Record, ...]:
        """What is read of a fixture; none where it holds no record."""
        if case.case not in self._read:
            self._read[case.case] = read(self.adapter, case.capture)[0]
        return self._read[case.case]

    def account(self, case: Fixture) -> Account:
        """What became of every name that a fixture states."""
        return account(self.adapter, case.capture, self.records(case))

    def outcome(self, capture: Capture) -> dict[str, Any]:
        """What a new instance reads of a capture."""
        return outcome(self.fresh(), capture)

    def attributes(self, case: Fixture) -> set[str]:
        """The attributes that the records of a fixture carry."""
        return {key for record in self.records(case) for key in attributes(record)}

    def with_records(self) -> list[Fixture]:
        """The fixtures that hold records."""
        return [case for case in self.cases if self.records(case)]

    def stated(self) -> dict[str, list[Fixture]]:
        """Every name that some fixture states, with the fixtures that do."""
        found: dict[str, list[Fixture]] = {}
        for case in self.cases:
            for name in stated_kinds(self.adapter, case.capture):
                found.setdefault(name, []).append(case)
        return found

    def stored_fields(self) -> dict[str, str]:
        """The fields that are declared as stored, with their targets."""
        fields = self.subject.adapter.fields
        return {name: how.target for name, how in fields.items() if isinstance(how, Stored)}


def with_body(capture: Capture, part: Part, body: bytes, **changed: Any) -> Capture:
    """The capture with another body in place of that part's."""
    other = replace(part, body=body, sha256=sha256(body).hexdigest(), **changed)
    return replace(capture, parts=tuple(other if one is part else one for one in capture.parts))


def with_text(capture: Capture, part: Part, text: str) -> Capture:
    """The capture with another text in that part, in the same charset."""
    charset = part.charset_used or "utf-8"
    return with_body(capture, part, text.encode(charset, errors="replace"))


def survives(adapter: Adapter, capture: Capture) -> str | None:
    """What `read` or `stated` raise beyond `NotARecord`; None where all is well."""
    halves: tuple[Callable[[Capture], Iterable[object]], ...] = (adapter.read, adapter.stated)
    for half in halves:
        try:
            list(half(capture))
        except NotARecord:
            continue
        except Exception as error:  # noqa: BLE001  # whatever an adapter raises is what is asked
            return f"{half.__name__} raised {type(error).__name__}: {error}"
    return None


def fail(*lines: object) -> None:
    """Fail a check with what to do, one line each."""
    pytest.fail("\n".join(str(line) for line in lines), pytrace=False)


def fail_with(problems: Iterable[object], advice: str) -> None:
    """Fail a check with each of the problems, where there are any, and what to do about them."""
    found = list(problems)
    if found:
        more = [f"… and {len(found) - 20} more"] if len(found) > 20 else []
        fail(*found[:20], *more, f"→ {advice}")
