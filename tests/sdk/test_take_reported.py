"""Reported inputs of reading: JSON-LD as shops write it, taken rightly or left alone."""

from __future__ import annotations

import json

import pytest

from prw_sdk.adapter import Kind
from prw_sdk.locate import fold, resolve
from prw_sdk.take import Node, is_template, json_leaves, jsonld, page_leaves, parsed
from tests.sdk.test_take import lost, part
from tests.sdk.written_jsonld import BROKEN, NO_TEMPLATES, PRODUCT, READ, TEMPLATES, script


def named(markup: str) -> list[Node]:
    """The products of a page that have a name; each value of theirs leads back."""
    page = part(markup)
    found = [node for node in jsonld(page, "Product") if node.text("name")]
    assert [name for node in found for name in lost(node, page)] == []
    return found


@pytest.mark.parametrize("kind", READ)
def test_a_product_is_taken_however_its_shop_writes_it(kind: str) -> None:
    """Name, number and price are there, and each leads back to the text."""
    (product,) = named(READ[kind])
    assert fold(product.text("name") or "") == "Desk lamp"
    assert (product.text("sku"), product.text("offers.price")) == ("L-1", "9.90")


@pytest.mark.parametrize("kind", BROKEN)
def test_what_cannot_be_read_safely_is_left_alone(kind: str) -> None:
    """Nothing is guessed of a broken script, and the one behind it is read."""
    assert named(BROKEN[kind]) == []
    (product,) = named(BROKEN[kind] + script(PRODUCT))
    assert product.text("sku") == "L-1"


@pytest.mark.parametrize("text", TEMPLATES)
def test_a_template_that_nobody_filled_in_says_nothing(text: str) -> None:
    """In JSON-LD and in markup: the name is stated, without a value. What an interface answers is as it says."""
    (product,) = jsonld(part(script(json.dumps({"@type": "Product", "sku": text}))), "Product")
    (leaf,) = product.leaves
    assert (leaf.name, leaf.kind, leaf.text) == ("sku", Kind.EMPTY, "")
    (leaf,) = json_leaves({"money_format": text}, "stock")
    assert leaf.text == text
    markup = text.replace("<", "&lt;")
    (shown,) = page_leaves(part(f"<p class=price>{markup}</p>"), "price", ".price")
    assert (shown.kind, shown.text) == (Kind.EMPTY, "")


@pytest.mark.parametrize("text", NO_TEMPLATES)
def test_what_only_looks_like_a_template_is_a_value(text: str) -> None:
    """Percentages, braces and prices; and a long text may speak of templates."""
    assert not is_template(text)
    assert not is_template("How to write {{ name }} in a page. " * 20)


def test_entities_within_a_readable_document_stay_as_stated() -> None:
    """Only where the document's own quotes are entities is it decoded: a value is what stands in the text."""
    page = part(script(PRODUCT.replace("Desk lamp", "Caf&eacute; &quot;A&quot; &amp; B")))
    (product,) = jsonld(page, "Product")
    assert product.text("name") == "Caf&eacute; &quot;A&quot; &amp; B"
    assert lost(product, page) == []


def test_a_constant_that_is_no_number_is_no_value() -> None:
    """``NaN`` and infinities, which JavaScript writes and JSON has not."""
    value = parsed('{"a": NaN, "b": -Infinity, "c": "NaN"}')
    assert [(leaf.kind, leaf.text) for leaf in json_leaves(value, "page")] == [
        (Kind.NULL, ""),
        (Kind.NULL, ""),
        (Kind.TEXT, "NaN"),
    ]


def test_a_control_character_is_kept_but_for_what_no_database_keeps() -> None:
    """A raw bell stays, NUL is replaced; both lead back."""
    page = part(script(PRODUCT.replace("Desk lamp", "De\x08sk \x00lamp")))
    (product,) = jsonld(page, "Product")
    leaf = product.leaf("name")
    assert leaf is not None
    assert fold(resolve(page, leaf.locator.selector) or "") == fold(leaf.text)
