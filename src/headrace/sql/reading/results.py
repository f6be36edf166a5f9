"""Results of pull and push queries, and the context in which queries run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from headrace.serdes.registry.registry import SchemaRegistry
from headrace.sql.catalog import Catalog
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.hosting.host import QueryHost
from headrace.sql.reading.orphaned_queries import OrphanedQueries
from headrace.sql.types.schema import Schema
from headrace.topics.log import TopicLog


class ResultRow(NamedTuple):
    """One row of a result. A tombstone says that the row with these key columns is gone."""

    columns: list[Any]
    """As ``sql.types`` represents them."""
    tombstone: bool = False


@dataclass
class PullResult:
    """The answer of a pull query: it ends by itself."""

    query_id: str
    schema: Schema
    rows: Iterator[ResultRow]
    final_message: str | None = None
    """What to tell after the last row; known when the rows have ended."""


class PushQuery(Protocol):
    """A query whose rows go on until somebody closes it, or until its limit is reached."""

    id: str
    schema: Schema
    rows: Iterator[ResultRow]
    """Waits for the next row; ends after ``close``."""
    final_message: str | None
    """What to tell after the last row; known when the rows have ended."""

    def close(self) -> None:
        """Ends the query, from any thread."""
        ...


@dataclass(frozen=True)
class QueryContext:
    """Context of a query: the catalogue of a moment, and the services around it."""

    catalog: Catalog
    functions: FunctionRegistry
    settings: Mapping[str, object]
    """Those of the server, with those of the request over them."""
    log: TopicLog
    host: QueryHost
    # Any: the views are those of headrace.sql.reading.tables, which knows nothing of servers.
    tables: Any
    registry: SchemaRegistry | None
    service_id: str
    orphaned_queries: OrphanedQueries
