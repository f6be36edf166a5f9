"""The registry's server, on this machine only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from headrace.devtools.schema_registry.errors import RegistryError
from headrace.devtools.schema_registry.registry import DevelopmentRegistry
from headrace.devtools.schema_registry.routes import error_answer, json_answer, registry_routes
from headrace.http.security import Security
from headrace.http.server import Listening, Server
from headrace.topics.log import TopicLog

NOT_FOR_PRODUCTION = (
    "it is for development, not for production: it has no users, no copies and no modes, and knows rules of "
    "compatibility for Avro only"
)
_MOST_BYTES = 10_000_000


class RegistryServer:
    """A registry for development at a port of this machine; ``user`` is the ``name:password`` that clients must send.

    The log stays open when it is stopped.
    """

    def __init__(self, log: TopicLog, *, port: int = 8081, user: str | None = None) -> None:
        listening = Listening("localhost", port)
        self.registry = DevelopmentRegistry(log)
        self._server = Server(_application(self.registry, user, listening), listening)

    @property
    def url(self) -> str:
        """Where it answers."""
        return self._server.url

    def start(self) -> Self:
        self._server.start()
        return self

    def stop(self) -> None:
        self._server.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.stop()


def _application(registry: DevelopmentRegistry, user: str | None, listening: Listening) -> Starlette:
    application = Starlette(
        routes=registry_routes(registry),
        middleware=[
            Middleware(
                Security,
                token=None,
                user=user,
                hosts=listening.hosts(user),
                body_bytes=_MOST_BYTES,
                answer=_refused,
            )
        ],
        exception_handlers={404: _not_found, 405: _not_found, Exception: _failed},
    )
    application.state.closing = []
    return application


def _refused(status: int, _code: str, message: str, headers: Mapping[str, str] | None) -> Response:
    response = error_answer(RegistryError(status * 100, message))
    response.headers.update(headers or {})
    return response


async def _not_found(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    return json_answer({"error_code": status, "message": f"HTTP {status}: {request.method} {request.url.path}"}, status)


async def _failed(_request: Request, error: Exception) -> Response:
    return json_answer({"error_code": 50001, "message": f"Error in the backend data store: {error}"}, 500)
