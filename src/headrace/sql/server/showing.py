"""SHOW and LIST."""

from __future__ import annotations

from headrace.sql.catalog.internal_topics import is_internal
from headrace.sql.server.describing import describe_queries, describe_sources
from headrace.sql.server.entities.entity import Entity
from headrace.sql.server.entities.lists import (
    ExtendedTopicInfo,
    FunctionName,
    FunctionNames,
    KafkaTopics,
    KafkaTopicsExtended,
    Properties,
    Property,
    Queries,
    SourceInfo,
    Streams,
    Tables,
    TopicInfo,
    TypeList,
    Variable,
    Variables,
)
from headrace.sql.server.entities.schemas import schema_info
from headrace.sql.server.errors import BAD_STATEMENT, RequestError
from headrace.sql.server.query_info import push_query_info, query_info
from headrace.sql.server.service import SqlService
from headrace.sql.server.session import Session
from headrace.sql.server.settings import KNOWN, is_editable, shown_value
from headrace.sql.sql_engine import SqlEngine
from headrace.sql.syntax.statements import ShowList


def show(statement: ShowList, service: SqlService, engine: SqlEngine, session: Session, text: str) -> Entity:
    """Returns the list that a statement asks for."""
    catalog = engine.catalog
    match statement.what:
        case "STREAMS" | "TABLES":
            return _sources(statement, service, engine, text)
        case "QUERIES" if statement.extended:
            return describe_queries(service, engine, text)
        case "QUERIES":
            persistent = tuple(query_info(query, service.host) for query in catalog.queries.values())
            push = tuple(map(push_query_info, service.open_queries.push_queries()))
            return Queries(statement_text=text, queries=(*persistent, *push))
        case "TOPICS":
            return _topics(statement, service, text)
        case "PROPERTIES":
            return _properties(service, session, text)
        case "FUNCTIONS":
            names = tuple(FunctionName(each.name, each.kind, each.category) for each in engine.functions)
            return FunctionNames(statement_text=text, functions=names)
        case "TYPES":
            types = {name: schema_info(type) for name, type in catalog.types.items()}
            return TypeList(statement_text=text, types=types)
        case "VARIABLES":
            variables = tuple(Variable(name, value) for name, value in sorted(session.variables.items()))
            return Variables(statement_text=text, variables=variables)
        case _:
            raise RequestError(BAD_STATEMENT, f"The server has no list of {statement.what}")


def _sources(statement: ShowList, service: SqlService, engine: SqlEngine, text: str) -> Entity:
    kind = statement.what.removesuffix("S")
    sources = [source for _, source in sorted(engine.catalog.sources.items()) if source.kind == kind]
    if statement.extended:
        return describe_sources(sources, service, engine, text, extended=True)
    found = tuple(SourceInfo.of(source) for source in sources)
    if kind == "STREAM":
        return Streams(statement_text=text, streams=found)
    return Tables(statement_text=text, tables=found)


def _topics(statement: ShowList, service: SqlService, text: str) -> Entity:
    counts = service.log.partition_counts()
    names = sorted(name for name in counts if statement.scope == "ALL" or not is_internal(name))
    if not statement.extended:
        topics = tuple(TopicInfo(name, (1,) * counts[name]) for name in names)
        return KafkaTopics(statement_text=text, topics=topics)
    readers: dict[str, set[str]] = {}
    partitions: dict[str, int] = {}
    for application in service.log.applications():
        for topic, _ in service.log.positions(application):
            readers.setdefault(topic, set()).add(application)
            partitions[topic] = partitions.get(topic, 0) + 1
    return KafkaTopicsExtended(
        statement_text=text,
        topics=tuple(
            ExtendedTopicInfo(name, (1,) * counts[name], partitions.get(name, 0), len(readers.get(name, ())))
            for name in names
        ),
    )


def _properties(service: SqlService, session: Session, text: str) -> Properties:
    server = {**KNOWN, "ksql.service.id": service.service_id, **service.engine.settings}
    given = {**server, **session.settings}
    properties = tuple(
        Property(
            name,
            "KSQL" if name.startswith("ksql.") else "STREAMS",
            None if value is None else str(shown_value(name, value)),
            is_editable(name),
            "SERVER",
        )
        for name, value in sorted(given.items())
    )
    overwritten = tuple(sorted(name for name in session.settings))
    defaults = tuple(sorted(name for name in KNOWN if name not in overwritten and name not in service.engine.settings))
    return Properties(
        statement_text=text,
        properties=properties,
        overwritten_properties=overwritten,
        default_properties=defaults,
    )
