"""Functions on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.sql.functions.definitions import CallSite, overload, scalar
from headrace.sql.functions.sizes import MOST_ITEMS, check_size
from headrace.sql.types import STRING, SqlArray, SqlBaseType
from headrace.sql.types.conversions import TextOf

CATEGORY = "Array"
_ASCENDING = ("ASC", "ASCENDING")
_DESCENDING = ("DESC", "DESCENDING")
_PRINTABLE = (
    SqlBaseType.BOOLEAN,
    SqlBaseType.INTEGER,
    SqlBaseType.BIGINT,
    SqlBaseType.DOUBLE,
    SqlBaseType.DECIMAL,
    SqlBaseType.STRING,
)


def concatenated(left: list[Any] | None, right: list[Any] | None) -> list[Any] | None:
    """Returns the items of both arrays; NULL only if both are."""
    if left is None or right is None:
        return right if left is None else left
    return [*left, *right]


def contains(array: list[Any] | None, value: Any) -> bool:
    """Whether an item equals the value; NULL contains nothing."""
    return array is not None and value in array


def distinct(array: list[Any]) -> list[Any]:
    """Returns the different items in the order of their first appearance."""
    try:
        return list(dict.fromkeys(array))
    except TypeError:  # arrays, maps and structs do not hash
        result: list[Any] = []
        for item in array:
            if item not in result:
                result.append(item)
        return result


def without(left: list[Any], right: list[Any]) -> list[Any]:
    """Returns the different items of one array that the other has not."""
    return distinct([item for item in left if item not in right])


def in_both(left: list[Any], right: list[Any]) -> list[Any]:
    """Returns the different items that both arrays have."""
    return distinct([item for item in left if item in right])


def in_either(left: list[Any], right: list[Any]) -> list[Any]:
    """Returns the different items of both arrays."""
    return distinct([*left, *right])


class Joined:
    """The items of an array as one text."""

    def __init__(self, text: TextOf) -> None:
        self.text = text

    def __call__(self, array: list[Any] | None, delimiter: str | None = ",") -> str | None:
        """Returns the texts of the items with a delimiter between them."""
        return None if array is None else (delimiter or "").join(map(self.text, array))


def _joined(site: CallSite) -> Callable[..., Any]:
    found = site.types[0]
    if not isinstance(found, SqlArray):
        return Joined(TextOf(STRING))  # NULL, which has no items
    if found.item.base not in _PRINTABLE:
        message = (
            f"ARRAY_JOIN: the items of {found} are no plain values; only BOOLEAN, numbers and STRING can be joined"
        )
        raise ValueError(message)
    return Joined(TextOf(found.item))


def largest(array: list[Any]) -> Any:
    """Returns the largest item, NULL ones aside."""
    present = [item for item in array if item is not None]
    return max(present) if present else None


def smallest(array: list[Any]) -> Any:
    """Returns the smallest item, NULL ones aside."""
    present = [item for item in array if item is not None]
    return min(present) if present else None


def removed(array: list[Any] | None, value: Any) -> list[Any] | None:
    """Returns the array without the items that equal a value."""
    return None if array is None else [item for item in array if item != value]


def ordered(array: list[Any], direction: str = "ASC") -> list[Any] | None:
    """Returns the array in order, NULL items at its end; NULL for an unknown direction."""
    word = direction.upper()
    if word not in _ASCENDING and word not in _DESCENDING:
        return None
    present = sorted((item for item in array if item is not None), reverse=word in _DESCENDING)
    return [*present, *[None] * (len(array) - len(present))]


def series(start: int, end: int, step: int | None = None) -> list[int]:
    """Returns the numbers from one to another, both included."""
    if step is None:
        step = 1 if end >= start else -1
    if step == 0:
        message = "GENERATE_SERIES step cannot be zero"
        raise ValueError(message)
    if (end > start and step < 0) or (end < start and step > 0):
        message = "GENERATE_SERIES step has wrong sign"
        raise ValueError(message)
    check_size("GENERATE_SERIES", (end - start) // step + 1, MOST_ITEMS, "items")
    return list(range(start, end + (1 if step > 0 else -1), step))


def slice_of(array: list[Any] | None, first: int | None, last: int | None) -> list[Any] | None:
    """Returns the items from one place to another, counted from 1, both included; NULL outside of the array."""
    if array is None:
        return None
    start = 0 if first is None else first - 1
    end = len(array) if last is None else last
    return array[start:end] if 0 <= start <= end <= len(array) else None


FUNCTIONS = (
    scalar(
        "ARRAY_CONCAT",
        "Returns the items of both arrays, one array after the other.",
        CATEGORY,
        [("ARRAY_CONCAT(ARRAY[1], ARRAY[2, 1])", "ARRAY[1, 2, 1]")],
        overload("(left ARRAY<T>, right ARRAY<T>) ARRAY<T>", concatenated, strict=False),
    ),
    scalar(
        "ARRAY_CONTAINS",
        "Returns whether an item of the array equals a value.",
        CATEGORY,
        [("ARRAY_CONTAINS(ARRAY[1, 2], 2)", "true")],
        overload("(array ARRAY<T>, value T) BOOLEAN", contains, strict=False),
    ),
    scalar(
        "array_distinct",
        "Returns the different items of the array in the order of their first appearance.",
        CATEGORY,
        [("ARRAY_DISTINCT(ARRAY[2, 1, 2])", "ARRAY[2, 1]")],
        overload("(array ARRAY<T>) ARRAY<T>", distinct),
    ),
    scalar(
        "array_except",
        "Returns the different items of the first array that the second has not.",
        CATEGORY,
        [("ARRAY_EXCEPT(ARRAY[1, 2, 1], ARRAY[2])", "ARRAY[1]")],
        overload("(left ARRAY<T>, right ARRAY<T>) ARRAY<T>", without),
    ),
    scalar(
        "array_intersect",
        "Returns the different items that both arrays have.",
        CATEGORY,
        [("ARRAY_INTERSECT(ARRAY[1, 2, 2], ARRAY[2])", "ARRAY[2]")],
        overload("(left ARRAY<T>, right ARRAY<T>) ARRAY<T>", in_both),
    ),
    scalar(
        "ARRAY_JOIN",
        "Returns the items of the array as one text, with a delimiter between them, a comma by default.",
        CATEGORY,
        [("ARRAY_JOIN(ARRAY[1, 2], '-')", "'1-2'")],
        overload("(array ARRAY<T>) STRING", bind=_joined, strict=False),
        overload("(array ARRAY<T>, delimiter STRING) STRING", bind=_joined, strict=False),
    ),
    scalar(
        "ARRAY_LENGTH",
        "Returns the number of items of the array.",
        CATEGORY,
        [("ARRAY_LENGTH(ARRAY[1, 2])", "2")],
        overload("(array ARRAY<T>) INT", len),
    ),
    scalar(
        "array_max",
        "Returns the largest item of the array, NULL ones aside.",
        CATEGORY,
        [("ARRAY_MAX(ARRAY[1, 3, 2])", "3")],
        overload("(array ARRAY<T>) T", largest),
    ),
    scalar(
        "array_min",
        "Returns the smallest item of the array, NULL ones aside.",
        CATEGORY,
        [("ARRAY_MIN(ARRAY[2, 1, 3])", "1")],
        overload("(array ARRAY<T>) T", smallest),
    ),
    scalar(
        "array_remove",
        "Returns the array without the items that equal a value.",
        CATEGORY,
        [("ARRAY_REMOVE(ARRAY[1, 2, 1], 1)", "ARRAY[2]")],
        overload("(array ARRAY<T>, value T) ARRAY<T>", removed, strict=False),
    ),
    scalar(
        "array_sort",
        "Returns the array in order, ascending unless 'DESC' is given, with NULL items at its end.",
        CATEGORY,
        [("ARRAY_SORT(ARRAY[2, 3, 1], 'DESC')", "ARRAY[3, 2, 1]")],
        overload("(array ARRAY<T>) ARRAY<T>", ordered),
        overload("(array ARRAY<T>, direction STRING) ARRAY<T>", ordered),
    ),
    scalar(
        "array_union",
        "Returns the different items of both arrays.",
        CATEGORY,
        [("ARRAY_UNION(ARRAY[1, 2], ARRAY[2, 3])", "ARRAY[1, 2, 3]")],
        overload("(left ARRAY<T>, right ARRAY<T>) ARRAY<T>", in_either),
    ),
    scalar(
        "GENERATE_SERIES",
        "Returns the numbers from one to another, both included, with a step if given.",
        CATEGORY,
        [("GENERATE_SERIES(1, 7, 3)", "ARRAY[1, 4, 7]")],
        overload("(start INT, end INT) ARRAY<INT>", series),
        overload("(start INT, end INT, step INT) ARRAY<INT>", series),
        overload("(start BIGINT, end BIGINT) ARRAY<BIGINT>", series),
        overload("(start BIGINT, end BIGINT, step INT) ARRAY<BIGINT>", series),
    ),
    scalar(
        "slice",
        "Returns the items of the array from one place to another, counted from 1, both included.",
        CATEGORY,
        [("SLICE(ARRAY[1, 2, 3], 2, 3)", "ARRAY[2, 3]")],
        overload("(array ARRAY<T>, first INT, last INT) ARRAY<T>", slice_of, strict=False),
    ),
)
