"""Health routes: liveness, readiness, metrics, topology."""

from __future__ import annotations

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from headrace.console.monitored_application import MonitoredApplication
from headrace.console.recorder import Recorder
from headrace.console.stall_detection import STOPPED
from headrace.console.topology_json import topology_json
from headrace.metrics.prometheus import CONTENT_TYPE, prometheus_text
from headrace.views.http.routes import json_response


class HealthRoutes:
    """For machines that watch: load balancers, schedulers, Prometheus."""

    def __init__(self, observed: MonitoredApplication, recorder: Recorder) -> None:
        self._observed = observed
        self._recorder = recorder

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/healthz", self.health),
            Route("/readyz", self.ready),
            Route("/metrics", self.metrics),
            Route("/topology", self.topology),
        ]

    async def health(self, request: Request) -> Response:
        """Whether it is worth while to wait: an application that has failed for good is not healthy."""
        state = self._observed.state_name
        healthy = state not in STOPPED
        return json_response({"status": "ok" if healthy else "failed", "state": state}, 200 if healthy else 503)

    async def ready(self, request: Request) -> Response:
        """Whether it does its work now; the reasons if not."""
        stall = self._recorder.stall()
        if stall is None or stall.is_healthy:
            reasons = [] if stall is None else [{"reason": stall.reason, "message": stall.text}]
            return json_response({"status": "ready", "reasons": reasons})
        reason = {"reason": stall.reason, "since_ms": stall.since_ms, "message": stall.text}
        return json_response({"status": "not-ready", "reasons": [reason]}, 503, {"Retry-After": "5"})

    async def metrics(self, request: Request) -> Response:
        text = prometheus_text(self._recorder.metrics())
        return PlainTextResponse(text, headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})

    async def topology(self, request: Request) -> Response:
        observed, application = self._observed, self._observed.config.application_id
        found = await to_thread.run_sync(topology_json, observed.topology, application, lambda: observed.log)
        return json_response(found)
