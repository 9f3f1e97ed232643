"""The public queries by HTTP, gRPC and pages: released data only, and errors of the one table."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import grpc
import httpx
import psycopg
import pytest

from prw.catalog.v1 import catalog_service_pb2 as pb
from prw.catalog.v1.catalog_service_pb2_grpc import (
    CatalogServiceStub,
    add_CatalogServiceServicer_to_server,
)
from prw.changes.v1 import change_pb2 as changes
from prw.errors import Code
from prw.grpc_errors import from_rpc_error
from prw_base.client import open_channel
from prw_base.server.rpc import RpcServer
from prw_product.apply.service import Applier
from prw_product.serve.http import make_app
from prw_product.serve.rpc import CatalogServicer
from prw_product.serve.service import Catalogue
from tests.product.events import (
    capacity,
    deliveries,
    history,
    item,
    mapping,
    merchant,
    release,
    story,
)


@pytest.fixture
async def http(catalogue: Catalogue) -> AsyncIterator[httpx.AsyncClient]:
    """The application, called without a socket."""
    transport = httpx.ASGITransport(make_app(catalogue))
    async with httpx.AsyncClient(transport=transport, base_url="http://product") as client:
        yield client


@pytest.fixture
async def filled(applier: Applier) -> None:
    """The story of two items and three offers."""
    await applier.apply(deliveries(story()))


@pytest.fixture
async def stub(catalogue: Catalogue) -> AsyncIterator[CatalogServiceStub]:
    """CatalogService over a real connection."""
    server = RpcServer(None)
    server.add(add_CatalogServiceServicer_to_server, CatalogServicer(catalogue))
    async with server, open_channel(f"127.0.0.1:{server.port}") as channel:
        yield CatalogServiceStub(channel)


async def _ids(http: httpx.AsyncClient, **params: str) -> list[str]:
    answer = await http.get("/v1/items", params=params)
    assert answer.status_code == 200, answer.text
    return [found["item_id"] for found in answer.json()["items"]]


@pytest.mark.usefixtures("filled")
async def test_an_item_shows_its_offers_by_merchant(http: httpx.AsyncClient) -> None:
    """Identity, revisions, values for people and machines, exact money, times of observation."""
    answer = (await http.get("/v1/items/itm_1")).json()
    assert answer == {
        "item_id": "itm_1",
        "class_id": "storage_ssd",
        "title": "Aurora P5 1 TB",
        "attributes": [
            {"key": "storage:capacity", "value": "1000000000000", "unit": "By", "display": "1 TB"}
        ],
        "published_revision": 1,
        "publication_revision": 2,
        "offers": [
            {
                "listing_id": "lst_2",
                "merchant": {"merchant_id": "mer_halden", "name": "Halden & Söhne"},
                "title": "Aurora P5 SSD 1TB",
                "url": "https://lumen.example/lst_2",
                "price": None,
                "availability": "",
                "observed_at": None,
            },
            {
                "listing_id": "lst_1",
                "merchant": {"merchant_id": "mer_lumen", "name": "Lumen Parts"},
                "title": "Aurora P5 SSD 1TB",
                "url": "https://lumen.example/lst_1",
                "price": {"amount": "129.90", "currency": "EUR"},
                "availability": "in_stock",
                "observed_at": "2026-11-01T12:00:00Z",
            },
        ],
    }


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("params", "ids"),
    [
        ({}, ["itm_1", "itm_2"]),
        ({"class": "storage_ssd"}, ["itm_1", "itm_2"]),
        ({"class": "other"}, []),
        ({"attr[storage:capacity]": "1 TB"}, ["itm_1"]),
        ({"attr[storage:capacity]": "2tb"}, ["itm_2"]),
        ({"attr[storage:capacity]": "2000 GB"}, ["itm_2"]),
        ({"attr[storage:capacity]": "1000000000000"}, ["itm_1"]),
        ({"attr[storage:capacity]": "1 TiB"}, []),
        ({"attr[storage:capacity]": "1 TB", "attr[core:brand]": "aurora"}, []),
    ],
)
async def test_items_are_filtered_as_people_ask(
    http: httpx.AsyncClient, params: dict[str, str], ids: list[str]
) -> None:
    """By class and by values, canonical or as people write them; all of them must hold."""
    assert await _ids(http, **params) == ids


@pytest.mark.usefixtures("filled")
async def test_pages_are_bound_to_their_query(http: httpx.AsyncClient) -> None:
    """A token leads on to the rest of the same query, and to nothing for another."""
    first = (await http.get("/v1/items", params={"page_size": 1})).json()
    token = first["next_page_token"]
    assert await _ids(http, page_token=token) == ["itm_2"]
    refused = await http.get("/v1/items", params={"page_token": token, "class": "storage_ssd"})
    assert (refused.status_code, refused.json()["code"]) == (422, "VALIDATION_FAILED")
    for broken in ("x", "!!", "e30", "WzFd"):
        answer = await http.get("/v1/items", params={"page_token": broken})
        assert (answer.status_code, answer.json()["field"]) == (422, "page_token")


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("after", ["a\ud800", "a\0", 1, None, ["a"]])
async def test_a_token_that_somebody_made_is_refused(http: httpx.AsyncClient, after: Any) -> None:
    """Bound to the right query and still no token: never a text that the database refuses."""
    first = (await http.get("/v1/items?page_size=1")).json()["next_page_token"]
    _, query = json.loads(base64.urlsafe_b64decode(first + "=="))
    made = base64.urlsafe_b64encode(json.dumps([after, query]).encode()).decode().rstrip("=")
    answer = await http.get("/v1/items", params={"page_token": made})
    assert (answer.status_code, answer.json()["field"]) == (422, "page_token")


@pytest.mark.usefixtures("filled")
async def test_merchants_with_a_released_offer_are_listed(http: httpx.AsyncClient) -> None:
    """By id, in pages."""
    first = (await http.get("/v1/merchants", params={"page_size": 1})).json()
    assert [m["name"] for m in first["merchants"]] == ["Halden & Söhne"]
    rest = await http.get("/v1/merchants", params={"page_token": first["next_page_token"]})
    assert [m["name"] for m in rest.json()["merchants"]] == ["Lumen Parts"]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/items/itm_9", 404, "NOT_FOUND"),
        ("/v1/items/%00", 404, "NOT_FOUND"),
        ("/v1/items?page_size=501", 422, "VALIDATION_FAILED"),
        ("/v1/items?page_size=x", 422, "VALIDATION_FAILED"),
        ("/v1/items?attr[a]=1&attr[a]=2", 422, "VALIDATION_FAILED"),
        ("/v1/items?attr[a]=%00", 422, "VALIDATION_FAILED"),
        ("/v1/items?attr[]=1", 422, "VALIDATION_FAILED"),
        ("/v1/items?attr=1", 422, "VALIDATION_FAILED"),
        ("/v1/items?attr[[a]]=1", 422, "VALIDATION_FAILED"),
        ("/v1/nothing", 404, "NOT_FOUND"),
    ],
)
async def test_errors_are_problems_with_a_code(
    http: httpx.AsyncClient, path: str, status: int, code: str
) -> None:
    """RFC 9457 with the same code and status as the table (if_product_query)."""
    answer = await http.get(path)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_database_that_is_gone_is_unavailable(
    product_database: dict[str, str], http: httpx.AsyncClient
) -> None:
    """503 with Retry-After, which a client may try again once; and it heals by itself."""
    name = psycopg.conninfo.conninfo_to_dict(product_database["superuser"])["dbname"]
    admin = psycopg.conninfo.make_conninfo(product_database["superuser"], dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as conn:
        conn.execute(f'alter database "{name}" allow_connections false'.encode())
        conn.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", (name,)
        )
        answer = await http.get("/v1/items")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        conn.execute(f'alter database "{name}" allow_connections true'.encode())
    assert (await http.get("/v1/items")).status_code == 200


@pytest.mark.usefixtures("filled")
async def test_the_pages_read_well(http: httpx.AsyncClient) -> None:
    """Values for people, a table with headings, and one link to each item."""
    listed = (await http.get("/")).text
    assert "2 items, 3 offers" in listed
    assert '<a href="/items/itm_1">Aurora P5 1 TB</a>' in listed
    assert "€129.90" in listed
    page = (await http.get("/items/itm_2")).text.replace("\N{NO-BREAK SPACE}", " ")
    for text in ("Lumen Parts", "$199.00", "In stock", "2 TB", "Storage SSD", '<th scope="col"'):
        assert text in page
    assert "at lumen.example" in page
    assert (await http.get("/style.css")).headers["content-type"].startswith("text/css")


async def test_near_misses_are_told_apart_in_the_list(
    applier: Applier, http: httpx.AsyncClient
) -> None:
    """What alone differs between a drive and its neighbours stands beside each title."""
    cooled = changes.Attribute(key="storage:heatsink", value="true")
    pair = changes.Attribute(key="core:pack_quantity", value="2")
    told: dict[str, list[changes.Attribute]] = {"itm_1": [], "itm_2": [cooled], "itm_3": [pair]}
    made = [item(name) for name in told]
    made += [release(name, {}, fields=[capacity(), *more]) for name, more in told.items()]
    await applier.apply(deliveries(history(*made)))
    listed = (await http.get("/")).text.replace("\N{NO-BREAK SPACE}", " ")
    for text in ("SSD · 1 TB<", "SSD · 1 TB · with heatsink<", "SSD · 1 TB · pack of 2<"):
        assert text in listed


async def test_what_sources_say_cannot_become_markup(
    applier: Applier, http: httpx.AsyncClient
) -> None:
    """Everything is escaped, a link is http(s) only, and the policy lets no script run."""
    evil = '<script>alert(1)</script>"'
    listed = mapping("lst_1", "itm_1", merchant="mer_x", title=evil)
    listed.listing_mapping.url = "javascript:alert(1)"
    made = history(
        merchant("mer_x", evil),
        item("itm_1"),
        listed,
        release("itm_1", {"lst_1": 1}, title=evil),
    )
    await applier.apply(deliveries(made))
    for path in ("/", "/items/itm_1"):
        answer = await http.get(path)
        assert "<script" not in answer.text
        assert "javascript:" not in answer.text
        assert "default-src 'none'" in answer.headers["content-security-policy"]


async def test_a_page_that_is_not_there_is_a_page(http: httpx.AsyncClient) -> None:
    """A person gets a page, with the status of the table."""
    answer = await http.get("/items/itm_9", headers={"accept": "text/html"})
    assert (answer.status_code, "<h1>" in answer.text) == (404, True)


@pytest.mark.usefixtures("filled")
async def test_grpc_answers_the_same(stub: CatalogServiceStub) -> None:
    """One use case behind both transports."""
    listed = await stub.ListItems(pb.ListItemsRequest(attributes={"storage:capacity": "1 TB"}))
    assert [found.item_id for found in listed.items] == ["itm_1"]
    found = (await stub.GetItem(pb.GetItemRequest(item_id="itm_1"))).item
    assert found == listed.items[0]
    assert [(o.merchant.name, o.price_amount) for o in found.offers] == [
        ("Halden & Söhne", ""),
        ("Lumen Parts", "129.90"),
    ]
    merchants = await stub.ListMerchants(pb.ListMerchantsRequest())
    assert [m.merchant_id for m in merchants.merchants] == ["mer_halden", "mer_lumen"]


@pytest.mark.parametrize(
    ("name", "code"), [("itm_9", Code.NOT_FOUND), ("", Code.VALIDATION_FAILED)]
)
async def test_grpc_refuses_with_the_tables_codes(
    stub: CatalogServiceStub, name: str, code: Code
) -> None:
    """The code travels in ErrorInfo."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stub.GetItem(pb.GetItemRequest(item_id=name))
    assert from_rpc_error(refused.value).code is code


