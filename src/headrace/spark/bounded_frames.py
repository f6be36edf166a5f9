"""Levels of a backfill as stages on Spark: a shuffle of rows to tasks, a sort that spills, and the tasks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark import Broadcast, StorageLevel, cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.batches.bounded_input import InputTopic
from headrace.batches.bounded_rows import (
    FROM_INPUT,
    INPUT_COLUMNS,
    SORTED_BY,
    BoundedJob,
    InputPage,
    RowKind,
    ShuffleRow,
    pack_headers,
)
from headrace.batches.bounded_task import run_tasks
from headrace.spark.input_rows import InputRows, RecordReader, Records, record_columns
from headrace.spark.shipping import pack
from headrace.topics.log import Output

_FIELDS = {
    "kind": ("int", pa.int32()),
    "level": ("int", pa.int32()),
    "task": ("int", pa.int32()),
    "time": ("long", pa.int64()),
    "input": ("int", pa.int32()),
    "sender": ("int", pa.int32()),
    "sequence": ("long", pa.int64()),
    "topic": ("string", pa.string()),
    "partition": ("int", pa.int32()),
    "timestamp": ("long", pa.int64()),
    "key": ("binary", pa.binary()),
    "value": ("binary", pa.binary()),
    "headers": ("binary", pa.binary()),
}
SCHEMA = ", ".join(f"{name} {kind}" for name, (kind, _) in _FIELDS.items())
_ARROW = pa.schema([(name, kind) for name, (_, kind) in _FIELDS.items()])
_INPUT_FIELDS = ["task", "time", "sequence", "timestamp", "key", "value", "headers"]
"""Columns that records of an input differ in."""
_BATCH_ROWS = 10_000


class Frame(NamedTuple):
    """Shuffle rows as a data frame; those of an input topic are all for one level."""

    rows: DataFrame
    level: int | None = None


class FrameShuffle:
    """Shuffles data frames, and runs tasks in Spark's; see ``headrace.batches.bounded_run.Shuffle``."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._kept: list[DataFrame] = []
        self._shipped: list[tuple[BoundedJob, Broadcast[bytes]]] = []
        self._empty = spark.createDataFrame([], SCHEMA)

    def input(self, job: BoundedJob, topic: str, given: InputRows) -> Frame:
        """Returns the rows of a data frame as records of a topic, on their way to tasks."""
        selected, rows = record_columns(topic, given)
        reader = RecordReader(topic, rows, job.layout.topology, job.layout.config)
        stage = _InputStage(self._ship(job), topic, pack(reader))
        known = InputTopic(job, topic)
        constant = {
            "kind": F.lit(int(RowKind.NEXT)),
            "level": F.lit(known.level),
            "input": F.lit(known.rank),
            "sender": F.lit(FROM_INPUT),
            "topic": F.lit(topic),
            "partition": F.lit(None),
        }
        frame = selected.mapInArrow(stage, ", ".join(f"{name} {_FIELDS[name][0]}" for name in _INPUT_FIELDS))
        columns = [
            constant[name].cast(kind).alias(name) if name in constant else F.col(name)
            for name, (kind, _) in _FIELDS.items()
        ]
        return Frame(frame.select(*columns), known.level)

    def records(self, job: BoundedJob, topic: str, given: InputRows) -> list[Output]:
        """Returns the rows of a data frame as records, in this process: those of a global table."""
        selected, rows = record_columns(topic, given)
        reader = RecordReader(topic, rows, job.layout.topology, job.layout.config)
        batches = selected.toArrow().to_batches()
        found = chain.from_iterable(reader.read(batch).outputs() for batch in batches)
        return [record for _, record in sorted(found, key=_place)]

    def select(self, several: Sequence[Frame], kinds: Iterable[RowKind], level: int) -> Frame:
        wanted = [int(kind) for kind in kinds]
        found = self._empty
        for rows, own in several:
            if own is None:
                part = rows.filter(F.col("kind").isin(wanted) & (F.col("level") == level))
            elif own == level:
                part = rows
            else:
                continue
            found = part if found is self._empty else found.unionAll(part)
        return Frame(found)

    def merge(self, first: Frame, second: Frame) -> Frame:
        return Frame(second.rows if first.rows is self._empty else first.rows.unionAll(second.rows))

    def run(self, job: BoundedJob, level: int, rows: Frame) -> Frame:
        tasks = sum(place.level == level for place in job.layout.tasks)
        if tasks == 0:
            return Frame(self._empty)
        # The numbers of a level's tasks follow each other, so each task has a partition of its own.
        shuffled = rows.rows.repartitionById(tasks, "task").sortWithinPartitions(*SORTED_BY)
        done = shuffled.select(*INPUT_COLUMNS).mapInArrow(_TaskStage(self._ship(job)), SCHEMA)
        done = done.persist(StorageLevel.DISK_ONLY)
        self._kept.append(done)
        return Frame(done)

    def has_next(self, several: Sequence[Frame]) -> bool:
        return any(not frame.rows.filter(F.col("kind") == int(RowKind.NEXT)).isEmpty() for frame in several)

    def _ship(self, job: BoundedJob) -> Broadcast[bytes]:
        for known, shipped in self._shipped:
            if known is job:
                return shipped
        shipped = self._spark.sparkContext.broadcast(pack(job))
        self._shipped.append((job, shipped))
        return shipped

    def close(self) -> None:
        """Deletes what was kept on disk."""
        while self._kept:
            self._kept.pop().unpersist()
        while self._shipped:
            self._shipped.pop()[1].unpersist()


