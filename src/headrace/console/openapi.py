"""OpenAPI description of the routes, for programs and generators of clients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from starlette.routing import BaseRoute, Route

_TIME = {"type": "integer", "minimum": 0, "maximum": (1 << 63) - 1}
_NAME = {"type": "string", "minLength": 1}


def _param(where: str, name: str, schema: dict[str, Any], text: str, *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": where, "required": required or where == "path", "schema": schema, "description": text}


_STORE = _param("path", "store", _NAME, "Name of a store")
_LIMIT = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
_TIMES = [
    _param("query", "time_from_ms", _TIME, "Windows and versions from this time on"),
    _param("query", "time_to_ms", _TIME, "Windows and versions up to this time"),
]
_BOUND = [
    _param(
        "header", "Headrace-Position", {"type": "string"}, "JSON of offsets by topic: the answer must have seen them"
    ),
    _param(
        "query", "wait_ms", {"type": "integer", "minimum": 0, "maximum": 30000}, "How long to wait for the position"
    ),
]
_PARTITION = _param("query", "partition", {"type": "integer", "minimum": -1}, "Only this partition")

_ANY: dict[str, Any] = {}
_MAYBE_NUMBER = {"type": ["integer", "null"]}
_WINDOW = {
    "type": "object",
    "properties": {"start_ms": {"type": "integer"}, "end_ms": {"type": "integer"}},
    "required": ["start_ms", "end_ms"],
}
_ROW = {
    "type": "object",
    "properties": {
        "key": _ANY,
        "value": _ANY,
        "timestamp_ms": _MAYBE_NUMBER,
        "partition": {"type": "integer"},
        "window": _WINDOW,
    },
    "required": ["key", "value", "timestamp_ms", "partition"],
}
_ROWS = {
    "type": "object",
    "properties": {"rows": {"type": "array", "items": _ROW}, "cursor": {"type": ["string", "null"]}},
    "required": ["rows", "cursor"],
}
_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
            "required": ["code", "message"],
        }
    },
    "required": ["error"],
}
_REF = {"$ref": "#/components/schemas/Error"}
_OBJECT = {"type": "object"}

_PATHS: dict[str, dict[str, Any]] = {
    "/healthz": {"text": "Whether the application is alive", "schema": _OBJECT, "errors": {"503": _OBJECT}},
    "/readyz": {"text": "Whether it works, and why not", "schema": _OBJECT, "errors": {"503": _OBJECT}},
    "/metrics": {"text": "Metrics in Prometheus' format", "media": "text/plain"},
    "/topology": {"text": "Nodes, stores, topics and tasks", "schema": _OBJECT},
    "/stores": {"text": "The stores that can be asked", "schema": _OBJECT},
    "/stores/{store}/keys/{key}": {
        "text": "What a store has of a key",
        "schema": _OBJECT,
        "parameters": [
            _STORE,
            _param(
                "path", "key", {"type": "string", "minLength": 1}, "Text, a number, or JSON, as the key's serde wants"
            ),
            _param("query", "as_of_ms", _TIME, "The version that was valid at this time"),
            *_TIMES,
            _param("query", "limit", _LIMIT, "Most rows"),
            _PARTITION,
            *_BOUND,
        ],
        "errors": ["400", "404", "413"],
    },
    "/stores/{store}/range": {
        "text": "Rows of a store, a page at a time",
        "schema": _ROWS,
        "parameters": [
            _STORE,
            _param("query", "from", {"type": "string"}, "First key"),
            _param("query", "to", {"type": "string"}, "Last key"),
            _param("query", "prefix", {"type": "string"}, "What the key's bytes begin with"),
            _param("query", "order", {"type": "string", "enum": ["ascending", "descending"]}, "Within a partition"),
            _param("query", "limit", _LIMIT, "Rows in a page"),
            _param("query", "cursor", {"type": "string"}, "What the page before has given"),
            *_TIMES,
            _PARTITION,
            *_BOUND,
        ],
        "errors": ["400", "404", "413"],
    },
    "/stores/{store}/changes": {
        "text": "Changes of a store as server-sent events; the same at …/changes/ws as a WebSocket",
        "media": "text/event-stream",
        "parameters": [
            _STORE,
            _param("query", "snapshot", {"type": "boolean"}, "All rows first, then changes, without a gap"),
            _param("query", "last_event_id", {"type": "string"}, "The same as the header Last-Event-ID"),
            _param("header", "Last-Event-ID", {"type": "string"}, "Go on behind this event"),
        ],
        "errors": ["400", "404", "410", "413"],
    },
    "/console/api/live": {"text": "How the application is, every second", "media": "text/event-stream"},
    "/console/api/history": {"text": "The last minutes", "schema": _OBJECT},
    "/console/api/topics": {"text": "Topics of the log", "schema": _OBJECT},
    "/console/api/topics/{topic}/records": {
        "text": "Records of a topic",
        "schema": _OBJECT,
        "parameters": [
            _param("path", "topic", _NAME, "Name of a topic"),
            _param("query", "partition", {"type": "integer", "minimum": 0, "maximum": 1_000_000}, "A partition"),
            _param("query", "offset", _TIME, "From this offset on"),
            _param("query", "time_ms", _TIME, "From this time on"),
            _param("query", "limit", _LIMIT, "Most records"),
            _param("query", "key_serde", {"type": "string"}, "auto, string, json, long, …"),
            _param("query", "value_serde", {"type": "string"}, "auto, string, json, long, …"),
        ],
        "errors": ["400", "404", "410"],
    },
    "/console/api/dead-letters": {
        "text": "Dead letters, with the reason of each",
        "schema": _OBJECT,
        "parameters": [_param("query", "limit", _LIMIT, "Most records")],
        "errors": ["400"],
    },
    "/console/api/late": {
        "text": "Late records that tasks have reported, and how many each node has dropped",
        "schema": _OBJECT,
        "parameters": [_param("query", "limit", _LIMIT, "Most records")],
        "errors": ["400"],
    },
    "/openapi.json": {"text": "This description", "schema": _OBJECT},
}


def openapi(routes: Iterable[BaseRoute]) -> dict[str, Any]:
    """Returns the description of those addresses that are served."""
    served = {route.path.replace(":path", "") for route in routes if isinstance(route, Route)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headrace", "version": "1", "description": "An application of Headrace: stores and console."},
        "paths": {
            path: {"get": _operation(path, known)}
            for path, known in _PATHS.items()
            if path in {*served, "/openapi.json"}
        },
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(path: str, known: dict[str, Any]) -> dict[str, Any]:
    media = known.get("media", "application/json")
    errors = known.get("errors", [])
    found = {media: {"schema": known.get("schema", {})}}
    responses: dict[str, Any] = {"200": {"description": "Found", "content": found}}
    for status in ["400", "401", "503", *errors]:
        schema = errors[status] if isinstance(errors, dict) and status in errors else _REF
        responses[status] = {"description": "An error", "content": {"application/json": {"schema": schema}}}
    return {
        "summary": known["text"],
        "operationId": path.strip("/").replace("/", "-").replace("{", "").replace("}", "").replace(".", "-"),
        "parameters": known.get("parameters", []),
        "responses": responses,
        "security": [{}, {"token": []}],
    }
