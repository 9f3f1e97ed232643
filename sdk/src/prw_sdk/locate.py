"""Resolving locators: what stands in a part's bytes at the place that a claim names.

Made to check adapters, so it shares nothing with the code that reads pages: markup goes through lxml here, and
JSON through a scanner of its own, which finds the literal text of a value without building one.

Selectors, by type:

- ``css``, ``xpath``: the first match; its `attribute`, else its whole text (for an XPath that ends in an attribute or
  in ``text()``, that string).
- ``json_pointer`` (RFC 6901): strings unescaped; numbers, ``true`` and ``false`` as their literal text; objects, arrays
  and ``null`` are no value. Comments, raw control characters, odd blanks, quotes written as HTML entities and what
  follows the value do no harm.
- ``text_quote``: the quote itself, where the text holds it (white space folded).
- ``csv_cell``: ``row,column``; the header is row 1; the column is a number from 1, or a header's name.

`refined_by` looks within what was found: a JSON Pointer within the text of a script element, for one.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from types import MappingProxyType

import parsel
from lxml import etree

from prw_sdk.evidence import Capture, Claim, Part, Selector, SelectorType

MOST_BYTES = 32 * 1024 * 1024
"""Nothing is found in a larger part."""

LONGEST_SELECTOR = 4096
DEEPEST_REFINEMENT = 4

_XML = re.compile(r"(application|text)/([a-z0-9.-]+\+)?xml")
_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")


def leads_back(claim: Claim, capture: Capture) -> bool:
    """Whether a claim's locator finds exactly its stated value, after entity decoding and white-space folding."""
    stated = fold(claim.value_as_stated)
    try:
        part = capture.part(claim.locator.part_role)
    except KeyError:
        return False
    found = resolve(part, claim.locator.selector)
    return bool(stated) and found is not None and fold(found) == stated


def resolve(part: Part, selector: Selector) -> str | None:
    """The text that a selector finds in a part; None where it finds nothing, or is no valid selector."""
    if len(part.body) > MOST_BYTES or not _is_reasonable(selector):
        return None
    if selector.type in (SelectorType.CSS, SelectorType.XPATH):
        found = _in_markup(_tree(part), selector)
    elif selector.type is SelectorType.TEXT_QUOTE:
        found = _quote(_readable(part), selector)
    else:
        found = _WITHIN_TEXT[selector.type](part.text(), selector)
    return _refined(found, selector.refined_by)


def fold(text: str) -> str:
    """Text as it is compared: entities decoded, runs of white space made one blank, ends trimmed.

    What no database keeps as text (NUL, lone surrogates) counts as U+FFFD.
    """
    return " ".join(_NOT_TEXT.sub("\ufffd", html.unescape(text)).split())


def _is_reasonable(selector: Selector | None) -> bool:
    steps = 0
    while selector is not None:
        steps += 1
        if steps > DEEPEST_REFINEMENT or len(selector.value) > LONGEST_SELECTOR:
            return False
        selector = selector.refined_by
    return True


def _refined(found: str | None, selector: Selector | None) -> str | None:
    """Follow `refined_by` into a text; markup within a text is parsed as a document of its own."""
    while found is not None and selector is not None:
        if selector.type in (SelectorType.CSS, SelectorType.XPATH):
            found = _in_markup(_parsed(found, xml=False), selector)
        else:
            found = _WITHIN_TEXT[selector.type](found, selector)
        selector = selector.refined_by
    return found


@lru_cache(maxsize=4)
def _tree(part: Part) -> etree._Element | None:
    """A part's document; the last few are kept, since a record's claims are checked one after another."""
    return _parsed(
        part.text(),
        xml=_XML.match(part.media_type.lower()) is not None and "xhtml" not in part.media_type,
    )


def _parsed(text: str, *, xml: bool) -> etree._Element | None:
    raw = text.lstrip("\ufeff \t\r\n").encode("utf-8", errors="replace")
    parser: etree.XMLParser | etree.HTMLParser
    if xml:
        raw = re.sub(rb"^<\?xml[^>]*\?>", b"", raw)
        parser = etree.XMLParser(
            recover=True, resolve_entities=False, no_network=True, encoding="utf-8"
        )
    else:
        parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True)
    try:
        return etree.fromstring(raw, parser)
    except etree.XMLSyntaxError:
        return None


def _readable(part: Part) -> str:
    """What a reader sees of markup; any other text as it is."""
    if "html" not in part.media_type.lower() and not _XML.match(part.media_type.lower()):
        return part.text()
    tree = _tree(part)
    return "" if tree is None else str(tree.xpath("string()"))


def _in_markup(tree: etree._Element | None, selector: Selector) -> str | None:
    if tree is None:
        return None
    try:
        css = selector.type is SelectorType.CSS
        path = parsel.css2xpath(selector.value) if css else selector.value
        matches = etree.XPath(path, regexp=False)(tree)
    except (etree.XPathError, SyntaxError, ValueError):  # cssselect's errors are SyntaxErrors
        return None
    if isinstance(matches, list):
        return _value(matches[0], selector.attribute) if matches else None
    return matches if isinstance(matches, str) else None


def _value(match: object, attribute: str | None) -> str | None:
    if isinstance(match, str):
        return str(match) if attribute is None else None
    if not isinstance(match, etree._Element):
        return None
    return str(match.xpath("string()")) if attribute is None else match.get(attribute)


