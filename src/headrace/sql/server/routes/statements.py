"""``/ksql``, ``/status`` and ``/ksql/terminate``: statements, and what became of them."""

from __future__ import annotations

import re
from datetime import timedelta

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.sql.server.entities.entity import Entity, plain
from headrace.sql.server.entities.status import CommandStatus, CurrentStatus
from headrace.sql.server.errors import BAD_REQUEST, COMMANDS_TIMED_OUT, NOT_FOUND, RequestError
from headrace.sql.server.routes.answers import answering, body_of, changing, json_response, session_of, text_of
from headrace.sql.server.service import SqlService
from headrace.sql.server.session import Session
from headrace.sql.server.statements import Statements

_CATCH_UP = timedelta(seconds=5)


def statement_routes(service: SqlService, statements: Statements, *, accepts: bool = True) -> list[Route]:
    """Returns the routes; a server that ``accepts`` nothing answers that it is headless."""

    async def execute(request: Request) -> Response:
        body = await body_of(request)
        text, session = text_of(body, "ksql"), session_of(body)
        number = body.get("commandSequenceNumber")
        if number is not None and not isinstance(number, int):
            raise RequestError(BAD_REQUEST, '"commandSequenceNumber" must be a whole number')
        entities = await run_in_threadpool(_execute, text, session, number)
        return json_response([entity.to_json() for entity in entities])

    def _execute(text: str, session: Session, number: int | None) -> list[Entity]:
        if number is not None and number >= 0 and not service.wait_for_command(number, _CATCH_UP):
            message = f"Timed out while waiting for a previous command to execute. command sequence number: {number}"
            raise RequestError(COMMANDS_TIMED_OUT, message)
        return statements.run(text, session)

    async def all_statuses(_request: Request) -> Response:
        return json_response({"commandStatuses": {name: each.status for name, each in statements.statuses.items()}})

    async def status(request: Request) -> Response:
        wanted = request.path_params["command"]
        found = statements.statuses.get(wanted)
        if found is None:
            raise RequestError(NOT_FOUND, f"Command not found: {wanted}")
        return json_response(plain(found))

    async def terminate(request: Request) -> Response:
        body = await body_of(request)
        patterns = body.get("deleteTopicList") or []
        if not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
            raise RequestError(BAD_REQUEST, '"deleteTopicList" must be a list of texts')
        entity = await run_in_threadpool(_terminate, patterns)
        return json_response([entity.to_json()])

    def _terminate(patterns: list[str]) -> Entity:
        try:
            wanted = [re.compile(pattern) for pattern in patterns]
        except re.error as error:
            raise RequestError(BAD_REQUEST, f"Invalid pattern: {error}") from error
        sinks = {query.sink_topic for query in service.engine.catalog.queries.values()}
        if service.engine.catalog.queries:
            statements.run("TERMINATE ALL;", Session())
        for topic in sinks:
            if any(pattern.fullmatch(topic) for pattern in wanted):
                service.engine.topics.delete(topic)
        return CurrentStatus(
            statement_text="TERMINATE CLUSTER;",
            command_id="cluster/TerminateCluster/terminate",
            command_status=CommandStatus("QUEUED", "Statement written to command topic"),
            command_sequence_number=service.position - 1,
        )

    return [
        Route("/ksql", answering(changing(execute, accepts=accepts)), methods=["POST"]),
        Route("/ksql/terminate", answering(changing(terminate, accepts=accepts)), methods=["POST"]),
        Route("/status", answering(all_statuses), methods=["GET"]),
        Route("/status/{command:path}", answering(status), methods=["GET"]),
    ]
