"""Rows of changelogs as they lie in the log: keys and values as bytes, with timestamps and headers."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.topics.log import Raw, ReadableLog, TopicPartition

_PAGE_RECORDS = 50_000
_PAGE_BYTES = 16 << 20


def read_pages(log: ReadableLog, target: TopicPartition, begin: int, end: int) -> Iterator[list[Raw]]:
    """Returns the records of a partition with begin ≤ offset < end, page by page."""
    start = begin
    while start < end:
        page = log.read(*target, start, end, max_records=_PAGE_RECORDS, max_bytes=_PAGE_BYTES)
        if not page:
            # Compaction or retention has removed the rest.
            return
        start = page[-1][0] + 1
        yield page


def last_offsets(log: ReadableLog, target: TopicPartition, begin: int, end: int) -> dict[bytes, int]:
    """Returns the keys of a partition that have a row, with the offset of the last record of each."""
    found: dict[bytes, int] = {}
    for page in read_pages(log, target, begin, end):
        for offset, _, key, value, _ in page:
            if key is None:
                continue
            if value is None:
                found.pop(key, None)
            else:
                found[key] = offset
    return found


def latest_rows(log: ReadableLog, target: TopicPartition, begin: int, end: int) -> Iterator[list[Raw]]:
    """Returns the rows that a changelog stands for, page by page: of each key the last record, unless it deletes it.

    The partition is read twice, so that only its keys have to be in memory.
    """
    last = last_offsets(log, target, begin, end)
    for page in read_pages(log, target, begin, end):
        rows = [raw for raw in page if raw[2] is not None and last.get(raw[2]) == raw[0]]
        if rows:
            yield rows