def _quote(text: str, selector: Selector) -> str | None:
    quote = fold(selector.value)
    return selector.value if quote and quote in fold(text) else None


def _csv_cell(text: str, selector: Selector) -> str | None:
    row, _, column = selector.value.partition(",")
    if not row.strip().isdecimal() or int(row) < 1:
        return None
    lines = list(islice(_csv_rows(text), int(row)))
    return _cell(lines, int(row) - 1, column.strip())


def _csv_rows(text: str) -> Iterator[list[str]]:
    """Every row; one that cannot be read counts, and has no cells, so that those behind it keep their numbers."""
    reader = csv.reader(io.StringIO(text.lstrip("\ufeff")), delimiter=_delimiter(text))
    while True:
        try:
            yield next(reader)
        except csv.Error:
            yield []
        except StopIteration:
            return


def _cell(lines: list[list[str]], row: int, column: str) -> str | None:
    if row >= len(lines):
        return None
    header = [name.strip() for name in lines[0]]
    index = (
        int(column) - 1 if column.isdecimal() else header.index(column) if column in header else -1
    )
    return lines[row][index] if 0 <= index < len(lines[row]) else None


def _delimiter(text: str) -> str:
    header = text.partition("\n")[0]
    return max(",;\t|", key=header.count)


# What is not closed goes on to the end, so that no text is looked through again for what it has not got.
_COMMENT = r"/\*.*?(?:\*/|\Z)|//[^\n]*"
_BETWEEN = re.compile(
    rf"(?:[\s,\ufeff\u200b\u2060]|{_COMMENT}|<!--|-->|<!\[CDATA\[|\]\]>)*", re.DOTALL
)
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_PLAIN = re.compile(r"true|false|null|NaN|-?Infinity|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WHOLE = r'"[^"\\]*(?:\\.?[^"\\]*)*(?:"|\Z)'
_TOKEN = re.compile(rf"{_WHOLE}|{_COMMENT}|[{{}}\[\]]|{_PLAIN.pattern}", re.DOTALL)
_BAD_ESCAPE = re.compile(r'\\(?:([^"\\/bfnrtu])|(["\\/bfnrtu]))')


# a document whose quotes were written as entities
_ENCODED = re.compile(r"[\s\ufeff\u200b\u2060]*[\[{][\[{\s]*&(?:quot|#34|#x22);", re.IGNORECASE)


def _json_pointer(text: str, selector: Selector) -> str | None:
    if _ENCODED.match(text):
        text = html.unescape(text)
    start = _json_start(text, selector.value)
    return None if start is None else _scalar(text, start)


def json_span(text: str, pointer: str) -> tuple[int, int] | None:
    """Where the value of a JSON Pointer stands in a text: from its first character to after its last one."""
    start = _json_start(text, pointer)
    return None if start is None else (start, _end(text, start))


def _json_start(text: str, pointer: str) -> int | None:
    """Walk to the pointer's value through the text itself; of members with one name the last counts."""
    if pointer and not pointer.startswith("/"):
        return None
    start = _skip(text, 0)
    for token in pointer.split("/")[1:]:
        wanted = token.replace("~1", "/").replace("~0", "~")
        starts = [at for name, at in _members(text, start) if name == wanted]
        if not starts:
            return None
        start = starts[-1]
    return start


def _skip(text: str, at: int) -> int:
    between = _BETWEEN.match(text, at)
    return at if between is None else between.end()


def _members(text: str, start: int) -> Iterator[tuple[str, int]]:
    """Each member of the object or array at `start`: its name or index, and where its value starts."""
    opening, at, index = text[start : start + 1], _skip(text, start + 1), 0
    while opening in ("{", "[") and at < len(text) and text[at] not in "}]":
        name: str | None = str(index)
        if opening == "{":
            name, at = _name(text, at)
        if name is None:
            return
        yield name, at
        at, index = _skip(text, _end(text, at)), index + 1


def _name(text: str, at: int) -> tuple[str | None, int]:
    name = _STRING.match(text, at)
    colon = _skip(text, name.end()) if name else at
    if name is None or text[colon : colon + 1] != ":":
        return None, at
    return _unescaped(name[0]), _skip(text, colon + 1)


def _end(text: str, start: int) -> int:
    """Where the value that starts at `start` ends; without recursion, since depth is the page's to choose."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        first = token[0][0]
        if first == "/":
            continue
        depth += (first in "{[") - (first in "}]")
        if depth <= 0:
            return token.end()
    return len(text)


def _scalar(text: str, start: int) -> str | None:
    string = _STRING.match(text, start)
    if string is not None:
        return _unescaped(string[0])
    plain = _PLAIN.match(text, start)
    return plain[0] if plain is not None and plain[0] != "null" else None


def _unescaped(literal: str) -> str | None:
    try:
        return str(json.loads(literal, strict=False))
    except ValueError:
        kept = _BAD_ESCAPE.sub(lambda escape: escape[1] or escape[0], literal)
    try:
        return str(json.loads(kept, strict=False))
    except ValueError:
        return None


_WITHIN_TEXT: Mapping[SelectorType, Callable[[str, Selector], str | None]] = MappingProxyType(
    {
        SelectorType.TEXT_QUOTE: _quote,
        SelectorType.CSV_CELL: _csv_cell,
        SelectorType.JSON_POINTER: _json_pointer,
    }
)
