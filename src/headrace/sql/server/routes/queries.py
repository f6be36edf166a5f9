"""``/query``, ``/query-stream`` and ``/close-query``: rows as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.http.streaming_response import HeldResponse
from headrace.sql.reading.results import ResultRow
from headrace.sql.server.errors import NOT_ACCEPTABLE, RequestError
from headrace.sql.server.printing import Printed
from headrace.sql.server.pump import Pump
from headrace.sql.server.querying import OpenQuery, QueryEndpoint
from headrace.sql.server.routes.answers import (
    DELIMITED,
    JSON,
    PROTOBUF,
    V1_JSON,
    answering,
    as_request_error,
    body_of,
    chosen_media,
    json_response,
    session_of,
    text_of,
)
from headrace.sql.server.streaming import Delimited, JsonArray, RowFormat, StreamedProtobuf, StreamedRows

_FORMATS: dict[str, Callable[[OpenQuery], RowFormat]] = {
    V1_JSON: StreamedRows,
    PROTOBUF: StreamedProtobuf,
    DELIMITED: Delimited,
    JSON: JsonArray,
}


def query_routes(endpoint: QueryEndpoint) -> list[Route]:
    """Returns the routes."""

    async def query(request: Request) -> Response:
        body = await body_of(request)
        text, session = text_of(body, "ksql"), session_of(body)
        # Here plain JSON is the shape that the route has always had.
        media = chosen_media(request, _FORMATS, V1_JSON)
        media = V1_JSON if media == JSON else media
        return _stream_response(await run_in_threadpool(endpoint.open, text, session), media)

    async def query_stream(request: Request) -> Response:
        body = await body_of(request)
        text, session = text_of(body, "sql"), session_of(body, "properties")
        media = chosen_media(request, _FORMATS, DELIMITED)
        opened = await run_in_threadpool(endpoint.open, text, session)
        if isinstance(opened, Printed) and media != DELIMITED:
            opened.stopping.set()
            raise RequestError(NOT_ACCEPTABLE, f"PRINT is answered as {DELIMITED} only")
        return _stream_response(opened, media)

    def _stream_response(opened: OpenQuery | Printed, media: str) -> Response:
        if isinstance(opened, Printed):
            printing = Pump(opened.lines, opened.stopping.set)
            return HeldResponse(_lines(printing), printing.close, media_type="text/plain")
        try:
            written = _FORMATS[media](opened)
        except BaseException:
            endpoint.closed(opened)
            raise
        pump = Pump(opened.rows, lambda: endpoint.closed(opened))
        opened.when_closed(pump.end)
        return HeldResponse(_rows(opened, pump, written), pump.close, media_type=written.media_type)

    async def _rows(query: OpenQuery, pump: Pump[ResultRow], written: RowFormat) -> AsyncIterator[str]:
        yield written.begin()
        # Clients of ksqlDB take each piece of a push query's lines for a row, as its own server sends them.
        is_by_row = query.is_push and written.media_type == DELIMITED
        async for rows in pump.batches():
            for piece in ([row] for row in rows) if is_by_row else (rows,):
                if text := written.rows(piece):
                    yield text
        if pump.failure is not None:
            yield written.failed(as_request_error(pump.failure))
        else:
            yield written.end(query.final_message())

    async def _lines(pump: Pump[str]) -> AsyncIterator[str]:
        async for lines in pump.batches():
            yield "".join(f"{line}\n" for line in lines)

    async def close_query(request: Request) -> Response:
        await run_in_threadpool(endpoint.close, text_of(await body_of(request), "queryId"))
        return json_response({})

    return [
        Route("/query", answering(query), methods=["POST"]),
        Route("/query-stream", answering(query_stream), methods=["POST"]),
        Route("/close-query", answering(close_query), methods=["POST"]),
    ]
