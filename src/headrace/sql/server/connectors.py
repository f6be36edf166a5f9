"""Statements about connectors: a Connect worker carries them out, so the command topic knows nothing of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TypeGuard

from headrace.sql.connect.client import ConnectClient, ConnectError, ConnectRefusalError, Json
from headrace.sql.connect.configuration import CONNECTOR_CLASS, connector_config, masked_text
from headrace.sql.errors import SqlStatementError
from headrace.sql.server.describing import describe_sources
from headrace.sql.server.entities.connectors import (
    ConnectorCreated,
    ConnectorDescription,
    ConnectorDropped,
    ConnectorList,
    ConnectorPlugin,
    ConnectorPlugins,
    ConnectorSummary,
)
from headrace.sql.server.entities.entity import Entity
from headrace.sql.server.entities.status import WarningEntity
from headrace.sql.server.errors import BAD_STATEMENT, RequestError, terminated
from headrace.sql.server.service import SqlService
from headrace.sql.syntax.statements import CreateConnector, Describe, DropConnector, ShowList, Statement

ConnectorStatement = CreateConnector | DropConnector | ShowList | Describe

_RUNNING = "RUNNING"


def is_about_connectors(statement: Statement) -> TypeGuard[ConnectorStatement]:
    """Tells whether a statement is one for the Connect worker."""
    match statement:
        case CreateConnector() | DropConnector() | Describe(what="CONNECTOR"):
            return True
        case ShowList(what="CONNECTORS" | "CONNECTOR PLUGINS"):
            return True
        case _:
            return False


def check_connector_statement(statement: ConnectorStatement, service: SqlService) -> None:
    """Raises what is wrong with a statement, without carrying it out."""
    worker = _worker(service)
    if isinstance(statement, CreateConnector) and not _exists(statement, worker):
        _check_config(statement, worker)


def carry_out_connector_statement(statement: ConnectorStatement, service: SqlService) -> Entity:
    """Carries out a statement. Raises ``RequestError`` with what the worker says, or ``SqlError``."""
    worker, text = _worker(service), terminated(statement.text)
    match statement:
        case CreateConnector():
            return _create(statement, worker)
        case DropConnector():
            return _drop(statement, worker, text)
        case Describe():
            return _describe(statement.name or "", worker, service, text)
        case ShowList(what="CONNECTORS"):
            return _list(statement.scope, worker, text)
        case _:
            return _plugins(worker, text)


def _worker(service: SqlService) -> ConnectClient:
    if service.connect is None:
        raise RequestError(BAD_STATEMENT, "No Connect worker is configured; set ksql.connect.url")
    return service.connect


@contextmanager
def _translate_failures(what: str) -> Iterator[None]:
    try:
        yield
    except ConnectError as error:
        raise RequestError(error.status * 100, f"{what}: {error}") from error


def _create(statement: CreateConnector, worker: ConnectClient) -> Entity:
    text = terminated(masked_text(statement))
    if _exists(statement, worker):
        return WarningEntity(statement_text=text, message=_already(statement))
    _check_config(statement, worker)
    with _translate_failures("Failed to create connector"):
        info = worker.create(statement.name, connector_config(statement))
    kind = str(info.get("type", "")).upper()
    others = () if kind in ("", "UNKNOWN", statement.kind) else (f"{statement.name} is a {kind} CONNECTOR",)
    return ConnectorCreated(statement_text=text, info=info, warnings=others)


def _exists(statement: CreateConnector, worker: ConnectClient) -> bool:
    """Tells whether the connector is there already, and may be. As in ksqlDB names in another case are the same."""
    with _translate_failures("Failed to check for existing connector"):
        exists = statement.name.lower() in {name.lower() for name in worker.names()}
    if exists and not statement.if_not_exists:
        raise RequestError(HTTPStatus.CONFLICT * 100, _already(statement))
    return exists


def _already(statement: CreateConnector) -> str:
    return f"Connector {statement.name} already exists"


def _check_config(statement: CreateConnector, worker: ConnectClient) -> None:
    config = connector_config(statement)
    problems = []
    if CONNECTOR_CLASS not in config:
        problems = [f"Connector config contains no connector type; set '{CONNECTOR_CLASS}'"]
    elif not config[CONNECTOR_CLASS].strip():
        problems = ["Connector type cannot be empty"]
    else:
        with _translate_failures("Failed to validate connector"):
            try:
                problems = worker.problems(config)
            except ConnectRefusalError as error:
                # Also with status 500: a class that it does not have is a failure to the worker.
                problems = [str(error)]
    if problems:
        message = "Validation error: " + "\n".join(problems)
        raise SqlStatementError(message, position=statement.position, statement=statement.text)


def _drop(statement: DropConnector, worker: ConnectClient, text: str) -> Entity:
    try:
        worker.delete(statement.name)
    except ConnectError as error:
        if statement.if_exists and error.status == HTTPStatus.NOT_FOUND:
            return WarningEntity(statement_text=text, message=f"Connector '{statement.name}' does not exist.")
        raise RequestError(error.status * 100, f"Failed to drop connector: {error}") from error
    return ConnectorDropped(statement_text=text, connector_name=statement.name)


def _list(scope: str | None, worker: ConnectClient, text: str) -> Entity:
    with _translate_failures("Failed to list connectors"):
        names = worker.names()
    found, warnings = [], []
    for name in names:
        try:
            info = worker.info(name)
            kind = str(info.get("type", "unknown"))
            if scope is None or kind == scope.lower():
                class_name = info.get("config", {}).get(CONNECTOR_CLASS)
                found.append(ConnectorSummary(name, kind, class_name, _summary(_status(name, worker))))
        except ConnectError as error:
            # Somebody may just be deleting it.
            warnings.append(f"Could not describe connector {name}: {error}")
            if scope is None:
                found.append(ConnectorSummary(name, "unknown"))
    return ConnectorList(statement_text=text, connectors=tuple(found), warnings=tuple(warnings))


def _status(name: str, worker: ConnectClient) -> Json:
    """Returns how a connector is. In a cluster of workers one that was just made has no state for a moment."""
    try:
        return worker.status(name)
    except ConnectRefusalError as missing:
        if missing.status != HTTPStatus.NOT_FOUND:
            raise
        try:
            kind = worker.info(name).get("type")
        except ConnectRefusalError:
            raise missing from None
    return {"name": name, "connector": {"state": "UNASSIGNED", "worker_id": ""}, "tasks": [], "type": kind}


def _summary(status: Json) -> str:
    """Returns the state of a connector and how many of its tasks run, in ksqlDB's words."""
    state = str(status.get("connector", {}).get("state"))
    if state != _RUNNING:
        return state
    states = [task.get("state") for task in status.get("tasks") or ()]
    running = states.count(_RUNNING)
    return f"{'WARNING' if states and not running else _RUNNING} ({running}/{len(states)} tasks RUNNING)"


