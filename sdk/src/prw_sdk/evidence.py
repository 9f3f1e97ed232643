"""The values that collector and resolver share: captures, parts, records, claims and locators.

Everything here is frozen and plain, does no I/O and can be pickled, so that `read` may run in another process.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

_NO_CHARSETS = frozenset(
    {"idna", "mbcs", "oem", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"}
    | {"utf-7", "base64", "bz2", "hex", "quopri", "rot-13", "uu", "zlib"}
)

NO_SETTINGS: Mapping[str, object] = MappingProxyType({})


class SelectorType(StrEnum):
    """How a selector points into a part's bytes (W3C Web Annotation selectors, and two of our own)."""

    CSS = "css"
    XPATH = "xpath"
    JSON_POINTER = "json_pointer"
    TEXT_QUOTE = "text_quote"
    CSV_CELL = "csv_cell"


class Origin(StrEnum):
    """Who made a claim. A model's claim is advice and never the ground of an automatic decision."""

    ADAPTER = "adapter"
    MODEL = "model"


class Presence(StrEnum):
    """Whether the source still serves the target; `ABSENT` stands for its own 404 or 410."""

    PRESENT = "present"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Selector:
    """One step into a document: for CSS and XPath `attribute` names the attribute that holds the value."""

    type: SelectorType
    value: str
    attribute: str | None = None
    refined_by: Selector | None = None

    def as_json(self) -> dict[str, object]:
        """As JSON values: `type`, `value`, and where they are given `attribute` and `refined_by`."""
        found: dict[str, object] = {"type": self.type.value, "value": self.value}
        if self.attribute is not None:
            found["attribute"] = self.attribute
        if self.refined_by is not None:
            found["refined_by"] = self.refined_by.as_json()
        return found

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> Selector:
        """The selector that `as_json` wrote."""
        refined, attribute = stored.get("refined_by"), stored.get("attribute")
        return cls(
            SelectorType(str(stored["type"])),
            str(stored["value"]),
            None if attribute is None else str(attribute),
            cls.from_json(refined) if isinstance(refined, Mapping) else None,
        )


@dataclass(frozen=True, slots=True)
class Locator:
    """Where a value stands: the role of a part, and a selector into its bytes.

    Equality of what is found with what was stated is after entity decoding and folding of white space.
    """

    part_role: str
    selector: Selector


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of the source: an attribute, the value exactly as stated, and where it stands."""

    attribute: str
    value_as_stated: str
    locator: Locator
    origin: Origin = Origin.ADAPTER

    def as_json(self) -> dict[str, object]:
        """As JSON values; the origin is told where it is not the adapter."""
        return {
            "attribute": self.attribute,
            "value_as_stated": self.value_as_stated,
            "part": self.locator.part_role,
            "selector": self.locator.selector.as_json(),
            **({} if self.origin is Origin.ADAPTER else {"origin": self.origin.value}),
        }


@dataclass(frozen=True, slots=True)
class Record:
    """One listing found in a capture: a variant, a seller's offer, a row of a feed.

    `record_id` is unique in its capture, `listing_key` is stable in the source over all captures. The
    `merchant` is a claim like any other (attribute ``offer:seller``), since a publisher is not the merchant
    (rule 15); a record that states none has None and is never accepted by rule.
    """

    record_id: str
    listing_key: str
    merchant: Claim | None
    claims: tuple[Claim, ...]

    def as_json(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "record_id": self.record_id,
            "listing_key": self.listing_key,
            "merchant": None if self.merchant is None else self.merchant.as_json(),
            "claims": [claim.as_json() for claim in self.claims],
        }


@dataclass(frozen=True, slots=True)
class Citation:
    """The earlier bytes that a 304 answer stands for."""

    captured_at: datetime
    sha256: str


@dataclass(frozen=True, slots=True)
class Part:
    """One response (or one screenshot) of a capture, with its bytes as they were received.

    `sha256` is lower-case hex of `body`. `media_type` is as served; `charset_declared` is what the source said
    and `charset_used` what the bytes were read as. `headers` holds the allow-listed response headers.
    """

    role: str
    sha256: str
    body: bytes
    media_type: str
    url_asked: str
    url_reached: str
    http_status: int
    fetched_at: datetime
    charset_declared: str | None = None
    charset_used: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    cites: Citation | None = None

    def text(self) -> str:
        """The body as text, in the charset it was read as; undecodable bytes become U+FFFD.

        What is no charset, or none that Python knows, counts as UTF-8.
        """
        used = self.charset_used or "utf-8"
        return self.body.decode(used if is_charset(used) else "utf-8", errors="replace")


def is_charset(name: str) -> bool:
    """Whether pages can be written in it: of Python's codecs those for bytes, escapes and names are none."""
    try:
        return codecs.lookup(name).name not in _NO_CHARSETS
    except (LookupError, ValueError):
        return False


@dataclass(frozen=True, slots=True)
class AdapterVersion:
    """The adapter that made a capture, as ``name@version``."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


@dataclass(frozen=True, slots=True)
class Region:
    """Where a collector ran, as its operator declared it. Never used as a market."""

    country: str = ""
    label: str = ""
    declared_by: str = "operator"


@dataclass(frozen=True, slots=True)
class Egress:
    """The country that a source saw the request come from, and whether that was verified."""

    country: str = ""
    verified: bool = False


@dataclass(frozen=True, slots=True)
class Capture:
    """Everything fetched for one target at one moment.

    `native_record_id` is the target as planned, known before reading. `captured_at` is UTC with microseconds.
    `config` holds what `read` needs of the adapter's settings and of the source's market hints (``locale``,
    ``currency``), never a secret, so that the resolver reads the same bytes with the same result.
    """

    source_id: str
    native_record_id: str
    captured_at: datetime
    adapter: AdapterVersion
    parts: tuple[Part, ...]
    config: Mapping[str, object] = field(default_factory=lambda: NO_SETTINGS)
    presence: Presence = Presence.PRESENT
    execution_region: Region = Region()
    egress: Egress = Egress()

    def part(self, role: str) -> Part:
        """The part of that role; raises KeyError where the capture holds none."""
        for part in self.parts:
            if part.role == role:
                return part
        raise KeyError(role)
