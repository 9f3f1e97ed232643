"""Arguments that are no text: a shell passes any bytes, and only names of files may be such."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_NAMES = {"sources": "SOURCE", "name": "NAME", "url": "URL", "native_id": "--id"}
"""How those parameters are called that are not called as their option."""


def no_text(values: Mapping[str, object]) -> str | None:
    """What to say of the first argument of a command that is not UTF-8; None where all are. Paths are left alone."""
    for name, value in values.items():
        for text in _texts(value):
            try:
                text.encode()
            except UnicodeEncodeError:
                return f"{_NAMES.get(name, f'--{name}')}: {text!a} is not text in UTF-8: give it as such"
    return None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple)):
        yield from (one for one in value if isinstance(one, str))
