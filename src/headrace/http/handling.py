"""Request handling: every request gets an answer, errors become responses, and time is limited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from headrace.http.errors import explained, unavailable

Handler = Callable[[Request], Awaitable[Response]]


def answered(handler: Handler, seconds: float, slow: str = "the log took too long to answer; ask again") -> Handler:
    """Returns the handler with its errors as answers; ``slow`` is said when the time is over."""

    async def handle(request: Request) -> Response:
        try:
            async with asyncio.timeout(seconds):
                return await handler(request)
        except TimeoutError:
            return unavailable(slow, "too-slow").response()
        except Exception as error:
            known = explained(error)
            if known is None:
                raise
            return known.response()

    return handle
