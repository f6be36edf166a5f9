"""The HTTP interface of the registry, as clients of Confluent's know it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.devtools.schema_registry.content import Registration
from headrace.devtools.schema_registry.errors import INVALID_SCHEMA, INVALID_VERSION, RegistryError
from headrace.devtools.schema_registry.registry import DevelopmentRegistry
from headrace.devtools.schema_registry.schemas import KINDS, serialized
from headrace.serdes.registry.registry import Schema, SchemaReference

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_BAD_REQUEST = 40001

# Any: what JSON holds.
Body: TypeAlias = Any
Handler: TypeAlias = Callable[[DevelopmentRegistry, Request, Body], Any]


def registry_routes(registry: DevelopmentRegistry) -> list[Route]:
    """Returns the routes. What an address asks for is a handler of its own; none of them holds up the others."""
    # Names of subjects may have slashes; so the longer addresses come first.
    subject, version = "/subjects/{subject:path}", "/subjects/{subject:path}/versions/{version}"
    compatibility = "/compatibility/subjects/{subject:path}/versions"
    handlers: list[tuple[str, str, Handler]] = [
        ("GET", "/", _root),
        ("GET", "/schemas", _schemas),
        ("GET", "/schemas/types", _types),
        ("GET", "/schemas/ids/{id}", _schema),
        ("GET", "/schemas/ids/{id}/schema", _schema_text),
        ("GET", "/schemas/ids/{id}/subjects", _subjects_of),
        ("GET", "/schemas/ids/{id}/versions", _versions_of),
        ("GET", "/subjects", _subjects),
        ("GET", f"{version}/schema", _version_text),
        ("GET", f"{version}/referencedby", _referenced_by),
        ("GET", version, _version),
        ("DELETE", version, _delete_version),
        ("GET", f"{subject}/versions", _versions),
        ("POST", f"{subject}/versions", _register),
        ("POST", subject, _find),
        ("DELETE", subject, _delete_subject),
        ("POST", f"{compatibility}/{{version}}", _is_compatible),
        ("POST", compatibility, _is_compatible),
        ("GET", "/config", _level),
        ("PUT", "/config", _set_level),
        ("DELETE", "/config", _delete_level),
        ("GET", "/config/{subject:path}", _level),
        ("PUT", "/config/{subject:path}", _set_level),
        ("DELETE", "/config/{subject:path}", _delete_level),
        ("GET", "/mode", _mode),
        ("GET", "/mode/{subject:path}", _mode),
        ("GET", "/contexts", _contexts),
    ]
    return [Route(path, _answering(registry, handler), methods=[method]) for method, path, handler in handlers]


def json_answer(content: Body, status: int = 200) -> Response:
    """Returns an answer in the registry's own media type."""
    return Response(json.dumps(content), status, media_type=MEDIA_TYPE)


def error_answer(error: RegistryError) -> Response:
    """Returns the answer to a request that has failed."""
    return json_answer({"error_code": error.code, "message": str(error)}, error.status)


