"""Error responses: HTTP status, a code for programs and a sentence for people."""

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.responses import Response

from headrace.errors import (
    DeserializationError,
    InvalidStateStoreError,
    InvalidStateStorePartitionError,
    SerializationError,
    StateStoreMigratedError,
    StreamsError,
    StreamsNotStartedError,
    StreamsRebalancingError,
    StreamsStoppedError,
    UnknownStateStoreError,
    UnknownTopicError,
)

_RETRY = {"Retry-After": "1"}


class RequestError(Exception):
    """An answer that is an error: its status, a code for programs and a sentence for people."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})

    def response(self) -> Response:
        return error_response(self.status, self.code, self.message, self.headers)


def error_response(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Returns the one shape that all errors have."""
    body = json.dumps({"error": {"code": code, "message": message}})
    return Response(body, status, dict(headers or {}), media_type="application/json")


def bad_request(message: str, code: str) -> RequestError:
    """Returns the error for a wrong request, 400."""
    return RequestError(400, code, message)


def unavailable(message: str, code: str) -> RequestError:
    """Returns the error for a temporary condition, 503 with ``Retry-After``."""
    return RequestError(503, code, message, _RETRY)


def explained(error: Exception) -> RequestError | None:
    """Returns the error response for an exception of Headrace; None for any other."""
    match error:
        case RequestError():
            return error
        case UnknownStateStoreError():
            return RequestError(404, "unknown-store", str(error))
        case UnknownTopicError():
            return RequestError(404, "unknown-topic", str(error))
        case InvalidStateStorePartitionError():
            return bad_request(str(error), "bad-partition")
        case StreamsRebalancingError() | StateStoreMigratedError() | StreamsNotStartedError() | StreamsStoppedError():
            return unavailable(str(error), "not-available")
        case InvalidStateStoreError():
            return unavailable(str(error), "store-failed")
        case SerializationError() | DeserializationError():
            return bad_request(str(error), "bad-value")
        case StreamsError() | OSError():
            return unavailable(str(error), "failed")
    return None
