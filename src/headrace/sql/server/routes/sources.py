"""``/headrace/sources``: streams and tables with all that it takes to read their topics, and where the log is."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.sql.catalog.source_json import Json, ReadableSource
from headrace.sql.server.routes.answers import JSON, answering, json_response
from headrace.sql.server.service import SqlService
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.log import TopicLog

PATH = "/headrace/sources"


def source_routes(service: SqlService) -> list[Route]:
    """Returns the route."""

    async def sources(_request: Request) -> Response:
        return json_response(await run_in_threadpool(_sources), media_type=JSON)

    def _sources() -> Json:
        catalog = service.engine.catalog
        found = (ReadableSource.of(source, catalog) for _, source in sorted(catalog.sources.items()))
        return {"log": _place(service.log), "sources": [each.to_json() for each in found]}

    return [Route(PATH, answering(sources), methods=["GET"])]


def _place(log: TopicLog) -> Json:
    if isinstance(log, EmbeddedLog):
        return {"log.dir": log.directory}
    return {"bootstrap.servers": getattr(log, "bootstrap_servers", None)}
