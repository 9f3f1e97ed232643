"""Secrets of the settings: where they come from, and what they must be like. No message holds a value."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A field name (RFC 9110 section 5.1)."""
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\]?")
_OF_THE_CONNECTION = frozenset(
    {"connection", "content-length", "expect", "host", "te", "trailer", "transfer-encoding"}
    | {"upgrade", "keep-alive", "proxy-connection"}
)
_KINDS = ("env:", "file:")


class SettingsUnusable(Exception):
    """The settings cannot be used; the message names file and field, and what to write."""


def check_headers(headers: Mapping[str, Mapping[str, str]]) -> None:
    """Hosts and names of headers, and that each value says where its secret is; raises ValueError.

    Header names are those of RFC 9110 section 5.1, without those that belong to the connection.
    """
    for host, named in headers.items():
        if not _HOST.fullmatch(host):
            raise ValueError(f"{host!r} is no host: write a name or an address, without port")
        for name, value in named.items():
            if not _TOKEN.fullmatch(name):
                raise ValueError(f"{host}: {name!r} is no name of a header")
            if name.lower() in _OF_THE_CONNECTION:
                raise ValueError(f"{host}: {name} is not for settings to say: leave it out")
            if not value.startswith(_KINDS):
                raise ValueError(
                    f"{host}.{name}: write env:NAME or file:PATH; a secret has no place here"
                )


def anchored(headers: Mapping[str, Mapping[str, str]], folder: Path) -> dict[str, dict[str, str]]:
    """The same, with files taken from that folder."""
    return {
        host: {name: _anchored(value, folder) for name, value in named.items()}
        for host, named in headers.items()
    }


def _anchored(value: str, folder: Path) -> str:
    kind, _, rest = value.partition(":")
    return f"file:{folder / Path(rest).expanduser()}" if kind == "file" else value


def secret(value: str, field: str) -> str:
    """What ``env:NAME`` or ``file:PATH`` stands for, without the space around it; raises `SettingsUnusable`."""
    kind, _, rest = value.partition(":")
    if kind == "file":
        return fit(_text(Path(rest), field), field, f"the file {rest}")
    if rest not in os.environ:
        raise SettingsUnusable(f"{field}: the environment has no {rest}")
    return fit(os.environ[rest], field, f"{rest} in the environment")


def fit(text: str, field: str, where: str) -> str:
    """A secret as a header may carry it: one line, not empty, nothing invisible; raises `SettingsUnusable`."""
    found = text.strip()
    if not found:
        raise SettingsUnusable(f"{field}: {where} is empty: it must hold the secret")
    if not found.isprintable():
        raise SettingsUnusable(
            f"{field}: {where} must hold one line, without line breaks and other characters that are not seen"
        )
    return found


def token_in(path: Path) -> str:
    """The token of a file; raises `SettingsUnusable`."""
    token = read(path, "resolver.token_file").decode("ascii", "replace").strip()
    if not token or not token.isprintable() or "\ufffd" in token:
        raise SettingsUnusable(f"resolver.token_file: {path} holds no token")
    return token


def read(path: Path, field: str) -> bytes:
    """The bytes of a file; raises `SettingsUnusable`."""
    try:
        return path.expanduser().read_bytes()
    except (OSError, ValueError) as gone:
        why = gone.strerror if isinstance(gone, OSError) else "it is no path"
        raise SettingsUnusable(f"{field}: {path}: {why}") from gone


def _text(path: Path, field: str) -> str:
    try:
        return read(path, field).decode("utf-8")
    except UnicodeDecodeError:
        # the error would show the secret
        raise SettingsUnusable(f"{field}: {path} is not UTF-8 text") from None
