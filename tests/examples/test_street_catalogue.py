"""The example street's definition keeps the promises that the truth rests on."""

from __future__ import annotations

from itertools import combinations

import pytest

from prw_examples.street import load_catalogue, load_truth, source_settings
from prw_examples.street.model import Fact, Form, Listing, Shop
from prw_examples.street.truth import Outcome, Pair, Reason, derive_truth, dump, keys, near_miss

CATALOGUE = load_catalogue()
TRUTH = load_truth()
HINTS = ("2er-Pack", "Bundle of 2", "2-pack", "Renewed", "generalüberholt")


def offered(*, trusted: bool | None = None) -> list[tuple[Shop, Listing]]:
    """Every listing on a page that may be fetched."""
    return [
        (shop, listing)
        for shop in CATALOGUE.shops
        if trusted is None or shop.trusted is trusted
        for page in shop.allowed_pages()
        for listing in page.listings
    ]


@pytest.mark.parametrize("gtin", sorted({item.gtin for item in CATALOGUE.products.values()}))
def test_every_gtin_has_a_right_check_digit_and_the_example_prefix(gtin: str) -> None:
    """A GTIN-13 weighted 1, 3, 1, … sums to a multiple of ten (GS1 General Specifications 7.9)."""
    weighted = (int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(gtin))
    assert len(gtin) == 13
    assert gtin.startswith("952")
    assert sum(weighted) % 10 == 0


def test_articles_have_identifiers_of_their_own_and_only_variants_of_one_share_them() -> None:
    """Only bundles and refurbished ones carry another product's GTIN and MPN."""
    for a, b in combinations(CATALOGUE.products.values(), 2):
        variant = (a.condition, a.pack) != (b.condition, b.pack)
        assert (a.gtin == b.gtin) == (a.mpn == b.mpn)
        assert a.gtin != b.gtin or variant


def test_there_are_about_sixty_product_pages_in_every_form() -> None:
    """Each shop shows every kind of markup that it should."""
    pages = [page for shop in CATALOGUE.shops for page in shop.allowed_pages()]
    assert 58 <= len(pages) <= 66
    assert {page.form for page in pages} == set(Form)
    assert [page.encoding for page in pages].count("windows-1252") == 1
    assert all(
        shop.trusted or page.form is not Form.OPENGRAPH
        for shop in CATALOGUE.shops
        for page in shop.pages
    )


def test_any_two_trusted_listings_of_one_product_share_a_key() -> None:
    """So that they end as one item whatever the order of arrival."""
    for (_, a), (_, b) in combinations(offered(trusted=True), 2):
        if a.product == b.product and keys(a) and keys(b):
            assert keys(a) & keys(b), (a.sku, b.sku)


def test_a_stale_part_number_meets_a_contradiction_whatever_came_first() -> None:
    """Each trusted listing of both products states all that tells them apart."""
    telling = (Fact.GTIN, Fact.MPN, Fact.HEATSINK)
    stale = [listing for _, listing in offered() if listing.stale_mpn_of]
    assert len(stale) == 1
    concerned = {stale[0].product.key, stale[0].stale_mpn_of}
    about = [one for _, one in offered(trusted=True) if one.product.key in concerned]
    assert {one.product.key for one in about} == concerned
    assert all(one.stated(fact) for one in [*about, *stale] for fact in telling)


def test_what_is_unusual_is_stated_or_told_by_the_title() -> None:
    """A default is never assumed against a page that says nothing at all."""
    hinting = [listing for _, listing in offered() if listing.hinted()]
    assert len(hinting) == 5
    assert all(any(hint in listing.title for hint in HINTS) for listing in hinting)
    assert all(any(hint in listing.title for listing in hinting) for hint in HINTS)


def test_the_packaged_truth_is_the_derived_one() -> None:
    """`python -m prw_examples.street --truth` writes it anew."""
    assert derive_truth(CATALOGUE) == TRUTH
    assert dump(TRUTH) == dump(derive_truth(CATALOGUE))


