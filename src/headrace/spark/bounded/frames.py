"""Levels of a backfill as stages on Spark: a shuffle of pages to tasks, their merge, and the tasks."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby, pairwise, repeat
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import Broadcast, StorageLevel, cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.batches.bounded_input import InputTopic
from headrace.batches.bounded_rows import FROM_INPUT, BoundedJob, Part, RowKind, TaskInput, pack_headers
from headrace.batches.bounded_task import run_tasks
from headrace.runtime.gc_pause import collector_paused
from headrace.spark.bounded.input_rows import InputRows, RecordReader, Records, record_columns
from headrace.spark.bounded.key_partitions import key_partitions
from headrace.spark.bounded.page_merge import Page, PageMerge, integers
from headrace.spark.bounded.row_pages import PAGES, ROWS, PageHead, packed_page, packed_rows, unpacked_rows
from headrace.spark.shipping import pack
from headrace.spark.worker_garbage import WorkerGarbage
from headrace.topics.log import Output

_RUN_ROWS = 65_536
"""Rows of an input that are sorted together. More of them need memory that is new, which costs more than sorting."""
_RUN_BYTES = 16 << 20
_FOR_TASKS = ROWS.append(pa.field("task", pa.int32()))


class Frame(NamedTuple):
    """A data frame of pages: those of an input topic, which are all for one level, or what tasks have sent."""

    pages: DataFrame
    level: int | None = None


class FrameShuffle:
    """Shuffles data frames, and runs tasks in Spark's; see ``headrace.batches.bounded_run.Shuffle``."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._kept: list[DataFrame] = []
        self._shipped: list[tuple[BoundedJob, Broadcast[bytes]]] = []
        self._empty = spark.createDataFrame([], PAGES)

    def input(self, job: BoundedJob, topic: str, given: InputRows) -> Frame:
        """Returns the rows of a data frame as records of a topic, on their way to tasks."""
        selected, rows = record_columns(topic, given)
        reader = RecordReader(topic, rows, job.layout.topology, job.layout.config)
        stage = _InputStage(self._ship(job), topic, pack(reader))
        return Frame(selected.mapInArrow(stage, PAGES), InputTopic(job, topic).level)

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
        for pages, own in several:
            if own is None:
                part = pages.filter(F.col("kind").isin(wanted) & (F.col("level") == level))
            elif own == level:
                part = pages
            else:
                continue
            found = part if found is self._empty else found.unionAll(part)
        return Frame(found)

    def merge(self, first: Frame, second: Frame) -> Frame:
        return Frame(second.pages if first.pages is self._empty else first.pages.unionAll(second.pages))

    def run(self, job: BoundedJob, level: int, rows: Frame) -> Frame:
        tasks = sum(place.level == level for place in job.layout.tasks)
        if tasks == 0:
            return Frame(self._empty)
        # The numbers of a level's tasks follow each other, so each task has a partition of its own, and only one.
        shuffled = rows.pages.repartitionById(tasks, "task").sortWithinPartitions(
            "task", "first", "input", "sender", "sequence"
        )
        done = shuffled.select(*_Taken._fields).mapInArrow(_TaskStage(self._ship(job)), PAGES)
        done = done.persist(StorageLevel.DISK_ONLY)
        self._kept.append(done)
        return Frame(done)

    def has_next(self, several: Sequence[Frame]) -> bool:
        return any(not frame.pages.filter(F.col("kind") == int(RowKind.NEXT)).isEmpty() for frame in several)

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
    """Makes pages of the rows of a data frame, on a worker."""

    def __init__(self, job: Broadcast[bytes], topic: str, reader: bytes) -> None:
        self._job = job
        self._topic = topic
        self._reader = reader

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        topic = InputTopic(_unpacked(self._job.value), self._topic)
        read = cloudpickle.loads(self._reader).read
        run: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in filter(len, batches):
            part = _for_tasks(topic, read(batch))
            run.append(part)
            rows, size = rows + len(part), size + part.nbytes
            if rows >= _RUN_ROWS or size >= _RUN_BYTES:
                yield from _input_pages(topic, run)
                run, rows, size = [], 0, 0
        if run:
            yield from _input_pages(topic, run)


