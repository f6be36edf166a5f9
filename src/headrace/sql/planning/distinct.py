"""DISTINCT ON: where it can stand, and the step that drops rows."""

from __future__ import annotations

from datetime import timedelta

from headrace.sql.errors import SqlStatementError
from headrace.sql.formats.format import types_within
from headrace.sql.planning.plan import DropRepeated, Step
from headrace.sql.planning.sources import Sources
from headrace.sql.planning.typing import Typing
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import Expression
from headrace.sql.syntax.statements import Distinct, Query
from headrace.sql.types import SqlMap


def check_distinct(query: Query, distinct: Distinct, *, is_table: bool) -> None:
    """Raises if the query cannot drop rows that repeat others."""
    if query.group_by:
        problem = "does not go with GROUP BY: make a stream of the distinct rows first, and group that"
    elif is_table:
        problem = "is for streams: a table has one row for each key"
    elif distinct.within <= timedelta(0):
        problem = "needs a WITHIN that is longer than nothing"
    else:
        return
    message = f"DISTINCT ON {problem}."
    raise SqlStatementError(message, position=distinct.position)


def without_repeated(
    step: Step, distinct: Distinct, expressions: tuple[Expression, ...], sources: Sources, typing: Typing
) -> Step:
    """Returns the step without rows that repeat others; ``expressions`` have the source of every column."""
    if not step.key:
        message = (
            "DISTINCT ON compares rows that have the same key, and the rows have none: "
            "add PARTITION BY with the columns that tell what belongs together."
        )
        raise SqlStatementError(message, position=distinct.position)
    internal = [sources.internal(one) for one in expressions]
    function, types = typing.row_function(internal, step.layout, "Invalid DISTINCT ON: ")
    for written, type in zip(distinct.expressions, types, strict=True):
        if any(isinstance(inner, SqlMap) for inner in types_within(type)):
            message = f"DISTINCT ON cannot compare maps: {expression_text(written)} is of type {type}."
            raise SqlStatementError(message, position=written.position)
    return DropRepeated(
        layout=step.layout,
        key=step.key,
        key_format=step.key_format,
        is_table=False,
        parent=step,
        by=function,
        types=tuple(types),
        within=distinct.within,
    )