def _answering(registry: DevelopmentRegistry, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            body = await _body(request)
            return json_answer(await run_in_threadpool(handler, registry, request, body))
        except RegistryError as error:
            return error_answer(error)

    return answer


async def _body(request: Request) -> Body:
    data = await request.body()
    if not data:
        return {}
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RegistryError(_BAD_REQUEST, f"the body of the request must be JSON: {error}") from error
    if not isinstance(found, dict):
        raise RegistryError(_BAD_REQUEST, f"the body of the request must be an object, got {str(found)[:100]}")
    return found


def _root(_registry: DevelopmentRegistry, _request: Request, _body: Body) -> Body:
    return {}


def _contexts(_registry: DevelopmentRegistry, _request: Request, _body: Body) -> Body:
    return ["."]


def _mode(_registry: DevelopmentRegistry, _request: Request, _body: Body) -> Body:
    return {"mode": "READWRITE"}


def _types(_registry: DevelopmentRegistry, _request: Request, _body: Body) -> Body:
    return list(KINDS)


def _schemas(registry: DevelopmentRegistry, request: Request, _body: Body) -> Body:
    found: list[Body] = []
    deleted = _flag(request, "deleted")
    for subject in registry.subjects(request.query_params.get("subjectPrefix", ""), deleted=deleted):
        versions = registry.versions(subject, deleted=deleted)
        found += [_registration_json(each) for each in (versions[-1:] if _flag(request, "latestOnly") else versions)]
    return found


def _schema(registry: DevelopmentRegistry, request: Request, _body: Body) -> Body:
    schema = registry.registered(_id(request))[0].schema
    return _schema_json(serialized(schema) if request.query_params.get("format") == "serialized" else schema)


def _schema_text(registry: DevelopmentRegistry, request: Request, _body: Body) -> Body:
    return _plain(registry.registered(_id(request))[0].schema)


def _subjects_of(registry: DevelopmentRegistry, request: Request, _body: Body) -> Body:
    found = registry.registered(_id(request))
    return sorted({each.subject for each in found if _flag(request, "deleted") or not each.is_deleted})


def _versions_of(registry: DevelopmentRegistry, request: Request, _body: Body) -> Body:
    found = registry.registered(_id(request))
    return [
        {"subject": each.subject, "version": each.version}
        for each in found
        if _flag(request, "deleted") or not each.is_deleted
    ]


def _subjects(registry: DevelopmentRegistry, request: Request, _body: Body) -> Body:
    return registry.subjects(request.query_params.get("subjectPrefix", ""), deleted=_flag(request, "deleted"))


def _versions(registry: DevelopmentRegistry, request: Request, _body: Body) -> Body:
    found = registry.versions(request.path_params["subject"], deleted=_flag(request, "deleted"))
    return [each.version for each in found]


def _version(registry: DevelopmentRegistry, request: Request, _body: Body) -> Body:
    return _registration_json(_one_version(registry, request))


def _version_text(registry: DevelopmentRegistry, request: Request, _body: Body) -> Body:
    return _plain(_one_version(registry, request).schema)


def _one_version(registry: DevelopmentRegistry, request: Request) -> Registration:
    given = request.path_params
    return registry.version(given["subject"], given["version"], deleted=_flag(request, "deleted"))


def _referenced_by(registry: DevelopmentRegistry, request: Request, _body: Body) -> Body:
    found = registry.users_of(request.path_params["subject"], request.path_params["version"])
    return sorted({each.id for each in found})


def _register(registry: DevelopmentRegistry, request: Request, body: Body) -> Body:
    return {"id": registry.register(request.path_params["subject"], _given_schema(body))}


def _find(registry: DevelopmentRegistry, request: Request, body: Body) -> Body:
    found = registry.find(request.path_params["subject"], _given_schema(body), deleted=_flag(request, "deleted"))
    return _registration_json(found)


def _delete_subject(registry: DevelopmentRegistry, request: Request, _body: Body) -> Body:
    return registry.delete_subject(request.path_params["subject"], permanent=_flag(request, "permanent"))


def _delete_version(registry: DevelopmentRegistry, request: Request, _body: Body) -> Body:
    given = request.path_params
    return registry.delete_version(given["subject"], given["version"], permanent=_flag(request, "permanent"))


def _is_compatible(registry: DevelopmentRegistry, request: Request, body: Body) -> Body:
    subject, version = request.path_params["subject"], request.path_params.get("version")
    found = registry.problems(subject, _given_schema(body), version)
    told = {"messages": found} if _flag(request, "verbose") else {}
    return {"is_compatible": not found, **told}


def _level(registry: DevelopmentRegistry, request: Request, _body: Body) -> Body:
    subject = request.path_params.get("subject")
    return {"compatibilityLevel": registry.level(subject, or_default=_flag(request, "defaultToGlobal"))}


def _set_level(registry: DevelopmentRegistry, request: Request, body: Body) -> Body:
    subject = request.path_params.get("subject")
    return {"compatibility": registry.set_level(subject, body.get("compatibility", ""))}


def _delete_level(registry: DevelopmentRegistry, request: Request, _body: Body) -> Body:
    subject = request.path_params.get("subject")
    before = registry.level(subject, or_default=subject is None)
    registry.set_level(subject, None)
    return {"compatibilityLevel": before}


def _given_schema(body: Body) -> Schema:
    text, kind, references = body.get("schema"), body.get("schemaType") or "AVRO", body.get("references") or []
    if not isinstance(text, str) or not text:
        raise RegistryError(INVALID_SCHEMA, "Empty schema: the body must have a 'schema', which is a text")
    try:
        found = tuple(SchemaReference(each["name"], each["subject"], int(each["version"])) for each in references)
    except (TypeError, KeyError, ValueError) as error:
        message = f"'references' is a list of objects with name, subject and version: {error!r}"
        raise RegistryError(INVALID_SCHEMA, message) from error
    return Schema(text, str(kind), found)


def _id(request: Request) -> int:
    given = request.path_params["id"]
    if not given.isdecimal():
        raise RegistryError(INVALID_VERSION, f"the number of a schema is a whole one, got '{given}'")
    return int(given)


def _flag(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() == "true"


def _plain(schema: Schema) -> Body:
    """Returns a schema as the content of an answer: JSON where it is JSON."""
    return schema.text if schema.kind == "PROTOBUF" else json.loads(schema.text)


def _registration_json(found: Registration) -> Body:
    return {"subject": found.subject, "version": found.version, "id": found.id, **_schema_json(found.schema)}


def _schema_json(schema: Schema) -> Body:
    # As Confluent's does it: what is not there was there before there were other kinds.
    kind = {} if schema.kind == "AVRO" else {"schemaType": schema.kind}
    references = [{"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references]
    return {**kind, **({"references": references} if references else {}), "schema": schema.text}
