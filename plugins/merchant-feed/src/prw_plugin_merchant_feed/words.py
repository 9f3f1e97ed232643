"""Names and texts as feeds write them, in the form in which they are compared and kept."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from types import MappingProxyType

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")
_BETWEEN = re.compile(r"[\s-]+")


SYNONYMS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("seller_name", "merchant", "merchant_name", "shop_name"), "seller"),
        **dict.fromkeys(("store_name", "vendor_name"), "seller"),
        **dict.fromkeys(("ean", "ean13", "ean_code", "upc", "isbn"), "gtin"),
        **dict.fromkeys(("deeplink", "deep_link", "product_url", "url"), "link"),
        **dict.fromkeys(("image", "image_url", "imageurl"), "image_link"),
        **dict.fromkeys(("name", "product_name"), "title"),
    }
)
"""What other feeds call the same, folded as by `folded`."""


def told(text: str) -> str:
    """What a text says that was encoded once too often: ``Tom &amp; Jerry`` is ``Tom & Jerry``.

    Only whole entities are decoded, so that an address with ``&copy=1`` stays one; and only one time, so that the place
    in the feed still holds what is claimed.
    """
    clean = _NOT_TEXT.sub("\ufffd", text).strip()
    plain = _ENTITY.sub(lambda one: html.unescape(one[0]), clean)
    return plain if html.unescape(plain) == html.unescape(clean) else clean


def folded(name: str) -> str:
    """A column's or element's name as it is compared: ``g:Image Link`` is ``image_link``."""
    bare = name.strip().lstrip("\ufeff").casefold().removeprefix("g:")
    return _BETWEEN.sub("_", bare)


class Names:
    """What the names of one feed stand for, by the source's settings."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._columns = {**SYNONYMS, **{folded(one): name for one, name in columns.items()}}

    def of(self, stated: str) -> str:
        """Google's name for it where the settings or a common synonym say one; else the name itself, folded."""
        name = folded(stated)
        return self._columns.get(name, name)
