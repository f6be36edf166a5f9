"""The test driver's topics: write records in, read records out, with serdes and clocks of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from headrace.arguments.durations import to_ms
from headrace.arguments.values import whole_number
from headrace.errors import StreamsError, TopologyError, describe_value
from headrace.record import EMPTY_HEADERS, Headers, KeyValue
from headrace.serdes import Serde
from headrace.tabular import Row, Tabular
from headrace.testing.record_checks import checked_headers, checked_several
from headrace.topics.log import Output

if TYPE_CHECKING:
    from headrace.testing.driver import TopologyTestDriver

K = TypeVar("K")
V = TypeVar("V")

HeaderPairs = Iterable[tuple[str, bytes | None]]


@dataclass(frozen=True)
class TestRecord(Generic[K, V]):
    """A record that goes into a test driver or comes out of it.

    >>> TestRecord("k", "v", timestamp_ms=7)
    TestRecord(key='k', value='v', timestamp_ms=7, headers=Headers(()), partition=None)
    """

    __test__: ClassVar[bool] = False  # not a test class, whatever its name suggests to pytest

    key: K
    value: V
    timestamp_ms: int | None = None
    """Event time; None on the way in means the topic's own clock."""
    headers: Headers = EMPTY_HEADERS
    partition: int | None = None
    """On the way in: the partition to write to, None for the key's hash. On the way out: where the record went."""

    def equals_ignore_partition(self, other: TestRecord[Any, Any]) -> bool:
        """Returns whether two records are equal apart from their partitions.

        >>> TestRecord("k", 1, 5, partition=0).equals_ignore_partition(TestRecord("k", 1, 5, partition=1))
        True
        """
        return (self.key, self.value, self.timestamp_ms, self.headers) == (
            other.key,
            other.value,
            other.timestamp_ms,
            other.headers,
        )


class TestInputTopic(Generic[K, V]):
    """Pipes records into a topic of the topology; made by ``TopologyTestDriver.create_input_topic``.

    Records without a timestamp get the topic's clock, which then advances by ``auto_advance``.
    """

    __test__: ClassVar[bool] = False

    def __init__(
        self,
        driver: TopologyTestDriver,
        name: str,
        key_serde: Serde[K],
        value_serde: Serde[V],
        start_ms: int,
        auto_advance: timedelta,
    ) -> None:
        whole_number(start_ms, f"input topic '{name}': start_ms", minimum=0)
        self.name = name
        self._driver = driver
        self._encode_key = key_serde.serializer(name, is_key=True)
        self._encode_value = value_serde.serializer(name, is_key=False)
        self._now_ms = start_ms
        self._step_ms = _forward(auto_advance, f"input topic '{name}': auto_advance")

    def advance_time(self, advance: timedelta) -> None:
        """Moves the topic's clock.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     topic = driver.create_input_topic("in", start_ms=0)
        ...     topic.advance_time(timedelta(seconds=1))
        ...     topic.pipe_input("k", "v")
        ...     driver.create_output_topic("out").read_record().timestamp_ms
        1000
        """
        self._now_ms += _forward(advance, f"input topic '{self.name}': advance")

    def pipe_input(
        self,
        key: K | None = None,
        value: V | None = None,
        *,
        timestamp_ms: int | None = None,
        headers: HeaderPairs = (),
        partition: int | None = None,
    ) -> None:
        """Writes one record; unless the driver is batched, the topology processes it before this returns.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_input("k", "v", timestamp_ms=5, headers=[("h", b"1")])
        ...     driver.create_output_topic("out").read_record()
        TestRecord(key='k', value='v', timestamp_ms=5, headers=Headers((('h', b'1'),)), partition=0)
        """
        if timestamp_ms is None:
            timestamp_ms = self._now_ms
            self._now_ms += self._step_ms
        elif not isinstance(timestamp_ms, int):
            message = f"input topic '{self.name}': timestamp_ms is an int; found {describe_value(timestamp_ms)}"
            raise StreamsError(message)
        key_bytes = None if key is None else self._encode_key(key)
        value_bytes = None if value is None else self._encode_value(value)
        self._driver.pipe_raw(
            self.name,
            key_bytes,
            value_bytes,
            timestamp_ms=timestamp_ms,
            headers=() if headers == () else checked_headers(headers),
            partition=partition,
        )

    def pipe_record(self, record: TestRecord[K, V]) -> None:
        """Writes one ``TestRecord``."""
        given: object = record
        if not isinstance(given, TestRecord):
            message = f"input topic '{self.name}': pipe_record takes a TestRecord; found {describe_value(given)}"
            raise TopologyError(message)
        self.pipe_input(
            record.key,
            record.value,
            timestamp_ms=record.timestamp_ms,
            headers=record.headers,
            partition=record.partition,
        )

    def pipe_records(self, records: Iterable[TestRecord[K, V]]) -> None:
        """Writes records one after the other."""
        for record in checked_several(records, f"input topic '{self.name}': the records"):
            self.pipe_record(record)

    def pipe_key_values(
        self,
        pairs: Iterable[tuple[K | None, V | None]],
        *,
        start_ms: int | None = None,
        advance: timedelta = timedelta(0),
    ) -> None:
        """Writes pairs; with ``start_ms`` their timestamps start there and grow by ``advance``.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     topic = driver.create_input_topic("in")
        ...     topic.pipe_key_values([("a", 1), ("b", 2)], start_ms=10, advance=timedelta(milliseconds=5))
        ...     [record.timestamp_ms for record in driver.create_output_topic("out").read_records()]
        [10, 15]
        """
        step_ms = _forward(advance, f"input topic '{self.name}': advance")
        if start_ms is not None:
            whole_number(start_ms, f"input topic '{self.name}': start_ms")
        for index, pair in enumerate(checked_several(pairs, f"input topic '{self.name}': the pairs")):
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                message = f"input topic '{self.name}': pairs (key, value) are needed; found {describe_value(pair)}"
                raise TopologyError(message)
            timestamp_ms = None if start_ms is None else start_ms + index * step_ms
            self.pipe_input(*pair, timestamp_ms=timestamp_ms)

    def pipe_values(
        self, values: Iterable[V | None], *, start_ms: int | None = None, advance: timedelta = timedelta(0)
    ) -> None:
        """Writes values without keys; times as in ``pipe_key_values``."""
        several = checked_several(values, f"input topic '{self.name}': the values")
        self.pipe_key_values([(None, value) for value in several], start_ms=start_ms, advance=advance)

    def __repr__(self) -> str:
        return f"TestInputTopic(name={self.name!r}, now_ms={self._now_ms}, step_ms={self._step_ms})"


