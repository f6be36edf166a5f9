"""HTTP routes of the console."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from headrace.console.assets import Assets
from headrace.console.live_updates import LiveUpdates
from headrace.console.topic_browser import Browser
from headrace.console.topic_routes import TopicRoutes
from headrace.http.handling import answered
from headrace.http.json_values import to_json
from headrace.http.limits import Limits
from headrace.http.streaming_response import HeldResponse
from headrace.sql.server.console.script import Event, Script
from headrace.sql.server.console.server_view import Watching
from headrace.sql.server.console.topics import CatalogTopics
from headrace.sql.server.pump import Pump
from headrace.sql.server.querying import QueryEndpoint
from headrace.sql.server.routes.answers import JSON, answering, body_of, json_response, session_of, text_of
from headrace.sql.server.service import SqlService
from headrace.sql.server.statements import Statements


class ConsoleRoutes:
    """The page, and what it asks for."""

    def __init__(
        self, service: SqlService, statements: Statements, endpoint: QueryEndpoint, *, accepts: bool = True
    ) -> None:
        self._statements = statements
        self._endpoint = endpoint
        self._accepts = accepts
        self._limits = Limits()
        self._watching = Watching(service, accepts=accepts)
        self._live_updates = LiveUpdates(self._watching.now, self._limits)
        browser = Browser(CatalogTopics(lambda: service.engine.catalog), lambda: service.log)
        self._topics = TopicRoutes(browser, self._limits)

    def routes(self) -> list[BaseRoute]:
        return [
            *Assets("sql.html").routes(),
            Route(
                "/console/api/live", answered(self._live_updates.live, self._limits.request_seconds), methods=["GET"]
            ),
            Route("/console/api/catalog", answering(self.catalog), methods=["GET"]),
            Route("/console/api/queries/{query:path}", answering(self.query), methods=["GET"]),
            Route("/console/api/run", answering(self.run), methods=["POST"]),
            *self._topics.routes(),
        ]

    async def catalog(self, _request: Request) -> Response:
        return json_response(await run_in_threadpool(self._watching.catalog), media_type=JSON)

    async def query(self, request: Request) -> Response:
        found = await run_in_threadpool(self._watching.query, request.path_params["query"])
        return json_response(found, media_type=JSON)

    async def run(self, request: Request) -> Response:
        """Carries out a text; the answer is a line of JSON for each event, and ends a query when nobody reads it."""
        body = await body_of(request)
        text, session = text_of(body, "sql"), session_of(body, "settings", "variables")
        script = Script(text, session, self._statements, self._endpoint, accepts=self._accepts)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        pump = Pump(script.events(), script.stop)
        script.when_ended_elsewhere(pump.end)
        return HeldResponse(_lines(script, pump), pump.close, media_type="application/x-ndjson", headers=headers)

    async def close(self) -> None:
        """Ends the streams of all pages."""
        await self._live_updates.close()


async def _lines(script: Script, pump: Pump[Event]) -> AsyncIterator[str]:
    async for events in pump.batches():
        yield "".join(f"{to_json(event)}\n" for event in events)
    for event in script.last_events():
        yield f"{to_json(event)}\n"
