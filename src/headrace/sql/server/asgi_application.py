"""The server as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from headrace.http.security import Security
from headrace.sql.server.console.routes import ConsoleRoutes
from headrace.sql.server.errors import NOT_FOUND, RequestError
from headrace.sql.server.querying import QueryEndpoint
from headrace.sql.server.routes.answers import json_response
from headrace.sql.server.routes.information import information_routes
from headrace.sql.server.routes.inserts import insert_routes
from headrace.sql.server.routes.queries import query_routes
from headrace.sql.server.routes.sources import source_routes
from headrace.sql.server.routes.statements import statement_routes
from headrace.sql.server.routes.websockets import websocket_routes
from headrace.sql.server.service import SqlService
from headrace.sql.server.statements import Statements

_STREAM_BYTES = 1 << 62
"""A stream of rows has no end; what is read at once has its limit where it is read."""


class _Closing:
    """Ends open queries when the server stops, so that their answers end."""

    def __init__(self, service: SqlService) -> None:
        self._service = service

    async def close(self) -> None:
        self._service.open_queries.end_all()


def sql_application(
    service: SqlService,
    *,
    token: str | None = None,
    user: str | None = None,
    hosts: Collection[str] | None = None,
    accepts_statements: bool = True,
) -> Starlette:
    """Returns the application; ``token``, ``user``, ``hosts`` say who may call it, see ``headrace.http.security``."""
    statements = Statements(service)
    endpoint = QueryEndpoint(service)
    console = ConsoleRoutes(service, statements, endpoint, accepts=accepts_statements)

    @asynccontextmanager
    async def lifespan(_application: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(service.open_queries.close_all)

    application = Starlette(
        routes=[
            *statement_routes(service, statements, accepts=accepts_statements),
            *query_routes(endpoint),
            *insert_routes(service, statements, accepts=accepts_statements),
            *information_routes(service),
            *source_routes(service),
            *websocket_routes(endpoint),
            *console.routes(),
        ],
        middleware=[
            Middleware(Security, token=token, user=user, hosts=hosts, body_bytes=_STREAM_BYTES, answer=_refusal)
        ],
        exception_handlers={404: _not_found, 405: _not_found},
        lifespan=lifespan,
    )
    application.state.closing = [_Closing(service), console]
    application.state.endpoint = endpoint
    application.state.statements = statements
    return application


def _refusal(status: int, _code: str, message: str, headers: Mapping[str, str] | None) -> Response:
    response = json_response(RequestError(status * 100, message).to_json(), status)
    response.headers.update(headers or {})
    return response


async def _not_found(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    failure = RequestError(NOT_FOUND if status == 404 else 40500, f"{request.method} {request.url.path}: not found")
    return json_response(failure.to_json(), status)
