"""DESCRIBE and EXPLAIN."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace.sql.catalog import SourceDefinition, other_spelling
from headrace.sql.catalog.persistent_query import PersistentQuery
from headrace.sql.errors import SqlError, SqlStatementError
from headrace.sql.functions.definitions import AggregateOverload, Overload
from headrace.sql.hosting.progress import PartitionProgress, topic_progress, unread
from headrace.sql.hosting.streams_host import application_id
from headrace.sql.server.entities.descriptions import (
    Argument,
    FunctionDescription,
    FunctionSignature,
    QueryDescription,
    QueryDescriptions,
    QueryDetails,
    SourceDescription,
    SourceDescriptions,
    SourceDetails,
)
from headrace.sql.server.entities.entity import Entity
from headrace.sql.server.entities.schemas import fields_of
from headrace.sql.server.errors import terminated
from headrace.sql.server.open_queries import OpenQuery
from headrace.sql.server.query_info import query_info, shown_state
from headrace.sql.server.service import SqlService
from headrace.sql.server.session import Session
from headrace.sql.server.settings import shown_value
from headrace.sql.sql_engine import SqlEngine
from headrace.sql.syntax.statements import CreateAsSelect, Describe, Explain, InsertInto, SelectQuery


def describe(statement: Describe, service: SqlService, engine: SqlEngine, text: str) -> Entity:
    """Returns the description that a statement asks for."""
    catalog = engine.catalog
    match statement.what:
        case "STREAMS" | "TABLES":
            kind = statement.what.removesuffix("S")
            sources = [source for _, source in sorted(catalog.sources.items()) if source.kind == kind]
            return describe_sources(sources, service, engine, text, extended=statement.extended)
        case "FUNCTION":
            return _function(statement.name or "", engine, text)
    name = statement.name or ""
    source = catalog.find(name)
    if source is None:
        hint = other_spelling(name, catalog.sources)
        message = f"Could not find STREAM/TABLE '{name}' in the Metastore{hint}"
        raise SqlStatementError(message, statement=statement.text)
    details = _details(source, service, engine, extended=statement.extended)
    return SourceDescription(statement_text=text, source_description=details)


def describe_sources(
    sources: Iterable[SourceDefinition], service: SqlService, engine: SqlEngine, text: str, *, extended: bool
) -> SourceDescriptions:
    """Returns several sources with all that is known of them."""
    details = tuple(_details(source, service, engine, extended=extended) for source in sources)
    return SourceDescriptions(statement_text=text, source_descriptions=details)


def _details(source: SourceDefinition, service: SqlService, engine: SqlEngine, *, extended: bool) -> SourceDetails:
    queries = engine.catalog.queries
    reading = tuple(queries[each] for each in engine.catalog.readers(source.name))
    writing = tuple(queries[each] for each in engine.catalog.writers(source.name))
    timestamp = source.timestamp.column if source.timestamp is not None and extended else ""
    return SourceDetails(
        source.name,
        None if source.window is None else source.window.kind,
        tuple(query_info(query, service.host) for query in reading),
        tuple(query_info(query, service.host) for query in writing),
        fields_of(source.schema),
        source.kind,
        timestamp,
        _statistics(writing, service) if extended else "",
        "",
        extended,
        source.key_format,
        source.value_format,
        source.topic,
        source.partitions if extended else 0,
        1 if extended else 0,
        terminated(source.text) if source.text else "",
        tuple(_offsets(query, service) for query in writing) if extended else (),
        tuple(sorted({name for query in writing for name in query.sources})),
    )


def _statistics(queries: Iterable[PersistentQuery], service: SqlService) -> str:
    figures: dict[str, float] = {}
    for query in queries:
        for name, value in service.host.status(query.id).metrics.items():
            if isinstance(value, int | float) and name.endswith("-total"):
                figures[name] = figures.get(name, 0) + value
    return "   ".join(f"{name}: {value:g}" for name, value in figures.items())


def _offsets(query: PersistentQuery, service: SqlService) -> dict[str, Any]:
    application = application_id(service.service_id, query.id)
    found = topic_progress(service.log, application, query.source_topics)
    summaries = [
        {"kafkaTopic": topic, "offsets": [_partition_offsets(each) for each in partitions]}
        for topic, partitions in found.items()
    ]
    return {"groupId": application, "topicSummaries": summaries}


def _partition_offsets(progress: PartitionProgress) -> dict[str, int]:
    return {
        "partition": progress.partition,
        "logStartOffset": progress.begin,
        "logEndOffset": progress.end,
        # Nothing is read yet: it is where it will begin, as far as is known.
        "consumerOffset": progress.begin if progress.position is None else progress.position,
    }


def _lag(query: PersistentQuery, service: SqlService) -> int | None:
    return unread(service.log, application_id(service.service_id, query.id), query.source_topics)


def describe_queries(service: SqlService, engine: SqlEngine, text: str) -> QueryDescriptions:
    """Returns all queries with all that is known of them."""
    persistent = tuple(_query_details(query, service) for query in engine.catalog.queries.values())
    push = tuple(_push_details(query, service) for query in service.open_queries.push_queries())
    return QueryDescriptions(statement_text=text, query_descriptions=(*persistent, *push))


def explain(statement: Explain, service: SqlService, engine: SqlEngine, session: Session, text: str) -> Entity:
    """Returns a query that runs, or what would run for a statement."""
    if statement.query_id is not None:
        query = engine.catalog.queries.get(statement.query_id)
        pushed = service.open_queries.find(statement.query_id)
        if query is None and pushed is not None and pushed.is_push:
            return QueryDescription(statement_text=text, query_description=_push_details(pushed, service))
        if query is None:
            remedy = "use SHOW QUERIES to view the full set of queries."
            message = f"Query with id:{statement.query_id} does not exist, {remedy}"
            raise SqlStatementError(message, statement=statement.text)
        return QueryDescription(statement_text=text, query_description=_query_details(query, service))
    inner = statement.statement
    if isinstance(inner, SelectQuery):
        query = _transient(inner, service, session)
    elif isinstance(inner, CreateAsSelect | InsertInto):
        query = service.trial().execute(inner, session.settings)[0].query
    else:
        message = "The provided statement does not run a ksql query"
        raise SqlStatementError(message, statement=statement.text)
    if query is None:
        message = "The statement starts no query: what it would make is there already"
        raise SqlStatementError(message, statement=statement.text)
    details = _query_details(query, service, runs=False)
    return QueryDescription(statement_text=text, query_description=details)


def _transient(statement: SelectQuery, service: SqlService, session: Session) -> PersistentQuery | None:
    """Returns a query as it would be made, by giving its result a name that nobody has."""
    trial = service.trial()
    failure: SqlError | None = None
    for kind in ("STREAM", "TABLE"):
        made = CreateAsSelect(kind, "EXPLAINED_QUERY", (), statement.query, text=statement.text)
        try:
            return trial.execute(made, session.settings)[0].query
        except SqlError as error:
            failure = failure or error
    assert failure is not None, "both kinds have failed"
    raise failure


def _query_details(query: PersistentQuery, service: SqlService, *, runs: bool = True) -> QueryDetails:
    status = service.host.status(query.id)
    sink = query.plan.sink
    state = shown_state(query.id, service.host) if runs else None
    errors = tuple(
        {"timestamp": each.time_ms, "errorMessage": each.message, "type": "UNKNOWN"} for each in status.failures
    )
    return QueryDetails(
        query.id if runs else "",
        terminated(query.statement.text),
        None if sink.window is None else sink.window.kind,
        fields_of(sink.schema),
        query.sources,
        (query.sink,) if runs else (),
        str(query.topology.describe()),
        "",
        {name: shown_value(name, value) for name, value in query.settings.items()},
        {} if state is None else {service.service_id: state},
        "PERSISTENT" if runs else "PUSH",
        errors if runs else (),
        (),
        state,
        status.restarts if runs else 0,
        _lag(query, service) if runs else None,
    )


def _push_details(query: OpenQuery, service: SqlService) -> QueryDetails:
    """Returns what is known of a query that somebody reads: most of them have no topology of their own."""
    return QueryDetails(
        query.id,
        terminated(query.text),
        None,
        fields_of(query.schema),
        query.sources,
        (),
        "",
        "",
        {},
        {service.service_id: "RUNNING"},
        "PUSH",
        (),
        (),
        "RUNNING",
    )


def _function(name: str, engine: SqlEngine, text: str) -> FunctionDescription:
    found = engine.functions.function(name)
    signatures = tuple(_signature(each, found.description) for each in found.overloads)
    return FunctionDescription(
        statement_text=text,
        name=found.name,
        description=found.description,
        author="",
        version="",
        path="internal",
        functions=signatures,
        type=found.kind,
    )


def _signature(overload: Overload | AggregateOverload, description: str) -> FunctionSignature:
    signature = overload.signature
    arguments = tuple(Argument(each.name, str(each.accepts), "", each.variadic) for each in signature.parameters)
    return FunctionSignature(arguments, str(signature.returns), description)