def _place(pair: tuple[int, Output]) -> int:
    return pair[0]


class _InputStage:
    """Makes shuffle rows of the rows of a data frame, on a worker."""

    def __init__(self, job: Broadcast[bytes], topic: str, reader: bytes) -> None:
        self._job = job
        self._topic = topic
        self._reader = reader

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        topic = InputTopic(_unpacked(self._job.value), self._topic)
        read = cloudpickle.loads(self._reader).read
        for batch in batches:
            if len(batch):
                yield _input_batch(topic, read(batch))


def _input_batch(topic: InputTopic, records: Records) -> pa.RecordBatch:
    """Returns records with their tasks; keys and values that are bytes already are not looked at one by one."""
    keys, headers, times = records.keys.to_pylist(), records.headers, records.times
    needs_values = topic.sort_time is not None or records.keys.null_count or len(records.partitions.drop_null())
    values = records.values.to_pylist() if needs_values else ()
    tasks = topic.tasks(records.partitions.to_pylist(), keys, values)
    if topic.sort_time is not None:
        each = zip(times.to_pylist(), keys, values, headers or repeat(()), strict=False)
        times = pa.array([topic.sort_time(*record) for record in each], pa.int64())
    packed = pa.nulls(len(keys), pa.binary()) if headers is None else pa.array(map(pack_headers, headers), pa.binary())
    columns = [pa.array(tasks, pa.int32()), times, records.order, records.times, records.keys, records.values, packed]
    return pa.RecordBatch.from_arrays(columns, names=_INPUT_FIELDS)


class _TaskStage:
    """Runs tasks on a worker."""

    def __init__(self, job: Broadcast[bytes]) -> None:
        self._job = job

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Spark cleans its own directories up, also after a worker that was killed.
        below = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
        with TemporaryDirectory(prefix="headrace-backfill-", dir=below) as directory:
            for rows in run_tasks(_unpacked(self._job.value), map(_input_page, filter(len, batches)), Path(directory)):
                for start in range(0, len(rows), _BATCH_ROWS):
                    yield _batch(rows[start : start + _BATCH_ROWS])


def _input_page(batch: pa.RecordBatch) -> InputPage:
    tasks, kinds, numbers, times, keys, values, headers = (column.to_pylist() for column in batch.columns)
    return tasks, kinds, numbers, times, keys, values, headers


def _batch(rows: Sequence[ShuffleRow]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, _ARROW.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def local_rows(rows: DataFrame) -> Iterator[ShuffleRow]:
    """Returns the rows of a data frame in this process, one partition after the other.

    They come as batches in a column of bytes: row by row they would take many times as long.
    """
    for row in rows.mapInArrow(_as_blobs, "data binary").toLocalIterator(prefetchPartitions=True):
        with pa.ipc.open_stream(row.data) as stream:
            for batch in stream:
                yield from map(ShuffleRow._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _as_blobs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()], pa.binary())], names=["data"])


# Any: what was packed is known to who unpacks it.
@lru_cache(maxsize=2)
def _unpacked(data: bytes) -> Any:
    return cloudpickle.loads(data)
