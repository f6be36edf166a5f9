"""Answers to SHOW and LIST."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from headrace.sql.catalog import SourceDefinition
from headrace.sql.server.entities.entity import Entity


@dataclass(frozen=True)
class SourceInfo:
    """A stream or a table in a list."""

    type: str
    name: str
    topic: str
    key_format: str
    value_format: str
    is_windowed: bool

    @classmethod
    def of(cls, source: SourceDefinition) -> SourceInfo:
        return cls(
            source.kind, source.name, source.topic, source.key_format, source.value_format, source.window is not None
        )


@dataclass(frozen=True, kw_only=True)
class Streams(Entity):
    """All streams."""

    kind: ClassVar[str] = "streams"
    streams: tuple[SourceInfo, ...]


@dataclass(frozen=True, kw_only=True)
class Tables(Entity):
    """All tables."""

    kind: ClassVar[str] = "tables"
    tables: tuple[SourceInfo, ...]


@dataclass(frozen=True)
class QueryInfo:
    """A query in a list."""

    query_string: str
    sinks: tuple[str, ...]
    sink_kafka_topics: tuple[str, ...]
    id: str
    status_count: Mapping[str, int]
    query_type: str
    state: str


@dataclass(frozen=True, kw_only=True)
class Queries(Entity):
    """All queries that run."""

    kind: ClassVar[str] = "queries"
    queries: tuple[QueryInfo, ...]


@dataclass(frozen=True)
class TopicInfo:
    """A topic in a list: for each partition, how many replicas it has."""

    name: str
    replica_info: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class KafkaTopics(Entity):
    """All topics."""

    kind: ClassVar[str] = "kafka_topics"
    topics: tuple[TopicInfo, ...]


@dataclass(frozen=True)
class ExtendedTopicInfo:
    """A topic in a list, and who reads it."""

    name: str
    replica_info: tuple[int, ...]
    consumer_count: int
    consumer_group_count: int


@dataclass(frozen=True, kw_only=True)
class KafkaTopicsExtended(Entity):
    """All topics, and who reads them."""

    kind: ClassVar[str] = "kafka_topics_extended"
    topics: tuple[ExtendedTopicInfo, ...]


@dataclass(frozen=True)
class Property:
    """A setting: of the language or of the applications that run queries."""

    name: str
    scope: str
    value: str | None
    editable: bool
    level: str


@dataclass(frozen=True, kw_only=True)
class Properties(Entity):
    """All settings; which of them the request has set, and which have their defaults."""

    kind: ClassVar[str] = "properties"
    properties: tuple[Property, ...]
    overwritten_properties: tuple[str, ...]
    default_properties: tuple[str, ...]


@dataclass(frozen=True)
class FunctionName:
    """A function in a list."""

    name: str
    type: str
    category: str


@dataclass(frozen=True, kw_only=True)
class FunctionNames(Entity):
    """All functions."""

    kind: ClassVar[str] = "function_names"
    functions: tuple[FunctionName, ...]


@dataclass(frozen=True, kw_only=True)
class TypeList(Entity):
    """All types that have names."""

    kind: ClassVar[str] = "type_list"
    types: Mapping[str, Any]


@dataclass(frozen=True)
class Variable:
    """A variable and its text."""

    name: str
    value: str


@dataclass(frozen=True, kw_only=True)
class Variables(Entity):
    """All variables of the session."""

    kind: ClassVar[str] = "variables"
    variables: tuple[Variable, ...]
