"""The functions behind ``count`` and windowed ``reduce``: module level, so that a topology can be pickled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any


def zero() -> int:
    """Starts a count."""
    return 0


def add_one(_key: Any, _value: Any, count: int) -> int:
    """Counts a record."""
    return count + 1


def subtract_one(_key: Any, _value: Any, count: int) -> int:
    """Takes a row out of a count."""
    return count - 1


def add_counts(_key: Any, first: int, second: int) -> int:
    """Counts the records of two sessions that become one."""
    return first + second


def nothing() -> None:
    """Starts a reduction, which has no value before its first."""


def aggregator_of(reducer: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """Returns the aggregator that reduces: the first value is the aggregate."""
    return partial(_reduce, reducer)


def merger_of(reducer: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """Returns what reduces two sessions that become one."""
    return partial(_merge, reducer)


def _reduce(reducer: Callable[[Any, Any], Any], _key: Any, value: Any, aggregate: Any) -> Any:
    return value if aggregate is None else reducer(aggregate, value)


def _merge(reducer: Callable[[Any, Any], Any], _key: Any, first: Any, second: Any) -> Any:
    return second if first is None else reducer(first, second)
