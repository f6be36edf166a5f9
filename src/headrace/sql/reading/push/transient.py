"""Push queries with joins and aggregates: a topology that runs while somebody reads, and a topic of its own.

The query is planned like a persistent one whose value has all columns of the result, and whose key is whatever its
clauses make of it: so a result needs not have its key among its columns.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from headrace.dsl.builder import StreamsBuilder
from headrace.errors import UnknownTopicError
from headrace.sql.catalog.persistent_query import PersistentQuery
from headrace.sql.catalog.with_properties import WithProperties
from headrace.sql.errors import SqlExecutionError
from headrace.sql.hosting.host import QueryState
from headrace.sql.hosting.streams_host import application_id
from headrace.sql.planning import QueryPlan, SinkRequest, build, plan_query
from headrace.sql.planning.build import key_serde_of
from headrace.sql.planning.clause_checks import check_names
from headrace.sql.planning.from_clause import FromClause, from_clause
from headrace.sql.planning.group_by import Groups
from headrace.sql.planning.planner import everything_in
from headrace.sql.planning.record_functions.row_serde import StoredRowSerde
from headrace.sql.planning.select import SelectClause, Selected
from headrace.sql.planning.sources import Sources
from headrace.sql.planning.typing import Typing
from headrace.sql.reading.push.topic_follower import FollowedTopic, first_offsets
from headrace.sql.reading.record_rows import key_format_of
from headrace.sql.reading.results import QueryContext, ResultRow
from headrace.sql.syntax.nodes import Call, ColumnReference, Expression, Literal
from headrace.sql.syntax.statements import CreateAsSelect, Query, SelectItem, SelectQuery
from headrace.sql.types import SqlType
from headrace.sql.types.schema import WINDOW_BOUNDS, Column, Schema
from headrace.topics.log import Raw
from headrace.windows import Windowed

_LONGEST_START_S = 30.0
_LOOK_S = 0.005
_ALL = Literal(1)
"""What rows are grouped by where a query has aggregates and no GROUP BY."""


@dataclass(frozen=True)
class TransientPlan:
    """The plan of such a query, and what its result looks like."""

    plan: QueryPlan
    schema: Schema
    key_places: tuple[int | str | None, ...]
    """For each column of the result: which column of the key it is, or which bound of its window, if it is one."""


def transient_plan(query: Query, context: QueryContext, name: str, topic: str) -> TransientPlan:
    """Returns the plan of a query whose rows go to a topic of its own."""
    clause = from_clause(query, context.catalog.source)
    sources = clause.sources
    typing = Typing(context.functions, context.settings, context.catalog.types)
    everything = everything_in(sources)

    def type_of(expression: Expression) -> SqlType:
        return typing.column_type(sources.internal(expression), everything)

    partition_by = tuple(sources.qualified(one, "PARTITION BY") for one in query.partition_by)
    groups = Groups(query, sources, context.functions)
    groups.check_columns()
    for one in query.group_by:
        groups.check_bounds(one)
    selected = SelectClause(query, sources, partition_by, type_of, transient=True).selected()
    group_by = query.group_by
    if not group_by and any(groups.is_aggregate(one.expression) for one in selected):
        group_by = (_ALL,)
    keys = _keys(query, clause, group_by, sources)
    items = [SelectItem(_kept(one, keys), f"COLUMN_{number}") for number, one in enumerate(selected)]
    items += [SelectItem(key, f"KEY_{number}") for number, key in enumerate(keys)]
    # A key that no format can hold in one piece is an object.
    key_format = "JSON" if len(keys) > 1 else None
    request = SinkRequest(
        name,
        "TABLE" if group_by or clause.is_table else "STREAM",
        topic,
        WithProperties(kafka_topic=topic, key_format=key_format, value_format="JSON", wrap_single_value=None),
    )
    planned = replace(query, select=tuple(items), group_by=group_by, limit=None)
    plan = plan_query(planned, context.catalog, context.functions, request, context.settings)
    columns = [Column(one.name, plan.schema.columns[len(keys) + place].type) for place, one in enumerate(selected)]
    check_names(columns)
    windowed = plan.sink.window is not None
    places = tuple(_key_place(one.expression, keys, windowed=windowed) for one in selected)
    return TransientPlan(plan, Schema(tuple(columns)), places)


def _keys(
    query: Query, clause: FromClause, group_by: tuple[Expression, ...], sources: Sources
) -> tuple[Expression, ...]:
    """Returns the expressions that make the key of the result, with the source of every column."""
    if group_by:
        return tuple(sources.qualified(one, "GROUP BY") for one in group_by)
    if query.partition_by:
        keys = (sources.qualified(one, "PARTITION BY") for one in query.partition_by)
        return tuple(one for one in keys if one != Literal(None))
    if clause.joins and not clause.joins[-1].foreign_key:
        if sources.synthetic_key is not None:
            return (ColumnReference(sources.synthetic_key),)
        return clause.viable_keys[:1]
    first = sources.items[0]
    return tuple(ColumnReference(column.name, first.alias) for column in first.definition.schema.key)


def _kept(one: Selected, keys: tuple[Expression, ...]) -> Expression:
    """Returns the expression of a column in the value, also where it is the key."""
    return Call("AS_VALUE", (one.expression,)) if one.expression in keys else one.expression


def _key_place(expression: Expression, keys: tuple[Expression, ...], *, windowed: bool) -> int | str | None:
    if expression in keys:
        return keys.index(expression)
    if windowed and isinstance(expression, ColumnReference) and expression.name in WINDOW_BOUNDS:
        return expression.name
    return None


class SinkRows:
    """Makes rows of the records that the topology writes."""

    def __init__(self, transient: TransientPlan, value_serde: StoredRowSerde) -> None:
        sink = transient.plan.sink
        self._transient = transient
        self._read = value_serde.deserializer(sink.topic, is_key=False)
        window = transient.plan.root.key_format.window
        keys = key_serde_of(sink.schema.key, replace(key_format_of(sink), window=window))
        self._read_key = keys.deserializer(sink.topic, is_key=True)
        self._width = len(transient.schema.columns)

    def __call__(self, _partition: int, raw: Raw) -> Iterable[ResultRow]:
        _, _, key, value, _ = raw
        if value is not None:
            return (ResultRow(self._read(value)[: self._width]),)
        if not self._transient.plan.sink.is_table or key is None:
            return ()
        return (ResultRow(self._gone(key), tombstone=True),)

    def _gone(self, data: bytes) -> list[Any]:
        key = self._read_key(data)
        windowed = isinstance(key, Windowed)
        plain = key.key if windowed else key
        found: list[Any] = []
        for place in self._transient.key_places:
            if isinstance(place, int):
                found.append(None if plain is None else plain[place])
            elif place is None or not windowed:
                found.append(None)
            else:
                found.append(key.window.start_ms if place == "WINDOWSTART" else key.window.end_ms)
        return found


def _wait_until_begun(context: QueryContext, query_id: str) -> None:
    """Waits until it is settled where the topology reads from: what is written after that, its reader sees."""
    application = application_id(context.service_id, query_id)
    deadline = time.monotonic() + _LONGEST_START_S
    while not context.log.positions(application) and time.monotonic() < deadline:
        if context.host.status(query_id).state is QueryState.ERROR:
            return
        time.sleep(_LOOK_S)


def transient_query(statement: SelectQuery, context: QueryContext, query_id: str, *, latest: bool) -> FollowedTopic:
    """Starts a topology and follows what it writes; when nobody reads any more both are gone."""
    topic = f"_headrace_sql_{application_id(context.service_id, query_id)}"
    transient = transient_plan(statement.query, context, query_id, topic)
    plan = transient.plan
    value_serde = StoredRowSerde(tuple(column.type for column in plan.schema.value))
    builder = StreamsBuilder()
    build(plan, builder, value_serde=value_serde)
    kind = plan.sink.kind
    made = CreateAsSelect(kind, query_id, (), statement.query, text=statement.text)
    settings = {name: value for name, value in context.settings.items() if not name.endswith("auto.offset.reset")}
    settings["consumer.auto.offset.reset"] = "latest" if latest else "earliest"
    hosted = PersistentQuery(
        query_id,
        made,
        query_id,
        topic,
        tuple(source.name for source in plan.sources),
        tuple(source.topic for source in plan.sources),
        plan,
        builder.build(),
        settings,
    )
    context.orphaned_queries.note(query_id, topic)
    # One partition: rows are seen in the order in which they were made.
    context.log.create_topic(topic, partitions=1)

    def end() -> None:
        is_gone = context.host.stop(query_id, forget=True)
        with suppress(UnknownTopicError):
            context.log.delete_topic(topic)
        # What is left goes with the next start.
        if is_gone:
            context.orphaned_queries.forget(query_id)

    def look() -> None:
        status = context.host.status(query_id)
        if status.state is QueryState.ERROR:
            message = f"the query has failed: {status.error}"
            raise SqlExecutionError(message)

    try:
        context.host.start(hosted, transient=True)
        if latest:
            _wait_until_begun(context, query_id)
        return FollowedTopic(
            query_id,
            transient.schema,
            context.log,
            first_offsets(context.log, topic, latest=False),
            SinkRows(transient, value_serde),
            limit=statement.query.limit,
            at_close=end,
            look=look,
        )
    except BaseException:
        end()
        raise
