"""Backfill: a topology over bounded data frames, as Spark jobs whose tasks are as many as the data needs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from types import TracebackType
from typing import Any, TypeAlias

from headrace.app.directories import open_log
from headrace.arguments.values import flag, whole_number
from headrace.batches.bounded_input import bounded_layout
from headrace.batches.bounded_rows import BoundedJob, RowKind, bounded_config, pages
from headrace.batches.task_host import ensure_topic
from headrace.change.seeding import Cut, commit_seed, prepare_seed
from headrace.config import StreamsConfig
from headrace.errors import ConfigError, TopologyError, describe_value, did_you_mean
from headrace.serdes import Serde
from headrace.spark.bounded.input_rows import InputRows
from headrace.spark.bounded.run import BackfillRun, as_input_rows, default_tasks, rows_before
from headrace.topics.journal import DurableLog
from headrace.topology.topology import Topology

CHUNK_RECORDS = 500_000
_SEED_KINDS = (RowKind.CHANGELOG, RowKind.MEMORY)

# Any: a data frame of Spark, whose package is not loaded here.
Frame: TypeAlias = Any


class Backfill:
    """The results of a backfill. They lie on the disks of Spark's executors until this is closed."""

    def __init__(self, topology: Topology, run: BackfillRun) -> None:
        self._topology = topology
        self.run = run
        """The run on Spark, with rows as they are."""

    @property
    def counts(self) -> Mapping[str, int]:
        """How many records were written for each topic."""
        return dict(self.run.counts)

    def output(
        self,
        topic: str,
        schema: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
    ) -> Frame:
        """Returns the records of an output topic as a data frame.

        Its columns are key, value, timestamp, headers, partition (where a partitioner has chosen one), task and
        sequence: records of one key are in order by task and sequence. Keys and values are read by the serdes of the
        topology, unless others are given. Numbers and texts have columns of their types, JSON is text, anything else
        is bytes; ``schema`` says otherwise, such as ``"value struct<item:string,price:double>"``. The key of a window
        is ``struct<key:…,start_ms:long,end_ms:long>``.
        """
        known = {sink.topic for sink in self._topology.sink_nodes if sink.topic is not None} | self.run.counts.keys()
        if topic not in known:
            message = f"backfill: nothing was written to '{topic}'{did_you_mean(topic, known)}"
            raise TopologyError(message)
        return self.run.output(topic, schema, key_serde, value_serde)

    def write_topics(self, log: DurableLog) -> None:
        """Appends the records of all output topics to a log, which must have the topics, or makes them.

        Nothing is written before all of it is there. If this is interrupted, a part is written.
        """
        for topic in self.counts:
            ensure_topic(log, topic)
        for topic, rows in groupby(self.run.rows(RowKind.OUTPUT), key=attrgetter("topic")):
            for page in pages(rows, attrgetter("size")):
                log.append(topic, [row.output() for row in page])

    def close(self) -> None:
        """Deletes the results."""
        self.run.close()

    def __enter__(self) -> Backfill:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def backfill(
    topology: Topology,
    inputs: Mapping[str, InputRows | Frame | None],
    config: StreamsConfig | Mapping[str, Any] | None = None,
    *,
    tasks: int | Mapping[str, int] | None = None,
    close_windows: bool = False,
    to_topics: bool = False,
    seed: bool = False,
    cut: Cut | datetime | None = None,
    log: DurableLog | None = None,
    chunk_records: int = CHUNK_RECORDS,
    command: str = "",
) -> Backfill:
    """Runs a topology over data frames, one for each topic that it reads, to their ends.

    Rows become records, go to tasks by the hash of their keys, and are sorted by time: whatever order a frame has, no
    record is late. Each key gets the results that the application would have given, had it read these records in that
    order. State is kept in files, so it may be larger than memory.

    - ``inputs``: by topic, a data frame with the columns key, value and timestamp, or ``InputRows`` that name others;
      None for a topic without history. Frames of global tables are in memory as a whole, before all others.
    - ``tasks``: how many tasks a sub-topology has, as a number or by topic (default: as many as Spark runs at once).
      It matters where results depend on the time of a whole task, see the guide; then give the partitions of the
      topics.
    - ``close_windows``: emit at the end what waits for later records: windows, suppressed changes, records of joins
      that have found no partner.
    - ``to_topics``: write the output records to their topics, too, once all are there.
    - ``seed``: leave behind, in the log, changelogs, times and positions, as if the application had read everything up
      to ``cut``: a time (in milliseconds, or as a datetime), or an offset for each partition of each input. Rows behind
      the cut are left out. The application must not have run; when it starts it goes on from the cut. There are as
      many tasks as it has.
    - ``log``: where topics are (default: as the configuration says).
    - ``chunk_records``: records between two commits of a task, at which caches are flushed and stores written.
    - ``command``: what finishes a seed that was interrupted, for messages.

    >>> from headrace import StreamsBuilder
    >>> builder = StreamsBuilder()
    >>> builder.stream("orders").group_by_key().count().to_stream().to("counts")
    >>> backfill(builder.build(), {"order": None})
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: backfill: the topology does not read the topic 'order' (it reads: orders); did you \
mean 'orders'?
    """
    if not isinstance(topology, Topology):
        message = f"backfill takes a Topology; found {describe_value(topology)}; call build() on the StreamsBuilder"
        raise TopologyError(message)
    for name, value in ("close_windows", close_windows), ("to_topics", to_topics), ("seed", seed):
        flag(value, f"backfill: {name}")
    whole_number(chunk_records, "backfill: chunk_records", minimum=1)
    rows = as_input_rows(inputs)
    settings = StreamsConfig.of(config)
    # Says what is missing, or not read.
    bounded_layout(topology, bounded_config(settings), list(rows), 1)
    if seed:
        if close_windows or tasks is not None:
            message = (
                "backfill: a seeded application goes on, with the tasks that it has; leave out "
                f"{'close_windows' if close_windows else 'tasks'}"
            )
            raise ConfigError(message)
        until = _checked_cut(cut)
        with _opened(log, settings) as opened:
            found = prepare_seed(topology, settings, opened, until)
            older = rows_before(rows, found.positions if found.cut_ms is None else found.cut_ms)
            done = Backfill(topology, BackfillRun(found.job(_now_ms(), chunk_records), older))
            try:
                kinds = (*_SEED_KINDS, RowKind.OUTPUT) if to_topics else _SEED_KINDS
                commit_seed(found, opened, done.run.rows(*kinds), with_outputs=to_topics, command=command)
            except BaseException:
                done.close()
                raise
        return done
    if cut is not None:
        message = "backfill: a cut says where a seeded application goes on; give seed=True, or filter the frames"
        raise ConfigError(message)
    layout = bounded_layout(topology, bounded_config(settings), list(rows), tasks or default_tasks(rows))
    job = BoundedJob(layout, _now_ms(), chunk_records, close_windows=close_windows)
    done = Backfill(topology, BackfillRun(job, rows))
    if to_topics:
        with _opened(log, settings) as opened:
            done.write_topics(opened)
    return done


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _checked_cut(cut: Cut | datetime | None) -> Cut:
    if cut is None:
        message = (
            "backfill: seed=True needs a cut, from which on records are read from topics: a time in milliseconds, a "
            "datetime, or an offset for each partition: {('orders', 0): 1200, …}"
        )
        raise ConfigError(message)
    if not isinstance(cut, datetime):
        return cut
    if cut.tzinfo is None:
        message = f"backfill: the cut {cut} has no time zone; give it one, such as datetime(…, tzinfo=timezone.utc)"
        raise ConfigError(message)
    return int(cut.timestamp() * 1000)


@contextmanager
def _opened(log: DurableLog | None, config: StreamsConfig) -> Iterator[DurableLog]:
    if log is not None:
        yield log
        return
    opened = open_log(config)
    try:
        yield opened
    finally:
        opened.close()
