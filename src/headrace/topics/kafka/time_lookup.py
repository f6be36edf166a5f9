"""Questions about the times of records in a range, which brokers answer only for whole partitions."""

from __future__ import annotations

from headrace.topics.kafka.administration import Administration
from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.reading import read_pages, read_range
from headrace.topics.log import TopicPartition

READ = 1_000
"""Offsets up to which a range is read to find its latest time; longer ones are asked about."""
_PAGE = 10_000
_PAGE_BYTES = 16 << 20


def latest_time(
    clients: Clients, administration: Administration, target: TopicPartition, start: int, stop: int
) -> int | None:
    """Returns the largest timestamp in a range. Only the end of a long one is read.

    Brokers know the first record of a partition that is at or after a time. If there is none before ``stop`` that is
    later than the last records, these are the latest; otherwise the time is searched for. If times are so much out of
    order that a later record lies before the range, nobody can say without reading all of it: then it is the largest
    one of the last records, which is not too late.
    """
    tail = _latest(clients, administration, target, max(start, stop - READ), stop)
    if stop - start <= READ:
        return tail
    # Behind the last records there are only markers, or what was compacted away: then what lies before is looked at.
    known_ms = tail if tail is not None else _latest(clients, administration, target, start, stop, at_most=1)
    if known_ms is None:
        return None
    later = administration.offsets_for_time({target: known_ms + 1})[target]
    if later is None or later >= stop:
        return known_ms
    first, latest_ms = _search(administration, target, stop, known_ms + 1, later)
    return known_ms if first < start else latest_ms


def _search(
    administration: Administration, target: TopicPartition, stop: int, known_ms: int, first: int
) -> tuple[int, int]:
    """Returns the latest time of the partition before ``stop`` and its offset, given that of a time that is there."""
    _, above_ms = administration.latest_record(target)
    while known_ms < above_ms:
        middle_ms = (known_ms + above_ms + 1) // 2
        found = administration.offsets_for_time({target: middle_ms})[target]
        if found is not None and found < stop:
            known_ms, first = middle_ms, found
        else:
            above_ms = middle_ms - 1
    return first, known_ms


def _latest(
    clients: Clients,
    administration: Administration,
    target: TopicPartition,
    start: int,
    stop: int,
    *,
    at_most: int = READ,
) -> int | None:
    found = read_range(clients, administration, target, start, stop, at_most, _PAGE_BYTES, keep=False)
    return max((timestamp_ms for _, timestamp_ms, _, _, _ in found), default=None)


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
    for page in read_pages(clients, administration, target, start, stop, _PAGE, _PAGE_BYTES):
        for offset, timestamp_ms, _, _, _ in page:
            if timestamp_ms > time_ms:
                return offset
    return None
