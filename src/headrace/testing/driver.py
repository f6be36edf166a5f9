"""The test driver: runs a topology in this process, record by record or batch by batch."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, overload

from headrace.arguments.durations import to_ms
from headrace.arguments.values import flag, serde, text, whole_number
from headrace.config import StreamsConfig
from headrace.errors import TopologyError, describe_value, did_you_mean
from headrace.record import RecordMetadata
from headrace.serdes import Serde
from headrace.testing.hosting import LocalHost
from headrace.testing.record_checks import checked_several
from headrace.testing.store_getters import StoreGetters
from headrace.testing.topics import TestInputTopic, TestOutputTopic
from headrace.topics.log import Headers, Output
from headrace.topology.topology import Topology

K = TypeVar("K")
V = TypeVar("V")


class TopologyTestDriver(StoreGetters):
    """Tests a topology without a JVM and without a broker: pipe records in, read what comes out, look into the stores.

    It runs the same tasks as the engine on Spark. By default it does what Kafka's own test driver does: one task with
    one partition for the whole topology, every record processed and committed before ``pipe_input`` returns, so a
    record cache holds nothing back between records. Two options bring it closer to production:

    - ``partitions`` (a number, or a number per topic): one task per sub-topology and partition, each with its own
      stores and stream time; records are spread by the hash of their keys.
    - ``batched=True``: records wait until ``commit()``, which processes them as one micro-batch, level by level, and
      flushes the record caches at its end, as the engine on Spark does.

    >>> from headrace import Serdes, StreamsBuilder, TopologyTestDriver
    >>> builder = StreamsBuilder()
    >>> counts = builder.stream("words").group_by(lambda key, word: word).count()
    >>> counts.to_stream().to("counts")
    >>> with TopologyTestDriver(builder.build()) as driver:
    ...     words = driver.create_input_topic("words")
    ...     words.pipe_values(["to", "be", "to"])
    ...     driver.create_output_topic("counts", value_serde=Serdes.long()).read_key_values()
    [KeyValue(key='to', value=1), KeyValue(key='be', value=1), KeyValue(key='to', value=2)]
    """

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig | Mapping[str, Any] | None = None,
        *,
        initial_wall_clock_ms: int | None = None,
        partitions: int | Mapping[str, int] | None = None,
        batched: bool = False,
        state_dir: str | Path | None = None,
    ) -> None:
        """Starts the topology.

        - ``initial_wall_clock_ms``: where the mocked wall clock starts (default: now); it moves only by
          ``advance_wall_clock_time``.
        - ``partitions``: how many partitions topics have, as a number or by topic; then there is a task per
          sub-topology and partition.
        - ``batched``: records wait until ``commit()``.
        - ``state_dir``: a directory in which persistent stores are kept on disk; without it all are in memory.
        """
        if not isinstance(topology, Topology):
            message = (
                f"TopologyTestDriver takes a Topology; found {describe_value(topology)}; "
                "call build() on the StreamsBuilder first"
            )
            raise TopologyError(message)
        start_ms = int(time.time() * 1000) if initial_wall_clock_ms is None else initial_wall_clock_ms
        whole_number(start_ms, "TopologyTestDriver: initial_wall_clock_ms")
        flag(batched, "TopologyTestDriver: batched")
        if not isinstance(state_dir, str | PathLike | None):
            message = f"TopologyTestDriver: state_dir must be a path; found {describe_value(state_dir)}"
            raise TopologyError(message)
        self.config = _with_test_defaults(config)
        self._outputs: dict[str, deque[Output]] = {}
        self._host = LocalHost(
            topology,
            self.config,
            start_ms,
            partitions=partitions,
            by_subtopology=batched or partitions is not None,
            state_dir=None if state_dir is None else Path(state_dir),
            written=self._written,
        )
        self._batched = batched
        self._closed = False

    @overload
    def create_input_topic(
        self,
        name: str,
        key_serde: Serde[K],
        value_serde: Serde[V],
        *,
        start_ms: int | None = ...,
        auto_advance: timedelta = ...,
    ) -> TestInputTopic[K, V]: ...
    @overload
    def create_input_topic(
        self,
        name: str,
        key_serde: Serde[K],
        value_serde: None = None,
        *,
        start_ms: int | None = ...,
        auto_advance: timedelta = ...,
    ) -> TestInputTopic[K, Any]: ...
    @overload
    def create_input_topic(
        self,
        name: str,
        key_serde: None = None,
        value_serde: None = None,
        *,
        start_ms: int | None = ...,
        auto_advance: timedelta = ...,
    ) -> TestInputTopic[Any, Any]: ...
    @overload
    def create_input_topic(
        self,
        name: str,
        key_serde: None = None,
        value_serde: Serde[V] = ...,
        *,
        start_ms: int | None = ...,
        auto_advance: timedelta = ...,
    ) -> TestInputTopic[Any, V]: ...
    def create_input_topic(
        self,
        name: str,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        *,
        start_ms: int | None = None,
        auto_advance: timedelta = timedelta(0),
    ) -> TestInputTopic[Any, Any]:
        """Returns a topic to write to; serdes default to those with which the topology reads it.

        ``start_ms`` is where the topic's clock starts (default: the driver's wall clock); it advances by
        ``auto_advance`` with each record that has no timestamp of its own.
        """
        self._host.check_input(name)
        serde(key_serde, f"input topic '{name}': key_serde")
        serde(value_serde, f"input topic '{name}': value_serde")
        return TestInputTopic(
            self,
            name,
            key_serde or self._host.input_serdes(name)[0],
            value_serde or self._host.input_serdes(name)[1],
            self._host.now_ms() if start_ms is None else start_ms,
            auto_advance,
        )

    @overload
    def create_output_topic(self, name: str, key_serde: Serde[K], value_serde: Serde[V]) -> TestOutputTopic[K, V]: ...
    @overload
    def create_output_topic(
        self, name: str, key_serde: Serde[K], value_serde: None = None
    ) -> TestOutputTopic[K, Any]: ...
    @overload
    def create_output_topic(
        self, name: str, key_serde: None = None, value_serde: None = None
    ) -> TestOutputTopic[Any, Any]: ...
    @overload
    def create_output_topic(
        self, name: str, key_serde: None = None, value_serde: Serde[V] = ...
    ) -> TestOutputTopic[Any, V]: ...
    def create_output_topic(
        self, name: str, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> TestOutputTopic[Any, Any]:
        """Returns a topic to read from; serdes default to those with which the topology writes it."""
        text(name, "the name of an output topic")
        serde(key_serde, f"output topic '{name}': key_serde")
        serde(value_serde, f"output topic '{name}': value_serde")
        keys, values = self._host.output_serdes(name)
        return TestOutputTopic(self, name, key_serde or keys, value_serde or values, lambda: self._why_empty(name))

    def pipe_raw(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: int,
        headers: Headers = (),
        partition: int | None = None,
    ) -> RecordMetadata:
        """Writes a record as bytes: how a record that does not deserialize is tested. Returns where it went."""
        self._check_open()
        metadata = self._host.write(topic, [(partition, timestamp_ms, key, value, headers)])
        self._run()
        return metadata

    def pipe_raw_batch(self, topic: str, records: Sequence[Output]) -> None:
        """Writes many records as bytes: tuples of partition (or None), timestamp, key, value and headers.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").to("out")
        >>> with TopologyTestDriver(builder.build(), batched=True) as driver:
        ...     driver.pipe_raw_batch("in", [(None, 0, b"a", b"1", ()), (None, 1, b"b", b"2", ())])
        ...     driver.commit()
        ...     driver.create_output_topic("out").read_values()
        [1, 2]
        """
        self._check_open()
        self._host.write(topic, tuple(checked_several(records, f"topic '{topic}': the records")))
        self._run()

    def commit(self) -> None:
        """Processes what was piped in since the last commit as one micro-batch.

        Only a batched driver has anything to do here: any other commits after every record.

        >>> from headrace import Serdes, StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").group_by_key().count().to_stream().to("out")
        >>> with TopologyTestDriver(builder.build(), batched=True) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", 1), ("a", 2), ("b", 3)])
        ...     driver.commit()
        ...     driver.create_output_topic("out", value_serde=Serdes.long()).read_key_values()
        [KeyValue(key='a', value=2), KeyValue(key='b', value=1)]
        """
        self._check_open()
        if self._batched:
            with self._host.failing_loudly():
                self._host.run_batch()

    def advance_wall_clock_time(self, advance: timedelta) -> None:
        """Moves the wall clock and calls the wall-clock punctuations that are due, each at most once.

        A batched driver calls them at the start of the next ``commit()``.
        """
        self._check_open()
        advance_ms = to_ms(advance, "advance")
        if advance_ms < 0:
            message = f"time cannot go back: advance must not be negative; found {advance!r}"
            raise TopologyError(message)
        self._host.wall_clock_ms += advance_ms
        if not self._batched:
            with self._host.failing_loudly():
                self._host.tick()
        self._run()

    def produced_topic_names(self) -> frozenset[str]:
        """Returns the names of all topics that were written to, internal ones and changelogs included."""
        self._host.write_changelogs()
        return frozenset(self._outputs)

    def unread(self, topic: str) -> int:
        """Returns how many records of a topic have not been read yet."""
        return len(self._queue(topic))

    def take_outputs(self, topic: str, count: int) -> list[Output]:
        """Takes the next records of a topic as bytes."""
        queue = self._queue(topic)
        whole_number(count, "take_outputs(): count", minimum=0)
        return [queue.popleft() for _ in range(min(count, len(queue)))]

    def peek_outputs(self, topic: str, count: int) -> list[Output]:
        """Returns the next records of a topic as bytes, and leaves them there."""
        return list(islice(self._queue(topic), whole_number(count, "peek_outputs(): count", minimum=0)))

    def metrics(self) -> dict[str, float]:
        """Returns the counters of all tasks together, under Kafka Streams' names.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> table = builder.table("in")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_input(None, "a table has no row without a key")
        ...     driver.metrics()["dropped-records-total"]
        1
        """
        return self._host.metrics()

    def _run(self) -> None:
        if not self._batched:
            with self._host.failing_loudly():
                self._host.run_record_by_record()

    def _why_empty(self, topic: str) -> str:
        """Returns why nothing can be read from a topic, for the error that says so."""
        if waiting := self._host.waiting():
            return f"{waiting} records wait to be processed: call commit() on the driver first"
        if topic in self.produced_topic_names():
            return "all its records have been read"
        known = sorted(self.produced_topic_names() | self._host.sink_topics())
        hint = did_you_mean(topic, known) or "; check that the input passes the topology's filters"
        return f"nothing was written to it so far (topics of this topology: {', '.join(known) or 'none'}){hint}"

    def _queue(self, topic: str) -> deque[Output]:
        text(topic, "the name of an output topic")
        if self._host.is_changelog(topic):
            self._host.write_changelogs()
        return self._outputs.get(topic, deque())

    def _written(self, topic: str, outputs: Sequence[Output]) -> None:
        self._outputs.setdefault(topic, deque()).extend(outputs)

    def _check_open(self) -> None:
        if self._closed:
            message = "this test driver is closed; make a new one"
            raise TopologyError(message)

    def close(self) -> None:
        """Closes processors and stores; a second call does nothing. Warns of records that were never processed."""
        if not self._closed:
            self._closed = True
            self._host.close()
            if waiting := self._host.waiting():
                message = f"{waiting} records were piped in but never processed: call commit() before closing"
                warnings.warn(message, stacklevel=2)

    def __enter__(self) -> TopologyTestDriver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            # The error is the news; that records wait behind it is not.
            self._host.discard()
        self.close()


def _with_test_defaults(config: StreamsConfig | Mapping[str, Any] | None) -> StreamsConfig:
    """Results of closed windows are not throttled in tests."""
    given = StreamsConfig.of(config)
    return given if given.emit_interval is not None else replace(given, emit_interval=timedelta(0))
