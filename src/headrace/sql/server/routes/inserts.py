"""``/inserts-stream``: rows as lines of JSON, each with an answer of its own, in lines or in one array."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from headrace.sql.catalog import SourceDefinition
from headrace.sql.errors import SqlError
from headrace.sql.insert_values import insert_target
from headrace.sql.server.errors import BAD_REQUEST, BAD_STATEMENT, RequestError
from headrace.sql.server.inserting_rows import row_record
from headrace.sql.server.routes.answers import (
    DELIMITED,
    JSON,
    V1_JSON,
    answering,
    as_request_error,
    changing,
    chosen_media,
    json_value,
    object_of,
    session_of,
    text_of,
)
from headrace.sql.server.service import SqlService
from headrace.sql.server.session import Session
from headrace.sql.server.statements import Statements

logger = logging.getLogger(__name__)

_LONGEST_LINE = 1 << 20


def insert_routes(service: SqlService, statements: Statements, *, accepts: bool = True) -> list[Route]:
    """Returns the route; a server that ``accepts`` nothing answers that it is headless."""

    async def inserts(request: Request) -> Response:
        media = chosen_media(request, (DELIMITED, JSON, V1_JSON), DELIMITED)
        lines = _lines(request)
        try:
            first = await anext(lines)
        except StopAsyncIteration:
            raise RequestError(BAD_REQUEST, 'The first line must be an object with "target"') from None
        begun = object_of(first)
        session = session_of(begun, "properties")
        target = await run_in_threadpool(_target, text_of(begun, "target"))
        answers = _answers(lines, target, session)
        written = _as_lines(answers) if media == DELIMITED else _as_array(answers)
        return _Answers(written, media_type=media)

    def _target(name: str) -> SourceDefinition:
        service.catch_up()
        is_quoted = len(name) > 1 and name[0] == name[-1] and name[0] in '`"'
        try:
            return insert_target(name[1:-1] if is_quoted else name.upper(), service.engine.catalog)
        except SqlError as error:
            raise RequestError(BAD_STATEMENT, error.message) from error

    async def _answers(lines: AsyncIterator[bytes], target: SourceDefinition, session: Session) -> AsyncIterator[str]:
        sequence = 0
        async for line in lines:
            try:
                await run_in_threadpool(_insert, line, target, session)
                answer: dict[str, Any] = {"status": "ok", "seq": sequence}
            except Exception as error:
                failure = as_request_error(error)
                answer = {
                    "status": "error",
                    "seq": sequence,
                    "error_code": failure.code,
                    "message": failure.message,
                }
            yield json.dumps(answer, separators=(",", ":"))
            sequence += 1

    def _insert(line: bytes, target: SourceDefinition, session: Session) -> None:
        try:
            row = json_value(line, parse_float=Decimal)
        except (ValueError, RecursionError) as error:
            raise RequestError(BAD_REQUEST, f"The row is no JSON: {error}") from error
        if not isinstance(row, dict):
            raise RequestError(BAD_REQUEST, "A row must be a JSON object")
        engine = service.engine
        try:
            record = row_record(row, target, engine.functions, service.settings(session.settings))
        except SqlError as error:
            raise RequestError(BAD_REQUEST, error.message) from error
        statements.write(record)

    return [Route("/inserts-stream", answering(changing(inserts, accepts=accepts)), methods=["POST"])]


async def _as_lines(answers: AsyncIterator[str]) -> AsyncIterator[str]:
    async for answer in answers:
        yield f"{answer}\n"


async def _as_array(answers: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yields one JSON array, an answer at a time."""
    before = "["
    async for answer in answers:
        yield f"{before}{answer}"
        before = ",\n"
    yield "[]" if before == "[" else "]"


class _Answers(StreamingResponse):
    """Leaves the rest of the request to what makes the answer of it; waiting for the client to go would eat rows."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.stream_response(send)
        except ClientDisconnect:
            logger.debug("a client that inserts rows has gone")


async def _lines(request: Request) -> AsyncIterator[bytes]:
    """Yields the lines of a body that may never end."""
    waiting = b""
    async for piece in request.stream():
        waiting += piece
        *whole, waiting = waiting.split(b"\n")
        for line in whole:
            if line.strip():
                yield line
        if len(waiting) > _LONGEST_LINE:
            raise RequestError(BAD_REQUEST, f"A line may have {_LONGEST_LINE} bytes")
    if waiting.strip():
        yield waiting
