"""Questions about the times of records in a range, which brokers answer only for whole partitions."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.topics.kafka.administration import Administration
from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.reading import read_range
from headrace.topics.log import Raw, TopicPartition

SEARCHED = 20_000
"""Offsets above which a range is searched for its latest time instead of read."""
_PART = 10_000
_PART_BYTES = 16 << 20


def latest_time(
    clients: Clients, administration: Administration, target: TopicPartition, start: int, stop: int
) -> int | None:
    """Returns the largest timestamp. A long range is searched for it, which takes some thirty questions."""
    if stop - start > SEARCHED:
        found = _search(clients, administration, target, start, stop)
        if found is not None:
            return found
    times = (
        max(timestamp_ms for _, timestamp_ms, _, _, _ in part)
        for part in _parts(clients, administration, target, start, stop)
    )
    return max(times, default=None)


def _search(
    clients: Clients, administration: Administration, target: TopicPartition, start: int, stop: int
) -> int | None:
    """Returns the largest timestamp before ``stop`` if its record lies in the range, else None.

    Brokers say which record is the first one at or after a time. As long as that one lies before ``stop``, there is a
    record at that time or later.
    """
    greatest_offset, greatest_ms = administration.latest_record(target)
    if start <= greatest_offset < stop:
        return greatest_ms
    head = read_range(clients, administration, target, start, stop, 1, _PART_BYTES, keep=False)
    if not head or greatest_offset < start:
        return None
    known_ms, first, above_ms = head[0][1], head[0][0], greatest_ms
    while above_ms - known_ms > 1:
        middle_ms = (known_ms + above_ms) // 2
        found = administration.offsets_for_time({target: middle_ms})[target]
        if found is not None and found < stop:
            known_ms, first = middle_ms, found
        else:
            above_ms = middle_ms
    return known_ms if start <= first else None


def offset_after(
    clients: Clients, administration: Administration, target: TopicPartition, start: int, stop: int, time_ms: int
) -> int | None:
    """Returns the first offset in the range whose record is later than the time."""
    first = administration.offsets_for_time({target: time_ms + 1})[target]
    if first is None or first >= stop:
        return None
    if first >= start:
        return first
    # The first one of the partition lies before the range, so the brokers cannot say which is the first in it.
    for part in _parts(clients, administration, target, start, stop):
        for offset, timestamp_ms, _, _, _ in part:
            if timestamp_ms > time_ms:
                return offset
    return None


def _parts(
    clients: Clients, administration: Administration, target: TopicPartition, start: int, stop: int
) -> Iterator[list[Raw]]:
    while start < stop:
        part = read_range(clients, administration, target, start, stop, _PART, _PART_BYTES)
        if not part:
            return
        yield part
        start = part[-1][0] + 1
