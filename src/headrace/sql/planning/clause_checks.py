"""Checks across clauses: clauses that exclude each other, and results that do not fit the statement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from headrace.sql.errors import SqlError, SqlStatementError
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.planning.from_clause import FromClause
from headrace.sql.planning.projection import Projection
from headrace.sql.planning.sink_request import SinkRequest
from headrace.sql.planning.sources import place
from headrace.sql.planning.tree import calls
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import ColumnReference, Expression, Literal
from headrace.sql.syntax.statements import Query, Window
from headrace.sql.types.schema import Column, Namespace, Schema

SUPPRESSION = "ksql.suppress.enabled"
"""The setting of whether queries may have EMIT FINAL."""


def check_clauses(query: Query, clause: FromClause, sink: SinkRequest) -> None:
    """Raises if the clauses of a query do not go together."""
    items = clause.sources.items
    if any(item.is_table and item.is_windowed for item in items):
        message = "KSQL does not support persistent queries on windowed tables."
        raise SqlStatementError(message)
    if query.window is not None and not query.group_by:
        message = f"{place(query.window.position)}WINDOW clause requires a GROUP BY clause."
        raise SqlStatementError(message, position=query.window.position)
    if query.window is not None and clause.is_table:
        message = "Windowing not supported for table aggregations."
        raise SqlStatementError(message)
    if query.window is not None:
        _check_window(query.window)
    if query.emit == "FINAL" and (query.window is None or not query.group_by):
        message = "EMIT FINAL is only supported for windowed aggregations."
        raise SqlStatementError(message)
    if query.group_by and query.partition_by:
        message = "Queries may have either PARTITION BY or GROUP BY, not both."
        raise SqlStatementError(message)
    if len(query.partition_by) > 1 and Literal(None) in query.partition_by:
        message = "Cannot PARTITION BY multiple columns including NULL"
        raise SqlStatementError(message)
    for word, given in (("LIMIT", query.limit), ("OFFSET", query.offset), ("ORDER BY", query.order_by or None)):
        if given is not None:
            what = f"CREATE {sink.kind} AS SELECT" if sink.existing is None else "INSERT INTO SELECT"
            message = f"{what} statements don't support {word} clause."
            raise SqlStatementError(message)
    operation = "JOIN" if clause.joins else "GROUP BY" if query.group_by else None
    kafka = [item.alias for item in items if item.definition.value_format == "KAFKA"]
    if operation is not None and kafka:
        message = (
            f"Source(s) {', '.join(kafka)} are using the 'KAFKA' value format. "
            f"This format does not yet support {operation}.\n"
            "The KAFKA format is primarily intended for keys: write the values in another format first, such as "
            "CREATE STREAM … WITH (VALUE_FORMAT='JSON') AS SELECT * FROM …;"
        )
        raise SqlStatementError(message)


def check_emit(query: Query, settings: Mapping[str, object]) -> None:
    """Raises if results are to wait for the end of their windows, and the settings do not allow it."""
    if query.emit == "FINAL" and str(settings.get(SUPPRESSION, "true")).lower() == "false":
        message = f"Suppression is currently disabled. You can enable it by setting {SUPPRESSION} to true"
        raise SqlStatementError(message)


def _check_window(window: Window) -> None:
    nothing = timedelta(0)
    advance = window.size if window.advance is None else window.advance
    grace = window.grace or nothing
    if window.size <= nothing:
        message = f"{window.kind} window: the size must be longer than nothing."
    elif not nothing < advance <= window.size:
        message = f"{window.kind} window: ADVANCE BY must be longer than nothing and no longer than the size."
    elif window.retention is not None and window.retention < window.size + grace:
        message = f"{window.kind} window: RETENTION must be at least the size plus the grace period."
    else:
        return
    raise SqlStatementError(message, position=window.position)


def check_functions(expressions: Iterable[Expression], functions: FunctionRegistry) -> None:
    """Raises if a function is called that does not exist."""
    for expression in expressions:
        for call in calls(expression):
            try:
                functions.function(call.name)
            except SqlError as error:
                raise SqlStatementError(error.message, position=call.position) from error


def check_partition_by(
    query: Query, qualified: tuple[Expression, ...], clause: FromClause, keys: Iterable[str]
) -> None:
    """Raises if rows cannot get the key of a PARTITION BY clause; ``keys`` are the columns of the key they have."""
    if not query.partition_by:
        return
    for number, expression in enumerate(qualified):
        if expression in qualified[:number]:
            message = f"Duplicate PARTITION BY expression: {expression_text(expression)}"
            raise SqlStatementError(message, position=expression.position)
    internal = [clause.sources.internal(one) for one in qualified]
    key = list(keys)
    names = [one.name for one in internal if isinstance(one, ColumnReference)]
    if not clause.is_table or (len(names) == len(internal) and names == key):
        return
    texts = ", ".join(map(expression_text, internal))
    message = (
        "Cannot repartition a TABLE source. If this is a join, joins on tables with multiple columns is not yet "
        "supported. PARTITION BY is only supported for streams."
    )
    if len(key) == 1:
        message = (
            "Cannot repartition a TABLE source. If this is a join, make sure that the criteria uses the TABLE's key "
            f"column {key[0]} instead of [{texts}]. PARTITION BY is only supported for streams."
        )
    raise SqlStatementError(message, position=query.partition_by[0].position)


def check_kind(sink: SinkRequest, *, is_table: bool) -> None:
    """Raises if the query gives a table and a stream is asked for, or the other way round."""
    kind = "TABLE" if is_table else "STREAM"
    if sink.existing is None and sink.kind != kind:
        message = (
            f"Invalid result type. Your SELECT query produces a {kind}. "
            f"Please use CREATE {kind} AS SELECT statement instead."
        )
        raise SqlStatementError(message)


def check_table_functions(*, is_table: bool, grouped: bool) -> None:
    """Raises if table functions stand where they cannot."""
    if grouped:
        message = "Table functions cannot be used with aggregations."
        raise SqlStatementError(message)
    if is_table:
        message = "Table source is not supported with table functions"
        raise SqlStatementError(message)


def check_names(columns: Sequence[Column]) -> None:
    """Raises if two columns of a result have the same name."""
    for namespace, what in ((Namespace.KEY, "key"), (Namespace.VALUE, "value")):
        seen: set[str] = set()
        for column in columns:
            if column.namespace is not namespace:
                continue
            if column.name in seen:
                message = (
                    f"Duplicate {what} columns found in schema: {Schema((column,))}. Give one of the columns an alias."
                )
                raise SqlStatementError(message)
            seen.add(column.name)


def check_values(projection: Projection) -> None:
    """Raises if there is nothing in the value."""
    if not projection.values:
        message = "The projection contains no value columns."
        raise SqlStatementError(message)


def windowed_repartition() -> SqlStatementError:
    """Returns the error for a windowed source that would have to get another key."""
    message = (
        "Implicit repartitioning of windowed sources is not supported. "
        "See https://github.com/confluentinc/ksql/issues/4385."
    )
    return SqlStatementError(message)
