"""Records: what flows through a topology, and the small values that travel with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from headrace.arguments.hints import Hinting
from headrace.errors import InvalidTimestampError, TopologyError, describe_value
from headrace.windows.window import Windowed

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")
NewKey = TypeVar("NewKey")
NewValue = TypeVar("NewValue")

__all__ = [
    "EMPTY_HEADERS",
    "Change",
    "FixedKeyRecord",
    "HasValue",
    "Headers",
    "KeyValue",
    "Record",
    "RecordMetadata",
    "ValueAndTimestamp",
    "VersionedRecord",
    "Windowed",
    "WithKey",
    "has_value",
    "with_key",
]


class Headers(tuple[tuple[str, bytes | None], ...]):
    """Headers of a record: an immutable sequence of (name, value) pairs, in which a name may occur more than once.

    >>> headers = Headers([("trace", b"1"), ("trace", b"2"), ("user", b"x")])
    >>> headers.last("trace"), headers.all("trace"), headers.last("missing")
    (b'2', (b'1', b'2'), None)
    """

    __slots__ = ()

    def last(self, name: str) -> bytes | None:
        """Returns the value of the last header of that name, or None if there is none.

        >>> Headers([("a", b"1"), ("a", b"2")]).last("a")
        b'2'
        """
        for header, value in reversed(self):
            if header == name:
                return value
        return None

    def all(self, name: str) -> tuple[bytes | None, ...]:
        """Returns the values of all headers of that name, in their order.

        >>> Headers([("a", b"1"), ("b", b"2"), ("a", None)]).all("a")
        (b'1', None)
        """
        return tuple(value for header, value in self if header == name)

    def add(self, name: str, value: bytes | None) -> Headers:
        """Returns these headers with one more at the end.

        >>> Headers().add("a", b"1")
        Headers((('a', b'1'),))
        """
        given: tuple[object, object] = (name, value)
        if not isinstance(given[0], str) or not isinstance(given[1], bytes | None):
            message = f"a header is a str and bytes or None, got {describe_value(name)} and {describe_value(value)}"
            raise TypeError(message)
        return Headers((*self, (name, value)))

    def remove(self, name: str) -> Headers:
        """Returns these headers without those of that name.

        >>> Headers([("a", b"1"), ("b", b"2")]).remove("a")
        Headers((('b', b'2'),))
        """
        return Headers(pair for pair in self if pair[0] != name)

    def __repr__(self) -> str:
        return f"Headers({tuple(self)!r})"


EMPTY_HEADERS = Headers()
"""No headers; shared by all records that have none."""


@dataclass(frozen=True)
class Record(Hinting, Generic[K, V]):
    """A record as a processor sees it and forwards it; the ``with_…`` methods return changed copies.

    >>> record = Record("a", 1, timestamp_ms=10)
    >>> record.with_value(2)
    Record(key='a', value=2, timestamp_ms=10, headers=Headers(()))
    """

    _HINTS: ClassVar[Mapping[str, str]] = {"timestamp": "did you mean 'timestamp_ms'?"}

    key: K
    """The key, or None."""
    value: V
    """The value, or None."""
    timestamp_ms: int
    """Event time; not negative."""
    headers: Headers = EMPTY_HEADERS
    """Headers, in their order."""

    def __post_init__(self) -> None:
        if type(self.timestamp_ms) is not int or self.timestamp_ms < 0 or type(self.headers) is not Headers:
            _settle(self)

    def with_key(self, key: NewKey) -> Record[NewKey, V]:
        """Returns this record with another key.

        >>> Record("a", 1, 10).with_key("b").key
        'b'
        """
        return Record(key, self.value, self.timestamp_ms, self.headers)

    def with_value(self, value: NewValue) -> Record[K, NewValue]:
        """Returns this record with another value.

        >>> Record("a", 1, 10).with_value("x").value
        'x'
        """
        return Record(self.key, value, self.timestamp_ms, self.headers)

    def with_timestamp(self, timestamp_ms: int) -> Record[K, V]:
        """Returns this record with another timestamp.

        >>> Record("a", 1, 10).with_timestamp(11).timestamp_ms
        11
        """
        return Record(self.key, self.value, timestamp_ms, self.headers)

    def with_headers(self, headers: Headers) -> Record[K, V]:
        """Returns this record with other headers.

        >>> Record("a", 1, 10).with_headers(Headers([("h", b"1")])).headers
        Headers((('h', b'1'),))
        """
        return Record(self.key, self.value, self.timestamp_ms, headers)


@dataclass(frozen=True)
class FixedKeyRecord(Hinting, Generic[K, V]):
    """A record whose key must stay, as ``process_values`` gives it, so that the result needs no repartitioning.

    Processors get it and change it with ``with_…``; they do not make new ones.

    >>> FixedKeyRecord("a", 1, 10).with_value(2).value
    2
    """

    _HINTS: ClassVar[Mapping[str, str]] = {"timestamp": "did you mean 'timestamp_ms'?"}

    key: K
    """The key, or None."""
    value: V
    """The value, or None."""
    timestamp_ms: int
    """Event time; not negative."""
    headers: Headers = EMPTY_HEADERS
    """Headers, in their order."""

    def __post_init__(self) -> None:
        if type(self.timestamp_ms) is not int or self.timestamp_ms < 0 or type(self.headers) is not Headers:
            _settle(self)

    def with_value(self, value: NewValue) -> FixedKeyRecord[K, NewValue]:
        """Returns this record with another value.

        >>> FixedKeyRecord("a", 1, 10).with_value("x").value
        'x'
        """
        return FixedKeyRecord(self.key, value, self.timestamp_ms, self.headers)

    def with_timestamp(self, timestamp_ms: int) -> FixedKeyRecord[K, V]:
        """Returns this record with another timestamp.

        >>> FixedKeyRecord("a", 1, 10).with_timestamp(11).timestamp_ms
        11
        """
        return FixedKeyRecord(self.key, self.value, timestamp_ms, self.headers)

    def with_headers(self, headers: Headers) -> FixedKeyRecord[K, V]:
        """Returns this record with other headers.

        >>> FixedKeyRecord("a", 1, 10).with_headers(Headers([("h", b"1")])).headers.last("h")
        b'1'
        """
        return FixedKeyRecord(self.key, self.value, self.timestamp_ms, headers)


def _settle(record: Record[Any, Any] | FixedKeyRecord[Any, Any]) -> None:
    timestamp: object = record.timestamp_ms
    if not isinstance(timestamp, int) or isinstance(timestamp, bool):
        message = (
            f"the timestamp of a record must be an int, in milliseconds, got {describe_value(timestamp)} "
            f"(key {record.key!r}); write for example int(time.time() * 1000)"
        )
        raise InvalidTimestampError(message)
    if record.timestamp_ms < 0:
        message = f"the timestamp of a record must not be negative, got {record.timestamp_ms} (key {record.key!r})"
        raise InvalidTimestampError(message)
    # Users may pass any sequence of pairs; the dataclass is frozen, hence the detour.
    object.__setattr__(record, "headers", Headers(record.headers) if record.headers else EMPTY_HEADERS)


class RecordMetadata(NamedTuple):
    """Topic, partition and offset of the record that is being processed.

    >>> RecordMetadata("orders", 0, 41)
    RecordMetadata(topic='orders', partition=0, offset=41)
    """

    topic: str
    partition: int
    offset: int


class KeyValue(NamedTuple, Generic[K, V]):
    """A key and its value; equal to a plain pair.

    >>> KeyValue("a", 1) == ("a", 1)
    True
    """

    key: K
    value: V


class ValueAndTimestamp(NamedTuple, Generic[V]):
    """A row of a timestamped store: the value and the timestamp of the record that made it.

    >>> ValueAndTimestamp("x", 10).timestamp_ms
    10
    """

    value: V
    timestamp_ms: int


class Change(NamedTuple):
    """A change of a table's row; ``latest`` is False when an out-of-order record changed only the past.

    >>> Change("new", "old")
    Change(new='new', old='old', latest=True)
    """

    new: Any
    old: Any
    latest: bool = True


@dataclass(frozen=True)
class VersionedRecord(Generic[V]):
    """A version of a versioned store's row, valid from ``timestamp_ms`` until ``valid_to_ms``, exclusive.

    >>> VersionedRecord("x", 10, valid_to_ms=20)
    VersionedRecord(value='x', timestamp_ms=10, valid_to_ms=20)
    """

    value: V
    """The value; never None, because a deleted row has no version."""
    timestamp_ms: int
    """When the version became valid."""
    valid_to_ms: int | None = None
    """When the next version replaced it; None if it is the latest."""


@dataclass(frozen=True)
class HasValue:
    """Type of ``has_value``, by which type checkers know that no value is None behind a filter.

    >>> HasValue()("a", 1)
    True
    """

    def __call__(self, key: Any, value: Any) -> bool:
        return value is not None


has_value = HasValue()
"""Predicate for ``filter``: keeps the records whose value is not None. Type checkers narrow ``V | None`` to ``V``."""


@dataclass(frozen=True)
class WithKey(Generic[R]):
    """A function that wants the key as its first argument; made by ``with_key``.

    >>> WithKey(str.join).function("-", ["a", "b"])
    'a-b'
    """

    function: Callable[..., R]
    """The user's function."""


def with_key(function: Callable[..., R]) -> WithKey[R]:
    """Marks a mapper, joiner or foreign-key function as one that takes the key before its other arguments.

    The key is for reading: a function that changes it in place corrupts the partitioning.

    >>> mapper = with_key(lambda key, value: f"{key}={value}")
    >>> mapper.function("a", 1)
    'a=1'
    """
    given: object = function
    if not callable(given):
        message = f"with_key needs a function, got {describe_value(given)}"
        raise TopologyError(message)
    return WithKey(function)
