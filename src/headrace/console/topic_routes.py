"""The topics of a log and their records, as the console asks for them."""

from __future__ import annotations

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from headrace.console.topic_browser import Browser
from headrace.http.handling import answered
from headrace.http.limits import Limits
from headrace.http.parameters import check_names, number
from headrace.views.http.routes import json_response

_RECORD_PARAMETERS = ("partition", "offset", "time_ms", "limit", "key_serde", "value_serde")


class TopicRoutes:
    """HTTP routes of the topic browser."""

    def __init__(self, browser: Browser, limits: Limits) -> None:
        self._browser = browser
        self._limits = limits

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/console/api/topics", answered(self.topics, self._limits.request_seconds)),
            Route("/console/api/topics/{topic}/records", answered(self.records, self._limits.request_seconds)),
        ]

    async def topics(self, request: Request) -> Response:
        check_names(request.query_params, ())
        return json_response(await to_thread.run_sync(self._browser.topics))

    async def records(self, request: Request) -> Response:
        parameters = request.query_params
        check_names(parameters, _RECORD_PARAMETERS)
        limit = number(parameters, "limit", 50, low=1, high=self._limits.page_rows) or 50
        partition = number(parameters, "partition", 0, high=1_000_000) or 0
        offset, time_ms = number(parameters, "offset"), number(parameters, "time_ms")
        return json_response(
            await to_thread.run_sync(
                lambda: self._browser.records(
                    request.path_params["topic"],
                    partition=partition,
                    offset=offset,
                    time_ms=time_ms,
                    limit=limit,
                    key_serde=parameters.get("key_serde", "auto"),
                    value_serde=parameters.get("value_serde", "auto"),
                )
            )
        )
