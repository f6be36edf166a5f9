"""The step that aggregates: arguments, keys and windows of a GROUP BY."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

from headrace.sql.catalog.source_checks import check_key_columns
from headrace.sql.errors import SqlError, SqlStatementError
from headrace.sql.expressions import RowFunction
from headrace.sql.formats import format_named
from headrace.sql.functions.definitions import Aggregate
from headrace.sql.planning.group_by import Grouping, check_undo
from headrace.sql.planning.layout import Layout
from headrace.sql.planning.plan import GroupedAggregate, GroupWindow, KeyFormat, Step
from headrace.sql.planning.sources import Sources
from headrace.sql.planning.typing import Typing
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import ColumnReference, Expression
from headrace.sql.syntax.statements import Query, Window
from headrace.sql.types import STRING
from headrace.sql.types.schema import WINDOW_BOUNDS, Column, Namespace

DEFAULT_RETENTION = timedelta(days=1)
"""How long a window without GRACE PERIOD takes late rows, counted from its start."""


def aggregated(
    step: Step,
    grouping: Grouping,
    query: Query,
    sources: Sources,
    typing: Typing,
    key_format: KeyFormat,
    *,
    used: Collection[str],
    equal_to_key: Collection[Expression],
) -> GroupedAggregate:
    """Returns the step that aggregates. ``used`` are the columns of the results that later steps look at."""
    calls = [typing.aggregate(sources.internal(call), step.layout) for call in grouping.aggregates]
    if step.is_table:
        check_undo([call.name for call in calls if not call.aggregate.can_undo])
    keys = [sources.internal(key) for key in grouping.keys]
    keeps_key = not step.is_table and _is_key(step, keys, grouping.keys, equal_to_key)
    # A key that is kept need not be in the row.
    function, types = typing.row_function(keys, Layout(step.key) if keeps_key else step.layout)
    key = tuple(Column(name, type, Namespace.KEY) for name, type in zip(grouping.key_names, types, strict=True))
    check_key_columns(key)
    window = None if query.window is None else group_window(query.window, final=query.emit == "FINAL")
    made_format = step.key_format if keeps_key else key_format
    arguments = [argument for call in calls for argument in call.arguments]
    texts = [expression_text(node) for call in calls for node in call.argument_nodes]
    with_key = any(name in used for name in grouping.key_names)
    with_bounds = any(name in used for name in WINDOW_BOUNDS)
    results = [
        Column(name, call.aggregate.result_type) for name, call in zip(grouping.aggregate_names, calls, strict=True)
    ]
    bounds = [Column(name, type) for name, type in WINDOW_BOUNDS.items()]
    copies = [Column(column.name, column.type) for column in key]
    _check_states([call.aggregate for call in calls], sources)
    return GroupedAggregate(
        layout=Layout((*results, *(copies if with_key else ()), *(bounds if with_bounds else ()))),
        key=key,
        key_format=replace(made_format, window=None if window is None else window.key_window),
        is_table=True,
        parent=step,
        grouping=None if keeps_key else function,
        arguments=RowFunction(arguments, texts),
        plain_arguments=None if any(one.can_fail for one in arguments) else tuple(arguments),
        argument_columns=tuple(
            Column(f"KSQL_INTERNAL_COL_{number}", one.type or STRING) for number, one in enumerate(arguments)
        ),
        aggregates=tuple(call.aggregate for call in calls),
        widths=tuple(len(call.arguments) for call in calls),
        window=window,
        final=query.emit == "FINAL",
        with_key=with_key,
        with_bounds=with_bounds,
    )


def _is_key(
    step: Step, keys: list[Expression], qualified: tuple[Expression, ...], equal: Collection[Expression]
) -> bool:
    if step.key_format.window is not None:
        return False
    if len(qualified) == 1 and qualified[0] in equal:
        return True
    names = [key.name for key in keys if isinstance(key, ColumnReference)]
    return len(names) == len(keys) and names == [column.name for column in step.key]


def group_window(window: Window, *, final: bool) -> GroupWindow:
    """Returns the windows of an aggregation, with the grace period that holds without GRACE PERIOD."""
    grace = window.grace
    if grace is None:
        grace = timedelta(0) if final else max(DEFAULT_RETENTION - window.size, timedelta(0))
    return GroupWindow(window.kind, window.size, window.advance, grace, window.retention)


def _check_states(aggregates: list[Aggregate], sources: Sources) -> None:
    """Raises if the source's format could not hold the states, as a user of the same format would find them."""
    columns = tuple(Column(f"KSQL_AGG_VARIABLE_{number}", one.state_type) for number, one in enumerate(aggregates))
    name = sources.items[0].definition.value_format
    if name != "DELIMITED":
        return
    try:
        format_named(name).check(columns)
    except SqlError as error:
        message = (
            "One of the functions used in the statement has an intermediate type that the value format can not handle. "
            "Please remove the function or change the format."
        )
        raise SqlStatementError(message) from error
