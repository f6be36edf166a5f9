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
    RowPage,
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
_PAGES = "kind int, level int, topic string, count long, data binary"
_ARROW_PAGES = pa.schema(
    [
        ("kind", pa.int32()),
        ("level", pa.int32()),
        ("topic", pa.string()),
        ("count", pa.int64()),
        ("data", pa.binary()),
    ]
)


class Frame(NamedTuple):
    """Shuffle rows as a data frame: those of an input topic, which are all for one level, or what tasks have sent.

    What tasks have sent lies in pages, rows of which Spark knows what they are, how many, and their bytes: it would
    take longer over each of the rows than the task that has sent it.
    """

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
                pages = rows.filter(F.col("kind").isin(wanted) & (F.col("level") == level))
                part = pages.select("data").mapInArrow(_unpacked_pages, SCHEMA)
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
        # The numbers of a level's tasks follow each other, so each task has a partition of its own, and only one.
        shuffled = rows.rows.repartitionById(tasks, "task").sortWithinPartitions(*SORTED_BY[1:])
        done = shuffled.select(*INPUT_COLUMNS).mapInArrow(_TaskStage(self._ship(job)), _PAGES)
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
            for sent in run_tasks(_unpacked(self._job.value), map(_input_page, filter(len, batches)), Path(directory)):
                for page in sent:
                    yield _packed_page(page)


def _input_page(batch: pa.RecordBatch) -> InputPage:
    tasks, kinds, numbers, times, keys, values, headers = (column.to_pylist() for column in batch.columns)
    return tasks, kinds, numbers, times, keys, values, headers


def _packed_page(page: RowPage) -> pa.RecordBatch:
    """Returns a page as one row, or some, if it is large."""
    rows = _page_rows(page)
    parts = [rows.slice(start, _BATCH_ROWS) for start in range(0, len(page), _BATCH_ROWS)]
    same = [[value] * len(parts) for value in (page.kind, page.level, page.topic)]
    columns = [*same, list(map(len, parts)), list(map(_packed, parts))]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, _ARROW_PAGES.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW_PAGES)


def _page_rows(page: RowPage) -> pa.RecordBatch:
    count = len(page)
    columns: dict[str, Any] = {
        "kind": page.kind,
        "level": page.level,
        "task": page.task,
        "time": page.times,
        "input": page.input,
        "sender": page.sender,
        "sequence": range(page.first, page.first + count),
        "topic": page.topic,
        "partition": page.partitions,
        "timestamp": page.timestamps,
        "key": page.keys,
        "value": page.values,
        "headers": page.headers,
    }
    arrays = [_column(columns[name], kind, count) for name, (_, kind) in _FIELDS.items()]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


# Any: what a field of RowPage is.
def _column(values: Any, kind: pa.DataType, count: int) -> pa.Array:
    if values is None:
        return pa.nulls(count, kind)
    if isinstance(values, int | str):
        return pa.repeat(pa.scalar(values, kind), count)
    return pa.array(values, kind)


def _packed(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_batch(rows)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]  # pyarrow has no annotations


def unpacked_page(data: pa.Buffer | bytes) -> Iterator[pa.RecordBatch]:
    """Returns the rows of a page, which its column ``data`` has."""
    with pa.ipc.open_stream(data) as stream:
        yield from stream


def _unpacked_pages(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for data in batch.column("data"):
            yield from unpacked_page(data.as_buffer())


def local_rows(pages: DataFrame) -> Iterator[ShuffleRow]:
    """Returns the rows of pages in this process, one partition after the other."""
    for page in pages.select("data").toLocalIterator(prefetchPartitions=True):
        for batch in unpacked_page(page.data):
            yield from map(ShuffleRow._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))


# Any: what was packed is known to who unpacks it.
@lru_cache(maxsize=2)
def _unpacked(data: bytes) -> Any:
    return cloudpickle.loads(data)
