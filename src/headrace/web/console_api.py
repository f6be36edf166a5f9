"""What the console asks for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from headrace.query.http.errors import explained, unavailable
from headrace.query.http.limits import Limits
from headrace.query.http.parameters import check_names, number
from headrace.query.http.routes import json_response
from headrace.query.http.values import to_json
from headrace.web.browsing import Browser
from headrace.web.letters import read_letters
from headrace.web.observed import Observed
from headrace.web.recorder import Recorder

_BEAT_SECONDS = 1.0
_RECORD_PARAMETERS = ("partition", "offset", "time_ms", "limit", "key_serde", "value_serde")

Handler = Callable[[Request], Awaitable[Response]]


class ConsoleRoutes:
    """The pages of the console as data."""

    def __init__(self, observed: Observed, recorder: Recorder, *, limits: Limits | None = None) -> None:
        self._observed = observed
        self._recorder = recorder
        self._limits = limits or Limits()
        self._browser = Browser(observed.topology, observed.config, lambda: observed.log)
        self._watchers = 0
        self._stopping: asyncio.Event | None = None
        self._closed = False

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/console/api/live", self._handled(self.live)),
            Route("/console/api/history", self._handled(self.history)),
            Route("/console/api/topics", self._handled(self.topics)),
            Route("/console/api/topics/{topic}/records", self._handled(self.records)),
            Route("/console/api/letters", self._handled(self.letters)),
        ]

    def _handled(self, handler: Handler) -> Handler:
        async def handle(request: Request) -> Response:
            try:
                async with asyncio.timeout(self._limits.request_seconds):
                    return await handler(request)
            except TimeoutError:
                slow = "the log took too long to answer; ask again"
                return unavailable(slow, "too-slow").response()
            except Exception as error:
                known = explained(error)
                if known is None:
                    raise
                return known.response()

        return handle

    async def live(self, request: Request) -> Response:
        check_names(request.query_params, ())
        if self._watchers >= self._limits.subscribers:
            message = f"{self._watchers} consoles are open already, and that is the limit; try again later"
            raise unavailable(message, "too-many-subscribers")
        self._stopping = self._stopping or asyncio.Event()
        stopping = self._stopping

        async def events() -> AsyncIterator[bytes]:
            self._watchers += 1
            try:
                while not self._closed:
                    yield f"data: {to_json(self._now())}\n\n".encode()
                    try:
                        await asyncio.wait_for(stopping.wait(), _BEAT_SECONDS)
                    except TimeoutError:
                        continue
            finally:
                self._watchers -= 1

        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(events(), media_type="text/event-stream", headers=headers)

    def _now(self) -> dict[str, Any]:
        return {"application": self._recorder.application(), "nodes": self._recorder.nodes()}

    async def history(self, request: Request) -> Response:
        check_names(request.query_params, ())
        return json_response(self._recorder.history.to_json())

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

    async def letters(self, request: Request) -> Response:
        check_names(request.query_params, ("limit",))
        limit = number(request.query_params, "limit", 100, low=1, high=self._limits.page_rows) or 100
        topic = self._observed.config.errors_dead_letter_queue_topic_name
        return json_response(await to_thread.run_sync(read_letters, self._observed.log, topic, limit))

    async def close(self) -> None:
        """Ends the streams of all consoles."""
        self._closed = True
        if self._stopping is not None:
            self._stopping.set()
