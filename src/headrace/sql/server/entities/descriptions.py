"""Answers to DESCRIBE and EXPLAIN."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from headrace.sql.server.entities.entity import Entity
from headrace.sql.server.entities.lists import QueryInfo
from headrace.sql.server.entities.schemas import Field


@dataclass(frozen=True)
class SourceDetails:
    """A stream or a table with all that is known of it. What is not asked for by EXTENDED is empty."""

    name: str
    window_type: str | None
    read_queries: tuple[QueryInfo, ...]
    write_queries: tuple[QueryInfo, ...]
    fields: tuple[Field, ...]
    type: str
    timestamp: str
    statistics: str
    error_stats: str
    extended: bool
    key_format: str
    value_format: str
    topic: str
    partitions: int
    replication: int
    statement: str
    query_offset_summaries: tuple[Any, ...]
    source_constraints: tuple[str, ...]
    cluster_statistics: tuple[Any, ...] = ()
    cluster_error_stats: tuple[Any, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SourceDescription(Entity):
    """One stream or table."""

    kind: ClassVar[str] = "sourceDescription"
    source_description: SourceDetails


@dataclass(frozen=True, kw_only=True)
class SourceDescriptions(Entity):
    """Several streams or tables."""

    kind: ClassVar[str] = "source_descriptions"
    source_descriptions: tuple[SourceDetails, ...]


@dataclass(frozen=True)
class QueryDetails:
    """A query with all that is known of it."""

    id: str
    statement_text: str
    window_type: str | None
    fields: tuple[Field, ...]
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    topology: str
    execution_plan: str
    overridden_properties: Mapping[str, Any]
    ksql_host_query_status: Mapping[str, str]
    query_type: str
    query_errors: tuple[Any, ...]
    tasks_metadata: tuple[Any, ...]
    state: str | None
    restarts: int = 0
    """How often it was tried again after a failure."""
    lag: int | None = None
    """How many records of its sources it has still to read, if that is known."""


@dataclass(frozen=True, kw_only=True)
class QueryDescription(Entity):
    """One query."""

    kind: ClassVar[str] = "queryDescription"
    query_description: QueryDetails


@dataclass(frozen=True, kw_only=True)
class QueryDescriptions(Entity):
    """Several queries."""

    kind: ClassVar[str] = "query_descriptions"
    query_descriptions: tuple[QueryDetails, ...]


@dataclass(frozen=True)
class Argument:
    """A parameter of a function."""

    name: str
    type: str
    description: str
    is_variadic: bool


@dataclass(frozen=True)
class FunctionSignature:
    """One way to call a function."""

    arguments: tuple[Argument, ...]
    return_type: str
    description: str


@dataclass(frozen=True, kw_only=True)
class FunctionDescription(Entity):
    """One function."""

    kind: ClassVar[str] = "describe_function"
    name: str
    description: str
    author: str
    version: str
    path: str
    functions: tuple[FunctionSignature, ...]
    type: str
