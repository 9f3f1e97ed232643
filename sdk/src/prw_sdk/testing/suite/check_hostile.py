"""Hostile input: whatever the bytes, `read` gives records or says that there are none (`NotARecord`)."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace

from prw_sdk.evidence import Capture, Part, Presence
from prw_sdk.testing.bench import Bench, fail, fail_with, survives, with_body
from prw_sdk.testing.fixtures import Fixture
from prw_sdk.testing.reading import read

DAMAGES = 24
"""Random damages of each part."""

SECONDS = 8.0
"""What is spent on the random damages of all fixtures, at most."""

SLOWEST = 10.0
"""Seconds that a page may take that was made to be slow."""

_ADVICE = "raise NotARecord for what is no record, and let nothing else out of read and stated"


def _told(bench: Bench, captures: Iterator[tuple[str, Capture]]) -> Iterator[str]:
    adapter = bench.fresh()
    for what, capture in captures:
        fault = survives(adapter, capture)
        if fault is not None:
            yield f"{what}: {fault}"


def test_truncated_parts_are_survived(bench: Bench, case: Fixture) -> None:
    """Cut off anywhere, a multi-byte character included."""

    def cut() -> Iterator[tuple[str, Capture]]:
        for part in case.capture.parts:
            for share in (1, 3, 7, 12, 15):
                at = len(part.body) * share // 16
                yield f"{part.role} cut at {at}", with_body(case.capture, part, part.body[:at])

    fail_with(_told(bench, cut()), _ADVICE)


def test_empty_parts_are_survived(bench: Bench, case: Fixture) -> None:
    """No bytes, blanks, a byte order mark, NUL."""

    def empty() -> Iterator[tuple[str, Capture]]:
        for part in case.capture.parts:
            for body in (b"", b"  \n", b"\xef\xbb\xbf", b"\0", b"{}", b"[]", b"null", b"<html>"):
                yield f"{part.role} as {body!r}", with_body(case.capture, part, body)

    fail_with(_told(bench, empty()), _ADVICE)


def test_missing_parts_are_survived(bench: Bench, case: Fixture) -> None:
    """A capture without one of its parts, or with none; older captures may have fewer."""

    def missing() -> Iterator[tuple[str, Capture]]:
        yield "no parts", replace(case.capture, parts=())
        for part in case.capture.parts:
            others = tuple(one for one in case.capture.parts if one is not part)
            yield f"no {part.role}", replace(case.capture, parts=others)

    fail_with(_told(bench, missing()), _ADVICE)


def test_other_charsets_are_survived(bench: Bench, case: Fixture) -> None:
    """Bytes read in a charset that they are not in, or that is none."""

    def other() -> Iterator[tuple[str, Capture]]:
        for part in case.capture.parts:
            for charset in ("utf-16", "cp1252", "shift_jis", "ascii", "no-charset", None):
                changed = with_body(case.capture, part, part.body, charset_used=charset)
                yield f"{part.role} in {charset}", changed

    fail_with(_told(bench, other()), _ADVICE)


def test_random_damage_is_survived(bench: Bench, case: Fixture) -> None:
    """Bytes turned over, taken out, doubled; always the same ones."""

    def damaged() -> Iterator[tuple[str, Capture]]:
        end = time.monotonic() + SECONDS / len(bench.cases)
        for part in case.capture.parts:
            for seed in range(DAMAGES):
                if time.monotonic() > end:
                    return
                body = _damaged(part, seed)
                yield f"{part.role} damaged by seed {seed}", with_body(case.capture, part, body)

    fail_with(_told(bench, damaged()), _ADVICE)


def _damaged(part: Part, seed: int) -> bytes:
    choice, body = random.Random(seed), bytearray(part.body)  # noqa: S311  # the same damage each time
    for _ in range(1 + seed):
        at = choice.randrange(len(body) + 1)
        length = choice.choice((1, 1, 2, 9, 60))
        what = choice.randrange(3)
        if what == 0:
            body[at : at + length] = bytes(choice.randrange(256) for _ in range(length))
        elif what == 1:
            del body[at : at + length]
        else:
            body[at:at] = body[at : at + length] or choice.choice((b"[", b'{"', b"<", b'"'))
    return bytes(body)


def test_pages_made_to_be_slow_are_survived(bench: Bench) -> None:
    """Nested without end, or long without content: bounded in time, and never out of stack."""
    cases = bench.with_records()[:1]
    bombs = (b"[" * 60_000, b'{"a":' * 60_000, b"<div>" * 60_000, b'"' * 200_000, b"<!--" * 60_000)
    for case in cases:
        for part in case.capture.parts:
            for bomb in bombs:
                captures = [
                    with_body(case.capture, part, bomb),
                    with_body(case.capture, part, part.body + bomb),
                ]
                started = time.monotonic()
                what = f"{part.role} with {bomb[:8]!r}…"
                fail_with(_told(bench, iter([(what, one) for one in captures])), _ADVICE)
                if time.monotonic() - started > SLOWEST:
                    fail(f"{what} took too long", "→ bound what is walked through, and how deep")


def test_an_absence_is_no_record(bench: Bench, case: Fixture) -> None:
    """A target that the source says is gone gives no records, whatever its error page looks like."""
    gone = replace(case.capture, presence=Presence.ABSENT)
    if read(bench.fresh(), gone)[0]:
        fail(
            "an absence was read into records",
            "→ raise NotARecord where capture.presence is absent",
        )
