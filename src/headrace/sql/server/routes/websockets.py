"""``/ws/query``: a query over a websocket: its columns first, then a message for each row."""

from __future__ import annotations

import json
from contextlib import suppress

from starlette.concurrency import run_in_threadpool
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from headrace.sql.server.entities.entity import plain
from headrace.sql.server.entities.schemas import fields_of
from headrace.sql.server.printing import Printed
from headrace.sql.server.pump import Pump
from headrace.sql.server.querying import OpenQuery, QueryEndpoint
from headrace.sql.server.routes.answers import as_request_error, object_of, session_of, text_of
from headrace.sql.server.rows import row_writer

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
        with suppress(WebSocketDisconnect, RuntimeError):
            if isinstance(opened, Printed):
                await _send_lines(socket, opened)
            else:
                await _send_rows(socket, opened)

    async def _send_rows(socket: WebSocket, query: OpenQuery) -> None:
        pump = Pump(query.rows, lambda: endpoint.closed(query))
        query.when_closed(pump.end)
        try:
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
        finally:
            pump.close()

    async def _send_lines(socket: WebSocket, printed: Printed) -> None:
        pump = Pump(printed.lines, printed.stopping.set)
        try:
            async for lines in pump.batches():
                for line in lines:
                    await socket.send_text(line)
            await _close(socket, _NORMAL, "done")
        finally:
            pump.close()

    return [WebSocketRoute("/ws/query", query)]


async def _close(socket: WebSocket, code: int, reason: str) -> None:
    short = reason.encode()[:_REASON_BYTES].decode(errors="ignore")
    await socket.close(code, short)
