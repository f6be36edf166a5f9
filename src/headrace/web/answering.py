"""How the console's requests are answered when they fail or take too long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from headrace.query.http.errors import explained, unavailable
from headrace.query.http.limits import Limits

Handler = Callable[[Request], Awaitable[Response]]


def answered(handler: Handler, limits: Limits) -> Handler:
    """Returns the handler with its errors as answers, and an end to its time."""

    async def handle(request: Request) -> Response:
        try:
            async with asyncio.timeout(limits.request_seconds):
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
