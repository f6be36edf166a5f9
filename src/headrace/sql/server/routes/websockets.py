"""``/ws/query``: a query over a websocket: its columns first, then a message for each row."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine

from starlette.concurrency import run_in_threadpool
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from headrace.http.streaming_response import until_gone
from headrace.sql.reading.results import ResultRow
from headrace.sql.server.entities.entity import plain
from headrace.sql.server.entities.schemas import fields_of
from headrace.sql.server.json_rows import row_writer
from headrace.sql.server.printing import Printed
from headrace.sql.server.pump import Pump
from headrace.sql.server.querying import OpenQuery, QueryEndpoint
from headrace.sql.server.routes.answers import as_request_error, object_of, session_of, text_of

_NORMAL, _INVALID, _INTERNAL = 1000, 1003, 1011
_REASON_BYTES = 120
"""What a close message has room for."""


def websocket_routes(endpoint: QueryEndpoint) -> list[WebSocketRoute]:
    """Returns the route."""

    async def query(socket: WebSocket) -> None:
        await socket.accept()
        try:
            body = object_of(socket.query_params.get("request", ""))
            opened = await run_in_threadpool(endpoint.open, text_of(body, "ksql"), session_of(body))
        except Exception as error:
            failure = as_request_error(error)
            await _close(socket, _INVALID if failure.status < 500 else _INTERNAL, failure.message)
            return
        if isinstance(opened, Printed):
            printing = Pump(opened.lines, opened.stopping.set)
            await _send_while_there(socket, _send_lines(socket, printing), printing.close)
        else:
            pump = Pump(opened.rows, lambda: endpoint.closed(opened))
            opened.when_closed(pump.end)
            await _send_while_there(socket, _send_rows(socket, opened, pump), pump.close)

    async def _send_rows(socket: WebSocket, query: OpenQuery, pump: Pump[ResultRow]) -> None:
        write = row_writer(query.schema)
        await socket.send_text(json.dumps(plain(fields_of(query.schema))))
        async for rows in pump.batches():
            for row in rows:
                tombstone = ',"tombstone":true' if row.tombstone else ""
                await socket.send_text(f'{{"row":{{"columns":{write(row.columns)}{tombstone}}}}}')
        if pump.failure is not None:
            await _close(socket, _INTERNAL, as_request_error(pump.failure).message)
            return
        message = query.final_message()
        if message is not None:
            await socket.send_text(json.dumps({"finalMessage": message}))
        await _close(socket, _NORMAL, "done")

    async def _send_lines(socket: WebSocket, pump: Pump[str]) -> None:
        async for lines in pump.batches():
            for line in lines:
                await socket.send_text(line)
        await _close(socket, _NORMAL, "done")

    return [WebSocketRoute("/ws/query", query)]


async def _send_while_there(socket: WebSocket, send: Coroutine[None, None, None], release: Callable[[], None]) -> None:
    """Sends until the end, or until the client has gone: who only sends would hear of that with the next row."""
    sending, reading = asyncio.create_task(send), asyncio.create_task(until_gone(socket))
    try:
        await asyncio.wait({sending, reading}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        release()
        for task in (sending, reading):
            task.cancel()
        failure, _ = await asyncio.gather(sending, reading, return_exceptions=True)
    if isinstance(failure, Exception) and not isinstance(failure, WebSocketDisconnect | RuntimeError):
        raise failure


async def _close(socket: WebSocket, code: int, reason: str) -> None:
    short = reason.encode()[:_REASON_BYTES].decode(errors="ignore")
    await socket.close(code, short)
