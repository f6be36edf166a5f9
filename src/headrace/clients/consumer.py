"""Typed consumer: the records of one topic, the oldest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Generic, Literal

from headrace.arguments.values import whole_number
from headrace.clients.client import Client
from headrace.config import StreamsConfig
from headrace.errors import ConfigError, DeserializationError, TopicError, describe_value, did_you_mean
from headrace.record import Headers
from headrace.serdes import Serde
from headrace.timestamps import ConsumedRecord, K, V
from headrace.topics.log import Offsets, Raw
from headrace.topics.tail import read_rounds

Start = Literal["earliest", "latest"]


class Consumer(Client, Generic[K, V]):
    """Reads a topic of the embedded log, or of Kafka if the configuration has ``bootstrap_servers``.

    Iterating gives all records up to the end of the topic, and iterating again those that have come since. With
    ``follow`` it waits for more, with ``timeout`` until nothing has come for so long. Records of several partitions
    come in the order of their timestamps, as far as they are there. ``start`` is ``earliest``, ``latest`` or a time in
    milliseconds; ``partition`` reads one alone. A consumer has no group and commits nothing: the next one starts over.

    >>> from tempfile import mkdtemp
    >>> from headrace import Producer, Serdes
    >>> config = StreamsConfig(state_dir=mkdtemp())
    >>> producer = Producer(config, "ages", Serdes.string(), Serdes.integer(), partitions=1)
    >>> producer.send("ada", 36, timestamp_ms=1_000)
    >>> producer.flush()
    >>> ages = Consumer(config, "ages", Serdes.string(), Serdes.integer())
    >>> list(ages)
    [ConsumedRecord(key='ada', value=36, timestamp_ms=1000, headers=Headers(()), topic='ages', partition=0, offset=0)]
    >>> producer.send("bob", 41, timestamp_ms=2_000)
    >>> producer.close()
    >>> [(record.key, record.value) for record in ages]
    [('bob', 41)]
    >>> ages.close()
    """

    def __init__(
        self,
        config: StreamsConfig | Mapping[str, Any] | None,
        topic: str,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        *,
        start: Start | int = "earliest",
        partition: int | None = None,
        follow: bool = False,
        timeout: timedelta | None = None,
    ) -> None:
        super().__init__(config, topic, key_serde, value_serde)
        self._follow = follow
        self._timeout = timeout
        self._read_key = self._keys.deserializer(topic, is_key=True)
        self._read_value = self._values.deserializer(topic, is_key=False)
        try:
            self._positions = self._start(start, partition)
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[ConsumedRecord[K, V]]:
        self._check_open()
        name = self.topic
        for records in read_rounds(self._log, self._positions, follow=self._follow, timeout=self._timeout):
            for partition, raw in records:
                # Before it is read: who goes on after an error goes on behind the record.
                self._positions[(name, partition)] = raw[0] + 1
                yield self._record(partition, raw)
                self._check_open()

    def _record(self, partition: int, raw: Raw) -> ConsumedRecord[K, V]:
        offset, timestamp_ms, key, value, headers = raw
        # Any: where there is none it is None, as everywhere.
        read_key: Any = None
        read_value: Any = None
        try:
            if key is not None:
                read_key = self._read_key(key)
            if value is not None:
                read_value = self._read_value(value)
        except DeserializationError as error:
            message = f"partition {partition}, offset {offset}: {error}; iterate again to go on behind the record"
            raise DeserializationError(message) from error
        return ConsumedRecord(read_key, read_value, timestamp_ms, Headers(headers), self.topic, partition, offset)

    def _start(self, start: Start | int, partition: int | None) -> Offsets:
        count = self._topic.partitions
        if partition is not None and not 0 <= whole_number(partition, f"{self._where}: partition") < count:
            message = f"{self._where}: the topic has partitions 0 to {count - 1}; found {partition}"
            raise TopicError(message)
        targets = [(self.topic, each) for each in (range(count) if partition is None else [partition])]
        match start:
            case "earliest":
                return self._log.begin_offsets(targets)
            case "latest":
                return self._log.end_offsets(targets)
            case int() if not isinstance(start, bool) and start >= 0:
                found, ends = self._log.offsets_for_time(dict.fromkeys(targets, start)), self._log.end_offsets(targets)
                return {target: ends[target] if at is None else at for target, at in found.items()}
        hint = did_you_mean(start, ("earliest", "latest")) if isinstance(start, str) else ""
        message = (
            f"{self._where}: start must be 'earliest', 'latest', or a time in milliseconds; "
            f"found {describe_value(start)}{hint}"
        )
        raise ConfigError(message)
