"""The server as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from headrace.sql.server.errors import NOT_FOUND, RequestError
from headrace.sql.server.querying import QueryEndpoint
from headrace.sql.server.routes.answers import json_response
from headrace.sql.server.routes.information import information_routes
from headrace.sql.server.routes.inserts import insert_routes
from headrace.sql.server.routes.queries import query_routes
from headrace.sql.server.routes.statements import statement_routes
from headrace.sql.server.routes.websockets import websocket_routes
from headrace.sql.server.service import SqlService
from headrace.sql.server.statements import Statements
from headrace.web.security import Security

_STREAM_BYTES = 1 << 62
"""A stream of rows has no end; what is read at once has its limit where it is read."""


class _Closing:
    """Ends open queries when the server stops."""

    def __init__(self, endpoint: QueryEndpoint) -> None:
        self._endpoint = endpoint

    async def close(self) -> None:
        self._endpoint.close_all()


def sql_application(
    service: SqlService,
    *,
    token: str | None = None,
    hosts: Collection[str] | None = None,
    accepts_statements: bool = True,
) -> Starlette:
    """Returns the application; ``token`` and ``hosts`` say who may call it, see ``headrace.web.security``."""
    statements = Statements(service)
    endpoint = QueryEndpoint(service)

    @asynccontextmanager
    async def lifespan(_application: Starlette) -> AsyncIterator[None]:
        yield
        endpoint.close_all()

    application = Starlette(
        routes=[
            *statement_routes(service, statements, accepts=accepts_statements),
            *query_routes(endpoint),
            *insert_routes(service, statements),
            *information_routes(service),
            *websocket_routes(endpoint),
        ],
        middleware=[Middleware(Security, token=token, hosts=hosts, body_bytes=_STREAM_BYTES)],
        exception_handlers={404: _not_found, 405: _not_found},
        lifespan=lifespan,
    )
    application.state.closing = [_Closing(endpoint)]
    application.state.endpoint = endpoint
    application.state.statements = statements
    return application


async def _not_found(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    failure = RequestError(NOT_FOUND if status == 404 else 40500, f"{request.method} {request.url.path}: not found")
    return json_response(failure.to_json(), status)
