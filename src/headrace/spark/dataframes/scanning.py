"""Ranges of a topic: which of them a job reads, how each is read, and how much that was."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass

from pyspark.sql.datasource import InputPartition

from headrace.arguments.durations import MAX_LONG
from headrace.errors import OffsetOutOfRangeError
from headrace.spark.dataframes.filters import Bounds, Range
from headrace.spark.dataframes.options import Offsets, Options
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.log import Raw, TopicLog, TopicPartition
from headrace.topics.partitioner import known_partitions

logger = logging.getLogger("headrace.spark.dataframes")
"""Tells what each task has read."""

_STEP_RECORDS = 50_000
_STEP_BYTES = 8 << 20


class ScanRange(InputPartition):
    """Records of a partition from ``start`` to before ``stop``: what one task of Spark reads."""

    def __init__(self, topic: str, partition: int, start: int, stop: int) -> None:
        super().__init__((topic, partition, start, stop))
        self.topic = topic
        self.partition = partition
        self.start = start
        self.stop = stop


@dataclass
class ScanCounts:
    """Counts of what a task has read."""

    topic: str
    partition: int
    blobs: int = 0
    """Blobs of the embedded log that were unpacked."""
    skipped_blobs: int = 0
    """Blobs whose header has told that nothing in them is wanted."""
    records: int = 0
    """Records that the log has given."""
    rows: int = 0
    """Rows that Spark has got."""

    def report(self) -> None:
        """Logs it; with ``spark.sql.pyspark.worker.logging.enabled`` Spark has it in ``python_worker_logs()``."""
        if logger.level == logging.NOTSET:
            # Spark collects what loggers let through, and asks nobody in a worker for their level.
            logger.setLevel(logging.INFO)
        logger.info("read %s", asdict(self))


def asked_bounds(options: Options) -> Bounds:
    """Returns the times that options ask for."""
    first = -MAX_LONG if options.starting_time is None else options.starting_time
    last = MAX_LONG if options.ending_time is None else options.ending_time - 1
    return Bounds(times_ms=Range(first, last))


def plan_ranges(log: TopicLog, topic: str, options: Options, bounds: Bounds, *, split: bool) -> list[ScanRange]:
    """Returns the ranges of a topic to read, up to its committed end; without ``split`` one per partition."""
    chosen = [each for each in range(log.partitions_of(topic)) if bounds.has_partition(each)]
    if bounds.keys is not None and options.partitioner is not None:
        partition_of = known_partitions(log.partitions_of(topic))
        homes = {partition_of[key] for key in bounds.keys}
        chosen = [each for each in chosen if each in homes]
    targets = [(topic, each) for each in chosen]
    ends, begins = log.end_offsets(targets), log.begin_offsets(targets)
    starts = {each: _start(options.starting_offsets, each, begins, ends) for each in targets}
    starts = _from_time(log, starts, bounds.times_ms)
    ranges = []
    for target, start in starts.items():
        stop = min(_stop(options.ending_offsets, target, begins, ends), bounds.offsets.last + 1)
        start = max(start, bounds.offsets.first)
        step = options.records_per_task if split else max(1, stop - start)
        ranges += [ScanRange(*target, first, min(first + step, stop)) for first in range(start, stop, step)]
    return ranges


def _from_time(log: TopicLog, starts: Mapping[TopicPartition, int], times_ms: Range) -> dict[TopicPartition, int]:
    """Returns where partitions are read from if nothing before a time is wanted."""
    if times_ms.first <= 0:
        return dict(starts)
    found = log.offsets_for_time(dict.fromkeys(starts, times_ms.first))
    return {each: max(start, at) for each, start in starts.items() if (at := found[each]) is not None}


def _start(
    offsets: Offsets, target: TopicPartition, begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> int:
    if isinstance(offsets, str):
        return begins[target] if offsets == "earliest" else ends[target]
    given = offsets.get(target[1], begins[target])
    if given < begins[target]:
        message = (
            f"partition {target[1]} of topic '{target[0]}' begins at offset {begins[target]}; starting_offsets has "
            f"{given}: what lay before was removed by retention or by hand; start from {begins[target]}"
        )
        raise OffsetOutOfRangeError(message, begin=begins[target], end=ends[target])
    return given


def _stop(
    offsets: Offsets, target: TopicPartition, begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> int:
    if isinstance(offsets, str):
        return begins[target] if offsets == "earliest" else ends[target]
    return min(offsets.get(target[1], ends[target]), ends[target])


def scan(log: TopicLog, part: ScanRange, times_ms: Range, counts: ScanCounts) -> Iterator[list[Raw]]:
    """Yields the records of a range whose times are wanted, step by step; the embedded log skips whole blobs."""
    step = _embedded_step(log, part, times_ms, counts) if isinstance(log, EmbeddedLog) else _read_step(log, part)
    position = part.start
    while position < part.stop:
        records, position = step(position)
        counts.records += len(records)
        wanted = [record for record in records if record[1] in times_ms] if not times_ms.is_everything else records
        if wanted:
            yield wanted


Step = Callable[[int], tuple[list[Raw], int]]
"""Reads from an offset; returns records, and the offset behind what was looked at."""


def _embedded_step(log: EmbeddedLog, part: ScanRange, times_ms: Range, counts: ScanCounts) -> Step:
    def step(position: int) -> tuple[list[Raw], int]:
        times = times_ms.first, times_ms.last
        found = log.scan(part.topic, part.partition, position, part.stop, times, max_bytes=_STEP_BYTES)
        counts.blobs += found.blobs
        counts.skipped_blobs += found.skipped
        return found.records, found.next_offset

    return step


def _read_step(log: TopicLog, part: ScanRange) -> Step:
    def step(position: int) -> tuple[list[Raw], int]:
        limits = {"max_records": _STEP_RECORDS, "max_bytes": _STEP_BYTES}
        records = log.read(part.topic, part.partition, position, part.stop, **limits)
        return records, records[-1][0] + 1 if records else part.stop

    return step
