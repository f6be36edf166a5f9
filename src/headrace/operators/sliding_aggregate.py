"""Aggregations by sliding windows: a record at ``t`` makes ``[t - d, t]``, and ``[t + 1, t + 1 + d]`` if others follow.

A row's timestamp is that of the newest record in its window; from it one sees which windows exist for which records. No
window starts before 0, so the records earlier than the difference ``d`` share the window ``[0, d]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from headrace.errors import SerializationError
from headrace.operators.aggregate_rows import forward_flushes, keeper
from headrace.operators.base import Edge, Node, operator
from headrace.operators.emit import NEVER, Span, on_close, window_results
from headrace.topics.log import Headers
from headrace.topology.operations import SlidingAggregate
from headrace.windows import EmitStrategy, SlidingWindows, TimeWindow, Windowed

Row: TypeAlias = tuple[Any, int]
Arrived: TypeAlias = tuple[Any, Any, int, Headers, int]
"""Key, value, timestamp and headers of a record, and the close time when it came."""


@operator.register
def _sliding_aggregate(operation: SlidingAggregate, node: Node) -> Edge:
    windows, store = operation.windows, node.store(operation.store)
    difference_ms, grace_ms = windows.difference_ms, windows.grace_ms
    sliding = _Sliding(operation, node)
    process, process_early = sliding.process, sliding.process_early
    drop, late = node.drop, node.late
    time = node.cell(operation.store, "stream-time", NEVER)
    close = None
    if operation.emit is EmitStrategy.ON_WINDOW_CLOSE:
        close = on_close(node, operation.store, _closed_between(windows), window_results(store, node, difference_ms))

    def aggregate(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None or value is None:
            return drop()
        if timestamp_ms > time.value:
            time.value = timestamp_ms
        close_time_ms = time.value - grace_ms
        if timestamp_ms + difference_ms < close_time_ms:
            window = TimeWindow(timestamp_ms, timestamp_ms + difference_ms)
            return late(key, value, timestamp_ms, headers, window=window, close_time_ms=close_time_ms)
        if timestamp_ms < difference_ms:
            process_early(key, value, timestamp_ms, headers, close_time_ms)
        elif process(key, value, timestamp_ms, headers, close_time_ms) and close is not None:
            close(close_time_ms, headers)
        return None

    return aggregate


class _Sliding:
    """Finds and updates the windows of one record; its methods return False when the record was given up."""

    def __init__(self, operation: SlidingAggregate, node: Node) -> None:
        store = node.store(operation.store)
        self._difference_ms = operation.windows.difference_ms
        self._initializer, self._aggregator = operation.initializer, operation.aggregator
        self._fetch, self._put = store.fetch_pairs, store.put_pair
        self._late, self._fail, self._forward = node.late, node.fail, node.forward
        self._send_old, self._keep = operation.send_old, keeper(store)
        self._forwards = operation.emit is EmitStrategy.ON_WINDOW_UPDATE and not store.cached
        if operation.emit is EmitStrategy.ON_WINDOW_UPDATE and store.cached:
            forward_flushes(store, node, send_old=operation.send_old)

    def process(self, key: Any, value: Any, timestamp_ms: int, headers: Headers, close_time_ms: int) -> bool:
        difference_ms = self._difference_ms
        record = (key, value, timestamp_ms, headers, close_time_ms)
        starts: set[int] = set()
        left: Any = None
        right: Row | None = None
        left_exists = right_exists = False
        previous_ms: int | None = None
        first_ms = max(0, timestamp_ms - 2 * difference_ms)
        found = self._find(record, first_ms, reverse=True)
        if found is None:
            return False
        for start_ms, aggregate, newest_ms in found:
            starts.add(start_ms)
            end_ms = start_ms + difference_ms
            if start_ms == timestamp_ms + 1:
                right_exists = True
            elif end_ms > timestamp_ms:
                if right is None:
                    right = (self._keep(aggregate), newest_ms)
                if not self._update(record, start_ms, (aggregate, newest_ms)):
                    return False
            elif end_ms == timestamp_ms:
                left_exists = True
                if not self._update(record, start_ms, (aggregate, newest_ms)):
                    return False
                if newest_ms == timestamp_ms:
                    # A record of the same time has been here and has made all windows.
                    return True
                previous_ms = newest_ms
            else:
                left, previous_ms = aggregate, newest_ms
                break
        if (
            previous_ms is not None
            and previous_ms + 1 not in starts
            and previous_ms + 1 + difference_ms >= timestamp_ms
            and not self._update(record, previous_ms + 1, None)
        ):
            return False
        if not left_exists:
            start_ms = timestamp_ms - difference_ms
            row = (left, timestamp_ms) if previous_ms is not None and start_ms <= previous_ms else None
            if not self._update(record, start_ms, row):
                return False
        if not right_exists and right is not None and right[1] > timestamp_ms:
            self._make_right(key, timestamp_ms, headers, right)
        return True

    def process_early(self, key: Any, value: Any, timestamp_ms: int, headers: Headers, close_time_ms: int) -> bool:
        record = (key, value, timestamp_ms, headers, close_time_ms)
        starts: set[int] = set()
        shared: Row | None = None
        right: Row | None = None
        right_exists = False
        previous_ms: int | None = None
        found = self._find(record, 0)
        if found is None:
            return False
        for start_ms, aggregate, newest_ms in found:
            starts.add(start_ms)
            if start_ms == 0:
                shared = (aggregate, newest_ms)
                if newest_ms < timestamp_ms:
                    previous_ms = newest_ms
            elif start_ms <= timestamp_ms:
                right = (self._keep(aggregate), newest_ms)
                if not self._update(record, start_ms, (aggregate, newest_ms)):
                    return False
            else:
                right_exists = True
        if right is None:
            # With later records only, the shared window holds just what belongs into this record's right window.
            right = None if shared is None else (self._keep(shared[0]), shared[1])
        if not right_exists and right is not None and right[1] > timestamp_ms:
            self._make_right(key, timestamp_ms, headers, right)
        if (
            previous_ms is not None
            and previous_ms + 1 not in starts
            and not self._update(record, previous_ms + 1, None)
        ):
            return False
        return self._update(record, 0, shared)

    def _find(self, record: Arrived, first_ms: int, *, reverse: bool = False) -> Sequence[tuple[int, Any, int]] | None:
        """Returns the windows that start from a time to just after the record; None if the record was given up."""
        key, value, timestamp_ms, headers, _ = record
        try:
            found: Sequence[tuple[int, Any, int]] = self._fetch(key, first_ms, timestamp_ms + 1, reverse=reverse)
        except SerializationError as error:
            self._fail(error, key, value, timestamp_ms, headers)
            return None
        return found

    def _update(self, record: Arrived, start_ms: int, row: Row | None) -> bool:
        """Adds the record to one window, which is new if ``row`` is None."""
        key, value, timestamp_ms, headers, close_time_ms = record
        end_ms = start_ms + self._difference_ms
        if end_ms < close_time_ms:
            window = TimeWindow(start_ms, end_ms)
            self._late(key, value, timestamp_ms, headers, window=window, close_time_ms=close_time_ms)
            return True
        try:
            old, newest_ms = (self._initializer(), timestamp_ms) if row is None else row
            before = self._keep(old) if self._send_old and self._forwards else None
            new = self._aggregator(key, value, old)
        except Exception as error:
            self._fail(error, key, value, timestamp_ms, headers)
            return False
        newest_ms = max(newest_ms, timestamp_ms)
        # A deleted row has no time of its own: the cache sends it on with the time of the record.
        row_ms = timestamp_ms if new is None and not self._forwards else newest_ms
        try:
            self._put(key, start_ms, new, row_ms, headers)
        except SerializationError as error:
            self._fail(error, key, value, timestamp_ms, headers)
            return False
        if self._forwards:
            self._forward(Windowed(key, TimeWindow(start_ms, end_ms)), new, before, newest_ms, headers, True)
        return True

    def _make_right(self, key: Any, timestamp_ms: int, headers: Headers, row: Row) -> None:
        """Makes the window after the record, which holds later records only."""
        aggregate, newest_ms = row
        start_ms = timestamp_ms + 1
        self._put(key, start_ms, aggregate, newest_ms, headers)
        if self._forwards:
            window = TimeWindow(start_ms, start_ms + self._difference_ms)
            self._forward(Windowed(key, window), aggregate, None, newest_ms, headers, True)


def _closed_between(windows: SlidingWindows) -> Span:
    difference_ms = windows.difference_ms

    def span(last_ms: int, close_time_ms: int) -> tuple[int, int] | None:
        # The ends are inclusive: a window that ends at the close time still takes records.
        upper_ms = close_time_ms - difference_ms - 1
        if upper_ms < 0:
            return None
        return (0 if last_ms == NEVER else max(0, last_ms - difference_ms)), upper_ms

    return span