async def test_readers_go_through_the_pointer(
    applier: Applier, catalogue: Catalogue, product_database: dict[str, str]
) -> None:
    """A swap of the pointer swaps all that is read, in that very statement."""
    await applier.apply(deliveries(story()))
    dsn = product_database["superuser"]
    with psycopg.connect(dsn) as conn:
        conn.execute("select product.create_generation(2)")
        conn.execute(
            "insert into product.generation (tenant_id, catalog_id, generation, history_epoch,"
            " status) select tenant_id, catalog_id, 2, history_epoch, 'shadow'"
            " from product.generation"
        )
        conn.execute("insert into projection_2.public_item select * from projection_1.public_item")
        conn.execute("update projection_2.public_item set title = 'second'")
    assert (await catalogue.get_item("itm_1")).title == "Aurora P5 1 TB"
    with psycopg.connect(dsn) as conn:
        conn.execute("update product.serving_generation set generation = 2")
    found = await catalogue.get_item("itm_1")
    assert (found.title, found.offers) == ("second", ())


async def test_health_says_what_is_public(http: httpx.AsyncClient, applier: Applier) -> None:
    """Null where another process follows."""
    await applier.apply(deliveries(story()))
    assert (await http.get("/healthz")).json() == {
        "status": "ok",
        "public_items": 2,
        "following": None,
        "progress": None,
        "stopped": None,
        "held": None,
    }


async def test_openapi_names_every_path_and_code(http: httpx.AsyncClient) -> None:
    """The document is made from the code, so it cannot differ from it."""
    document: dict[str, Any] = (await http.get("/openapi.json")).json()
    assert set(document["paths"]) == {
        "/v1/items",
        "/v1/items/{item_id}",
        "/v1/merchants",
        "/healthz",
    }
    listed = document["paths"]["/v1/items"]["get"]
    assert {"attr", "class", "page_size", "page_token"} == {p["name"] for p in listed["parameters"]}
    assert "application/problem+json" in json.dumps(listed["responses"]["422"])
