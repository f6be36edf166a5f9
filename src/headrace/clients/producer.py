"""Typed producer: records of one topic, written in small groups."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic

from headrace.arguments.values import whole_number
from headrace.clients.client import Client
from headrace.config import StreamsConfig
from headrace.errors import StreamsError, TopicError
from headrace.serdes import Serde
from headrace.testing.record_checks import checked_headers
from headrace.timestamps import K, V
from headrace.topics.log import Output
from headrace.topics.partitioner import default_partitioner
from headrace.topics.record_partitioning import Sticky, spread

_GROUP = 1_000
_LINGER_S = 0.1


class Producer(Client, Generic[K, V]):
    """Writes records to a topic: in the embedded log, or in Kafka if the configuration has ``bootstrap_servers``.

    Without serdes it takes those of the configuration. A topic that is not there is an error, unless ``partitions``
    says how many it is to have. Records are written in groups, a tenth of a second after ``send`` at the latest;
    ``flush`` and the end of the ``with`` block wait until they are acknowledged. Threads may share a producer.

    >>> from tempfile import mkdtemp
    >>> from headrace import Consumer, Serdes
    >>> config = StreamsConfig(state_dir=mkdtemp())
    >>> with Producer(config, "ages", Serdes.string(), Serdes.integer(), partitions=2) as producer:
    ...     producer.send("ada", 36, timestamp_ms=1_000)
    ...     producer.send("bob", 41, timestamp_ms=2_000, headers=[("from", b"web")])
    >>> with Consumer(config, "ages", Serdes.string(), Serdes.integer()) as ages:
    ...     [(record.key, record.value) for record in ages]
    [('ada', 36), ('bob', 41)]
    """

    def __init__(
        self,
        config: StreamsConfig | Mapping[str, Any] | None,
        topic: str,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        *,
        partitions: int | None = None,
    ) -> None:
        super().__init__(config, topic, key_serde, value_serde, partitions)
        self._encode_key: Callable[[K], bytes] = self._keys.serializer(topic, is_key=True)
        self._encode_value: Callable[[V], bytes] = self._values.serializer(topic, is_key=False)
        self._choose = default_partitioner(self._keys, topic)
        self._lock = threading.RLock()
        self._pending: list[Output] = []
        self._timer: threading.Timer | None = None
        self._failure: Exception | None = None

    def send(
        self,
        key: K | None = None,
        value: V | None = None,
        *,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
        partition: int | None = None,
    ) -> None:
        """Writes a record: now, unless ``timestamp_ms`` says when; to the partition of its key, unless one is named.

        A value of None is a tombstone, which deletes the row of a table. What the serdes, the topic or its partitions
        do not take is refused here. A group that could not be written is an error of the next call.

        >>> from tempfile import mkdtemp
        >>> with Producer({"state.dir": mkdtemp()}, "ages", partitions=2) as producer:
        ...     producer.send("ada", {"age": 36})
        ...     producer.send("ada", None, partition=2)
        Traceback (most recent call last):
        ...
        headrace.errors.TopicError: topic 'ages' has partitions 0 to 1; a record was written to partition 2; ...
        """
        self._check_open()
        if timestamp_ms is None:
            timestamp_ms = int(time.time() * 1000)
        else:
            whole_number(timestamp_ms, f"{self._where}: timestamp_ms", minimum=0, error=TopicError)
        if partition is None and self._choose is not None:
            chosen = self._choose(self.topic, key, value, self._topic.partitions)
            partition = chosen if isinstance(chosen, int) else None
        output: Output = (
            partition,
            timestamp_ms,
            None if key is None else self._encode_key(key),
            None if value is None else self._encode_value(value),
            () if headers == () else checked_headers(headers),
        )
        if partition is not None or key is None:
            # A record that is refused here spoils no group.
            deque(spread(self._topic, [output], Sticky(0)), maxlen=0)
        with self._lock:
            self._raise_failure()
            self._pending.append(output)
            if len(self._pending) >= _GROUP:
                self.flush()
            elif self._timer is None:
                self._timer = threading.Timer(_LINGER_S, self._flush_later)
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """Waits until all records are acknowledged that were sent before.

        >>> from tempfile import mkdtemp
        >>> producer = Producer({"state.dir": mkdtemp()}, "lines", partitions=1)
        >>> producer.send(value="hello")
        >>> producer.flush()
        >>> producer.close()
        """
        with self._lock:
            self._raise_failure()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._pending:
                pending, self._pending = self._pending, []
                self._log.append(self.topic, pending)

    def close(self) -> None:
        """Waits for what was sent, and closes the log. A second call does nothing."""
        try:
            if self._is_open:
                self.flush()
        finally:
            super().close()

    def _flush_later(self) -> None:
        with self._lock:
            # None: somebody has flushed while the lock was waited for.
            if self._timer is None or not self._is_open:
                return
            self._timer = None
            try:
                self.flush()
            except Exception as error:
                self._failure = error

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            message = f"{self._where}: records that were sent earlier could not be written: {failure}"
            raise StreamsError(message) from failure