def _plugins(worker: ConnectClient, text: str) -> Entity:
    with _translate_failures("Failed to list connector plugins"):
        found = worker.plugins()
    plugins = tuple(ConnectorPlugin(each.get("class", ""), each.get("type", ""), each.get("version")) for each in found)
    return ConnectorPlugins(statement_text=text, connectors_plugins=plugins)


def _describe(name: str, worker: ConnectClient, service: SqlService, text: str) -> Entity:
    with _translate_failures("Failed to query connector status"):
        status = _status(name, worker)
    with _translate_failures("Failed to describe connector"):
        info = worker.info(name)
    topics: list[str] = []
    warnings: tuple[str, ...] = ()
    try:
        topics = worker.topics(name)
    except ConnectError as error:
        # An old worker does not have them.
        if error.status != HTTPStatus.NOT_FOUND:
            warnings = (f"Could not list related topics due to error: {error}",)
    sources = [source for _, source in sorted(service.engine.catalog.sources.items()) if source.topic in topics]
    return ConnectorDescription(
        statement_text=text,
        connector_class=str(info.get("config", {}).get(CONNECTOR_CLASS, "")),
        status=status,
        sources=describe_sources(sources, service, service.engine, text, extended=False).source_descriptions,
        topics=tuple(topics),
        warnings=warnings,
    )
