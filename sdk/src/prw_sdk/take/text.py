"""JSON as sources write it: numbers kept as they stand in the text, and what does no harm tolerated."""

from __future__ import annotations

import json
import re

_TOO_DEEP = (ValueError, RecursionError)


class Number(str):
    """A number of a JSON document as its literal text, told from a string by its type."""

    __slots__ = ()


def parsed(text: str) -> object:
    """A JSON value with its numbers as `Number`; raises ValueError where none can be read safely.

    Comments, CDATA marks, trailing commas, raw control characters, a byte order mark and whatever follows the value
    are tolerated: none of them can change what a value says.
    """
    try:
        return _DECODER.decode(text.lstrip("\ufeff"))
    except _TOO_DEEP:
        plain = _NOISE.sub(_without_noise, text).lstrip(" \t\r\n\ufeff;")
    try:
        return _DECODER.raw_decode(plain)[0]
    except _TOO_DEEP as broken:
        raise ValueError(f"no JSON: {broken}") from None


_DECODER = json.JSONDecoder(
    strict=False, parse_float=Number, parse_int=Number, parse_constant=Number
)
# What is not closed goes on to the end, so that no text is looked through again for what it has not got.
_STRING = r'"[^"\\]*(?:\\.?[^"\\]*)*(?:"|\Z)'
_NOISE = re.compile(
    rf"({_STRING})|/\*.*?(?:\*/|\Z)|//[^\n]*|<!--|-->|<!\[CDATA\[|\]\]>|,(?=\s*[}}\]])", re.DOTALL
)
_BAD_ESCAPE = re.compile(r'\\(?:([^"\\/bfnrtu])|(["\\/bfnrtu]))')


def _without_noise(found: re.Match[str]) -> str:
    """A string with its bad escapes mended; a blank for everything else that is matched."""
    return _BAD_ESCAPE.sub(lambda escape: escape[1] or escape[0], found[1]) if found[1] else " "
