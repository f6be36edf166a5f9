"""Reading a partition: by offset and by time."""

from __future__ import annotations

from typing import NamedTuple

from headrace.errors import OffsetOutOfRangeError
from headrace.topics.embedded.tables import Entry, PartitionState, Tables
from headrace.topics.log import Raw, TopicPartition


def read_range(
    tables: Tables, target: TopicPartition, start: int, stop: int | None, max_records: int, max_bytes: int
) -> list[Raw]:
    """Returns records from ``start`` to before ``stop``, whole blobs as long as they fit into the limits."""
    number, state = tables.partition(target)
    _check(target, state, start)
    stop = state.end if stop is None else min(stop, state.end)
    records: list[Raw] = []
    size = 0
    if start >= stop or max_records <= 0:
        return records
    for entry in tables.entries(number, target[1], start):
        if entry.base >= stop or (records and size + len(entry.blob) > max_bytes):
            break
        found = entry.records()
        if found[0][0] < start or found[-1][0] >= stop:
            found = [record for record in found if start <= record[0] < stop]
        records += found
        size += len(entry.blob)
        if len(records) >= max_records:
            del records[max_records:]
            break
    return records


class Scan(NamedTuple):
    """A step through a partition."""

    records: list[Raw]
    next_offset: int
    """Where the next step starts."""
    blobs: int
    """Blobs that were unpacked."""
    skipped: int
    """Blobs whose header was enough: nothing in them is within the times."""


def scan_range(
    tables: Tables, target: TopicPartition, start: int, stop: int, times_ms: tuple[int, int], max_bytes: int
) -> Scan:
    """Returns records from ``start`` to before ``stop`` with first ≤ timestamp ≤ last; other blobs stay packed."""
    number, state = tables.partition(target)
    _check(target, state, start)
    first_ms, last_ms = times_ms
    stop = min(stop, state.end)
    records: list[Raw] = []
    size = blobs = skipped = 0
    for entry in tables.entries(number, target[1], start):
        if entry.base >= stop:
            break
        if size > max_bytes:
            return Scan(records, max(start, entry.base), blobs, skipped)
        head = entry.info()
        if head.max_timestamp_ms < first_ms or head.min_timestamp_ms > last_ms:
            skipped += 1
            continue
        blobs += 1
        size += len(entry.blob)
        found = entry.records()
        if head.min_timestamp_ms < first_ms or head.max_timestamp_ms > last_ms:
            found = [record for record in found if first_ms <= record[1] <= last_ms]
        records += [record for record in found if start <= record[0] < stop]
    return Scan(records, stop, blobs, skipped)


def _check(target: TopicPartition, state: PartitionState, start: int) -> None:
    if state.begin <= start <= state.end:
        return
    topic, partition = target
    why = (
        "what lay before was removed by retention or by hand"
        if start < state.begin
        else "the topic was perhaps deleted and made anew"
    )
    message = (
        f"partition {partition} of topic '{topic}' has offsets {state.begin} to {state.end}; offset {start} was asked "
        f"for; {why}: start from {state.begin}, or reset the application"
    )
    raise OffsetOutOfRangeError(message, begin=state.begin, end=state.end)


def offset_for_time(tables: Tables, target: TopicPartition, time_ms: int) -> int | None:
    """Returns the first offset whose record is at or after the time."""
    number, state = tables.partition(target)
    partition = target[1]
    if state.latest_ms < time_ms:
        return None
    low, high = state.begin, state.end
    # The time up to a blob never falls from blob to blob, so the first one that reaches the time can be searched.
    while low < high:
        middle = (low + high) // 2
        entry = _first(tables, number, partition, middle)
        if entry is None or entry.latest_ms >= time_ms:
            high = middle if entry is None else min(middle, max(entry.base, low))
        else:
            low = entry.base + entry.info().span
    for entry in tables.entries(number, partition, low):
        if entry.info().max_timestamp_ms < time_ms:
            # The record that reached the time was removed.
            continue
        for offset, timestamp_ms, *_ in entry.records():
            if timestamp_ms >= time_ms and offset >= state.begin:
                return offset
    return None


def latest_time(tables: Tables, target: TopicPartition, start: int, stop: int) -> int | None:
    """Returns the largest timestamp in a range; only the blobs at its ends are unpacked."""
    number, state = tables.partition(target)
    start = max(start, state.begin)
    latest: int | None = None
    for entry in tables.entries(number, target[1], start):
        if entry.base >= stop:
            break
        head = entry.info()
        if start <= entry.base and entry.base + head.span <= stop:
            times = [head.max_timestamp_ms]
        else:
            times = [timestamp_ms for offset, timestamp_ms, *_ in entry.records() if start <= offset < stop]
        latest = max([*times, *(() if latest is None else (latest,))], default=None)
    return latest


def offset_after(tables: Tables, target: TopicPartition, start: int, stop: int, time_ms: int) -> int | None:
    """Returns the first offset in a range whose record is later than the time."""
    number, state = tables.partition(target)
    for entry in tables.entries(number, target[1], max(start, state.begin)):
        if entry.base >= stop:
            break
        if entry.info().max_timestamp_ms > time_ms:
            for offset, timestamp_ms, *_ in entry.records():
                if timestamp_ms > time_ms and start <= offset < stop:
                    return offset
    return None


def _first(tables: Tables, number: int, partition: int, start: int) -> Entry | None:
    return next(tables.entries(number, partition, start), None)
