"""Push queries: ``SELECT … EMIT CHANGES``, whose rows go on until nobody reads them any more.

Queries that look at one record at a time follow the topic in this process (``record_by_record``); joins and aggregates
run as a topology that is there for them alone (``transient``).
"""

from __future__ import annotations

from uuid import uuid4

from headrace.sql.errors import SqlStatementError, locating_errors
from headrace.sql.planning.group_by import Groups
from headrace.sql.planning.sources import FromSource, Sources
from headrace.sql.planning.tree import references
from headrace.sql.reading.pull.condition_checks import HELP, is_on
from headrace.sql.reading.pull.prepared import checked
from headrace.sql.reading.push.record_by_record import StreamRows, TableChanges
from headrace.sql.reading.push.topic_follower import FollowedTopic, first_offsets, starts_at_latest
from headrace.sql.reading.push.transient import transient_query
from headrace.sql.reading.results import PushQuery, QueryContext
from headrace.sql.reading.row_query import RowQuery
from headrace.sql.syntax.statements import Query, SelectItem, SelectQuery

SCALABLE = "ksql.query.push.v2.enabled"
"""The setting of whether queries on the sink of a query are seen as parts of that query, as ksqlDB's second kind is."""
_PLACES = frozenset({"ROWPARTITION", "ROWOFFSET"})


def push(statement: SelectQuery, context: QueryContext) -> PushQuery:
    """Begins a query; raises ``SqlError`` if there cannot be one. Whoever reads it closes it."""
    query = statement.query
    with locating_errors(statement.text, statement.position):
        _check(query)
        latest = starts_at_latest(context.settings)
        source = context.catalog.source(query.source.name)
        number = uuid4().hex[:16]
        if _needs_topology(query, context):
            return transient_query(statement, context, f"transient_{source.name}_{number}", latest=latest)
        scalable = latest and _is_scalable(query, context)
        query_id = f"{'SCALABLE_PUSH_QUERY' if scalable else 'transient'}_{source.name}_{number}"
        rows = RowQuery(query, context)
        make = (
            TableChanges(rows, with_tombstones=not scalable)
            if source.is_table
            else StreamRows(rows, with_null_keys=not scalable)
        )
        positions = first_offsets(context.log, source.topic, latest=latest)
        return FollowedTopic(query_id, checked(rows.schema), context.log, positions, make, limit=query.limit)


def _check(query: Query) -> None:
    if query.limit is not None and query.limit < 0:
        message = f"Push queries don't support negative integers in the LIMIT clause.{HELP.splitlines()[0]}"
        raise SqlStatementError(message)
    if query.order_by or query.offset is not None:
        message = (
            "Push queries have no ORDER BY and no OFFSET: their rows have no end that could be waited for. "
            "Remove EMIT CHANGES if you intended to issue a pull query."
        )
        raise SqlStatementError(message)


def _needs_topology(query: Query, context: QueryContext) -> bool:
    if query.joins or query.group_by or query.window is not None or query.having is not None or query.emit == "FINAL":
        return True
    if query.distinct is not None:
        return True
    sources = Sources((FromSource(query.source.alias, context.catalog.source(query.source.name)),))
    groups = Groups(query, sources, context.functions)
    return any(isinstance(item, SelectItem) and groups.is_aggregate(item.expression) for item in query.select)


def _is_scalable(query: Query, context: QueryContext) -> bool:
    """Whether a query is one on the results of exactly one running query, and on nothing else."""
    if not is_on(context.settings, SCALABLE, default=False) or query.partition_by:
        return False
    expressions = [item.expression for item in query.select if isinstance(item, SelectItem)]
    expressions += [] if query.where is None else [query.where]
    if any(reference.name in _PLACES for one in expressions for reference in references(one)):
        return False
    return len(context.catalog.writers(query.source.name)) == 1


__all__ = ["push"]
