"""Looking through a store page by page, and following its changes: what a server offers to people far away."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from struct import Struct
from typing import Any

from headrace.errors import StreamsError
from headrace.record import KeyValue
from headrace.serdes import Serde
from headrace.serdes.base import resolved
from headrace.state.rows.window_cache import windows_of
from headrace.state.stores.suppliers import WindowSupplier
from headrace.topics.log import Raw, TopicLog
from headrace.views.viewed_stores import ViewedStore
from headrace.views.views import Views
from headrace.windows import SessionWindow, Windowed

_WINDOW_TAIL = Struct(">qI")
_SESSION_TAIL = Struct(">qq")


class CursorError(StreamsError, ValueError):
    """A cursor is not one that a page of this store has given. Begin again without one."""


@dataclass(frozen=True)
class Page:
    """Some rows of a key-value store, partition by partition."""

    rows: list[KeyValue[Any, Any]]
    cursor: str | None
    """What asks for the next page; None if this is the last one."""


def page(
    views: Views,
    store: str,
    *,
    low: Any = None,
    high: Any = None,
    limit: int = 100,
    cursor: str | None = None,
    stale: bool = False,
) -> Page:
    """Returns the next rows of a key-value store, from ``low`` to ``high``, in the order of keys within a partition.

    Each page sees what is there when it is asked for: between two pages rows can change, but a row that does not is
    given exactly once.
    """
    viewed = views.viewed(store)
    if viewed.kind not in ("key_value", "timestamped_key_value"):
        message = f"store '{store}' is a {viewed.kind.replace('_', ' ')} store; only key-value stores come in pages"
        raise CursorError(message)
    first, after = (-2, b"") if cursor is None else _read_cursor(cursor)
    reader, parts = views.reading_parts(store, None, stale=stale)
    serde = resolved(viewed.builder.key_serde, views.config.default_key_serde)
    rows: list[KeyValue[Any, Any]] = []
    last = first
    try:
        for part in parts:
            if part[1] < first:
                continue
            resume = after if part[1] == first else None
            for row in _rows(reader.store(part), low, high, resume, serde):
                if len(rows) == limit:
                    key = serde.serializer(viewed.topic, is_key=True)(rows[-1].key)
                    return Page(rows, _cursor(last, key))
                rows.append(row)
                last = part[1]
        return Page(rows, None)
    finally:
        reader.release()


def _rows(store: Any, low: Any, high: Any, after: bytes | None, key_serde: Serde[Any]) -> Iterator[KeyValue[Any, Any]]:
    topic = str(store.name)
    if after is None:
        yield from store.range(low, high)
        return
    write = key_serde.serializer(topic, is_key=True)
    for row in store.range(key_serde.deserializer(topic, is_key=True)(after), high):
        if write(row.key) != after:
            yield row


def _cursor(partition: int, name: bytes) -> str:
    return base64.urlsafe_b64encode(json.dumps([partition, name.hex()]).encode()).decode()


def _read_cursor(cursor: str) -> tuple[int, bytes]:
    try:
        partition, name = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        return int(partition), bytes.fromhex(name)
    except (ValueError, TypeError) as error:
        message = f"cursor '{cursor[:40]}' is not one that a page has given; begin again without one"
        raise CursorError(message) from error


@dataclass(frozen=True)
class StoreChange:
    """A row of a store that was set, or deleted."""

    partition: int
    offset: int
    """Its place in the changelog: a subscription that goes on behind it misses nothing."""
    key: Any
    """The key; of window and session stores with its window."""
    value: Any
    """The new value; None deletes."""
    timestamp_ms: int


class Subscription:
    """The changes of a store, from an offset per partition on. It reads the changelog itself, wherever it is.

    ``poll`` gives what has come; ``offsets`` is where a later subscription would go on.
    """

    def __init__(self, views: Views, log: TopicLog, store: str, offsets: Mapping[int, int] | None = None) -> None:
        self._store = views.viewed(store)
        self._log = log
        self._decode = _decoder(self._store, views)
        topic = self._store.topic
        ends = log.end_offsets([(topic, each) for each in range(views.partitions_of(store))])
        given = offsets or {}
        self.offsets: dict[int, int] = {each: given.get(each, end) for (_, each), end in ends.items()}
        """Where each partition goes on; by default from now."""

    def poll(self, timeout: timedelta = timedelta(0), *, max_records: int = 1000) -> list[StoreChange]:
        """Returns changes in the order of each partition; waits if there are none. An empty list: the time is over."""
        topic = self._store.topic
        targets = {(topic, each): at for each, at in self.offsets.items()}
        if timeout and not self._log.wait_for_data(targets, timeout):
            return []
        changes: list[StoreChange] = []
        for partition, start in list(self.offsets.items()):
            for raw in self._log.read(topic, partition, start, max_records=max_records):
                self.offsets[partition] = raw[0] + 1
                if raw[2] is not None:
                    changes.append(self._decode(partition, raw))
        return changes


def snapshot_and_changes(
    views: Views, log: TopicLog, store: str
) -> tuple[list[tuple[int, KeyValue[Any, Any]]], Subscription]:
    """Returns all rows of a store with their partitions, and a subscription to what comes after them, without a gap."""
    reader, parts = views.reading_parts(store, None, stale=True)
    try:
        offsets = {part[1]: reader.state.parts[part].offset for part in reader.state.parts if part[0] == store}
        rows = [(part[1], row) for part in parts for row in _everything(reader.store(part))]
    finally:
        reader.release()
    return rows, Subscription(views, log, store, offsets)


def _everything(store: Any) -> Iterator[KeyValue[Any, Any]]:
    found: Iterator[KeyValue[Any, Any]] = store.fetch_keys(None, None) if store.kind == "session" else store.all()
    return found


def _decoder(store: ViewedStore, views: Views) -> Any:
    builder, topic = store.builder, store.topic
    read_key = resolved(builder.key_serde, views.config.default_key_serde).deserializer(topic, is_key=True)
    read_value = resolved(builder.value_serde, views.config.default_value_serde).deserializer(topic, is_key=False)
    kind = builder.kind
    window_at = windows_of(builder.supplier) if isinstance(builder.supplier, WindowSupplier) else None

    def key_of(data: bytes) -> Any:
        if window_at is not None:
            return Windowed(read_key(data[:-12]), window_at(_WINDOW_TAIL.unpack(data[-12:])[0]))
        if kind == "session":
            end_ms, start_ms = _SESSION_TAIL.unpack(data[-16:])
            return Windowed(read_key(data[:-16]), SessionWindow(start_ms, end_ms))
        return read_key(data)

    def decode(partition: int, raw: Raw) -> StoreChange:
        offset, timestamp_ms, key, value, _ = raw
        assert key is not None, "records without a key are left out"
        return StoreChange(partition, offset, key_of(key), None if value is None else read_value(value), timestamp_ms)

    return decode
