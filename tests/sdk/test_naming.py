"""How a source's own names are told, pinned and read again."""

from __future__ import annotations

import pytest
from pydantic import Field, ValidationError

from prw_sdk.adapter import Excluded, Stored
from prw_sdk.adapter.naming import (
    AttributeNames,
    NamingSettings,
    declared,
    folded,
    known_as,
    labelled,
    named,
    pinned,
    table,
)


class ShopSettings(NamingSettings):
    """Settings of a source with names of its own, and one that only collecting needs."""

    labels: AttributeNames = Field(default_factory=dict)
    tell_apart: tuple[str, ...] = ("size",)
    batch_size: int = 50


@pytest.mark.parametrize(
    ("given", "field", "told"),
    [
        ({"fields": {"vendor": "seller"}}, "fields", "write an attribute's key, such as core:mpn"),
        ({"fields": {"vendor": "Offer:Seller"}}, "fields", "'vendor' is kept under"),
        ({"labels": {"Farbe": "colour"}}, "labels", "'Farbe' is kept under 'colour'"),
        ({"exclusions": {"stars": " "}}, "exclusions", "write why no record carries it"),
    ],
)
def test_a_wrong_name_is_refused_with_what_to_write(
    given: dict[str, dict[str, str]], field: str, told: str
) -> None:
    """The error names the setting and the name in it."""
    with pytest.raises(ValidationError) as refused:
        ShopSettings.model_validate(given)
    (error,) = refused.value.errors()
    assert error["loc"] == (field,)
    assert told in error["msg"]


def test_what_reading_needs_is_pinned_as_json_values() -> None:
    """A setting that only collecting needs changes no capture (replay rule 7)."""
    settings = ShopSettings(fields={"vendor": "offer:seller"}, batch_size=7)
    assert pinned(settings, "tell_apart", "fields", "exclusions") == {
        "tell_apart": ["size"],
        "fields": {"vendor": "offer:seller"},
        "exclusions": {},
    }


def test_an_exclusion_wins_and_the_closest_one_gives_the_reason() -> None:
    """The exact name goes before patterns, the longest pattern before shorter ones; other names are left alone."""
    settings = ShopSettings(
        fields={"vendor": "offer:seller", "review.text": "core:description"},
        exclusions={"review.*": "what buyers say", "review.stars": "a mean"},
    )
    config = pinned(settings, "fields", "exclusions")
    assert named(config, "vendor") == Stored("offer:seller")
    assert named(config, "review.text") == Excluded("what buyers say")
    assert named(config, "review.stars") == Excluded("a mean")
    assert named(config, "Vendor") is None


@pytest.mark.parametrize("config", [{}, {"fields": None}, {"fields": ["vendor"]}, {"fields": "x"}])
def test_a_config_without_a_table_says_nothing(config: dict[str, object]) -> None:
    """Captures of older versions, or of another writer, are read as if the source had told nothing."""
    assert table(config, "fields") == {}
    assert named(config, "vendor") is None


def test_names_are_declared_and_labels_folded() -> None:
    """A name that is kept and left out is left out; labels differ neither by case nor by white space or a colon."""
    assert declared({"sku": "core:sku", "x": "core:mpn"}, {("x", "y.*"): "no fact"}) == {
        "sku": Stored("core:sku"),
        "x": Excluded("no fact"),
        "y.*": Excluded("no fact"),
    }
    assert labelled({"storage:capacity": ("Kapazität",)})[folded(" KAPAZITÄT :")] == (
        "storage:capacity"
    )


@pytest.mark.parametrize(
    ("label", "attribute"),
    [("Speicher:", "storage:capacity"), ("COLOR", "core:colour"), ("Größe", None)],
)
def test_a_source_s_own_label_goes_before_the_usual_one(label: str, attribute: str | None) -> None:
    """What neither knows stands for nothing."""
    usual = labelled({"storage:capacity": ("Speicher",), "core:mpn": ("color",)})
    config: dict[str, object] = {"options": {"Color ": "core:colour"}}
    assert known_as(label, usual, config, "options") == attribute
