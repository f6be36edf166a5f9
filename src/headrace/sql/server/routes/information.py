"""Information routes: ``/info``, ``/healthcheck``, ``/clusterStatus``, ``/v1/metadata`` and more."""

from __future__ import annotations

import time

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from headrace.errors import StreamsError
from headrace.sql.hosting.progress import unread
from headrace.sql.hosting.streams_host import application_id
from headrace.sql.server.errors import BAD_REQUEST, RequestError
from headrace.sql.server.routes.answers import V1_JSON, answering, body_of, json_response
from headrace.sql.server.service import SqlService
from headrace.sql.server.settings import is_editable, is_known, refusal

_COMPATIBLE = "8.5.0"
"""The version of ksqlDB whose clients this server is for: some look at it."""


def information_routes(service: SqlService) -> list[Route]:
    """Returns the routes."""

    async def root(request: Request) -> Response:
        # Who asks for a page is a person; clients of ksqlDB do not.
        is_browser = "text/html" in request.headers.get("accept", "")
        return RedirectResponse("/console/" if is_browser else "/info", status_code=307)

    async def info(_request: Request) -> Response:
        content = {
            "version": _COMPATIBLE,
            "kafkaClusterId": "headrace",
            "ksqlServiceId": service.service_id,
            "serverStatus": "RUNNING",
        }
        return json_response({"KsqlServerInfo": content})

    async def health(_request: Request) -> Response:
        content = await run_in_threadpool(_health)
        return json_response(content, 200 if content["isHealthy"] else 503)

    def _health() -> dict[str, object]:
        try:
            service.log.topics()
            has_log = True
        except StreamsError:
            has_log = False
        follows = bool(service.figures()["following"])
        details = {
            "metastore": {"isHealthy": True},
            "kafka": {"isHealthy": has_log},
            "commandRunner": {"isHealthy": follows},
        }
        return {"isHealthy": has_log and follows, "details": details, "serverState": "READY"}

    async def valid_property(request: Request) -> Response:
        name = request.path_params["name"]
        if not (is_known(name) and is_editable(name)):
            raise RequestError(BAD_REQUEST, refusal(name, None) or f"Cannot override property '{name}'")
        return Response("true", media_type=V1_JSON)

    async def metadata(_request: Request) -> Response:
        return json_response({"version": _COMPATIBLE, "clusterId": _cluster()})

    async def metadata_id(_request: Request) -> Response:
        return json_response(_cluster())

    def _cluster() -> dict[str, object]:
        scope = {"path": [], "clusters": {"kafka-cluster": "headrace", "ksql-cluster": service.service_id}}
        return {"scope": scope, "id": ""}

    async def cluster(request: Request) -> Response:
        status = await run_in_threadpool(_cluster_status, request.url.netloc)
        return json_response({"clusterStatus": status})

    def _cluster_status(host: str) -> dict[str, object]:
        lags: dict[str, object] = {}
        for query in service.engine.catalog.queries.values():
            waiting = unread(service.log, application_id(service.service_id, query.id), query.source_topics)
            lags[query.id] = {"lagByPartition": {}, "unread": waiting}
        own = {
            "hostAlive": True,
            "lastStatusUpdateMs": time.time_ns() // 1_000_000,
            "activeStandbyPerQuery": {},
            "hostStoreLags": {"stateStoreLags": lags, "updateTimeMs": time.time_ns() // 1_000_000},
        }
        return {host: own}

    async def accepted(request: Request) -> Response:
        await body_of(request)
        return json_response({"isOk": True})

    async def probe(_request: Request) -> Response:
        return json_response({})

    return [
        Route("/", answering(root), methods=["GET"]),
        Route("/info", answering(info), methods=["GET"]),
        Route("/healthcheck", answering(health), methods=["GET"]),
        Route("/is_valid_property/{name}", answering(valid_property), methods=["GET"]),
        Route("/v1/metadata", answering(metadata), methods=["GET"]),
        Route("/v1/metadata/id", answering(metadata_id), methods=["GET"]),
        Route("/clusterStatus", answering(cluster), methods=["GET"]),
        Route("/heartbeat", answering(accepted), methods=["POST"]),
        Route("/lag", answering(accepted), methods=["POST"]),
        Route("/chc/live", answering(probe), methods=["GET"]),
        Route("/chc/ready", answering(probe), methods=["GET"]),
    ]
