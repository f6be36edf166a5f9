"""Timestamp extractors: which time a record has.

An extractor is any callable ``(record, partition_time_ms) -> timestamp_ms``; a negative answer drops the record.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from headrace.errors import InvalidTimestampError
from headrace.record import EMPTY_HEADERS, Headers

logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    # With defaults, so that extractors need not name types that they do not look at, nor clients serdes.
    from typing_extensions import TypeVar as OptionalTypeVar

    K = OptionalTypeVar("K", default=Any)
    V = OptionalTypeVar("V", default=Any)
else:
    K, V = TypeVar("K"), TypeVar("V")


@dataclass(frozen=True, slots=True)
class ConsumedRecord(Generic[K, V]):
    """A record of a topic as a consumer or a timestamp extractor sees it.

    >>> record = ConsumedRecord("alice", {"at": 7}, 1000, topic="orders", partition=0, offset=41)
    >>> (lambda record, partition_time_ms: record.value["at"])(record, -1)
    7
    """

    key: K
    """The key, or None."""
    value: V
    """The value, or None."""
    timestamp_ms: int
    """The time that the producer or the log gave the record; negative if there is none."""
    headers: Headers = EMPTY_HEADERS
    """Headers, in their order."""
    topic: str = ""
    """Where the record was read."""
    partition: int = 0
    """Partition of the topic."""
    offset: int = 0
    """Position in the partition."""

    def __post_init__(self) -> None:
        if type(self.headers) is not Headers:
            object.__setattr__(self, "headers", Headers(self.headers))

    @property
    def position(self) -> str:
        """Topic, partition and offset, for messages.

        >>> ConsumedRecord("a", 1, 0, topic="orders", partition=2, offset=41).position
        'orders-2 offset 41'
        """
        return f"{self.topic}-{self.partition} offset {self.offset}"


class TimestampExtractor(Protocol):
    """Extractor protocol: a function of the record and of its partition's largest timestamp so far, or -1.

    >>> extractor: TimestampExtractor = lambda record, partition_time_ms: max(record.timestamp_ms, partition_time_ms)
    >>> extractor(ConsumedRecord("a", 1, 5), 7)
    7
    """

    def __call__(self, record: ConsumedRecord, partition_time_ms: int, /) -> int: ...


class _OwnTimestamp:
    """Takes the record's own timestamp where it is valid."""

    metadata_only: ClassVar[bool] = True
    """A timestamp that is not negative is the answer, so the record need not be built."""

    def __init_subclass__(cls) -> None:
        # One that decides for itself, say from the value, and leaves only the invalid to us, has to be asked.
        if "__call__" in vars(cls) and cls.__module__ != __name__:
            cls.metadata_only = False


@dataclass(frozen=True)
class FailOnInvalidTimestamp(_OwnTimestamp):
    """Takes the record's own timestamp; a negative one stops the application. This is the default.

    >>> FailOnInvalidTimestamp()(ConsumedRecord("a", 1, 1000), -1)
    1000
    >>> FailOnInvalidTimestamp()(ConsumedRecord("a", 1, -1, topic="orders"), -1)
    Traceback (most recent call last):
    ...
    headrace.errors.InvalidTimestampError: record at orders-0 offset 0 has the invalid timestamp -1; ...
    """

    def __call__(self, record: ConsumedRecord, partition_time_ms: int, /) -> int:
        if record.timestamp_ms >= 0:
            return record.timestamp_ms
        message = (
            f"record at {record.position} has the invalid timestamp {record.timestamp_ms}; "
            "let the producer set timestamps, or use another timestamp extractor"
        )
        raise InvalidTimestampError(message)


@dataclass(frozen=True)
class LogAndSkipOnInvalidTimestamp(_OwnTimestamp):
    """Takes the record's own timestamp; a record with a negative one is dropped with a warning.

    >>> LogAndSkipOnInvalidTimestamp()(ConsumedRecord("a", 1, 1000), -1)
    1000
    """

    def __call__(self, record: ConsumedRecord, partition_time_ms: int, /) -> int:
        if record.timestamp_ms < 0:
            logger.warning(
                "record at %s is dropped because of its invalid timestamp %d", record.position, record.timestamp_ms
            )
        return record.timestamp_ms


@dataclass(frozen=True)
class UsePartitionTimeOnInvalidTimestamp(_OwnTimestamp):
    """Takes the record's own timestamp; instead of a negative one, the largest timestamp seen in the partition.

    >>> UsePartitionTimeOnInvalidTimestamp()(ConsumedRecord("a", 1, -1), 500)
    500
    """

    def __call__(self, record: ConsumedRecord, partition_time_ms: int, /) -> int:
        if record.timestamp_ms >= 0:
            return record.timestamp_ms
        if partition_time_ms < 0:
            message = (
                f"record at {record.position} has the invalid timestamp {record.timestamp_ms}, and the time of its "
                "partition is not known yet, because no earlier record had a valid one"
            )
            raise InvalidTimestampError(message)
        return partition_time_ms


@dataclass(frozen=True)
class WallclockTimestampExtractor:
    """Takes the time at which the record is read: processing time instead of event time.

    In a task that is the clock of its host, which a test driver moves by hand. A record that is read again gets another
    time, unless the host repeats that, too.

    >>> WallclockTimestampExtractor()(ConsumedRecord("a", 1, 1000), -1) > 1000
    True
    """

    metadata_only: ClassVar[bool] = False

    def __call__(self, record: ConsumedRecord, partition_time_ms: int, /) -> int:
        return time.time_ns() // 1_000_000
