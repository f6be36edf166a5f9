"""From a plan to a topology: every step is a few calls of the DSL."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import singledispatch
from typing import Any, cast

from headrace.dsl import KStream, KTable, StreamsBuilder
from headrace.dsl.materialized import Materialized, StreamJoined
from headrace.dsl.options import Consumed, Grouped, Joined, Produced, Repartitioned, TableJoined
from headrace.record import with_key
from headrace.serdes import Serde, Serdes, SessionWindowedSerde, TimeWindowedSerde
from headrace.sql.catalog import Lifetime
from headrace.sql.formats import format_named
from headrace.sql.planning.plan import (
    DropRepeated,
    Expire,
    Filter,
    FlatMap,
    GroupedAggregate,
    GroupWindow,
    JoinForeignKey,
    JoinRows,
    JoinWindow,
    KeyFormat,
    Project,
    QueryPlan,
    Read,
    SelectKey,
    Step,
    TimeColumn,
)
from headrace.sql.planning.record_functions import records
from headrace.sql.planning.record_functions.aggregating import (
    GroupedRow,
    added,
    added_rows,
    initial,
    merged,
    results,
    taken_back,
)
from headrace.sql.planning.record_functions.reading import (
    OF_RECORD,
    ColumnTime,
    RecordColumns,
    WithKeyColumns,
    extra_of,
)
from headrace.sql.planning.record_functions.row_serde import StoredRowSerde
from headrace.sql.planning.record_functions.writing import TimeFromColumn
from headrace.sql.types.schema import Column
from headrace.windows import EmitStrategy, JoinWindows, SessionWindows, TimeWindows

DEFAULT_GRACE = timedelta(days=1)
"""How long a join without GRACE PERIOD takes late rows."""
AnyStream = KStream[Any, Any]
AnyTable = KTable[Any, Any]


def build(plan: QueryPlan, builder: StreamsBuilder, *, value_serde: Serde[Any] | None = None) -> None:
    """Adds everything that the plan needs to the builder's topology; ``value_serde`` is for a sink of one's own."""
    made = _built(plan.root, builder)
    stream = made.to_stream() if isinstance(made, KTable) else made
    if plan.time is not None:
        stream = stream.process_values(TimeFromColumn(_time(plan.time)))
    sink, window = plan.sink, plan.root.key_format.window
    key_format = KeyFormat(sink.key_format, sink.key_options, window)
    stream.to(
        sink.topic,
        Produced(
            key_serde_of(sink.schema.key, key_format),
            value_serde or format_named(sink.value_format).serde(sink.schema.value, sink.value_options),
        ),
    )


def key_serde_of(columns: tuple[Column, ...], key_format: KeyFormat) -> Serde[Any]:
    """Returns the serde of keys, in windows if the format says so."""
    plain = format_named(key_format.name).key_serde(columns, key_format.options)
    window = key_format.window
    if window is None:
        return plain
    if window.size_ms is None:
        return SessionWindowedSerde(plain)
    return TimeWindowedSerde(plain, window.size_ms)


def _key_serde(step: Step) -> Serde[Any]:
    return key_serde_of(step.key, step.key_format.internal)


def _plain_key_serde(step: Step) -> Serde[Any]:
    return key_serde_of(step.key, replace(step.key_format.internal, window=None))


def _row_serde(step: Step) -> StoredRowSerde:
    return StoredRowSerde(tuple(column.type for column in step.layout.columns))


def _time(time: TimeColumn) -> ColumnTime:
    return ColumnTime(time.name, time.function, time.of_key, time.strict)


class RecordingBuilder(StreamsBuilder):
    """A builder that knows which step of a plan each node of its topology belongs to."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: dict[str, Step] = {}
        """By the node's name; nodes that write the result belong to none."""

    def record(self, step: Step) -> None:
        """Takes all nodes that no step before has made as those of this one."""
        for name in self.build().nodes:
            self.steps.setdefault(name, step)


def _built(step: Step, builder: StreamsBuilder) -> AnyStream | AnyTable:
    made = _added(step, builder)
    if isinstance(builder, RecordingBuilder):
        builder.record(step)
    return made


@singledispatch
def _added(step: Step, builder: StreamsBuilder) -> AnyStream | AnyTable:
    message = f"no translation rule for {type(step).__name__}"
    raise NotImplementedError(message)


def _stream(step: Step, builder: StreamsBuilder) -> AnyStream:
    return cast("AnyStream", _built(step, builder))


def _table(step: Step, builder: StreamsBuilder) -> AnyTable:
    return cast("AnyTable", _built(step, builder))


