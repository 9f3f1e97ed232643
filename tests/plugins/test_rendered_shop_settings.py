"""The settings of the rendered-shop adapter: what the README shows is usable, and a slip says what to write."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError

from prw_plugin_rendered_shop.settings import RenderedShopSettings, split

README = Path(__file__).parents[2] / "plugins/rendered-shop/README.md"


def test_the_source_that_the_readme_shows_has_usable_settings() -> None:
    """As the collector would read it."""
    (block,) = re.findall(r"```toml\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    (source,) = tomllib.loads(block)["source"]
    RenderedShopSettings.model_validate(source["settings"])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "write `lists`"),
        ({"links": "a[["}, "no CSS selector"),
        ({"selectors": {"title": "h1>>"}}, "no CSS selector"),
        ({"policies": {"privacy": "a"}}, "write shipping, returns, warranty"),
        ({"labels": {"Form": "form factor"}}, "write an attribute's key"),
        ({"exclusions": {"Rating": " "}}, "without a reason"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_unusable_settings_say_what_to_write(settings: dict[str, object], words: str) -> None:
    """The error names the field."""
    with pytest.raises(ValidationError, match=re.escape(words)):
        RenderedShopSettings.model_validate({"lists": [], **settings})


def test_an_attribute_stands_behind_its_selector() -> None:
    """An at sign within a selector's own brackets is part of it."""
    assert split("img.main@data-src") == ("img.main", "data-src")
    assert split("h1") == ("h1", None)
    assert split('a[href*="@shop"]') == ('a[href*="@shop"]', None)
