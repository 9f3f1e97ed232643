"""The example street: every page read as its truth file says."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from prw_examples.street import load_catalogue, load_truth
from prw_examples.street.site import resources
from prw_examples.street.truth import Expect, TruePage
from prw_plugin_schemaorg import SchemaOrg
from prw_sdk.adapter import NotARecord
from prw_sdk.evidence import Capture, Record
from prw_sdk.locate import leads_back
from tests.plugins.reading import capture, claims

ADAPTER = SchemaOrg()
TRUTH = load_truth()
RESOURCES = resources(load_catalogue())
READ = (Expect.RECORDS, Expect.RECORDS_AFTER_RETRY)


def pages(*expected: Expect) -> list[TruePage]:
    """The street's pages that should end so."""
    return [page for page in TRUTH.pages if page.expect in expected]


def visited(page: TruePage) -> Capture:
    """The capture of a page of the street."""
    address = urlsplit(page.url)
    answer = RESOURCES[address.hostname or "", address.path].answer
    return capture(answer.body, page.url, content_type=answer.media_type)


def value(record: Record, attribute: str) -> str | None:
    """The record's statement under an attribute."""
    return next((one.value_as_stated for one in claims(record) if one.attribute == attribute), None)


@pytest.mark.parametrize("page", pages(*READ), ids=lambda page: page.url)
def test_a_page_of_the_street_gives_its_listings(page: TruePage) -> None:
    """Seller and number of each listing, every locator leading back, every name accounted for."""
    taken = visited(page)
    records = tuple(ADAPTER.read(taken))
    expected = {(one.sku, one.seller) for one in TRUTH.listings if one.url == page.url}
    assert {(value(one, "core:sku"), value(one, "offer:seller")) for one in records} == expected
    assert len(records) == page.listings
    assert all(leads_back(claim, taken) for record in records for claim in claims(record))
    assert all(ADAPTER.disposition(one.name, taken.config) for one in ADAPTER.stated(taken))


@pytest.mark.parametrize(
    "page",
    [page for page in TRUTH.pages if page.expect is Expect.NOT_A_RECORD],
    ids=lambda page: page.url,
)
def test_a_page_without_a_product_says_so(page: TruePage) -> None:
    """The outcome of a text page is a reason."""
    with pytest.raises(NotARecord, match="no product markup"):
        ADAPTER.read(visited(page))
