"""The vocabulary: hints, what statements of one attribute come to, classes, keys."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from prw_resolver.vocabulary.definitions import AttributeDefinition, IdentityRule, Vocabulary
from prw_resolver.vocabulary.keys import classify, make_keys
from prw_resolver.vocabulary.model import Basis, Value
from tests.resolver.statements import definition, hinted, packaged, verdict

GTIN_RULE = IdentityRule(name="gtin", attributes=("core:gtin", "core:condition"))


def value(attribute: str, text: str, unit: str = "") -> Value:
    """A value that was stated as it is."""
    return Value(attribute, 1, text, unit, Basis.STATED, None)


@pytest.mark.parametrize(
    ("title", "pieces"),
    [
        ("KESTREL KX990 1TB NVMe SSD, Bundle of 2", ["2"]),
        ("Velarion V7 SATA III Internal SSD 1TB (2-pack)", ["2"]),
        ("Kestrel SSD KX990 1 TB, 2er-Pack", ["2"]),
        ("Kestrel KX990 1TB, bundle of two", ["2"]),
        ("2x Kestrel KX990 1TB", ["2"]),
        ("2 x 1TB Kestrel KX990", ["2"]),
        ("Kestrel KX990 1 TB x2", ["2"]),
        ("Kestrel KX990 1 TB Doppelpack", ["2"]),
        ("Kestrel KX990 1 TB, 3 Stück", ["3"]),
        ("Kestrel KX990 1 TB, paquete de 2", ["2"]),
        ("Kestrel KX990 1 TB, 2 unidades", ["2"]),
        ("Kestrel KX990 1TB PCIe 4.0 x4 NVMe M.2 SSD", []),
        ("Kestrel KX990 1TB PCIe 4.0 NVMe M.2 2280 SSD", []),
        ("Kestrel KX990 1TB Workstation Set", []),
        ("Velarion V7 500GB 2.5-inch SATA SSD", []),
        ("Kestrel KX990 1TB SSD, 4 Value Pack", ["4"]),
        ("2x velarion v7 1TB USB drive", ["2"]),
        ("Velarion V7 1TB - 2 x Velarion bracket", ["2"]),
        ("Kestrel KX990 x2", ["2"]),
        ("Kestrel KX990 1TB X6", ["6"]),
        ("Kestrel Portable SSD X6", []),
        ("Kestrel KX990 1TB SSD PCIe 4.0 x4, M.2", []),
        ("Kestrel KX990 1TB SSD (PCIe Gen4 x4)", []),
        ("Kestrel KX990 1TB SSD (PCIe Gen 4 x4)", []),
        ("Kestrel KX990 1TB SSD (PCIe x4)", []),
        ("Projection screen 84 x 84", []),
        ("Velarion camera with 5x Wide Angle Dual Image Stabilized Zoom", []),
        ("Velarion graphics card 12 GB, 2x DisplayPort", []),
        ("Velarion DVD-R 16x White Printable Spindle", []),
        ("Velarion Ventus 2X Black", []),
        ("Velarion amplifier, 110 Watts x 4", []),
        ("Board game for 4 people", []),
        ("Velarion tote 15.4PC", []),
        ("Kestrel KX990 1TB,2-Pack", ["2"]),
    ],
)
def test_titles_hint_at_the_number_of_pieces(title: str, pieces: list[str]) -> None:
    """English, German and Spanish; lanes, form factors and sizes are no pieces."""
    assert hinted("core:pack_quantity", title) == pieces


@pytest.mark.parametrize(
    ("title", "condition"),
    [
        ("Kestrel KX990 2TB NVMe SSD (Renewed)", ["refurbished"]),
        ("Nordlys N850 1 TB Gaming-SSD (generalüberholt)", ["refurbished"]),
        ("Kestrel KX990 2 TB reacondicionado", ["refurbished"]),
        ("Kestrel KX990 2 TB, gebraucht", ["used"]),
        ("Kestrel KX990 2 TB B-Ware", ["open_box"]),
        ("Kestrel KX990 2TB Open Box", ["open_box"]),
        ("Kestrel KX990 2TB - used", ["used"]),
        ("Kestrel KX990 2TB, widely used by professionals", []),
        ("Kestrel KX990 2TB. Slightly Used. Read Description", ["used"]),
        ("Kestrel KX990 2TB Used Original Box", ["used"]),
        ("Kestrel KX990 2TB *FAULTY*", ["damaged"]),
        ("BAD Kestrel KX990 2TB (As-is)", ["damaged"]),
        ("Kestrel KX990 2TB (BOX ONLY)", ["damaged"]),
        ("Kestrel KX990 2TB, untested", ["damaged"]),
        ("Kestrel KX990 2TB, never used", []),
        ("Cable that may be used to replace others", []),
        ("Cradle used with the Kestrel KX990", []),
        ("Broken Heartz headphones", []),
        ("Kestrel KX990 1TB PCIe 4.0 NVMe M.2 SSD", []),
    ],
)
def test_titles_hint_at_the_condition(title: str, condition: list[str]) -> None:
    """A title that says refurbished counts even where nothing else does."""
    assert hinted("core:condition", title) == condition


@pytest.mark.parametrize(
    ("title", "heatsink"),
    [
        ("Kestrel KX990 1TB with Heatsink", ["true"]),
        ("Kestrel KX990 1TB Heatsink Edition", ["true"]),
        ("Kestrel SSD KX990 1 TB mit Kühlkörper", ["true"]),
        ("Kestrel SSD KX990 1 TB ohne Kühlkörper", ["false"]),
        ("Kestrel KX990 1TB without heatsink", ["false"]),
        ("Kestrel KX990 1TB (no heatsink)", ["false"]),
        ("Kestrel KX990 1 TB con disipador", ["true"]),
        ("Kestrel KX990 1 TB sin disipador", ["false"]),
        ("Kestrel KX990 1TB, heatsink not included", ["false"]),
        ("Kestrel KX990 1TB, heatsink compatible", []),
        ("Kestrel KX990 1TB", []),
    ],
)
def test_titles_hint_at_the_heatsink(title: str, heatsink: list[str]) -> None:
    """With and without, in each language; a drive that merely fits one hints at nothing."""
    assert hinted("storage:heatsink", title) == heatsink


@pytest.mark.parametrize(
    ("title", "bytes_"),
    [
        ("Kestrel KX990 1TB PCIe 4.0", ["1000000000000"]),
        ("Velarion V7 500 GB 2,5-Zoll-SSD SATA 6Gb/s", ["500000000000"]),
        ("Velarion V7 500GB SATA 6 Gbit/s, 550 MB/s", ["500000000000"]),
        ("Kestrel KX990 1TB with 1GB DRAM cache", ["1000000000000"]),
        ("Kestrel KX990 500GB/1TB", ["500000000000"]),
        ("Kestrel KX990 in 500 GB or 1 TB", ["500000000000", "1000000000000"]),
        ("Kestrel KX990 1.92TB", ["1920000000000"]),
        ("Kestrel KX990 120 GB SATA 6.0 Gb-s 2.5-Inch", ["120000000000"]),
        ("Kestrel KX990 1 TB SATA 3 Gb s", ["1000000000000"]),
        ("Kestrel KX990 1 To SSD", ["1000000000000"]),
        ("Adapter USB 2.0 to SATA", []),
        ("Kestrel KX990", []),
    ],
)
def test_titles_hint_at_the_capacity(title: str, bytes_: list[str]) -> None:
    """Transfer rates and caches are no capacities."""
    assert sorted(hinted("storage:capacity", title)) == sorted(bytes_)


def test_a_claim_is_worth_more_than_a_default_and_a_hint_too() -> None:
    """Stated, then hinted, then assumed."""
    stated = verdict("core:pack_quantity", ["2"])
    hint = verdict("core:pack_quantity", [], "Kestrel KX990, 2er-Pack")
    silent = verdict("core:pack_quantity", [], "Kestrel KX990")
    assert stated.settled is not None
    assert (stated.settled.reading.value, stated.settled.basis) == ("2", Basis.STATED)
    assert hint.settled is not None
    assert (hint.settled.reading.value, hint.settled.basis) == ("2", Basis.HINT)
    assert silent.settled is not None
    assert (silent.settled.reading.value, silent.settled.basis) == ("1", Basis.DEFAULT)
    assert silent.settled.source is None


def test_a_claim_and_a_hint_that_differ_are_ambiguous() -> None:
    """Stated as new and titled as refurbished is neither: a person decides."""
    found = verdict("core:condition", ["https://schema.org/NewCondition"], "KX990 (Renewed)")
    assert found.settled is None
    assert found.ambiguous
    assert verdict("core:pack_quantity", ["1"], "KX990 2-pack").ambiguous
    assert not verdict("core:condition", ["refurbished"], "KX990 (Renewed)").ambiguous


def test_two_claims_that_come_out_equal_are_one() -> None:
    """The same number in two ways of writing is no contradiction; another number is."""
    assert not verdict("core:gtin", ["9521100100014", "09521100100014"]).ambiguous
    assert verdict("core:gtin", ["9521100100014", "9521100100021"]).ambiguous
    assert verdict("storage:capacity", ["1 TB", "1000 GB"]).settled is not None


def test_what_cannot_be_read_is_never_taken_for_silence() -> None:
    """An unknown condition must not become new; an unreadable number is as good as none."""
    assert verdict("core:condition", ["as good as it gets"]).ambiguous
    number = verdict("core:gtin", ["9521100100015"])
    assert number.settled is None
    assert not number.ambiguous
    assert number.unreadable == ("9521100100015: the check digit is wrong",)


def test_a_blank_never_matches_a_blank() -> None:
    """A rule of which one attribute has no value gives no key (state, "Identity")."""
    assert make_keys([GTIN_RULE], "thing", 1, [value("core:condition", "new")]) == ()
    blank = [value("core:gtin", ""), value("core:condition", "new")]
    assert make_keys([GTIN_RULE], "thing", 1, blank) == ()


def test_keys_depend_on_rule_and_values_and_nothing_else() -> None:
    """Order and other attributes make no other key; another value, unit or rule does."""
    values = [value("core:gtin", "09521100100014"), value("core:condition", "new")]
    [key] = make_keys([GTIN_RULE], "thing", 1, values)
    more = [*reversed(values), value("core:title", "A title")]
    assert make_keys([GTIN_RULE], "thing", 1, more) == (key,)
    [used] = make_keys([GTIN_RULE], "thing", 1, [values[0], value("core:condition", "used")])
    other_rule = IdentityRule(name="other", attributes=GTIN_RULE.attributes)
    [other] = make_keys([other_rule], "thing", 1, values)
    assert len({key.identity_hash, used.identity_hash, other.identity_hash}) == 3
    assert key.canonical == (
        '{"attributes":[["core:condition","new",""],["core:gtin","09521100100014",""]],"rule":"gtin"}'
    )


def test_generation_one_has_the_two_rules_for_every_class() -> None:
    """(gtin, condition, pack) and (brand, mpn, condition, pack), inherited by the drives."""
    rules = {rule.name: rule.attributes for rule in packaged().rules("storage_ssd", 1)}
    assert rules == {
        "gtin": ("core:gtin", "core:condition", "core:pack_quantity"),
        "brand_mpn": ("core:brand", "core:mpn", "core:condition", "core:pack_quantity"),
    }
    with pytest.raises(KeyError):
        packaged().rules("storage_ssd", 2)


@pytest.mark.parametrize(
    ("title", "stated", "expected"),
    [
        ("Kestrel KX990 1TB NVMe", set(), "storage_ssd"),
        ("Halcyon E30 portable solid state drive 1TB USB-C", set(), "storage_ssd"),
        ("Nordlys N850 2 TB M.2 gaming drive", set(), "storage_ssd"),
        ("Kestrel KX990 1TB Workstation Set", {"storage:heatsink"}, "storage_ssd"),
        ("Bulk 4TB HDD 3.5 Zoll Festplatte", set(), "storage_drive"),
        ("Laptop with Ryzen 7, 1TB SSD", set(), None),
        ("Velarion Mini Desktop PC with Atom, 1TB Hard Drive", set(), None),
        ("Velarion 1TB Hard Disk Drive Handycam Camcorder", set(), None),
        ("Neoprene Sleeve for the Velarion 1TB Portable Hard Drive", set(), None),
        ("Heatsink for the Kestrel KX990 1TB M.2 SSD", set(), None),
        ("Kestrel KX990 1TB M.2 SSD with heatsink for consoles", set(), "storage_ssd"),
        ("Velarion 1TB Desktop External Hard Drive", set(), "storage_drive"),
        ("Velarion 1TB Notebook Hard Drive", set(), "storage_drive"),
        ("Enclosure for SSD up to 4 TB", set(), None),
        ("A thing of 1TB", set(), None),
    ],
)
def test_classes_are_told_by_capacity_and_words(
    title: str, stated: set[str], expected: str | None
) -> None:
    """What fits no class has none, and so no key."""
    values = [value("core:title", title), value("storage:capacity", "1000000000000", "By")]
    assert classify(packaged(), values, frozenset(stated)) == expected
    assert classify(packaged(), values[:1], frozenset(stated)) is None


def test_attributes_are_inherited_down_the_tree() -> None:
    """INV-07: what belongs to a drive belongs to an SSD, and not to just anything."""
    capacity = definition("storage:capacity")
    assert packaged().applies(capacity, "storage_ssd")
    assert not packaged().applies(capacity, "thing")


@pytest.mark.parametrize(
    "wrong",
    [
        {"key": "core:x", "version": 0},
        {"default": {"value": "1", "reason": "short"}},
        {"hints": [{"language": "en", "pattern": "("}]},
        {"hints": [{"language": "en", "pattern": "two"}]},
        {"surprise": True},
    ],
)
def test_a_definition_that_means_nothing_is_refused(wrong: dict[str, object]) -> None:
    """A version below one, a default without a reason, a pattern that is none, an unknown word."""
    right = {"key": "core:x", "version": 1, "title": "X", "type": "text", "normaliser": "text"}
    AttributeDefinition.model_validate(right)
    with pytest.raises(ValidationError):
        AttributeDefinition.model_validate(right | wrong)


def test_a_vocabulary_that_does_not_hold_together_is_refused() -> None:
    """A parent, an attribute or a class that nobody defines."""
    good = packaged().model_dump(mode="json")
    for part, entry in (
        ("classes", {"id": "sofa", "title": "Sofa", "parent": "furniture"}),
        ("classes", {"id": "thing", "title": "Again"}),
        ("attributes", good["attributes"][0] | {"key": "x:y", "applies_to": ["sofa"]}),
        (
            "generations",
            {"number": 2, "rules": {"thing": [{"name": "x", "attributes": ["core:none"]}]}},
        ),
    ):
        with pytest.raises(ValidationError):
            Vocabulary.model_validate(good | {part: [*good[part], entry]})
