"""Subscription store of foreign-key joins: rows of the left table by foreign key and primary key."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Any, ClassVar

from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine, after_prefix
from headrace.state.rows.codec import UNKNOWN_TIMESTAMP, Codec, pack_timestamp, pair_codec, timestamp_of
from headrace.state.rows.row_buffer import RowBuffer
from headrace.state.stores.store import ChangelogRecord, Store

_LENGTH = Struct(">i")


class SubscriptionStore(Store):
    """Subscriptions by foreign key and primary key, with the timestamp of each.

    >>> from headrace.state import MemoryEngine, subscription_store_builder
    >>> store = subscription_store_builder("asked", None, None, None).build(MemoryEngine())
    >>> store.put("product-1", "order-2", "hash", 20)
    >>> store.put("product-1", "order-1", "hash", 10)
    >>> store.prefix_scan("product-1")
    [('order-1', 'hash', 10), ('order-2', 'hash', 20)]
    """

    __slots__ = ("_foreign", "_primary", "_rows", "dirty")

    kind: ClassVar[str] = "subscription"

    def __init__(
        self, name: str, engine: Engine, foreign: Codec, primary: Codec, values: Codec, *, persistent: bool
    ) -> None:
        super().__init__(name, engine, persistent=persistent)
        self._foreign = foreign
        self._primary = primary
        self._rows = RowBuffer(engine, Codec(bytes, bytes, keep=True), pair_codec(values))
        self.dirty = self._rows.dirty

    def get(self, foreign_key: Any, primary_key: Any) -> tuple[Any, int] | None:
        """Returns (value, timestamp_ms) of a subscription, or None."""
        pair: tuple[Any, int] | None = self._rows.get(self._name(foreign_key, primary_key))
        return pair

    def put(self, foreign_key: Any, primary_key: Any, value: Any, timestamp_ms: int) -> None:
        """Sets a subscription."""
        self._rows.put(self._name(foreign_key, primary_key), (value, timestamp_ms))

    def delete(self, foreign_key: Any, primary_key: Any) -> None:
        """Removes a subscription."""
        self._rows.put(self._name(foreign_key, primary_key), None)

    def prefix_scan(self, foreign_key: Any) -> list[tuple[Any, Any, int]]:
        """Returns (primary_key, value, timestamp_ms) of all subscriptions of a foreign key, by primary key bytes."""
        self._rows.flush()
        prefix, decode = self._prefix(foreign_key), self._rows.rows.decode
        return [
            (self._primary.decode(name[len(prefix) :]), *decode(data))
            for name, data in self.engine.scan(prefix, after_prefix(prefix))
        ]

    def flush_writes(self) -> None:
        self._rows.flush()

    def reload(self) -> None:
        self._rows.forget()

    def changelog_records(self, changes: Changes) -> list[ChangelogRecord]:
        return [
            (key, None, None) if row is None else (key, row[8:], timestamp_of(row)) for key, row in changes.rows.items()
        ]

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        for key, value, time in records:
            if value is None:
                self.engine.delete(key)
            else:
                self.engine.put(key, pack_timestamp(UNKNOWN_TIMESTAMP if time is None else time) + value)
        self.reload()

    def _prefix(self, foreign_key: Any) -> bytes:
        data = self._foreign.encode(foreign_key)
        return _LENGTH.pack(len(data)) + data

    def _name(self, foreign_key: Any, primary_key: Any) -> bytes:
        return self._prefix(foreign_key) + self._primary.encode(primary_key)
