"""Reading of a topic's partitions together: the oldest record first, up to the end or beyond it as records come."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import timedelta

from headrace.topics.log import Offsets, Raw, ReadableLog

_CHUNK = 5_000
_LOOK_EVERY = timedelta(seconds=1)


def read_rounds(
    log: ReadableLog, positions: Offsets, *, follow: bool = False, timeout: timedelta | None = None
) -> Iterator[Iterator[tuple[int, Raw]]]:
    """Yields what is there as pairs of partition and record; then, to those who follow, what has come since.

    A round must be used up before the next one. With a ``timeout`` the last one is that after which nothing comes for
    so long.
    """
    while True:
        ends = log.end_offsets(positions)
        yield merge_partitions(log, positions, ends)
        positions = {target: max(at, ends[target]) for target, at in positions.items()}
        if not (follow or timeout is not None) or not _wait(log, positions, timeout):
            return


def _wait(log: ReadableLog, positions: Offsets, timeout: timedelta | None) -> bool:
    # In short waits, so that Ctrl-C is heard.
    while not log.wait_for_data(positions, _LOOK_EVERY if timeout is None else min(timeout, _LOOK_EVERY)):
        if timeout is not None:
            timeout -= _LOOK_EVERY
            if timeout <= timedelta(0):
                return False
    return True


def merge_partitions(log: ReadableLog, positions: Offsets, ends: Offsets) -> Iterator[tuple[int, Raw]]:
    """Yields the records from positions to ends, by their timestamps, each with its partition."""

    def numbered(name: str, partition: int) -> Iterator[tuple[int, Raw]]:
        at, end = positions[(name, partition)], ends[(name, partition)]
        return ((partition, raw) for raw in _read_partition(log, name, partition, at, end))

    partitions = [numbered(*target) for target in positions]
    if len(partitions) == 1:
        return partitions[0]
    return heapq.merge(*partitions, key=lambda record: record[1][1])


def _read_partition(log: ReadableLog, name: str, partition: int, start: int, end: int) -> Iterator[Raw]:
    # An offset that the log does not have is refused there, also when nothing is to be read.
    while records := log.read(name, partition, start, max(start, end), max_records=_CHUNK):
        yield from records
        start = records[-1][0] + 1
