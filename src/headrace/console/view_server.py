"""Web server of a process that only keeps views: stores, their changes, and its own health."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.console.asgi_application import make_application
from headrace.http.server import Listening, Server
from headrace.metrics.names import STATE, MetricName, Metrics
from headrace.metrics.prometheus import CONTENT_TYPE, prometheus_text
from headrace.topics.log import TopicLog
from headrace.views.http.routes import json_response
from headrace.views.metadata import HostInfo
from headrace.views.view_node import ViewNode, key_metadata
from headrace.views.viewed_stores import task_name
from headrace.views.views import Views

logger = logging.getLogger(__name__)


class NodeInstance:
    """A process that keeps views, as the HTTP routes see it; see ``Instance``."""

    def __init__(self, node: ViewNode) -> None:
        self._node = node

    def views(self) -> Views:
        return self._node.views

    @property
    def log(self) -> TopicLog:
        return self._node.log

    @property
    def host(self) -> HostInfo:
        return self._node.host

    def is_active(self, store: str, partition: int) -> bool:
        viewed = self._node.views.viewed(store)
        return viewed.is_global or self._node.is_active(task_name(viewed, partition))

    def holders(self, store: str, partition: int) -> Sequence[HostInfo]:
        viewed = self._node.views.viewed(store)
        found = key_metadata(self._node.members(), viewed, partition, self._node.config.num_standby_replicas)
        hosts = [found.active_host, *sorted(found.standby_hosts)]
        return [host for host in hosts if host not in (self._node.host, HostInfo.unavailable())]


def serve(node: ViewNode) -> str:
    """Serves a node where its settings say, else at any free port of this machine; returns the address."""
    server = serve_views(node)
    return f"{server.host}:{server.port}"


def serve_views(node: ViewNode) -> Server:
    """Starts the server of a node, and returns it."""
    config = node.config
    listening = Listening.of(config.http_listen or "localhost:0", config)
    application = make_application(
        NodeInstance(node),
        token=config.http_token,
        listening=listening,
        further=_Health(node).routes(),
    )
    server = Server(application, listening, formatter=config.http_formatter)
    if (danger := listening.exposure(config.http_token)) is not None:
        logger.warning("%s: %s", server.url, danger)
    server.start()
    return server


class _Health:
    def __init__(self, node: ViewNode) -> None:
        self._node = node

    def routes(self) -> list[Route]:
        return [
            Route("/healthz", self.health),
            Route("/readyz", self.ready),
            Route("/metrics", self.metrics),
        ]

    async def health(self, request: Request) -> Response:
        failed = self._node.views.has_failed
        return json_response({"status": "failed" if failed else "ok"}, 503 if failed else 200)

    async def ready(self, request: Request) -> Response:
        """It is ready when it has caught up with all that it keeps."""
        tasks = sorted(self._node.assigned)
        behind = [task for task in tasks if not self._node.views.is_ready(task)]
        if not behind:
            return json_response({"status": "ready", "reasons": [], "tasks": tasks})
        reason = {"reason": "catching-up", "message": f"tasks {', '.join(behind)} are being read"}
        return json_response({"status": "not-ready", "reasons": [reason]}, 503, {"Retry-After": "1"})

    async def metrics(self, request: Request) -> Response:
        member = (("client-id", self._node.id),)
        values = {
            MetricName("view-records-lag", STATE, (*member, ("task-id", task))): lag
            for task, lag in self._node.views.held_tasks().items()
        }
        return Response(prometheus_text(Metrics(values, {})), headers={"Content-Type": CONTENT_TYPE})
