"""Checks of pull queries: allowed clauses, and tables whose rows are materialized."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from headrace.sql.catalog import SourceDefinition
from headrace.sql.errors import Position, SqlParseError, SqlStatementError
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.planning.tree import calls, references
from headrace.sql.reading.pull.condition_checks import HELP, is_on
from headrace.sql.syntax.nodes import Expression
from headrace.sql.syntax.statements import Query, SelectAll, SelectItem, SelectQuery

PULL_QUERIES = "ksql.pull.queries.enable"
STREAMS = "ksql.query.pull.stream.enabled"
LIMITS = "ksql.query.pull.limit.clause.enabled"
EXTENSIONS = "ksql.query.pull.extensions.enabled"
"""The setting of whether pull queries on tables may do what ksqlDB's may not: order, group, join."""
_PLACES = ("ROWPARTITION", "ROWOFFSET")
_ORDER = re.compile(r"\bORDER\s+(BY)\b", re.IGNORECASE)


def check_clauses(statement: SelectQuery, sources: Sequence[SourceDefinition], settings: Mapping[str, object]) -> None:
    """Raises if a pull query has a clause that it cannot have."""
    query = statement.query
    if not is_on(settings, PULL_QUERIES):
        message = f"Pull queries are disabled.{HELP}\nPlease set {PULL_QUERIES}=true to enable this feature."
        raise SqlStatementError(message)
    if not sources[0].is_table and not is_on(settings, STREAMS):
        message = (
            "Pull queries on streams are disabled. To create a push query on the stream, add EMIT CHANGES to the end. "
            f"To enable pull queries on streams, set the {STREAMS} config to 'true'."
        )
        raise SqlStatementError(message)
    extended = all(source.is_table for source in sources) and is_on(settings, EXTENSIONS)
    if (query.order_by or query.offset is not None) and not extended:
        raise _no_order(statement)
    if query.distinct is not None:
        message = "Pull queries don't support DISTINCT ON: it drops rows that come soon after others. Add EMIT CHANGES."
        raise SqlStatementError(message, position=query.distinct.position)
    forbidden = {
        "JOIN": bool(query.joins) and not extended,
        "WINDOW": query.window is not None,
        "GROUP BY": bool(query.group_by) and not extended,
        "PARTITION BY": bool(query.partition_by),
        "HAVING": query.having is not None and not extended,
    }
    for clause, is_there in forbidden.items():
        if is_there:
            message = f"Pull queries don't support {clause} clauses.{HELP}"
            raise SqlStatementError(message)
    _check_places("SELECT", [item.expression for item in query.select if isinstance(item, SelectItem)])
    _check_places("WHERE", [] if query.where is None else [query.where])
    if query.limit is not None:
        _check_limit(query.limit, settings)
    if sources[0].is_table and not extended and len(query.select) > 1:
        _check_star(query)
    if query.offset is not None and query.offset < 0:
        message = "OFFSET must not be negative."
        raise SqlStatementError(message)


def _check_places(clause: str, expressions: Iterable[Expression]) -> None:
    used = {reference.name for one in expressions for reference in references(one)}
    found = [f"`{name}`" for name in _PLACES if name in used]
    if found:
        names = ", ".join(found)
        message = f"Pull queries don't support the following columns in {clause} clauses: {names}\n{HELP.strip()}"
        raise SqlStatementError(message)


def _check_star(query: Query) -> None:
    for item in query.select:
        if isinstance(item, SelectAll):
            message = "Pull queries only support wildcards in the projects if they are the only expression"
            raise SqlStatementError(message, position=item.position)


def _check_limit(limit: int, settings: Mapping[str, object]) -> None:
    if not is_on(settings, LIMITS):
        message = (
            f"LIMIT clause in pull queries is currently disabled. You can enable them by setting {LIMITS}=true.{HELP}"
        )
        raise SqlStatementError(message)
    if limit < 0:
        message = f"Pull queries don't support negative integers in the LIMIT clause.{HELP}"
        raise SqlStatementError(message)


def _no_order(statement: SelectQuery) -> SqlParseError:
    """Returns the error of a language that has no such clause."""
    text = statement.text
    found = _ORDER.search(text)
    place = found.start(1) if found is not None else max(0, text.upper().rfind("OFFSET"))
    before = text[:place]
    position = Position(before.count("\n") + 1, place - (before.rfind("\n") + 1) + 1)
    terminated = text.rstrip().rstrip(";") + ";"
    message = (
        f"{position}: Syntax Error\n\nStatement: {terminated}\n"
        "ORDER BY and OFFSET are there for pull queries on tables only."
    )
    return SqlParseError(message, position=position, statement=terminated)


def check_queryable(table: SourceDefinition) -> None:
    """Raises if nobody keeps the rows of a table."""
    if table.is_source or table.is_derived:
        return
    message = (
        f"The `{table.name}` table isn't queryable. To derive a queryable table, you can do "
        f"'CREATE TABLE QUERYABLE_{table.name} AS SELECT * FROM {table.name}'.{HELP}"
    )
    raise SqlStatementError(message)


def check_aggregates(settings: Mapping[str, object]) -> None:
    """Raises if pull queries may have no aggregates."""
    if not is_on(settings, EXTENSIONS):
        raise _no_groups()


def check_no_aggregates(query: Query, functions: FunctionRegistry) -> None:
    """Raises if a query on a stream has aggregates: nothing is grouped where the topic is read once."""
    selected = (item.expression for item in query.select if isinstance(item, SelectItem))
    if any(functions.is_aggregate(call.name) for one in selected for call in calls(one)):
        raise _no_groups()


def _no_groups() -> SqlStatementError:
    message = f"Pull queries don't support GROUP BY clauses.{HELP}\nAggregates make a group of all rows."
    return SqlStatementError(message)


def uses_groups(query: Query) -> bool:
    """Whether rows are grouped by a clause of the query."""
    return bool(query.group_by) or query.having is not None
