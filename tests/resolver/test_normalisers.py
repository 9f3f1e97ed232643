"""Normalisers: what statements of identifiers, quantities and words mean, and which mean nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stdnum import ean

from prw_resolver.vocabulary.statement import Reading
from tests.resolver.statements import REFUSED, definition, normalised, samples, value


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("9521100100014", "09521100100014"),
        ("09521100100014", "09521100100014"),
        ("031146262571", "00031146262571"),
        ("0031146262571", "00031146262571"),
        ("EAN: 8808993650040", "08808993650040"),
        (" gtin8 : 12345670", "00000012345670"),
        ("978-1-933624-34-1", "09781933624341"),
        (" 1 86197 271-7", "09781861972712"),
        ("0-8044-2957-X", "09780804429573"),
        ("(9782894556726)", "09782894556726"),
        ("", None),
        ("N/A", None),
        ("does not apply", None),
        ("Nicht zutreffend", None),
        ("0000000000000", None),
        ("1111111111116", None),
        ("1234567890128", None),
        ("9521100100015", REFUSED),
        ("31146262571", REFUSED),
        ("2000000000008", REFUSED),
        ("0200000000004", REFUSED),
        ("9900000000004", REFUSED),
        ("KX990-1T0", REFUSED),
        ("9521100100014 and more", REFUSED),
    ],
)
def test_gtin_has_fourteen_digits_a_right_check_digit_and_a_meaning_outside_the_shop(
    stated: str, expected: str | None
) -> None:
    """Every way of writing a number is one value; what shops make up is none (GS1 General Specifications)."""
    assert value("core:gtin", stated) == expected


@given(st.from_regex(r"[136-8][0-9]{11}", fullmatch=True), st.sampled_from(["", " ", "-"]))
def test_a_gtin_is_one_value_however_it_is_spaced(digits: str, space: str) -> None:
    """Separators never make another article."""
    stated = space.join(digits + ean.calc_check_digit(digits))
    assert value("core:gtin", stated) in {(digits + ean.calc_check_digit(digits)).zfill(14), None}


def test_published_gtin_cases_are_read_as_their_kind_says() -> None:
    """Strings of a public test suite: GTINs and ISBNs pass, wrong check digits, ISSNs and rubbish don't."""
    cases = json.loads(samples("vectors/gtin.json").read_text())["cases"]
    for case in cases:
        accepted = isinstance(normalised("core:gtin", case["text"]), Reading)
        # An ISMN is a GTIN too, and the case without a kind is a GTIN-12 with another name there.
        wanted = case["kind"] in {"isbn10", "isbn13", "gtin8", "gtin13", "gtin14", "ismn"}
        assert accepted == wanted, case


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("KX990-1T0", "KX9901T0"),
        ("kx990 1t0", "KX9901T0"),
        ("nds200t2x0e", "NDS200T2X0E"),
        ("HE30-1T/BK", "HE301T/BK"),
        ("MZ‑V7S1T0BW", "MZV7S1T0BW"),
        ("E00000012", "E00000012"),
        ("", None),
        ("-", None),
        ("n/a", None),
        ("Does not apply", None),
        ("nicht zutreffend", None),
        ("No aplica", None),
        ("1", REFUSED),
        ("0000", REFUSED),
        ("X" * 71, REFUSED),
        ("Velvet Black", REFUSED),
        ("With Stand", REFUSED),
        ("KX 990 Series", REFUSED),
        ("Kestrel phone 3G/3GS", REFUSED),
        ("KXTOWER", "KXTOWER"),
        ("KX990 TI DC", "KX990TIDC"),
        ("KX990 Black", "KX990BLACK"),
    ],
)
def test_part_numbers_fold_case_spaces_and_dashes_and_nothing_else(
    stated: str, expected: str | None
) -> None:
    """Placeholders are nothing, words are no number; a digit more or less is another article."""
    assert value("core:mpn", stated) == expected


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("Kestrel", "kestrel"),
        ("  KESTREL®  GmbH ", "kestrel"),
        ("Samsung Electronics Co., Ltd.", "samsung"),
        ("WD", "western digital"),
        ("Western Digital", "western digital"),
        ("Unbranded", None),
        ("n/a", None),
        ("", None),
        ("AG", "ag"),
        ("Kes-Trel", "kes trel"),
        ("Kes Trel", "kes trel"),
        ("Kestrel Technology", "kestrel"),
        ("Hewlett-Packard", "hp"),
        ("SK-hynix", "sk hynix"),
    ],
)
def test_brands_lose_their_legal_form_and_go_by_one_name(stated: str, expected: str | None) -> None:
    """An alias is published with the definition; a brand that is only a legal form stays."""
    assert value("core:brand", stated) == expected


