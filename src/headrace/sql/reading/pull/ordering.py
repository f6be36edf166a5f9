"""ORDER BY, OFFSET and LIMIT."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from headrace.sql.errors import SqlStatementError
from headrace.sql.planning.select import Selected
from headrace.sql.syntax.nodes import ColumnReference, Expression, Literal
from headrace.sql.types import SqlArray, SqlMap, SqlStruct, SqlType

Row = list[Any]


def order_place(expression: Expression, selected: Sequence[Selected]) -> int | None:
    """Returns which selected column ORDER BY names, by its name or its number from 1; None if it is none of them."""
    if isinstance(expression, Literal) and type(expression.value) is int:
        if not 1 <= expression.value <= len(selected):
            message = f"ORDER BY {expression.value}: the query selects {len(selected)} columns, counted from 1"
            raise SqlStatementError(message, position=expression.position)
        return expression.value - 1
    if isinstance(expression, ColumnReference) and expression.source is None:
        for place, one in enumerate(selected):
            if one.name == expression.name:
                return place
    return None


def check_order(type: SqlType, expression: Expression) -> None:
    """Raises if values of a type have no order."""
    if isinstance(type, SqlArray | SqlMap | SqlStruct):
        message = f"ORDER BY: values of type {type} have no order; take a part of them"
        raise SqlStatementError(message, position=expression.position)


def ordered(rows: Iterable[Row], places: Sequence[tuple[int, bool]]) -> Iterable[Row]:
    """Returns the rows by the columns at the places, each ascending or descending. NULL comes after all values.

    >>> ordered([[1, "b"], [2, None], [3, "a"]], [(1, False)])
    [[3, 'a'], [1, 'b'], [2, None]]
    >>> ordered([[1, 5], [2, 5], [3, 6]], [(1, True), (0, True)])
    [[3, 6], [2, 5], [1, 5]]
    """
    if not places:
        return rows
    found = list(rows)
    # The least important column first: sorting keeps what is equal in its order.
    for place, descending in reversed(places):
        known = [row for row in found if row[place] is not None]
        known.sort(key=lambda row: row[place], reverse=descending)
        found = known + [row for row in found if row[place] is None]
    return found


def page(rows: Iterable[Row], offset: int | None, limit: int | None) -> Iterator[Row]:
    """Yields rows from an offset on, at most as many as the limit.

    >>> list(page([[1], [2], [3]], 1, 1))
    [[2]]
    """
    start = offset or 0
    return islice(iter(rows), start, None if limit is None else start + limit)
