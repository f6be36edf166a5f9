"""Subscriptions to the changes of a store, read from its changelog, for servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from struct import Struct
from typing import Any

from headrace.serdes.base import resolved
from headrace.state.rows.window_cache import windows_of
from headrace.state.stores.suppliers import WindowSupplier
from headrace.topics.log import Raw, ReadableLog
from headrace.views.viewed_stores import ViewedStore
from headrace.views.views import Views
from headrace.windows import SessionWindow, Windowed

_WINDOW_TAIL = Struct(">qI")
_SESSION_TAIL = Struct(">qq")


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

    def __init__(self, views: Views, log: ReadableLog, store: str, offsets: Mapping[int, int] | None = None) -> None:
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
