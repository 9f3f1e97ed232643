"""How a source names things: the settings by which it keeps or leaves out what it states, and the reading of them.

An adapter for many sources declares the usual names (`declared`, `labelled`); the names of one source are its settings
(`NamingSettings`). What reading needs of them is `pinned` in each capture, so that a reading years later is told the
same, and goes before what the adapter declares (`named`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated

from pydantic import AfterValidator, Field

from prw_sdk.adapter.declare import (
    AdapterSettings,
    Disposition,
    Excluded,
    Stored,
    matching,
)

_ATTRIBUTE = re.compile(r"[a-z][a-z0-9_]*:[a-z][a-z0-9_.]*")


def _are_attributes(given: Mapping[str, str]) -> Mapping[str, str]:
    for name, attribute in given.items():
        if not _ATTRIBUTE.fullmatch(attribute):
            raise ValueError(
                f"{name!r} is kept under {attribute!r}: write an attribute's key, such as core:mpn"
            )
    return given


def _have_reasons(given: Mapping[str, str]) -> Mapping[str, str]:
    for name, reason in given.items():
        if not reason.strip():
            raise ValueError(
                f"{name!r} is excluded without a reason: write why no record carries it"
            )
    return given


AttributeNames = Annotated[Mapping[str, str], AfterValidator(_are_attributes)]
"""Names as a source states them, and the key of the attribute each is kept under: ``{"sku": "core:mpn"}``."""

Exclusions = Annotated[Mapping[str, str], AfterValidator(_have_reasons)]
"""Stated names (patterns with ``*``), and why no record carries what stands under them; a blank reason is refused."""


class NamingSettings(AdapterSettings):
    """Settings of a source that may keep what it states under other attributes than declared, or leave it out."""

    fields: AttributeNames = Field(default_factory=dict)
    """Stated names, and the attribute each is kept under in place of the declared one: ``{"vendor": "offer:seller"}``.

    Names are compared as they are written.
    """
    exclusions: Exclusions = Field(default_factory=dict)
    """Stated names (patterns with ``*``) that this source's records leave out, each with the reason; these win."""


def pinned(settings: AdapterSettings, *names: str) -> dict[str, object]:
    """What is pinned in each capture (JSON values): the named settings, which reading needs; the adapter's `config`."""
    values = settings.model_dump(mode="json", include=set(names))
    return {name: values[name] for name in names}


def named(config: Mapping[str, object], name: str) -> Disposition | None:
    """What `NamingSettings`, as pinned in a capture's config, say of a stated name; None where they say nothing."""
    left_out = excluded(table(config, "exclusions"), name)
    if left_out is not None:
        return left_out
    attribute = table(config, "fields").get(name)
    return None if attribute is None else Stored(attribute)


def excluded(exclusions: Mapping[str, str], name: str) -> Disposition | None:
    """The reason for which a source leaves out a name: given for the name itself, else for the longest pattern."""
    return matching({one: Excluded(reason) for one, reason in exclusions.items()}, name)


def table(config: Mapping[str, object], name: str) -> dict[str, str]:
    """A table of texts out of a capture's config; empty where there is none."""
    found = config.get(name)
    if not isinstance(found, Mapping):
        return {}
    return {str(key): str(text) for key, text in found.items()}


def folded(label: str) -> str:
    """A label as it is compared: without case, runs of white space, and a closing colon."""
    return " ".join(label.split()).rstrip(" :").casefold()


def known_as(
    label: str, usual: Mapping[str, str], config: Mapping[str, object], setting: str
) -> str | None:
    """The attribute that a label stands for: by the config's table of labels, else as `usual` (from `labelled`)."""
    own = {folded(one): attribute for one, attribute in table(config, setting).items()}
    sought = folded(label)
    return own.get(sought, usual.get(sought))


def labelled(labels: Mapping[str, tuple[str, ...]]) -> Mapping[str, str]:
    """The attribute that each `folded` label stands for, of the labels that each attribute goes by."""
    return MappingProxyType(
        {folded(label): attribute for attribute, several in labels.items() for label in several}
    )


def declared(
    stored: Mapping[str, str], left_out: Mapping[tuple[str, ...], str]
) -> Mapping[str, Disposition]:
    """An adapter's `fields`: the attribute of each name that is kept, and a reason for several that are left out.

    Both may name patterns; a name in both is left out.
    """
    return MappingProxyType(dict(_declared(stored, left_out)))


def _declared(
    stored: Mapping[str, str], left_out: Mapping[tuple[str, ...], str]
) -> Iterator[tuple[str, Disposition]]:
    yield from ((name, Stored(attribute)) for name, attribute in stored.items())
    for names, reason in left_out.items():
        yield from ((name, Excluded(reason)) for name in names)
