"""Request parsing and response writing that all routes share."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from headrace.errors import StreamsError
from headrace.sql.errors import SqlError
from headrace.sql.server.errors import (
    BAD_REQUEST,
    BAD_STATEMENT,
    NOT_ACCEPTABLE,
    SERVER_ERROR,
    TOO_LARGE,
    RequestError,
)
from headrace.sql.server.session import Session
from headrace.sql.server.settings import check_setting

logger = logging.getLogger(__name__)

V1_JSON = "application/vnd.ksql.v1+json"
DELIMITED = "application/vnd.ksqlapi.delimited.v1"
PROTOBUF = "application/vnd.ksql.v1+protobuf"
JSON = "application/json"

_BODY_BYTES = 16 << 20

Handler = Callable[[Request], Awaitable[Response]]


def answering(handler: Handler) -> Handler:
    """Returns the handler with its errors as answers."""

    async def answered(request: Request) -> Response:
        try:
            return await handler(request)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:
            failure = as_request_error(error)
            return json_response(failure.to_json(), failure.status)

    return answered


def changing(handler: Handler, *, accepts: bool) -> Handler:
    """Returns the handler of what changes something; a server that ``accepts`` nothing refuses it unread."""
    if accepts:
        return handler

    async def refused(_request: Request) -> Response:
        message = "This server runs the statements of a file and takes no others: it is read-only"
        raise RequestError(BAD_REQUEST, message)

    return refused


def as_request_error(error: Exception) -> RequestError:
    """Returns an error as clients know them."""
    match error:
        case RequestError():
            return error
        case SqlError():
            return RequestError(
                BAD_STATEMENT,
                error.message,
                statement=error.statement or "",
                position=error.position,
                excerpt=error.excerpt,
            )
        case StreamsError():
            return RequestError(SERVER_ERROR, str(error))
        case _:
            logger.exception("a request has failed", exc_info=error)
            return RequestError(SERVER_ERROR, f"{type(error).__name__}: {error}")


# Any: what JSON holds.
def json_response(content: Any, status: int = 200, *, media_type: str = V1_JSON) -> Response:
    """Returns an answer."""
    body = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    return Response(body, status, media_type=media_type)


def chosen_media(request: Request, known: Iterable[str], default: str) -> str:
    """Returns the media type that the client likes best of those that there are."""
    accepted: list[tuple[float, str]] = []
    for part in request.headers.get("accept", "*/*").split(","):
        name, *parameters = (each.strip() for each in part.split(";"))
        quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        try:
            accepted.append((float(quality), name.lower()))
        except ValueError:
            raise RequestError(BAD_REQUEST, f"The header Accept is malformed: {part}") from None
    names = list(known)
    for _, name in sorted(accepted, key=lambda each: -each[0]):
        if name in ("*/*", "application/*", ""):
            return default
        if name in names:
            return name
    raise RequestError(NOT_ACCEPTABLE, f"There is no such form of an answer; there are {', '.join(names)}")


async def body_of(request: Request) -> dict[str, Any]:
    """Returns the object that a request sends."""
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > _BODY_BYTES:
            raise RequestError(TOO_LARGE, f"A request may have {_BODY_BYTES} bytes; send statements in several")
    return object_of(b"".join(parts))


def json_value(data: bytes | str, parse_float: Callable[[str], Any] = float) -> Any:
    """Returns what JSON says; raises ``ValueError``, also for half a letter, which no answer could repeat."""
    text = data if isinstance(data, str) else data.decode()
    found = json.loads(text, parse_float=parse_float)
    if "\\ud" in text.lower():
        json.dumps(found, ensure_ascii=False, default=str).encode()
    return found


def object_of(data: bytes | str) -> dict[str, Any]:
    """Returns the object that a text is."""
    try:
        found = json_value(data or b"{}")
    except (ValueError, RecursionError) as error:
        raise RequestError(BAD_REQUEST, f"The request is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise RequestError(BAD_REQUEST, "The request must be a JSON object")
    return found


def text_of(body: dict[str, Any], name: str) -> str:
    """Returns a text that a request must have."""
    found = body.get(name)
    if not isinstance(found, str):
        raise RequestError(BAD_REQUEST, f'The request must have "{name}", a text')
    return found


def mapping_of(body: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns an object that a request may have."""
    found = body.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise RequestError(BAD_REQUEST, f'"{name}" must be an object')
    return found


def session_of(
    body: dict[str, Any], settings: str = "streamsProperties", variables: str = "sessionVariables"
) -> Session:
    """Returns what a request has set."""
    given = mapping_of(body, settings)
    for name, value in given.items():
        check_setting(name, value)
    return Session.of(given, mapping_of(body, variables))
