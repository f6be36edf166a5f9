"""Tables of the embedded log in LMDB: its layout, and the few steps from which every transaction is made.

    T  name                             → number, partition count, settings of a topic
    P  topic number, partition          → PartitionState
    B  topic number, partition, offset  → time up to here, cleaning time, blob
    A  application id                   → owner, last batch, what it wrote, positions
    R  application id, task             → record of a task as of the last batch that it has committed
    D  topic number                     → partition count of a deleted topic with blobs still to be removed
    N                                   → number of the next topic
    F                                   → name of this layout

One tree for all, told apart by the first byte: a transaction writes fewer pages, and opening needs no lock.

LMDB has no checksums, so every value begins with one, of key and value. In B it covers the key, the times and the
header of the blob, which has another one of its own content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from struct import Struct
from struct import error as StructError
from typing import NamedTuple, TypeVar
from zlib import crc32

import msgspec

from headrace.errors import LogError, TopicError, UnknownTopicError, did_you_mean
from headrace.topics.blob import HEADER_BYTES, BlobInfo, DamagedBlobError, info, unpack
from headrace.topics.embedded.environment import Environment, Transaction
from headrace.topics.log import Raw, Topic, TopicPartition

T = TypeVar("T")

_TOPIC, _PARTITION, _BLOB, _APPLICATION, _TASK, _DROPPED, _NEXT = b"T", b"P", b"B", b"A", b"R", b"D", b"N"
_PARTITION_KEY = Struct(">cII")
_BLOB_KEY = Struct(">cIIQ")
_DROPPED_KEY = Struct(">cI")
_CHECKSUM = Struct("<I")
_TIMES = Struct("<qq")
_ENTRY = Struct("<Iqq")
"""Checksum and times before a blob."""
_COVERED_BYTES = _ENTRY.size + HEADER_BYTES
_STATE = Struct("<8q")

NO_TIME = -(1 << 63)


class StoredTopic(NamedTuple):
    """A topic with the number under which its data is. A topic that is made anew gets a new one."""

    number: int
    topic: Topic


@dataclass(slots=True)
class PartitionState:
    """State of a partition: a small value, read and written by every transaction that touches the partition."""

    begin: int = 0
    end: int = 0
    latest_ms: int = NO_TIME
    """The largest timestamp so far."""
    size: int = 0
    """Bytes of all entries."""
    cleaned_to: int = 0
    """Before this offset no key occurs twice."""
    clean_size: int = 0
    """Bytes of the entries before ``cleaned_to`` when they were cleaned."""
    merged_to: int = 0
    """Before this offset small blobs have been put together."""
    tombstones_due_ms: int = 0
    """When the first tombstone before ``cleaned_to`` may go; 0 if there is none."""

    def pack(self) -> bytes:
        return _STATE.pack(
            self.begin,
            self.end,
            self.latest_ms,
            self.size,
            self.cleaned_to,
            self.clean_size,
            self.merged_to,
            self.tombstones_due_ms,
        )


class Entry(NamedTuple):
    """A blob in its place. The blob is a view, valid within the transaction."""

    base: int
    latest_ms: int
    """The largest timestamp of the partition up to and with this blob: it never falls, so it can be searched."""
    cleaned_ms: int
    """When compaction first kept this blob's tombstones; 0 if it has not been here."""
    blob: memoryview

    @property
    def size(self) -> int:
        return _ENTRY.size + len(self.blob)

    def info(self) -> BlobInfo:
        return info(self.blob)

    def records(self) -> list[Raw]:
        return unpack(self.blob, self.base)


class Application(msgspec.Struct, array_like=True):
    """Last commit of an application, and the driver that may commit next."""

    incarnation: int = 0
    """Of the driver that has opened the journal last."""
    batch_id: int = -1
    written: list[tuple[str, int, int, int]] = []
    positions: list[tuple[str, int, int]] = []
    description: bytes = b""

    @property
    def has_begun(self) -> bool:
        """Whether there is anything but the number of a driver."""
        return self.batch_id >= 0 or bool(self.positions)


