"""Event streams and websockets: cleanup when a client has gone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect


class HeldResponse(StreamingResponse):
    """A stream that holds something: ``release`` is called when it is over, also if its client left before it began.

    ``release`` may be called for what was given back already.
    """

    def __init__(
        self,
        content: AsyncIterator[bytes] | AsyncIterator[str],
        release: Callable[[], None],
        *,
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(content, media_type=media_type, headers=headers)
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()


async def until_gone(socket: WebSocket) -> None:
    """Reads what a client sends, which is nothing that matters, until it leaves."""
    try:
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass
    except (WebSocketDisconnect, RuntimeError):
        return
