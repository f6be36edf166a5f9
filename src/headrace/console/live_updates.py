"""Live updates of open consoles: the current state of the application as server-sent events, once a second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from headrace.http.errors import unavailable
from headrace.http.json_values import to_json
from headrace.http.limits import Limits
from headrace.http.parameters import check_names

_BEAT_SECONDS = 1.0


class LiveUpdates:
    """A stream of events for each console. ``now`` is called in a thread, because it may ask the log."""

    # Any: what JSON holds.
    def __init__(self, now: Callable[[], dict[str, Any]], limits: Limits) -> None:
        self._now = now
        self._limits = limits
        self._watchers = 0
        self._stopping: asyncio.Event | None = None
        self._closed = False

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
                    yield f"data: {to_json(await to_thread.run_sync(self._now))}\n\n".encode()
                    try:
                        await asyncio.wait_for(stopping.wait(), _BEAT_SECONDS)
                    except TimeoutError:
                        continue
            finally:
                self._watchers -= 1

        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(events(), media_type="text/event-stream", headers=headers)

    async def close(self) -> None:
        """Ends the streams of all consoles."""
        self._closed = True
        if self._stopping is not None:
            self._stopping.set()
