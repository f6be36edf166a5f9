"""All that one instance serves, as one ASGI application."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from headrace.console.assets import Assets
from headrace.console.console_routes import ConsoleRoutes
from headrace.console.health import HealthRoutes
from headrace.console.monitored_application import MonitoredApplication
from headrace.console.openapi import openapi
from headrace.console.recorder import Recorder
from headrace.http.errors import error_response
from headrace.http.limits import Limits
from headrace.http.security import Security
from headrace.http.server import Listening
from headrace.views.http.instance import Instance
from headrace.views.http.routes import StoreRoutes, json_response

logger = logging.getLogger(__name__)


def make_application(
    instance: Instance | None,
    observed: MonitoredApplication | None = None,
    recorder: Recorder | None = None,
    *,
    token: str | None = None,
    listening: Listening | None = None,
    limits: Limits | None = None,
    further: Collection[BaseRoute] = (),
) -> Starlette:
    """Returns what a server serves: the stores of an instance, and the console of an application that is observed.

    ``listening`` is where the server listens: by which names it may be called, and whether others are asked by TLS.
    """
    limits = limits or Limits()
    routes: list[BaseRoute] = list(further)
    closing: list[StoreRoutes | ConsoleRoutes] = []
    if instance is not None:
        tls = None if listening is None else listening.client_context()
        stores = StoreRoutes(instance, limits=limits, token=token, tls=tls)
        routes += stores.routes()
        closing.append(stores)
    if observed is not None and recorder is not None:
        console = ConsoleRoutes(observed, recorder, limits=limits)
        assets = Assets()
        routes += [*HealthRoutes(observed, recorder).routes(), *console.routes()]
        routes += [Route("/", assets.root), *assets.routes()]
        closing.append(console)

    hosts = None if listening is None else listening.hosts(token)
    own_address = None if instance is None else (lambda: instance.host.address)

    async def description(request: Request) -> Response:
        return json_response(openapi(routes))

    routes.append(Route("/openapi.json", description))

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        for each in closing:
            await each.close()

    application = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[
            Middleware(Security, token=token, hosts=hosts, body_bytes=limits.body_bytes, own_address=own_address)
        ],
        exception_handlers={HTTPException: _error_answer, Exception: _failed},
    )
    application.router.redirect_slashes = False
    # Streams must end before a server waits for its requests, which is before the lifespan does.
    application.state.closing = closing
    return application


async def _error_answer(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "registered for these"
    code = {404: "not-found", 405: "method-not-allowed"}.get(error.status_code, "refused")
    texts = {404: "there is nothing at this address; see /openapi.json", 405: "this address answers GET only"}
    return error_response(error.status_code, code, texts.get(error.status_code, error.detail), error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return error_response(500, "internal", "this did not work; the log of the application says why")
