"""Backfill: a topology over bounded data frames, as Spark jobs whose tasks are as many as the data needs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, TypeAlias

from headrace.arguments import flag, whole_number
from headrace.batches.bounded_input import bounded_layout
from headrace.batches.bounded_rows import BoundedJob, RowKind, bounded_config, unpack_headers
from headrace.config import StreamsConfig
from headrace.errors import TopologyError, describe_value, did_you_mean
from headrace.serdes import Serde
from headrace.spark.backfill_run import BackfillRun, InputRows, as_input_rows, default_tasks
from headrace.topics.journal import DurableLog
from headrace.topics.log import Output
from headrace.topology.topology import Topology

CHUNK_RECORDS = 50_000
_PAGE_RECORDS = 10_000

# Any: data frames of Spark, whose package is loaded by those who have one.
Frame: TypeAlias = Any


class Backfill:
    """The results of a backfill. They lie on the disks of Spark's executors until this is closed."""

    def __init__(self, topology: Topology, run: BackfillRun) -> None:
        self._topology = topology
        self._run = run

    @property
    def counts(self) -> Mapping[str, int]:
        """How many records were written for each topic."""
        return dict(self._run.counts)

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
        known = {sink.topic for sink in self._topology.sink_nodes if sink.topic is not None} | self._run.counts.keys()
        if topic not in known:
            message = f"backfill: nothing was written to '{topic}'{did_you_mean(topic, known)}"
            raise TopologyError(message)
        return self._run.output(topic, schema, key_serde, value_serde)

    def write_topics(self, log: DurableLog) -> None:
        """Appends the records of all output topics to a log, which must have the topics, or makes them.

        Nothing is written before all of it is there. If this is interrupted, a part is written.
        """
        pending: list[Output] = []
        topic = ""
        for row in self._run.rows(RowKind.OUTPUT):
            if pending and (row.topic != topic or len(pending) >= _PAGE_RECORDS):
                log.append(topic, pending)
                pending = []
            topic = row.topic
            pending.append((row.partition, row.timestamp, row.key, row.value, unpack_headers(row.headers)))
        if pending:
            log.append(topic, pending)

    def close(self) -> None:
        """Deletes the results."""
        self._run.close()

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
    chunk_records: int = CHUNK_RECORDS,
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
    - ``chunk_records``: records between two commits of a task, at which caches are flushed and stores written.

    >>> from headrace import Serdes, StreamsBuilder  # doctest: +SKIP
    """
    if not isinstance(topology, Topology):
        message = f"backfill takes a Topology; found {describe_value(topology)}; call build() on the StreamsBuilder"
        raise TopologyError(message)
    flag(close_windows, "backfill: close_windows")
    whole_number(chunk_records, "backfill: chunk_records", minimum=1)
    rows = as_input_rows(inputs)
    settings = bounded_config(StreamsConfig.of(config))
    counts = default_tasks(rows) if tasks is None else tasks
    layout = bounded_layout(topology, settings, list(rows), counts)
    job = BoundedJob(layout, time.time_ns() // 1_000_000, chunk_records, close_windows=close_windows)
    return Backfill(topology, BackfillRun(job, rows))
