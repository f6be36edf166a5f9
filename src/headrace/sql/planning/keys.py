"""The steps that give records another key because the query says so."""

from __future__ import annotations

from headrace.sql.expressions import RowFunction
from headrace.sql.planning.clause_checks import windowed_repartition
from headrace.sql.planning.layout import Layout
from headrace.sql.planning.plan import KeyFormat, SelectKey, Step
from headrace.sql.planning.projection import Projection
from headrace.sql.planning.sources import Sources
from headrace.sql.planning.tree import references
from headrace.sql.planning.typing import Typing
from headrace.sql.syntax.nodes import ColumnReference, Expression, Literal
from headrace.sql.types.schema import Column, Namespace


def partitioned(
    step: Step,
    partition_by: tuple[Expression, ...],
    projection: Projection,
    sources: Sources,
    typing: Typing,
    key_format: KeyFormat,
) -> Step:
    """Returns the step with the key of PARTITION BY; the step itself if that is the key it has."""
    internal = [sources.internal(one) for one in partition_by]
    names = [one.name for one in internal if isinstance(one, ColumnReference)]
    if len(names) == len(internal) and names == [column.name for column in step.key]:
        return step
    if step.key_format.window is not None:
        raise windowed_repartition()
    if partition_by == (Literal(None),):
        return _selected(step, (), key_format, None)
    old_key = Layout(step.key)
    of_key = [all(one.name in old_key for one in references(expression)) for expression in internal]
    function, types = typing.row_function(internal, old_key if all(of_key) else step.layout)
    for_null = None
    if not all(of_key):
        kept = [one if is_kept else Literal(None) for one, is_kept in zip(internal, of_key, strict=True)]
        for_null = RowFunction([typing.typed(one, old_key) for one in kept])
    key = tuple(Column(one.name, type, Namespace.KEY) for one, type in zip(projection.key, types, strict=True))
    return _selected(step, key, key_format, function, of_key=all(of_key), for_null=for_null)


def ordered_key(step: Step, projection: Projection, sources: Sources, typing: Typing) -> Step:
    """Returns the step with the key in the order of the projection, without the columns that it leaves out."""
    internal = [sources.internal(one.expression) for one in projection.key]
    names = [one.name for one in internal if isinstance(one, ColumnReference)]
    if names == [column.name for column in step.key]:
        return step
    key = Layout(step.key)
    function, _ = typing.row_function(internal, key)
    columns = tuple(key.column(name) for name in names)
    return _selected(step, columns, step.key_format, function if names else None, of_key=True)


def _selected(
    step: Step,
    key: tuple[Column, ...],
    key_format: KeyFormat,
    function: RowFunction | None,
    *,
    of_key: bool = False,
    for_null: RowFunction | None = None,
) -> SelectKey:
    return SelectKey(
        layout=step.layout,
        key=key,
        key_format=key_format,
        is_table=step.is_table,
        parent=step,
        function=function,
        of_key=of_key,
        for_null=for_null,
        name="PartitionBy",
    )
