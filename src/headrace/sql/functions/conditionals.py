"""COALESCE, IFNULL, NULLIF and AS_VALUE."""

from __future__ import annotations

from typing import Any

from headrace.sql.functions.definitions import overload, scalar


def first_present(*values: Any) -> Any:
    """Returns the first value that is not NULL."""
    return next((value for value in values if value is not None), None)


def null_if_equal(value: Any, other: Any) -> Any:
    """Returns NULL if both values are equal, else the first."""
    return None if value == other else value


def as_value(value: Any) -> Any:
    """Returns the value."""
    return value


FUNCTIONS = (
    scalar(
        "COALESCE",
        "Returns the first argument that is not NULL.",
        "Conditional",
        [("COALESCE(NULL, 2, 3)", "2")],
        overload("(first T, others T...) T", first_present, strict=False),
    ),
    scalar(
        "IFNULL",
        "Returns the first argument, or the second if the first is NULL.",
        "Conditional",
        [("IFNULL(NULL, 2)", "2")],
        overload("(value T, otherwise T) T", first_present, strict=False),
    ),
    scalar(
        "NULLIF",
        "Returns NULL if both arguments are equal, else the first.",
        "Conditional",
        [("NULLIF(1, 2)", "1")],
        overload("(value T, other T) T", null_if_equal, strict=False),
    ),
    scalar(
        "AS_VALUE",
        "Returns its argument: in a projection it copies a key column into the value.",
        "Other",
        [("AS_VALUE(1)", "1")],
        overload("(key T) T", as_value),
    ),
)
