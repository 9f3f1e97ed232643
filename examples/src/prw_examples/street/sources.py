"""The collector's settings for the street's sources."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

_COLLECTOR = """\
contact = "https://street.example/contact"

[rate]
# The street is on this machine and in nobody's way.
per_second = 40.0
at_once = 4

"""


def sources_toml(port: int) -> str:
    """The settings file for a street on `port`, as text."""
    text = files("prw_examples.street").joinpath("sources.toml").read_text("utf-8")
    return text.replace("@PORT@", str(port))


def collector_toml(port: int) -> str:
    """A whole settings file of a collector that keeps what it fetches from a street on `port`."""
    return _COLLECTOR + sources_toml(port)


def source_settings(port: int) -> tuple[Mapping[str, Any], ...]:
    """The same settings as tables, one a source, in the order of the catalogue's shops."""
    return tuple(tomllib.loads(sources_toml(port))["source"])
