"""Console API: live state, history, topics, dead-letter queue and late records as JSON."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from headrace.console.dead_letter_queue import read_dead_letters
from headrace.console.live_updates import LiveUpdates
from headrace.console.monitored_application import MonitoredApplication
from headrace.console.recorder import Recorder
from headrace.console.topic_browser import Browser
from headrace.console.topic_routes import TopicRoutes
from headrace.console.topology_topics import TopologyTopics
from headrace.http.handling import answered
from headrace.http.limits import Limits
from headrace.http.parameters import check_names, number
from headrace.views.http.routes import json_response


class ConsoleRoutes:
    """The pages of the console as data."""

    def __init__(self, observed: MonitoredApplication, recorder: Recorder, *, limits: Limits | None = None) -> None:
        self._observed = observed
        self._recorder = recorder
        self._limits = limits or Limits()
        self._live_updates = LiveUpdates(self._now, self._limits)
        browser = Browser(TopologyTopics(observed.topology, observed.config), lambda: observed.log)
        self._topics = TopicRoutes(browser, self._limits)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/console/api/live", answered(self._live_updates.live, self._limits.request_seconds)),
            Route("/console/api/history", answered(self.history, self._limits.request_seconds)),
            *self._topics.routes(),
            Route("/console/api/dead-letters", answered(self.dead_letters, self._limits.request_seconds)),
            Route("/console/api/late", answered(self.late, self._limits.request_seconds)),
        ]

    def _now(self) -> dict[str, Any]:
        return {"application": self._recorder.application(), "nodes": self._recorder.nodes()}

    async def history(self, request: Request) -> Response:
        check_names(request.query_params, ())
        return json_response(self._recorder.history.to_json())

    async def dead_letters(self, request: Request) -> Response:
        check_names(request.query_params, ("limit",))
        configured = self._observed.config.errors_dead_letter_queue_topic_name
        topics = dict.fromkeys(
            (*(() if configured is None else (configured,)), *self._recorder.rejected.dead_letter_topics)
        )
        limit = self._limit(request)
        return json_response(await to_thread.run_sync(read_dead_letters, self._observed.log, tuple(topics), limit))

    async def late(self, request: Request) -> Response:
        check_names(request.query_params, ("limit",))
        return json_response(self._recorder.rejected.late(self._limit(request)))

    def _limit(self, request: Request) -> int:
        return number(request.query_params, "limit", 100, low=1, high=self._limits.page_rows) or 100

    async def close(self) -> None:
        """Ends the streams of all consoles."""
        await self._live_updates.close()