@pytest.mark.parametrize(
    ("stated", "locale", "expected"),
    [
        ("1 TB", "en_US", "1000000000000"),
        ("1TB", "en_US", "1000000000000"),
        ("1000GB", "en_US", "1000000000000"),
        ("1000 GB", "de_DE", "1000000000000"),
        ("1,0 TB", "de_DE", "1000000000000"),
        ("1.0 TB", "de_DE", "1000000000000"),
        ("8.000 GB", "de-DE", "8000000000000"),
        ("8,000 GB", "en-US", "8000000000000"),
        ("1.92 TB", "en_US", "1920000000000"),
        ("500 Gigabytes", "en_US", "500000000000"),
        ("2 To", "fr_FR", "2000000000000"),
        ("4GiB", "en_US", "4294967296"),
        ("1 TiB", "en_US", "1099511627776"),
        ("480 gb", "en_US", "480000000000"),
        ("", "en_US", None),
        ("n/a", "en_US", None),
        ("1000", "en_US", REFUSED),
        ("large", "en_US", REFUSED),
        ("0 GB", "en_US", REFUSED),
        ("6 Gb/s", "en_US", REFUSED),
        ("1.000 GB", "xx_nowhere", REFUSED),
    ],
)
def test_capacities_are_bytes_in_decimal_units_by_the_page_s_locale(
    stated: str, locale: str, expected: str | None
) -> None:
    """GB is 10⁹ and GiB 2³⁰ (IEC 80000-13); a separator that can be read in two ways is the locale's."""
    assert value("storage:capacity", stated, locale=locale) == expected


@given(st.integers(1, 99999), st.integers(0, 999))
def test_capacities_never_pass_through_binary_fractions(whole: int, fraction: int) -> None:
    """Terabytes and gigabytes of the same size are the same value, whatever the size."""
    in_tb = value("storage:capacity", f"{whole}.{fraction:03}0 TB")
    assert in_tb == str((whole * 1000 + fraction) * 10**9)


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("1", "1"),
        ("2", "2"),
        ("2er-Pack", "2"),
        ("2er Pack", "2"),
        ("Pack of 2", "2"),
        ("Bundle of two", "2"),
        ("2 Stück", "2"),
        ("Set mit 3 Stück", "3"),
        ("Doppelpack", "2"),
        ("4 x 25g", "4"),
        ("2x", "2"),
        ("two-pack", "2"),
        ("paquete de dos", "2"),
        ("single", "1"),
        ("", None),
        ("n/a", None),
        ("250G", REFUSED),
        ("1 TB", REFUSED),
        ("1001", REFUSED),
        ("many", REFUSED),
    ],
)
def test_pack_quantities_count_pieces_and_never_sizes(stated: str, expected: str | None) -> None:
    """A size is no number of pieces: 250G is not a pack of 250."""
    assert value("core:pack_quantity", stated) == expected


