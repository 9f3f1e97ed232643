"""JSON as sources write it: numbers kept as they stand in the text, and what does no harm tolerated."""

from __future__ import annotations

import html
import json
import re

_TOO_DEEP = (ValueError, RecursionError)


class Number(str):
    """A number of a JSON document as its literal text, told from a string by its type."""

    __slots__ = ()


def parsed(text: str) -> object:
    """A JSON value with its numbers as `Number`; raises ValueError where none can be read safely.

    Comments, CDATA marks, trailing commas, raw control characters, blanks that JSON does not know (a byte order mark,
    no-break and zero-width spaces) and whatever follows the value are tolerated: none of them can change what a value
    says. A document whose quotes were written as HTML entities is one all the same. ``NaN`` and infinities are null.
    """
    try:
        return _DECODER.decode(text.lstrip("\ufeff"))
    except _TOO_DEEP:
        written = html.unescape(text) if _ENCODED.match(text) else text
        plain = _NOISE.sub(_without_noise, written).lstrip(" \t\r\n;")
    try:
        return _DECODER.raw_decode(plain)[0]
    except _TOO_DEEP as broken:
        raise ValueError(f"no JSON: {broken}") from None


def is_template(text: str) -> bool:
    """Whether a text is what a page's own software should have filled in: ``${name}``, ``{{ name }}``, ``<%= name %>``.

    Such a value of a page states nothing about the article. A long text may speak of such marks, and so may the answer
    of an interface (a currency's format), which no page's software fills in: both are taken as they are.
    """
    return len(text) <= _LONGEST_TEMPLATE and _TEMPLATE.search(text) is not None


_LONGEST_TEMPLATE = 300
_TEMPLATE = re.compile(r"\$\{[^{}]*\}|\{\{[^{}]*\}\}|\{%[^{}]*%\}|<%[^<>]*%>|%%\w+%%|\A%\w+%\Z")
_DECODER = json.JSONDecoder(
    strict=False, parse_float=Number, parse_int=Number, parse_constant=lambda constant: None
)
_ENCODED = re.compile(r"[\s\ufeff\u200b\u2060]*[\[{][\[{\s]*&(?:quot|#34|#x22);", re.IGNORECASE)
# What is not closed goes on to the end, so that no text is looked through again for what it has not got.
_BLANK = r"\x0b\x0c\x85\xa0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
_STRING = r'"[^"\\]*(?:\\.?[^"\\]*)*(?:"|\Z)'
_NOISE = re.compile(
    rf"({_STRING})|/\*.*?(?:\*/|\Z)|//[^\n]*|<!--|-->|<!\[CDATA\[|\]\]>|,(?=[\s{_BLANK}]*[}}\]])|[{_BLANK}]",
    re.DOTALL,
)
_BAD_ESCAPE = re.compile(r'\\(?:([^"\\/bfnrtu])|(["\\/bfnrtu]))')


def _without_noise(found: re.Match[str]) -> str:
    """A string with its bad escapes mended; a blank for everything else that is matched."""
    return _BAD_ESCAPE.sub(lambda escape: escape[1] or escape[0], found[1]) if found[1] else " "
