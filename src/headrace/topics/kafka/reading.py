"""Reading a range of offsets with a consumer that is kept for the next range.

Offsets of transaction markers, aborted and compacted records never arrive, so a range is over when a record at or
behind its end comes, or when the consumer says that the partition ends there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import chain

from confluent_kafka import KafkaError, Message

from headrace.errors import RetriableError
from headrace.topics.kafka.administration import Administration
from headrace.topics.kafka.client_errors import UNKNOWN, explain, out_of_range
from headrace.topics.kafka.clients import Clients, Reader
from headrace.topics.log import Raw, TopicPartition

_AT_ONCE = 1000
"""Messages a call: more of them are slower."""
_POLL_S = 0.1
_STALLED_S = 1.5
_SAMPLE = 100
_ALL_BYTES = 256 << 20
_OVERHEAD = 16
"""Bytes that a record takes besides its key, value and headers."""

_GONE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


def read_range(
    clients: Clients,
    administration: Administration,
    target: TopicPartition,
    start: int,
    stop: int | None,
    max_records: int,
    max_bytes: int,
    *,
    keep: bool = True,
) -> list[Raw]:
    """Returns the records between two offsets, up to the limits, at least one.

    For a single read the consumer is not kept: it would go on fetching what nobody wants.
    """
    administration.check([target])
    if stop is not None and start >= stop:
        return []
    take = clients.take_reader if keep else clients.new_reader
    reader = take(target, administration.topic_id(target[0]), start)
    reading = _Reading(clients, administration, target, stop, max_records, max_bytes, reader)
    try:
        found = reading.run()
    except BaseException:
        # Where it stands is not known.
        reader.consumer.close()
        raise
    if keep:
        clients.give_back(target, reader)
    else:
        reader.consumer.close()
    return found


def read_pages(
    clients: Clients,
    administration: Administration,
    target: TopicPartition,
    start: int,
    stop: int,
    max_records: int,
    max_bytes: int,
) -> Iterator[list[Raw]]:
    """Returns the records between two offsets, page by page; each page has a consumer of its own."""
    while start < stop:
        page = read_range(clients, administration, target, start, stop, max_records, max_bytes, keep=False)
        if not page:
            # Markers, and what was aborted or compacted away, are all that is left.
            return
        start = page[-1][0] + 1
        yield page


def read_all(
    clients: Clients, administration: Administration, target: TopicPartition, start: int, stop: int
) -> list[Raw]:
    """Returns the records between two offsets."""
    pages = read_pages(clients, administration, target, start, stop, max(1, stop - start), _ALL_BYTES)
    return list(chain.from_iterable(pages))


class _Reading:
    """One read: it moves the reader's position, and leaves surplus fetched records with it."""

    def __init__(
        self,
        clients: Clients,
        administration: Administration,
        target: TopicPartition,
        stop: int | None,
        max_records: int,
        max_bytes: int,
        reader: Reader,
    ) -> None:
        self._clients = clients
        self._administration = administration
        self._target = target
        self._stop = (1 << 62) if stop is None else stop
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._reader = reader
        self._found: list[Raw] = []
        self._bytes = 0

    def run(self) -> list[Raw]:
        reader = self._reader
        deadline = time.monotonic() + self._clients.patience_s
        renewal, pause = time.monotonic() + _STALLED_S, _STALLED_S
        if reader.ended == reader.position and not reader.left and self._stable_end() <= reader.position:
            return []
        while True:
            messages = reader.left or self._fetch()
            reader.left = ()
            if not messages:
                if self._stable_end() <= reader.position:
                    self._check_not_behind_the_end()
                    return self._found
                now = time.monotonic()
                if now > deadline:
                    self._raise_silence()
                if now > renewal:
                    self._check_let_in()
                    # It may have lost its place for good, when the records there were removed.
                    self._renew()
                    pause *= 2
                    renewal = now + pause
                continue
            deadline = time.monotonic() + self._clients.patience_s
            if self._take(messages):
                return self._found

    def _check_not_behind_the_end(self) -> None:
        end = self._administration.end_offsets([self._target], stable=False)[self._target]
        if self._reader.position > end:
            begin = self._administration.begin_offsets([self._target])[self._target]
            raise out_of_range(self._target, self._reader.position, begin, end)

    def _check_let_in(self) -> None:
        # As in Java a refusal is told. The consumer itself would go on trying, and say nothing.
        if self._clients.refusal is not None:
            raise explain(self._clients.refusal, f"reading topic '{self._target[0]}'", self._clients.servers)

    def _renew(self) -> None:
        reader = self._reader
        reader.consumer.close()
        reader.consumer = self._clients.new_reader(self._target, reader.topic_id, reader.position).consumer
        reader.ended = -1

    def _fetch(self) -> Sequence[Message]:
        consumer = self._reader.consumer
        messages = consumer.consume(_AT_ONCE, 0)
        if messages:
            return messages
        # Waiting with consume() would wait for all thousand.
        message = consumer.poll(_POLL_S)
        return () if message is None else (message,)

    def _take(self, messages: Sequence[Message]) -> bool:
        """Takes what belongs to the range; returns whether it is over."""
        if self._takes_all(messages):
            return False
        reader = self._reader
        for place, message in enumerate(messages):
            error = message.error()
            if error is not None:
                if self._ends(message, error):
                    reader.left = messages[place + 1 :]
                    return True
                continue
            offset = message.offset()
            assert offset is not None, "a message without an error has an offset"
            if offset >= self._stop:
                reader.position, reader.left = self._stop, messages[place:]
                return True
            self._found.append(_raw(message))
            reader.position = offset + 1
            self._bytes += len(message) + _OVERHEAD
            if offset == self._stop - 1 or len(self._found) >= self._max_records or self._bytes >= self._max_bytes:
                reader.left = messages[place + 1 :]
                return True
        return False

    def _takes_all(self, messages: Sequence[Message]) -> bool:
        """Takes all messages at once if the range and the limits allow it."""
        last = messages[-1].offset()
        size = self._bytes + sum(map(len, messages)) + _OVERHEAD * len(messages)
        if (
            last is None
            or last >= self._stop - 1
            or size >= self._max_bytes
            or len(self._found) + len(messages) >= self._max_records
            or any(message.error() is not None for message in messages)
        ):
            return False
        self._found += [
            (m.offset(), m.timestamp()[1], m.key(), m.value(), tuple(h) if (h := m.headers()) else ())  # type: ignore[misc, arg-type]
            for m in messages
        ]
        self._bytes = size
        self._reader.position = last + 1
        return True

    def _ends(self, message: Message, error: KafkaError) -> bool:
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            end = message.offset()
            assert end is not None, "the end of a partition has an offset"
            self._reader.ended = end
            if end < self._stop and end < self._stable_end():
                # It was announced before more was written.
                return False
            # Otherwise nothing of the range is left: only markers, or what was compacted away.
            self._reader.position = min(end, self._stop)
            return True
        if code in _GONE:
            begin = self._administration.begin_offsets([self._target])[self._target]
            raise out_of_range(self._target, self._reader.position, begin, self._stable_end())
        if error.fatal() or code in UNKNOWN or not error.retriable():
            # What is transient is tried again by the client itself; it only tells.
            if code in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE):
                return False
            raise explain(error, f"reading topic '{self._target[0]}'", self._clients.servers)
        return False

    def _stable_end(self) -> int:
        return self._administration.end_offsets([self._target], stable=True)[self._target]

    def _raise_silence(self) -> None:
        message = (
            f"nothing came from partition {self._target[1]} of topic '{self._target[0]}' at offset "
            f"{self._reader.position} for {self._clients.patience_s:.0f} s; check that Kafka at "
            f"'{self._clients.servers}' runs"
        )
        raise RetriableError(message)


def _raw(message: Message) -> Raw:
    headers = message.headers()
    # The types of the client allow None and text where it gives neither.
    return (
        message.offset(),  # type: ignore[return-value]
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple(headers) if headers else (),  # type: ignore[arg-type]
    )


def sample_bytes(clients: Clients, administration: Administration, target: TopicPartition) -> int:
    """Returns the average size of the last records, 0 if there are none."""
    begin = administration.begin_offsets([target])[target]
    end = administration.end_offsets([target], stable=True)[target]
    found = read_range(clients, administration, target, max(begin, end - _SAMPLE), end, _SAMPLE, 1 << 20, keep=False)
    if not found:
        return 0
    return sum(map(_size, found)) // len(found)


def _size(raw: Raw) -> int:
    _, _, key, value, headers = raw
    own = len(key or b"") + len(value or b"") + _OVERHEAD
    return own + sum(len(name) + len(data or b"") for name, data in headers)
