"""Table functions: rows from one row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from headrace.sql.functions.definitions import TableFunction, overload
from headrace.sql.types import SqlArray, SqlType


def items(array: list[Any] | None) -> list[Any]:
    """Returns a row for each item; none for NULL."""
    return array or []


def cube(array: list[Any] | None) -> list[list[Any]]:
    """Returns a row for each way to replace items with NULL."""
    choices = [(None,) if item is None else (None, item) for item in array or ()]
    return [list(row) for row in product(*choices)] if array else []


def _item(types: Sequence[SqlType | None]) -> SqlType | None:
    return types[0].item if isinstance(types[0], SqlArray) else None


def _array(types: Sequence[SqlType | None]) -> SqlType | None:
    return types[0]


FUNCTIONS = (
    TableFunction(
        "explode",
        "Returns a row for each item of an array; no row for an empty one or NULL.",
        "Table",
        (),
        (overload("(array ARRAY<T>) T", items, returns=_item, strict=False),),
    ),
    TableFunction(
        "cube_explode",
        "Returns a row for each way to replace items of an array with NULL.",
        "Table",
        (),
        (overload("(columns ARRAY<T>) ARRAY<T>", cube, returns=_array, strict=False),),
    ),
)
