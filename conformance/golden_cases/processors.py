"""The processors of the cases, as processors of Headrace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from types import ModuleType
from typing import Any

from golden_cases.case import GoldenNode
from headrace import (
    Cancellable,
    FixedKeyProcessor,
    FixedKeyRecord,
    Headers,
    Processor,
    PunctuationType,
    Record,
)

TextHeaders = list[tuple[str, str]]

_CLOCKS = {"stream_time": PunctuationType.STREAM_TIME, "wall_clock": PunctuationType.WALL_CLOCK_TIME}


def to_headers(headers: TextHeaders) -> Headers:
    return Headers((name, value.encode()) for name, value in headers)


def from_headers(headers: Any) -> TextHeaders:
    return [(name, value.decode()) for name, value in headers]


class _Store:
    """A key-value or window store with the few methods that the cases' processors call."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def get(self, key: str) -> str | None:
        value: str | None = self._store.get(key)
        return value

    def put(self, *arguments: Any) -> None:
        self._store.put(*arguments)

    def delete(self, key: str) -> None:
        self._store.delete(key)

    def all(self) -> list[tuple[str, str]]:
        with self._store.all() as rows:
            return [(key, value) for key, value in rows]

    def fetch(self, key: str, from_ms: int, to_ms: int) -> list[tuple[int, str]]:
        with self._store.fetch_range(key, from_ms, to_ms) as rows:
            return [(start_ms, value) for start_ms, value in rows]


class _Context:
    """The ``ctx`` of ``functions.py`` over a processor context; ``current`` is the record in process."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.current: FixedKeyRecord[Any, Any] | None = None

    def store(self, name: str) -> _Store:
        return _Store(self._context.get_state_store(name))

    def forward(
        self, key: str | None, value: str | None, ts: int, headers: TextHeaders, child: str | None = None
    ) -> None:
        if self.current is None:
            self._context.forward(Record(key, value, ts, to_headers(headers)), child)
        else:
            changed = self.current.with_value(value).with_timestamp(ts).with_headers(to_headers(headers))
            self._context.forward(changed, child)

    def schedule(self, interval_ms: int, clock: str, callback: Callable[[int], None]) -> Cancellable:
        handle: Cancellable = self._context.schedule(timedelta(milliseconds=interval_ms), _CLOCKS[clock], callback)
        return handle

    def stream_time(self) -> int:
        time_ms: int = self._context.current_stream_time_ms()
        return time_ms

    def wall_clock(self) -> int:
        time_ms: int = self._context.current_system_time_ms()
        return time_ms

    def topic(self) -> str | None:
        metadata = self._context.record_metadata
        return None if metadata is None else metadata.topic


class GoldenProcessor(Processor[Any, Any, Any, Any]):
    """Runs a processor of ``functions.py``."""

    def __init__(self, make: Callable[..., Any], node: GoldenNode) -> None:
        self._make = make
        self._node = node

    def init(self, context: Any) -> None:
        self._processor = self._make(_Context(context), self._node)

    def process(self, record: Record[Any, Any]) -> None:
        self._processor.process(record.key, record.value, record.timestamp_ms, from_headers(record.headers))


class GoldenFixedKeyProcessor(FixedKeyProcessor[Any, Any, Any]):
    """Runs a processor of ``functions.py`` that keeps the key."""

    def __init__(self, make: Callable[..., Any], node: GoldenNode) -> None:
        self._make = make
        self._node = node

    def init(self, context: Any) -> None:
        self._context = _Context(context)
        self._processor = self._make(self._context, self._node)

    def process(self, record: FixedKeyRecord[Any, Any]) -> None:
        self._context.current = record
        self._processor.process(record.key, record.value, record.timestamp_ms, from_headers(record.headers))


@dataclass(frozen=True)
class Supplier:
    """Makes a new processor for a node of a case."""

    functions: ModuleType
    node: GoldenNode = field(hash=False)

    def __call__(self) -> GoldenProcessor:
        return GoldenProcessor(self.functions.PROCESSORS[self.node["processor"]], self.node)


@dataclass(frozen=True)
class FixedKeySupplier:
    """Makes a new processor that keeps the key for a node of a case."""

    functions: ModuleType
    node: GoldenNode = field(hash=False)

    def __call__(self) -> GoldenFixedKeyProcessor:
        return GoldenFixedKeyProcessor(self.functions.PROCESSORS[self.node["processor"]], self.node)


@dataclass(frozen=True)
class TopicName:
    """A topic name extractor that prints as the function it calls, as in the recorded descriptions."""

    functions: ModuleType
    topic: str
    function: str

    def __call__(self, key: Any, value: Any, _context: Any) -> str:
        suffix: str = self.functions.TOPIC_NAMES[self.function](key, value)
        return self.topic + suffix

    def __str__(self) -> str:
        return self.function


@dataclass(frozen=True)
class Extractor:
    """A timestamp extractor."""

    function: Callable[..., int]

    def __call__(self, record: Any, partition_time_ms: int) -> int:
        return self.function(record.key, record.value, record.timestamp_ms, partition_time_ms)