def test_every_pair_of_listings_is_judged_at_most_once_and_every_same_pair_is_there() -> None:
    """The pairs are total: the same exactly where the product is, and never both."""
    product = {listing.id: listing.product for listing in TRUTH.listings}
    assert len(product) == len(TRUTH.listings)
    same = {(pair.a, pair.b) for pair in TRUTH.same}
    assert same == {(a, b) for a, b in combinations(product, 2) if product[a] == product[b]}
    assert all(product[pair.a] != product[pair.b] for pair in TRUTH.different)
    assert len({(pair.a, pair.b) for pair in TRUTH.different}) == len(TRUTH.different)


def test_every_kind_of_near_miss_is_there() -> None:
    """Heatsink, capacity, a bundle, a refurbished one and a stale part number."""
    reasons = {why for pair in TRUTH.different for why in pair.why}
    assert reasons == {"capacity_gb", "heatsink", "pack", "condition", "stale_part_number"}


def test_listings_that_share_an_identifier_are_the_same_or_a_near_miss() -> None:
    """Nothing that a careless match would join is left unjudged."""
    for (_, a), (_, b) in combinations(offered(), 2):
        if a.product != b.product and (a.product.gtin == b.product.gtin or a.mpn == b.mpn):
            assert near_miss(a, b), (a.sku, b.sku)


def test_only_known_keys_are_accepted_from_the_marketplace() -> None:
    """What nobody trusted introduced, a hint and a contradiction each end as a case."""
    reasons = {(one.source, one.reason): one.outcome for one in TRUTH.listings}
    assert reasons == {
        ("src_lumen", Reason.TRUSTED): Outcome.ACCEPT,
        ("src_halden", Reason.TRUSTED): Outcome.ACCEPT,
        ("src_halden", Reason.HINT_ONLY): Outcome.CASE,
        ("src_bazaarline", Reason.KNOWN_KEY): Outcome.ACCEPT,
        ("src_bazaarline", Reason.UNKNOWN_KEY): Outcome.CASE,
        ("src_bazaarline", Reason.HINT_ONLY): Outcome.CASE,
        ("src_bazaarline", Reason.CONTRADICTION): Outcome.CASE,
    }


def test_a_key_may_be_known_through_another_accepted_listing() -> None:
    """The part number of the small Bryn reaches its item only through the marketplace."""
    small = {one.sku: one.reason for one in TRUTH.listings if one.product == "b100-480"}
    expected = {"LP-6048": Reason.TRUSTED, "OD-61": Reason.KNOWN_KEY, "KK-361": Reason.KNOWN_KEY}
    assert small == expected


def test_a_listing_is_named_by_its_page_seller_and_sku() -> None:
    """(url, seller) is enough but for the page of variants."""
    full = [(one.url, one.seller, one.sku) for one in TRUTH.listings]
    short = [(one.url, one.seller) for one in TRUTH.listings]
    assert len(set(full)) == len(full)
    assert len(short) - len(set(short)) == 2


def test_the_collectors_settings_agree_with_the_catalogue() -> None:
    """Same sources, hosts, markets and trust."""
    for settings, shop in zip(source_settings(8123), CATALOGUE.shops, strict=True):
        assert settings["id"] == shop.id
        assert (settings["locale"], settings["currency"]) == (shop.locale, shop.currency)
        assert settings["trusted"] is shop.trusted
        assert settings["resolve"] == {f"{shop.host}:80": "127.0.0.1:8123"}
        assert settings["settings"]["sitemaps"] == [shop.url("/sitemap.xml")]


def test_pairs_are_listed_in_the_catalogues_order() -> None:
    """So that the truth file changes only where the catalogue does."""
    place = {listing.id: index for index, listing in enumerate(TRUTH.listings)}
    pairs: tuple[Pair, ...] = TRUTH.same + TRUTH.different
    assert all(place[pair.a] < place[pair.b] for pair in pairs)
