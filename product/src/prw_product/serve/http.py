"""The public HTTP API: JSON at the paths of the reference, and errors as problem+json (RFC 9457)."""

from __future__ import annotations

from typing import Any

import psycopg
import structlog
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.base import RequestResponseEndpoint
from starlette.types import ASGIApp, Receive, Scope, Send

from prw.errors import TABLE, Code, PrwError
from prw_base.ids import new_id
from prw_base.server.database import as_prw_error
from prw_product.follow.model import Standing
from prw_product.serve import answers
from prw_product.serve.caching import Tagged
from prw_product.serve.model import ItemQuery
from prw_product.serve.pages import error_page, make_pages
from prw_product.serve.parameters import (
    ATTR_PARAMETER,
    ClassId,
    PageSize,
    PageToken,
    attribute_filters,
    only,
)
from prw_product.serve.service import Catalogue

_log = structlog.get_logger(__name__)

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_Responses = dict[int | str, dict[str, Any]]


def _problems(**descriptions: str) -> _Responses:
    """The error answers of a route, by the names of their codes."""
    return {
        int(status.removeprefix("on_")): {"model": answers.ProblemAnswer, "description": codes}
        for status, codes in descriptions.items()
    }


_FAILURES = _problems(on_500="INTERNAL", on_503="UNAVAILABLE, OVERLOADED")
_UNCHANGED: _Responses = {304: {"description": "What If-None-Match names has not changed."}}
_REFUSALS = _problems(on_422="VALIDATION_FAILED") | _FAILURES | _UNCHANGED
_NO_ITEM = _problems(on_404="NOT_FOUND")
_PROBLEM_TYPE = "application/problem+json"


class _Application(FastAPI):
    """FastAPI, whose document gives errors the media type that they have."""

    def openapi(self) -> dict[str, Any]:
        """The document, made once."""
        document = super().openapi()
        for path in document["paths"].values():
            for answer in path["get"]["responses"].values():
                content = answer.get("content", {})
                schema = content.get("application/json", {}).get("schema", {})
                if schema.get("$ref", "").endswith("/ProblemAnswer"):
                    content[_PROBLEM_TYPE] = content.pop("application/json")
        return document


def make_app(catalogue: Catalogue, standing: Standing | None = None) -> FastAPI:
    """The application: API, pages and health; ``standing`` where this process also follows."""
    app = _Application(
        title="Catalogue",
        version="1",
        summary="Released items, their offers and the merchants that make them.",
        docs_url=None,
        redoc_url=None,
    )
    app.include_router(_api(catalogue))
    app.include_router(_health(catalogue, standing))
    app.include_router(make_pages(catalogue))
    app.add_exception_handler(PrwError, _on_refusal)
    app.add_exception_handler(psycopg.Error, _on_database)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.middleware("http")(_guarded)
    app.add_middleware(Tagged)
    app.add_middleware(_HeadAsGet)
    return app


class _HeadAsGet:
    """Answers HEAD as GET, of which the server sends the headers alone (RFC 9110, section 9.3.2)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The server goes by the method in its own copy, which stays HEAD.
        asked = {**scope, "method": "GET"} if scope.get("method") == "HEAD" else scope
        await self._app(asked, receive, send)


def _api(catalogue: Catalogue) -> APIRouter:
    api = APIRouter(prefix="/v1", tags=["catalogue"], responses=_REFUSALS)

    @api.get(
        "/items",
        openapi_extra={"parameters": [ATTR_PARAMETER]},
        dependencies=[Depends(only("class", "page_size", "page_token", attributes=True))],
        operation_id="listItems",
    )
    async def list_items(
        request: Request,
        class_id: ClassId = None,
        page_size: PageSize = 0,
        page_token: PageToken = "",
    ) -> answers.ItemsAnswer:
        """Released items by id."""
        query = ItemQuery(class_id, attribute_filters(request), page_size, page_token)
        return answers.items_answer(await catalogue.list_items(query))

    @api.get(
        "/items/{item_id}",
        responses=_NO_ITEM,
        dependencies=[Depends(only())],
        operation_id="getItem",
    )
    async def get_item(item_id: str) -> answers.ItemAnswer:
        """One released item with its offers."""
        return answers.item_answer(await catalogue.get_item(item_id))

    @api.get(
        "/merchants",
        dependencies=[Depends(only("page_size", "page_token"))],
        operation_id="listMerchants",
    )
    async def list_merchants(
        page_size: PageSize = 0, page_token: PageToken = ""
    ) -> answers.MerchantsAnswer:
        """Merchants that have a released offer, by id."""
        return answers.merchants_answer(await catalogue.list_merchants(page_size, page_token))

    return api


def _health(catalogue: Catalogue, standing: Standing | None) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/healthz", operation_id="health", responses=_FAILURES)
    async def health(response: Response) -> answers.HealthAnswer:
        """Whether the catalogue can be read; 503 where the database does not answer."""
        response.headers["Cache-Control"] = "no-store"
        counts, held = await catalogue.count(), await catalogue.find_refusal()
        stopped = standing.stopped if standing else None
        return answers.HealthAnswer(
            status="ok" if stopped is None and held is None else "degraded",
            public_items=counts.items,
            following=None if standing is None else standing.connected,
            progress=None if standing is None else standing.progress,
            stopped=None if stopped is None else stopped.code.value,
            held=held,
        )

    return router


async def _guarded(request: Request, call_next: RequestResponseEndpoint) -> Response:
    try:
        response = await call_next(request)
    except Exception as error:  # noqa: BLE001  the boundary: logged, then told as INTERNAL
        error_id = new_id("err")
        _log.error("unexpected error", error_id=error_id, exc_info=error)
        response = _problem(request, PrwError(Code.INTERNAL, f"unexpected error {error_id}"))
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response


async def _on_refusal(request: Request, error: Exception) -> Response:
    if not isinstance(error, PrwError):
        raise error
    return _problem(request, error)


async def _on_database(request: Request, error: Exception) -> Response:
    known = as_prw_error(error) if isinstance(error, psycopg.Error) else None
    if known is None:
        raise error
    _log.warning("the database failed a query", reason=str(error), code=known.code.value)
    return _problem(request, known)


async def _on_invalid(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"][1:])
    return _problem(request, PrwError(Code.VALIDATION_FAILED, str(first["msg"]), field=field))


async def _on_http(request: Request, error: Exception) -> Response:
    """What the router itself refuses: an unknown path, a method that is not allowed."""
    if not isinstance(error, HTTPException):
        raise error
    code = Code.NOT_FOUND if error.status_code == 404 else Code.VALIDATION_FAILED
    problem = PrwError(code, str(error.detail)).problem() | {"status": error.status_code}
    return JSONResponse(problem, error.status_code, dict(error.headers or {}), _PROBLEM_TYPE)


def _problem(request: Request, error: PrwError) -> Response:
    headers = {}
    if error.retryable:
        wait = error.retry_after.total_seconds() if error.retry_after else 1
        headers["Retry-After"] = str(max(1, round(wait)))
    if not request.url.path.startswith("/v1/") and "text/html" in request.headers.get("accept", ""):
        return error_page(error, headers)
    status = TABLE[error.code].http
    return JSONResponse(error.problem(), status, headers, _PROBLEM_TYPE)