def test_published_pack_sizes_agree_with_their_total_where_they_are_read() -> None:
    """Pieces times the size of one is the stated total, for every string that we read as pieces of a size."""
    cases = json.loads(samples("vectors/pack-quantities.json").read_text())["cases"]
    read = {text: value("core:pack_quantity", text) for text, _ in cases}
    totals = dict(cases)
    for text, one in {"4 x 25g": 25, "4 x25g": 25, "4 * 25g": 25, "4X2,5L": 2500}.items():
        assert int(str(read[text])) * one == totals[text]
    assert {read[text] for text in ("250G", "10 lbs", "1 кг", "42克", "1.5kg", "2,5g")} == {REFUSED}


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("https://schema.org/NewCondition", "new"),
        ("http://schema.org/RefurbishedCondition", "refurbished"),
        ("UsedCondition", "used"),
        ("DamagedCondition", "damaged"),
        ("neu", "new"),
        ("Generalüberholt", "refurbished"),
        ("B-Ware", "open_box"),
        ("gebraucht", "used"),
        ("Reacondicionado", "refurbished"),
        ("renewed", "refurbished"),
        ("", None),
        ("null", None),
        ("as good as it gets", REFUSED),
    ],
)
def test_conditions_are_told_by_schema_org_and_by_words(stated: str, expected: str | None) -> None:
    """What is not known is refused rather than taken for new."""
    assert value("core:condition", stated) == expected


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("true", "true"),
        ("Yes", "true"),
        ("mit Kühlkörper", "true"),
        ("ja", "true"),
        ("False", "false"),
        ("ohne", "false"),
        ("sin", "false"),
        ("perhaps", REFUSED),
        ("", None),
    ],
)
def test_truth_values_are_told_by_words(stated: str, expected: str | None) -> None:
    """With and without count, in each language."""
    assert value("storage:heatsink", stated) == expected


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("https://schema.org/InStock", "in_stock"),
        ("http://schema.org/OutOfStock", "out_of_stock"),
        ("instock", "in_stock"),
        ("oos", "out_of_stock"),
        ("Auf Lager", "in_stock"),
        ("PreOrder", "preorder"),
        ("sold out", "out_of_stock"),
        ("in_stock", "in_stock"),
        ("in-stock", "in_stock"),
        ("out-of-stock", "out_of_stock"),
        ("OUT_OF_STOCK", "out_of_stock"),
        ("pre_order", "preorder"),
        ("backorder", "backorder"),
        ("onbackorder", "backorder"),
        ("available-on-backorder", "backorder"),
        ("available for order", "backorder"),
        ("true", "in_stock"),
        ("false", "out_of_stock"),
        ("ja", "in_stock"),
        ("nein", "out_of_stock"),
        ("schema.org/InStock", "in_stock"),
        ("http://www.schema.org/SoldOut", "out_of_stock"),
        ("schema:PreSale", "preorder"),
        ("https://schema.org/BackOrder", "backorder"),
        ("MadeToOrder", "backorder"),
        ("LimitedAvailability", "in_stock"),
        ("OnlineOnly", "in_stock"),
        ("InStoreOnly", "in_store_only"),
        ("Reserved", "out_of_stock"),
        ("https://schema.org/Discontinued", "discontinued"),
        ("no disponible", "out_of_stock"),
        ("", None),
        ("maybe", REFUSED),
        ("not in stock", REFUSED),
        ("in stock soon", REFUSED),
        ("https://shop.example/InStock", REFUSED),
    ],
)
def test_availability_is_told_by_schema_org_and_by_words(stated: str, expected: str | None) -> None:
    """The words of OpenGraph, Google's feeds, WooCommerce and schema.org mean the same; a boolean is its own word."""
    assert value("offer:availability", stated) == expected


def test_addresses_are_resolved_against_the_page() -> None:
    """A relative address is meant against the page; what is no address of the web is refused."""
    base = "https://shop.example/p/1"
    assert value("core:url", "/p/2", base_url=base) == "https://shop.example/p/2"
    assert value("core:url", "javascript:void(0)", base_url=base) == REFUSED
    assert value("core:url", "", base_url=base) is None


def test_titles_are_folded_and_lose_markup() -> None:
    """What people read is kept, in one line."""
    assert value("core:title", " Kestrel <b>KX990</b>\n 1 TB ") == "Kestrel KX990 1 TB"
    assert definition("core:title").public
