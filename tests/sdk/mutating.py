"""Changing what a recorded source states, as sources do: rename, drop, add, re-type, empty."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from prw_sdk.account import Change
from prw_sdk.adapter import Kind
from prw_sdk.evidence import Capture, Part

Kinds = Mapping[str, frozenset[Kind]]
VALUES = frozenset(Kind) - {Kind.NULL, Kind.EMPTY, Kind.UNKNOWN}

ADDED = "zz_added"
RENAMED = "Renamed"
_SCRIPT = re.compile(r"(<script[^>]*ld\+json[^>]*>)(.*?)(</script>)", re.DOTALL | re.IGNORECASE)
_ELEMENT = re.compile(r"<((?:\w+:)?(\w+))(\s[^<>]*)?>([^<>]*)</\1>")


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change of one name in a part: what is done, the name, and the part's text after it."""

    kind: str
    name: str
    capture: Capture


def touched(before: Kinds, now: Kinds) -> set[str]:
    """The names that a change of the source made come, go, or have a value of another kind."""
    retyped = {
        name
        for name in before.keys() & now.keys()
        if len(before[name] & VALUES) == 1 and not before[name] & VALUES >= now[name] & VALUES
    }
    return (before.keys() ^ now.keys()) | retyped


def covers(change: Change, name: str) -> bool:
    """Whether a report is about a name: by itself, or by what it stands under or holds."""
    told = [one for one in (change.name, change.other) if one]
    return any(
        one == name or one.startswith(f"{name}.") or name.startswith(f"{one}.") for one in told
    )


def mutations(capture: Capture) -> Iterator[Mutation]:
    """Every change of every name in every part of a capture that is in a form known here."""
    for part in capture.parts:
        if part.media_type.startswith(("application/gzip", "image/")):
            continue
        for kind, name, text in _of_text(part.text(), part.media_type):
            yield Mutation(kind, name, _with(capture, part, text))


def _with(capture: Capture, part: Part, text: str) -> Capture:
    body = text.encode(part.charset_used or "utf-8", errors="replace")
    other = replace(part, body=body, sha256=sha256(body).hexdigest())
    return replace(capture, parts=tuple(other if one is part else one for one in capture.parts))


def _of_text(text: str, media_type: str) -> Iterator[tuple[str, str, str]]:
    if "json" in media_type:
        yield from _of_json(text)
    elif "html" in media_type:
        yield from _of_scripts(text)
    elif "xml" in media_type:
        yield from _of_xml(text)
    elif "csv" in media_type or "tab-separated" in media_type:
        yield from _of_table(text)


def _of_scripts(text: str) -> Iterator[tuple[str, str, str]]:
    for found in _SCRIPT.finditer(text):
        try:
            changed = list(_of_json(found[2]))
        except ValueError:
            continue
        start, end = found.span(2)
        yield from ((kind, name, text[:start] + new + text[end:]) for kind, name, new in changed)


def _of_json(text: str) -> Iterator[tuple[str, str, str]]:
    names = sorted({name for name, _ in _members(json.loads(text)) if not name.startswith("@")})
    for kind, change in _CHANGES.items():
        for name in names:
            document = json.loads(text)
            if _everywhere(document, name, change):
                yield kind, name, json.dumps(document)


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name, inner
            yield from _members(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _members(inner)


def _everywhere(value: Any, name: str, change: Callable[[dict[str, Any], str], bool]) -> bool:
    """Change every object that has that name; whether that changed anything."""
    inner = list(value.values()) if isinstance(value, dict) else value
    # all of them, and not only up to the first that changes
    done = (
        sum(_everywhere(one, name, change) for one in inner) > 0
        if isinstance(inner, list)
        else False
    )
    if isinstance(value, dict) and name in value:
        done = change(value, name) or done
    return done


def _rename(owner: dict[str, Any], name: str) -> bool:
    owner[f"{name}{RENAMED}"] = owner.pop(name)
    return True


def _drop(owner: dict[str, Any], name: str) -> bool:
    del owner[name]
    return True


def _add(owner: dict[str, Any], name: str) -> bool:
    owner[ADDED] = "x"
    return True


def _retype(owner: dict[str, Any], name: str) -> bool:
    value = owner[name]
    if isinstance(value, bool) or not isinstance(value, int | float | str) or value == "":
        return False
    owner[name] = 7 if isinstance(value, str) else "seven"
    return True


def _empty(owner: dict[str, Any], name: str) -> bool:
    if not isinstance(owner[name], list) or not owner[name]:
        return False
    owner[name] = []
    return True


_CHANGES: dict[str, Callable[[dict[str, Any], str], bool]] = {
    "rename": _rename,
    "drop": _drop,
    "add": _add,
    "retype": _retype,
    "empty": _empty,
}


def _of_table(text: str) -> Iterator[tuple[str, str, str]]:
    delimiter = max(",;\t|", key=text.partition("\n")[0].count)
    plain = text.replace("\r\n", "\n").replace("\r", " ")
    header, *rows = csv.reader(io.StringIO(plain), delimiter=delimiter)
    for at, name in enumerate(header):
        renamed = [*header[:at], f"{name}{RENAMED}", *header[at + 1 :]]
        yield "rename", name, _table([renamed, *rows], delimiter)
        without = [[*row[:at], *row[at + 1 :]] for row in (header, *rows)]
        yield "drop", name, _table(without, delimiter)
        blank = [[*row[:at], "", *row[at + 1 :]] for row in rows]
        yield "empty", name, _table([header, *blank], delimiter)
    wider = [[*header, ADDED], *([*row, "x"] for row in rows)]
    yield "add", ADDED, _table(wider, delimiter)


def _table(rows: list[list[str]], delimiter: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _of_xml(text: str) -> Iterator[tuple[str, str, str]]:
    for tag, name in sorted({(found[1], found[2]) for found in _ELEMENT.finditer(text)}):
        element = re.compile(rf"<{tag}(\s[^<>]*)?>([^<>]*)</{tag}>")
        yield "rename", name, re.sub(rf"(</?){tag}(?=[\s>])", rf"\g<1>{tag}{RENAMED}", text)
        yield "drop", name, element.sub("", text)
        yield "empty", name, element.sub(f"<{tag}></{tag}>", text)
        added = tag.replace(name, ADDED)
        yield "add", name, element.sub(rf"\g<0><{added}>x</{added}>", text)