def _for_tasks(topic: InputTopic, records: Records) -> pa.RecordBatch:
    """Returns records with their tasks; keys and values that are bytes already are not looked at one by one."""
    keys, values, headers, times = records.keys, records.values, records.headers, records.times
    if keys.null_count or len(records.partitions.drop_null()):
        known = (column.to_pylist() for column in (records.partitions, keys, values))
        tasks = pa.array(topic.tasks(*known), pa.int32())
    else:
        tasks = pa.array(topic.numbers, pa.int32()).take(pa.array(key_partitions(keys, len(topic.numbers))))
    if topic.sort_time is not None:
        each = zip(*(column.to_pylist() for column in (times, keys, values)), headers or repeat(()), strict=False)
        times = pa.array([topic.sort_time(*record) for record in each], pa.int64())
    packed = pa.nulls(len(keys), pa.binary()) if headers is None else pa.array(map(pack_headers, headers), pa.binary())
    columns = [times, records.order, records.partitions, records.times, keys, values, packed, tasks]
    return pa.RecordBatch.from_arrays(columns, schema=_FOR_TASKS)


def _input_pages(topic: InputTopic, run: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sorts rows of an input, and returns them in pages, task by task."""
    table = pa.Table.from_batches(run, _FOR_TASKS).combine_chunks()
    tasks, times, sequences = (integers(table.column(name)) for name in ("task", "time", "sequence"))
    order = np.lexsort((sequences, times, tasks))
    table = table.drop_columns("task").take(pa.array(order))
    firsts = np.flatnonzero(np.diff(tasks[order], prepend=-1)).tolist()
    for start, stop in pairwise([*firsts, len(order)]):
        head = PageHead(RowKind.NEXT, topic.level, int(tasks[order[start]]), topic.rank, FROM_INPUT, topic.name)
        yield from packed_rows(head, table.slice(start, stop - start))


class _TaskStage:
    """Runs tasks on a worker."""

    def __init__(self, job: Broadcast[bytes]) -> None:
        self._job = job

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Spark cleans its own directories up, also after a worker that was killed.
        below = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
        with TemporaryDirectory(prefix="headrace-backfill-", dir=below) as name:
            directory = Path(name)
            garbage = WorkerGarbage()
            with collector_paused():
                for sent in run_tasks(_unpacked(self._job.value), _task_inputs(batches, directory), directory):
                    yield from chain.from_iterable(map(packed_page, sent))
                    garbage.collect()
            gc.unfreeze()


class _Taken(NamedTuple):
    """Columns of a page that a task needs."""

    task: int
    kind: int
    input: int
    sender: int
    data: pa.Buffer

    @property
    def is_state(self) -> bool:
        return self.kind == RowKind.STATE


def _task_inputs(batches: Iterable[pa.RecordBatch], directory: Path) -> Iterator[TaskInput]:
    """Returns what tasks get: pages come by task and first time, and state is older than all records."""
    taken = chain.from_iterable(map(_taken, batches))
    for (task, is_state), pages in groupby(taken, key=attrgetter("task", "is_state")):
        if is_state:
            for page in pages:
                *_, keys, values, _ = unpacked_rows(page.data).columns
                yield TaskInput(task, is_state, [Part(page.input, (), keys.to_pylist(), values.to_pylist())])
        else:
            rows = (Page(page.input, page.sender, unpacked_rows(page.data)) for page in pages)
            for parts in PageMerge(rows, directory).parts():
                yield TaskInput(task, is_state, parts)


def _taken(batch: pa.RecordBatch) -> Iterator[_Taken]:
    *numbers, data = batch.columns
    for *place, rows in zip(*(column.to_pylist() for column in numbers), data, strict=True):
        task, kind, number, sender = place
        yield _Taken(task, kind, number, sender, rows.as_buffer())


# Any: the caller knows what was packed.
@lru_cache(maxsize=2)
def _unpacked(data: bytes) -> Any:
    return cloudpickle.loads(data)
