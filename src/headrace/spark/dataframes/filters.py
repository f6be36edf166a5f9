"""Filters that Spark pushes down, as bounds of a read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from headrace.arguments.durations import MAX_LONG

_ENDS = GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual

KeyBytes = Callable[[Any], bytes]
"""Writes a key as it is in the log."""
ToNumber = Callable[[Any], int | float]


def _identity(number: int) -> int:
    return number


@dataclass(frozen=True)
class Range:
    """Whole numbers from ``first`` to ``last``, both included."""

    first: int = -MAX_LONG
    last: int = MAX_LONG

    def within(self, filter: Filter, to_number: ToNumber = _identity) -> Range | None:
        """Returns what is left of it behind a filter; None if the filter is of another kind.

        >>> Range().within(GreaterThan(("offset",), 5)).within(LessThanOrEqual(("offset",), 9))
        Range(first=6, last=9)
        """
        match filter:
            case EqualTo():
                number = to_number(filter.value)
                return self.cut(math.ceil(number), math.floor(number))
            case GreaterThan():
                return self.cut(math.floor(to_number(filter.value)) + 1, MAX_LONG)
            case GreaterThanOrEqual():
                return self.cut(math.ceil(to_number(filter.value)), MAX_LONG)
            case LessThan():
                return self.cut(-MAX_LONG, math.ceil(to_number(filter.value)) - 1)
            case LessThanOrEqual():
                return self.cut(-MAX_LONG, math.floor(to_number(filter.value)))
        return None

    def cut(self, first: int, last: int) -> Range:
        """Returns what lies within both."""
        return Range(max(self.first, first), min(self.last, last))

    @property
    def is_everything(self) -> bool:
        return self == Range()

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last


@dataclass(frozen=True)
class Bounds:
    """Bounds of what has to be read; every row is within all of them."""

    partitions: Range = Range()
    named_partitions: frozenset[int] | None = None
    """Those that ``IN`` names, if it does."""
    offsets: Range = Range()
    times_ms: Range = Range()
    keys: frozenset[bytes] | None = None
    """Keys as they are in the log; None: all of them."""

    def has_partition(self, partition: int) -> bool:
        return partition in self.partitions and (self.named_partitions is None or partition in self.named_partitions)


@dataclass(frozen=True)
class Pushable:
    """Columns whose filters are pushed down, by their part of a record; None if there is no such column."""

    partition: str | None = None
    offset: str | None = None
    time: str | None = None
    to_ms: ToNumber = _identity
    """Milliseconds of a time in the column."""
    key: str | None = None
    key_bytes: KeyBytes | None = None

    def push(self, bounds: Bounds, filters: Iterable[Filter]) -> tuple[Bounds, list[Filter]]:
        """Returns the bounds behind filters, and the filters that Spark has to apply itself.

        >>> pushable = Pushable(partition="partition", key="key", key_bytes=str.encode)
        >>> bounds, left = pushable.push(Bounds(), [EqualTo(("key",), "alice"), EqualTo(("value",), 1)])
        >>> bounds.keys, left
        (frozenset({b'alice'}), [EqualTo(attribute=('value',), value=1)])
        """
        left = []
        for filter in filters:
            pushed = self._push_down(bounds, filter)
            if pushed is None:
                left.append(filter)
            else:
                bounds = pushed
        return bounds, left

    def _push_down(self, bounds: Bounds, filter: Filter) -> Bounds | None:
        if not isinstance(filter, EqualTo | In | _ENDS) or len(filter.attribute) != 1 or filter.value is None:
            return None
        [column] = filter.attribute
        if column == self.key and self.key_bytes is not None:
            return self._with_keys(bounds, filter, self.key_bytes)
        if column == self.partition:
            if isinstance(filter, In):
                named = frozenset(filter.value)
                known = bounds.named_partitions
                return replace(bounds, named_partitions=named if known is None else named & known)
            partitions = bounds.partitions.within(filter)
            return None if partitions is None else replace(bounds, partitions=partitions)
        if column == self.offset:
            offsets = bounds.offsets.within(filter)
            return None if offsets is None else replace(bounds, offsets=offsets)
        if column == self.time:
            times = bounds.times_ms.within(filter, self.to_ms)
            return None if times is None else replace(bounds, times_ms=times)
        return None

    @staticmethod
    def _with_keys(bounds: Bounds, filter: Filter, key_bytes: KeyBytes) -> Bounds | None:
        match filter:
            case EqualTo():
                keys = frozenset({key_bytes(filter.value)})
            case In():
                keys = frozenset(key_bytes(each) for each in filter.value if each is not None)
            case _:
                return None
        return replace(bounds, keys=keys if bounds.keys is None else keys & bounds.keys)


def milliseconds_of(moment: datetime) -> float:
    """Returns milliseconds since 1970; a time without a zone is in UTC.

    >>> milliseconds_of(datetime(1970, 1, 1, 0, 0, 1, 500, tzinfo=UTC))
    1000.5
    """
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds / 1000
