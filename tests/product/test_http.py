"""The HTTP API as its document promises it: statuses, schemas, caches, bounds and strict parameters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import psycopg
import pytest

from prw.catalog.v1 import catalog_service_pb2 as pb
from prw.catalog.v1.catalog_service_pb2_grpc import (
    CatalogServiceStub,
    add_CatalogServiceServicer_to_server,
)
from prw.changes.v1 import change_pb2 as changes
from prw_base.client import MAX_MESSAGE_BYTES, open_channel
from prw_base.server.rpc import RpcServer
from prw_product.apply.service import Applier
from prw_product.serve import answers
from prw_product.serve.http import make_app
from prw_product.serve.rpc import CatalogServicer
from prw_product.serve.service import Catalogue
from tests.product.events import (
    capacity,
    change,
    deliveries,
    history,
    item,
    mapping,
    merchant,
    price,
    release,
    story,
)

_PATHS = ("/v1/items", "/v1/items/{item_id}", "/v1/merchants", "/healthz")


@pytest.fixture
async def http(catalogue: Catalogue) -> AsyncIterator[httpx.AsyncClient]:
    """The application, called without a socket."""
    transport = httpx.ASGITransport(make_app(catalogue))
    async with httpx.AsyncClient(transport=transport, base_url="http://product") as client:
        yield client


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ("/v1/items?clas=storage_ssd", "clas"),
        ("/v1/items?page_size=1&page_size=2", "page_size"),
        ("/v1/items?class=a&class=b", "class"),
        ("/v1/items?attr[a]=1&attr[a]=2", "attr[a]"),
        ("/v1/items?attr=1", "attr"),
        ("/v1/items?attr[a=1", "attr[a"),
        ("/v1/items?q=%00", "q"),
        ("/v1/items/itm_1?fields=title", "fields"),
        ("/v1/merchants?class=storage_ssd", "class"),
        ("/v1/merchants?attr[a]=1", "attr[a]"),
    ],
)
async def test_a_parameter_that_is_not_known_is_refused_by_name(
    http: httpx.AsyncClient, asked: str, field: str
) -> None:
    """A misspelt filter never answers with everything."""
    answer = await http.get(asked)
    assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION_FAILED")
    assert answer.json()["field"] == field


@pytest.mark.parametrize(
    ("asked", "ids"),
    [("yes", ["itm_1"]), ("true", ["itm_1"]), ("Yes", ["itm_1"]), ("no", []), ("false", [])],
)
async def test_a_truth_value_is_asked_for_as_people_do(
    applier: Applier, http: httpx.AsyncClient, asked: str, ids: list[str]
) -> None:
    """``yes`` is ``true``."""
    fields = [capacity(), changes.Attribute(key="storage:heatsink", value="true")]
    made = history(item("itm_1"), release("itm_1", {}, fields=fields))
    await applier.apply(deliveries(made))
    answer = (await http.get("/v1/items", params={"attr[storage:heatsink]": asked})).json()
    assert [found["item_id"] for found in answer["items"]] == ids


async def test_a_cache_asks_again_and_gets_304_until_something_changes(
    applier: Applier, http: httpx.AsyncClient
) -> None:
    """The tag is of the content: a price changes it without a publication; HEAD has the same one."""
    await applier.apply(deliveries(story()))
    for path in ("/v1/items", "/v1/items/itm_1", "/v1/merchants", "/", "/items/itm_1"):
        first = await http.get(path)
        tag = first.headers["etag"]
        assert first.headers["cache-control"] == "public, no-cache"
        for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
            again = await http.get(path, headers={"if-none-match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert (await http.get(path, headers={"if-none-match": '"x"'})).content == first.content
        assert (await http.head(path)).headers["etag"] == tag
    tag = (await http.get("/v1/items/itm_1")).headers["etag"]
    await applier.apply(deliveries([change(13, price("lst_1", "99.00", revision=2))]))
    renewed = await http.get("/v1/items/itm_1", headers={"if-none-match": tag})
    assert (renewed.status_code, "99.00" in renewed.text) == (200, True)


async def test_what_must_not_be_kept_says_so(http: httpx.AsyncClient) -> None:
    """An item that is not there yet, and health."""
    for path in ("/v1/items/itm_9", "/healthz", "/v1/items?x=1"):
        answer = await http.get(path)
        assert (answer.headers["cache-control"], "etag" in answer.headers) == ("no-store", False)


def _statuses() -> list[tuple[str, int]]:
    document = make_app(Catalogue.__new__(Catalogue)).openapi()
    assert set(document["paths"]) == set(_PATHS)
    return [(path, int(status)) for path in _PATHS for status in _answers(document, path)]


def _answers(document: dict[str, Any], path: str) -> dict[str, Any]:
    found: dict[str, Any] = document["paths"][path]["get"]["responses"]
    return found


@pytest.mark.parametrize(("path", "status"), _statuses())
async def test_every_documented_answer_occurs_as_documented(
    applier: Applier,
    http: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    status: int,
) -> None:
    """Each status of the document, with its media type and a body of its schema."""
    await applier.apply(deliveries(story()))
    document = (await http.get("/openapi.json")).json()
    answer = await _provoke(http, monkeypatch, path, status)
    assert answer.status_code == status
    content = _answers(document, path)[str(status)].get("content")
    if content is None:
        assert answer.content == b""
        return
    ((media_type, described),) = content.items()
    assert answer.headers["content-type"] == media_type
    name = described["schema"]["$ref"].rpartition("/")[2]
    promised = document["components"]["schemas"][name]
    assert set(promised["required"]) <= set(answer.json()) <= set(promised["properties"])
    getattr(answers, name).model_validate_json(answer.content, strict=True)


async def _provoke(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, path: str, status: int
) -> httpx.Response:
    asked = path.replace("{item_id}", "itm_9" if status == 404 else "itm_1")
    headers = {"if-none-match": "*"} if status == 304 else {}
    trouble = {500: RuntimeError("a defect"), 503: psycopg.OperationalError("gone")}.get(status)
    if trouble is not None:
        for name in ("list_items", "get_item", "list_merchants", "count"):
            monkeypatch.setattr(Catalogue, name, _raising(trouble))
    return await http.get(asked + "?x=1" * (status == 422), headers=headers)


def _raising(error: Exception) -> Any:
    async def fail(*_: object) -> None:
        raise error

    return fail


async def test_health_is_degraded_by_a_refused_change(
    applier: Applier, http: httpx.AsyncClient
) -> None:
    """What is there is served, and a probe sees that it grows old; the code and nothing private."""
    await applier.apply(deliveries([*story(), change(13, b"\xff\xff")]))
    answer = await http.get("/healthz")
    told = answer.json()
    assert (answer.status_code, told["status"], told["held"]) == (200, "degraded", "SCHEMA_INVALID")


async def test_a_page_of_long_texts_fits_in_a_message(
    applier: Applier, catalogue: Catalogue
) -> None:
    """500 items with texts of 20 kB are 10 MB: pages end sooner, and together they are all."""
    text, names = "ü" * 10_000, [f"itm_{number:03}" for number in range(500)]
    made = history(
        *(item(name) for name in names),
        *(release(name, {}, title=text) for name in names),
        *(merchant(f"mer_{name}", text) for name in names[:200]),
        *(mapping(f"lst_{name}", "itm_000", merchant=f"mer_{name}") for name in names[:200]),
        release("itm_000", {f"lst_{name}": 1 for name in names[:10]}, revision=2),
    )
    await applier.apply(deliveries(made))
    server = RpcServer(None)
    server.add(add_CatalogServiceServicer_to_server, CatalogServicer(catalogue))
    async with server, open_channel(f"127.0.0.1:{server.port}") as channel:
        stub, token, seen = CatalogServiceStub(channel), "", list[str]()
        while token or not seen:
            page = await stub.ListItems(pb.ListItemsRequest(page_size=500, page_token=token))
            assert page.ByteSize() < MAX_MESSAGE_BYTES
            seen += [found.item_id for found in page.items]
            token = page.next_page_token
    assert seen == names


async def test_pages_are_stable_while_items_come(applier: Applier, catalogue: Catalogue) -> None:
    """What was there at the start is met exactly once, whatever is released in between."""
    old = [f"itm_{number:02}" for number in range(1, 10, 2)]
    first = [event for name in old for event in (item(name), release(name, {}))]
    await applier.apply(deliveries(history(*first)))
    transport = httpx.ASGITransport(make_app(catalogue))
    async with httpx.AsyncClient(transport=transport, base_url="http://product") as http:
        seen, token, at = list[str](), "", len(first)
        while token or not seen:
            asked = {"page_size": "1", "page_token": token}
            page = (await http.get("/v1/items", params=asked)).json()
            seen += [found["item_id"] for found in page["items"]]
            token, name = page["next_page_token"], f"itm_{len(seen) * 2:02}"
            made = [change(at + 1, item(name)), change(at + 2, release(name, {}))]
            # Enough of them: a writer that keeps ahead of a reader has no last page.
            await applier.apply(deliveries(made if len(seen) < 6 else []))
            at += len(made)
    assert len(seen) == len(set(seen)) > len(old)
    assert set(old) <= set(seen)