def _forward(duration: timedelta, what: str) -> int:
    step_ms = to_ms(duration, what)
    if step_ms < 0:
        message = f"{what} must not be negative; found {duration!r}"
        raise TopologyError(message)
    return step_ms


class TestOutputTopic(Tabular, Generic[K, V]):
    """Reads what the topology wrote to a topic, each record once; made by ``create_output_topic`` of the driver.

    Its types are those of the serdes. A record without a key or a value has None there all the same: compare with
    None to test for tombstones.
    """

    __test__: ClassVar[bool] = False

    def __init__(
        self,
        driver: TopologyTestDriver,
        name: str,
        key_serde: Serde[K],
        value_serde: Serde[V],
        why_empty: Callable[[], str],
    ) -> None:
        self.name = name
        self._driver = driver
        self._why_empty = why_empty
        self._decode_key: Callable[[bytes], K] = key_serde.deserializer(name, is_key=True)
        self._decode_value: Callable[[bytes], V] = value_serde.deserializer(name, is_key=False)

    def read_record(self) -> TestRecord[K, V]:
        """Returns the next record; raises ``LookupError`` when there is none."""
        if self.is_empty():
            message = f"the topic '{self.name}' has no record to read: {self._why_empty()}"
            raise LookupError(message)
        return self._read(1)[0]

    def read_value(self) -> V:
        """Returns the value of the next record."""
        return self.read_record().value

    def read_key_value(self) -> KeyValue[K, V]:
        """Returns key and value of the next record."""
        record = self.read_record()
        return KeyValue(record.key, record.value)

    def read_records(self) -> list[TestRecord[K, V]]:
        """Returns all records that have not been read yet."""
        return self._read(self.queue_size())

    def read_key_values(self) -> list[KeyValue[K, V]]:
        """Returns keys and values of all records that have not been read yet."""
        return [KeyValue(record.key, record.value) for record in self.read_records()]

    def read_values(self) -> list[V]:
        """Returns the values of all records that have not been read yet."""
        return [record.value for record in self.read_records()]

    def read_key_values_to_map(self) -> dict[K, V]:
        """Returns the last value per key of all records that have not been read yet.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").to("out")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_key_values([("a", 1), ("b", 2), ("a", 3)])
        ...     driver.create_output_topic("out").read_key_values_to_map()
        {'a': 3, 'b': 2}
        """
        latest: dict[K, V] = {}
        for record in self.read_records():
            if record.key is None:
                message = f"the topic '{self.name}' has a record without a key; read_key_values() takes those, too"
                raise StreamsError(message)
            latest[record.key] = record.value
        return latest

    def to_pandas(self) -> Any:
        """Returns all records that have not been read yet as a data frame of pandas, which must be installed.

        Its columns are ``key``, ``value`` and ``timestamp``, in UTC. Keys and values with fields (dicts, dataclasses,
        structs) have a column for each of them instead.

        >>> from headrace import StreamsBuilder, TopologyTestDriver
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").to("spent")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_input("ada", {"cents": 12, "shop": "tea"}, timestamp_ms=0)
        ...     driver.create_output_topic("spent").to_pandas()
           key  cents shop                 timestamp
        0  ada     12  tea 1970-01-01 00:00:00+00:00
        """
        return super().to_pandas()

    def _read_rows(self, count: int | None) -> list[Row]:
        records = self._read(self.queue_size() if count is None else count)
        return [Row(record.key, record.value, record.timestamp_ms) for record in records]

    def _peek_rows(self, count: int) -> list[Row]:
        records = self._decoded(self._driver.peek_outputs(self.name, count))
        return [Row(record.key, record.value, record.timestamp_ms) for record in records]

    def queue_size(self) -> int:
        """Returns how many records have not been read yet."""
        return self._driver.unread(self.name)

    def is_empty(self) -> bool:
        """Returns whether every record has been read."""
        return self.queue_size() == 0

    def _read(self, count: int) -> list[TestRecord[K, V]]:
        return self._decoded(self._driver.take_outputs(self.name, count))

    def _decoded(self, outputs: Iterable[Output]) -> list[TestRecord[K, V]]:
        nothing: Any = None
        return [
            TestRecord(
                nothing if key is None else self._decode_key(key),
                nothing if value is None else self._decode_value(value),
                timestamp_ms,
                Headers(headers),
                partition,
            )
            for partition, timestamp_ms, key, value, headers in outputs
        ]

    def __repr__(self) -> str:
        return f"TestOutputTopic(name={self.name!r}, unread={self.queue_size()})"