@_added.register
def _read(step: Read, builder: StreamsBuilder) -> AnyStream | AnyTable:
    definition = step.definition
    consumed: Consumed[Any, Any] = Consumed(
        key_serde_of(definition.schema.key, step.key_format),
        format_named(definition.value_format).serde(definition.schema.value, definition.value_options),
        None if step.time is None else _time(step.time),
    )
    stream = builder.stream(definition.topic, consumed)
    extras = tuple(extra_of(column, definition.schema.key) for column in step.extras)
    if any(kind in OF_RECORD for kind, _ in extras):
        stream = stream.process_values(RecordColumns(extras))
    elif extras:
        stream = stream.map_values(with_key(WithKeyColumns(extras)))
    if not step.is_table:
        return stream
    name = f"KsqlTopic-{step.source}-Reduce" if step.keep_rows else None
    kept: Materialized[Any, Any] = Materialized(name, key_serde=_key_serde(step), value_serde=_row_serde(step))
    return stream.to_table(_expiring(kept, definition.lifetime))


def _expiring(kept: Materialized[Any, Any], lifetime: Lifetime | None) -> Materialized[Any, Any]:
    return kept if lifetime is None else replace(kept, ttl=lifetime.duration, by=lifetime.clock)


@_added.register
def _expire(step: Expire, builder: StreamsBuilder) -> AnyTable:
    kept: Materialized[Any, Any] = Materialized(
        "Expire-Materialize", key_serde=_key_serde(step), value_serde=_row_serde(step)
    )
    return _table(step.parent, builder).map_values(records.same_row, _expiring(kept, step.lifetime))


@_added.register
def _filter(step: Filter, builder: StreamsBuilder) -> AnyStream | AnyTable:
    passing = records.RowFilter(step.predicate)
    return _built(step.parent, builder).filter(passing)


@_added.register
def _project(step: Project, builder: StreamsBuilder) -> AnyStream | AnyTable:
    return _built(step.parent, builder).map_values(records.ProjectRow(step.function))


@_added.register
def _drop_repeated(step: DropRepeated, builder: StreamsBuilder) -> AnyStream:
    stream = _stream(step.parent, builder)
    if isinstance(step.parent, SelectKey):
        stream = stream.repartition(Repartitioned("Distinct", _key_serde(step), _row_serde(step)))
    compared = records.RowIdentity(step.by)
    return stream.distinct(compared, within=step.within, id_serde=StoredRowSerde(step.types), name="Distinct")


@_added.register
def _flat_map(step: FlatMap, builder: StreamsBuilder) -> AnyStream:
    return _stream(step.parent, builder).flat_map_values(records.ExplodeRow(step.function))


@_added.register
def _select_key(step: SelectKey, builder: StreamsBuilder) -> AnyStream | AnyTable:
    made = _built(step.parent, builder)
    stream = made.to_stream() if isinstance(made, KTable) else made
    width = len(step.parent.key)
    selector: Any
    if step.function is None:
        selector = records.same_key if step.key else records.no_key
    elif step.of_key:
        selector = records.KeyKey(step.function, width)
    elif step.for_null is None:
        selector = records.RowKey(step.function, records.no_key)
    else:
        selector = records.RowKey(step.function, records.KeyKey(step.for_null, width))
    stream = stream.select_key(selector)
    if not step.is_table:
        return stream
    materialized: Materialized[Any, Any] = Materialized(key_serde=_key_serde(step), value_serde=_row_serde(step))
    return stream.to_table(materialized, name=f"{step.name}-SelectKey")


@_added.register
def _aggregate(step: GroupedAggregate, builder: StreamsBuilder) -> AnyTable:
    table = _aggregated_table(step, builder) if step.parent.is_table else _aggregated_stream(step, builder)
    rows = results(
        step.aggregates,
        counted=_is_counted(step),
        windowed=step.window is not None,
        with_key=step.with_key,
        with_bounds=step.with_bounds,
    )
    return table.map_values(with_key(rows))


def _arguments_serde(step: GroupedAggregate) -> StoredRowSerde:
    return StoredRowSerde(tuple(column.type for column in step.argument_columns))


def _is_counted(step: GroupedAggregate) -> bool:
    """Whether the DSL's own count does: its state is the number itself."""
    return step.only_counts and not step.parent.is_table


def _states(step: GroupedAggregate) -> Materialized[Any, Any]:
    states: Serde[Any] = StoredRowSerde(tuple(one.state_type for one in step.aggregates))
    kept: Materialized[Any, Any] = Materialized(
        "Aggregate-Aggregate-Materialize",
        key_serde=_plain_key_serde(step),
        value_serde=Serdes.long() if _is_counted(step) else states,
        retention=None if step.window is None else step.window.retention,
    )
    return _expiring(kept, step.lifetime)