class Tables:
    """The tables within one transaction."""

    __slots__ = ("_transaction",)

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def topic(self, name: str) -> StoredTopic:
        found = self.find_topic(name)
        if found is None:
            known = [stored.topic.name for stored in self.topics()]
            hint = did_you_mean(name, known) or f"; create it first: log.create_topic('{name}', partitions=…)"
            message = f"there is no topic '{name}' in the log{hint}"
            raise UnknownTopicError(message, topic=name)
        return found

    def find_topic(self, name: str) -> StoredTopic | None:
        # LMDB refuses long keys, and no topic has such a name.
        if len(name) > 249 or not name.isascii():
            return None
        key = _TOPIC + name.encode()
        value = self._transaction.get(key)
        return None if value is None else _stored(key, bytes(value))

    def topics(self) -> list[StoredTopic]:
        return [_stored(bytes(key), bytes(value)) for key, value in self._all(_TOPIC)]

    def put_topic(self, stored: StoredTopic) -> None:
        topic = stored.topic
        value = msgspec.msgpack.encode((stored.number, topic.partitions, dict(topic.configs)))
        self._put(_TOPIC + topic.name.encode(), value)

    def new_number(self) -> int:
        value = self._get(_NEXT)
        number = 1 if value is None else int.from_bytes(value, "big")
        self._put(_NEXT, (number + 1).to_bytes(4, "big"))
        return number

    def drop_topic(self, stored: StoredTopic) -> None:
        """Takes the topic away; its blobs go later, in steps."""
        self._transaction.delete(_TOPIC + stored.topic.name.encode())
        self._put(_DROPPED_KEY.pack(_DROPPED, stored.number), stored.topic.partitions.to_bytes(4, "big"))

    def dropped(self) -> list[tuple[int, int]]:
        """Returns number and partition count of the topics that still have something to be removed."""
        return [
            (_DROPPED_KEY.unpack(key)[1], int.from_bytes(_checked(key, value), "big"))
            for key, value in self._all(_DROPPED)
        ]

    def forget_dropped(self, number: int, partitions: int) -> None:
        for partition in range(partitions):
            self._transaction.delete(_PARTITION_KEY.pack(_PARTITION, number, partition))
        self._transaction.delete(_DROPPED_KEY.pack(_DROPPED, number))

    def _get(self, key: bytes) -> memoryview | None:
        value = self._transaction.get(key)
        return None if value is None else _checked(key, value)

    def _put(self, key: bytes, value: bytes) -> None:
        self._transaction.put(key, _checksum(key, value) + value)

    def _all(self, prefix: bytes) -> Iterator[tuple[memoryview, memoryview]]:
        with self._transaction.cursor() as cursor:
            if cursor.set_range(prefix):
                yield from takewhile(lambda row: row[0][:1] == prefix, cursor.iternext())

    def partition(self, target: TopicPartition) -> tuple[int, PartitionState]:
        """Returns the topic's number and the state of one of its partitions."""
        name, partition = target
        stored = self.topic(name)
        if not 0 <= partition < stored.topic.partitions:
            message = f"topic '{name}' has partitions 0 to {stored.topic.partitions - 1}; there is no {partition}"
            raise TopicError(message)
        return stored.number, self.state(stored.number, partition)

    def state(self, number: int, partition: int) -> PartitionState:
        value = self._get(_PARTITION_KEY.pack(_PARTITION, number, partition))
        return PartitionState() if value is None else PartitionState(*_STATE.unpack(value))

    def put_state(self, number: int, partition: int, state: PartitionState) -> None:
        self._put(_PARTITION_KEY.pack(_PARTITION, number, partition), state.pack())

    def append(self, number: int, partition: int, state: PartitionState, blob: bytes | memoryview) -> None:
        """Adds a blob at the end; the caller writes the state when it has added all."""
        head = info(blob)
        state.latest_ms = max(state.latest_ms, head.max_timestamp_ms)
        self.put_entry(number, partition, state, state.end, state.latest_ms, 0, blob)
        state.end += head.span

    def put_entry(
        self,
        number: int,
        partition: int,
        state: PartitionState,
        base: int,
        latest_ms: int,
        cleaned_ms: int,
        blob: bytes | memoryview,
    ) -> None:
        key, times = _BLOB_KEY.pack(_BLOB, number, partition, base), _TIMES.pack(latest_ms, cleaned_ms)
        value = _checksum(key, times + blob[:HEADER_BYTES]) + times + blob
        self._transaction.put(key, value)
        state.size += len(value)

    def delete_entry(self, number: int, partition: int, state: PartitionState, base: int, size: int) -> None:
        self._transaction.delete(_BLOB_KEY.pack(_BLOB, number, partition, base))
        state.size -= size

    def entries(self, number: int, partition: int, start: int) -> Iterator[Entry]:
        """Returns the blobs from the one that holds ``start``, or the next one after it. Write nothing meanwhile."""
        key = _BLOB_KEY.pack(_BLOB, number, partition, start)
        prefix = key[:9]
        with self._transaction.cursor() as cursor:
            there = cursor.set_range(key)
            if not there or cursor.key() != key:
                # The blob before may reach beyond the start.
                before = cursor.prev() if there else cursor.last()
                if before and cursor.key()[:9] == prefix:
                    entry = _entry(cursor.key(), cursor.value())
                    there = entry.base + entry.info().span > start or cursor.next()
                else:
                    there = cursor.set_range(key)
            if not there:
                return
            for found, value in cursor.iternext():
                if found[:9] != prefix:
                    return
                yield _entry(found, value)

    def application(self, name: str) -> Application | None:
        value = self._get(_APPLICATION + name.encode())
        return None if value is None else msgspec.msgpack.decode(value, type=Application)

    def applications(self) -> list[str]:
        with self._transaction.cursor() as cursor:
            found: list[str] = []
            if cursor.set_range(_APPLICATION):
                for key in map(bytes, cursor.iternext(values=False)):
                    if not key.startswith(_APPLICATION):
                        break
                    found.append(key[len(_APPLICATION) :].decode())
            return found

    def put_application(self, name: str, application: Application) -> None:
        self._put(_APPLICATION + name.encode(), msgspec.msgpack.encode(application))

    def delete_application(self, name: str) -> None:
        self._transaction.delete(_APPLICATION + name.encode())

    def task_record(self, application: str, task: str) -> bytes | None:
        value = self._get(_task_key(application, task))
        return None if value is None else bytes(value)

    def task_records(self, application: str) -> dict[str, bytes]:
        """Returns the records of all tasks of an application, by task."""
        prefix = _task_key(application, "")
        with self._transaction.cursor() as cursor:
            if not cursor.set_range(prefix):
                return {}
            rows = takewhile(lambda row: row[0][: len(prefix)] == prefix, cursor.iternext())
            return {str(key[len(prefix) :], "utf-8"): bytes(_checked(key, value)) for key, value in rows}

    def put_task_record(self, application: str, task: str, record: bytes) -> None:
        self._put(_task_key(application, task), record)

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Forgets what lies before the offsets."""
        for target, offset in before.items():
            number, state = self.partition(target)
            state.begin = max(state.begin, min(offset, state.end))
            self.put_state(number, target[1], state)

    def delete_task_records(self, application: str) -> None:
        for task in self.task_records(application):
            self._transaction.delete(_task_key(application, task))


def read_tables(environment: Environment, action: Callable[[Tables], T]) -> T:
    """Runs ``action`` in a read transaction."""
    try:
        return environment.read(lambda transaction: action(Tables(transaction)))
    except _DAMAGED as error:
        raise _damaged(environment, error) from error


def write_tables(environment: Environment, action: Callable[[Tables], T], *, reserve: bool = False) -> T:
    """Runs ``action`` in a write transaction. It may run twice, when the map must grow: let it change nothing else."""
    try:
        return environment.write(lambda transaction: action(Tables(transaction)), reserve=reserve)
    except _DAMAGED as error:
        raise _damaged(environment, error) from error


_DAMAGED = (DamagedBlobError, StructError, msgspec.MsgspecError, UnicodeDecodeError, OverflowError)


def _damaged(environment: Environment, error: Exception) -> LogError:
    """Returns the error for entries that cannot be read, with the log in which they are."""
    return LogError(f"the log in '{environment.directory}' is damaged, or of another version: {error}")


# Every transaction asks for its topic, and topics hardly ever change.
@lru_cache(maxsize=1024)
def _stored(key: bytes, value: bytes) -> StoredTopic:
    number, partitions, configs = msgspec.msgpack.decode(_checked(key, value), type=tuple[int, int, dict[str, str]])
    return StoredTopic(number, Topic(key[1:].decode(), partitions, configs))


def _task_key(application: str, task: str) -> bytes:
    return _TASK + application.encode() + b"\0" + task.encode()


def _checked(key: bytes | memoryview, value: bytes | memoryview) -> memoryview:
    """Returns a value without its checksum, which must fit."""
    content = memoryview(value)[_CHECKSUM.size :]
    if _CHECKSUM.unpack_from(value)[0] != crc32(content, crc32(key)):
        raise _entry_error(key)
    return content


def _checksum(key: bytes, covered: bytes) -> bytes:
    return _CHECKSUM.pack(crc32(covered, crc32(key)))


def _entry(key: memoryview, value: memoryview) -> Entry:
    checksum, latest_ms, cleaned_ms = _ENTRY.unpack_from(value)
    if checksum != crc32(value[_CHECKSUM.size : _COVERED_BYTES], crc32(key)):
        raise _entry_error(key)
    return Entry(_BLOB_KEY.unpack(key)[3], latest_ms, cleaned_ms, value[_ENTRY.size :])


def _entry_error(key: bytes | memoryview) -> DamagedBlobError:
    message = f"the checksum of the entry {bytes(key)!r} does not fit; restore the log from a copy"
    return DamagedBlobError(message)