def _aggregated_stream(step: GroupedAggregate, builder: StreamsBuilder) -> AnyTable:
    stream = _stream(step.parent, builder)
    add = added(step.aggregates, step.widths)
    if step.grouping is not None:
        stream = stream.map(GroupedRow(step.grouping, step.arguments))
    else:
        if step.window is not None:
            # Without windows the aggregation leaves null rows out by itself.
            stream = stream.filter(records.has_row)
        if step.plain_arguments is None:
            stream = stream.map_values(records.ProjectRow(step.arguments))
        else:
            add = added_rows(step.aggregates, step.widths, step.plain_arguments)
    grouped = stream.group_by_key(Grouped("Aggregate-GroupBy", _plain_key_serde(step), _arguments_serde(step)))
    start, states = initial(step.aggregates), _states(step)
    if step.window is None:
        return grouped.count(states) if step.only_counts else grouped.aggregate(start, add, states)
    emit = EmitStrategy.ON_WINDOW_CLOSE if step.final else EmitStrategy.ON_WINDOW_UPDATE
    if step.window.kind == "SESSION":
        sessions = SessionWindows.of_inactivity_gap_and_grace(step.window.size, step.window.grace)
        in_sessions = grouped.windowed_by(sessions).emit_strategy(emit)
        if step.only_counts:
            return in_sessions.count(states)
        return in_sessions.aggregate(start, add, merged(step.aggregates), states)
    in_windows = grouped.windowed_by(_time_windows(step.window)).emit_strategy(emit)
    return in_windows.count(states) if step.only_counts else in_windows.aggregate(start, add, states)


def _time_windows(window: GroupWindow) -> TimeWindows:
    windows = TimeWindows.of_size_and_grace(window.size, window.grace)
    return windows if window.advance is None else windows.advance_by(window.advance)


def _aggregated_table(step: GroupedAggregate, builder: StreamsBuilder) -> AnyTable:
    assert step.grouping is not None  # tables are always grouped anew
    grouped = _table(step.parent, builder).group_by(
        GroupedRow(step.grouping, step.arguments),
        Grouped("Aggregate-GroupBy", _plain_key_serde(step), _arguments_serde(step)),
    )
    return grouped.aggregate(
        initial(step.aggregates),
        added(step.aggregates, step.widths),
        taken_back(step.aggregates, step.widths),
        _states(step),
    )


@_added.register
def _join(step: JoinRows, builder: StreamsBuilder) -> AnyStream | AnyTable:
    left, right = _built(step.left, builder), _built(step.right, builder)
    swapped = step.kind == "RIGHT"
    widths = len(step.left.layout), len(step.right.layout)
    joiner: Any = records.joined_rows(*widths, step.kind, swapped=swapped, with_key=step.key_column is not None)
    if swapped:
        left, right = right, left
    if step.key_column is not None:
        joiner = with_key(joiner)
    first, second = (step.right, step.left) if step.kind == "RIGHT" else (step.left, step.right)
    if isinstance(left, KTable):
        return _join_tables(step, left, cast("AnyTable", right), joiner)
    if isinstance(right, KTable):
        joined: Joined[Any, Any, Any] = Joined(_key_serde(step), _row_serde(first), _row_serde(second), step.name)
        method = left.join if step.kind == "INNER" else left.left_join
        return method(right, joiner, joined=joined)
    assert step.window is not None  # two streams
    windows = _join_windows(step.window)
    options: StreamJoined[Any, Any, Any] = StreamJoined(
        _key_serde(step), _row_serde(first), _row_serde(second), step.name, step.name
    )
    if step.kind == "INNER":
        return left.join(right, joiner, windows=windows, joined=options)
    if step.kind == "OUTER":
        return left.outer_join(right, joiner, windows=windows, joined=options)
    return left.left_join(right, joiner, windows=windows, joined=options)


def _join_tables(step: JoinRows, left: AnyTable, right: AnyTable, joiner: Any) -> AnyTable:
    materialized: Materialized[Any, Any] = Materialized(key_serde=_key_serde(step), value_serde=_row_serde(step))
    if step.kind == "INNER":
        return left.join(right, joiner, materialized)
    if step.kind == "OUTER":
        return left.outer_join(right, joiner, materialized)
    return left.left_join(right, joiner, materialized)


def _join_windows(window: JoinWindow) -> JoinWindows:
    if window.grace is None:
        windows = JoinWindows.of_time_difference_and_grace(window.before, DEFAULT_GRACE)
        return windows.after(window.after).with_eager_results()
    return JoinWindows.of_time_difference_and_grace(window.before, window.grace).after(window.after)


@_added.register
def _foreign_key(step: JoinForeignKey, builder: StreamsBuilder) -> AnyTable:
    left, right = _table(step.left, builder), _table(step.right, builder)
    joiner = records.joined_rows(len(step.left.layout), len(step.right.layout), step.kind)
    materialized: Materialized[Any, Any] = Materialized(key_serde=_key_serde(step), value_serde=_row_serde(step))
    method = left.join if step.kind == "INNER" else left.left_join
    return method(
        right,
        joiner,
        materialized,
        foreign_key=records.ForeignKey(step.foreign_key),
        table_joined=TableJoined(step.name),
    )
