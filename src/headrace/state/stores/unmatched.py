"""Records of left and outer stream-stream joins that have not met a partner yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Any, ClassVar

from headrace.serdes import Serdes
from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine
from headrace.state.rows.codec import Codec, TypeGuard
from headrace.state.stores.store import ChangelogRecord, Store

_HEAD = Struct(">qB")
_LIST = Serdes.list_of(Serdes.bytes())


class UnmatchedStore(Store):
    """Values by timestamp, side and key; several with the same three stay in the order in which they came.

    >>> from headrace.state import MemoryEngine, unmatched_store_builder
    >>> store = unmatched_store_builder("waiting", None, None, None).build(MemoryEngine())
    >>> store.put(10, True, "a", "left")
    >>> store.put(10, False, "b", "right")
    >>> list(store.entries())
    [(10, False, 'b', ['right']), (10, True, 'a', ['left'])]
    >>> store.remove(10, False, "b")
    >>> [key for _, _, key, _ in store.entries()]
    ['a']
    """

    __slots__ = ("_guards", "_has_rows", "_keys", "_left", "_read_list", "_right", "_write_list", "dirty")

    kind: ClassVar[str] = "unmatched"

    def __init__(self, name: str, engine: Engine, keys: Codec, left: Codec, right: Codec, *, persistent: bool) -> None:
        super().__init__(name, engine, persistent=persistent)
        self._keys = keys
        self._left = left
        self._right = right
        self._guards = (TypeGuard(right), TypeGuard(left))
        self._write_list = _LIST.serializer(name, is_key=False)
        self._read_list = _LIST.deserializer(name, is_key=False)
        # (timestamp, left, key object or bytes) -> (whether the engine lacks it, values); None: it is to be deleted
        self.dirty: dict[Any, tuple[bool, list[Any]] | None] = {}
        self.reload()

    def put(self, timestamp_ms: int, left: bool, key: Any, value: Any) -> None:  # noqa: FBT001
        """Adds a record of one side."""
        values, guard = self._left if left else self._right, self._guards[left]
        if type(value) not in guard.known:
            guard.admit(value)
        row = value if values.keep else values.encode(value)
        slot = (timestamp_ms, left, key if self._keys.keep else self._keys.encode(key))
        waiting = self.dirty.get(slot)
        if waiting is None:
            # A deleted row is still in the engine until it is written.
            data = self._data(slot) if slot not in self.dirty else None
            waiting = self.dirty[slot] = (slot not in self.dirty and data is None, self._values_of(data, left=left))
        waiting[1].append(row)

    def remove(self, timestamp_ms: int, left: bool, key: Any) -> None:  # noqa: FBT001
        """Removes the records of one side with that timestamp and key, if there are any."""
        slot = (timestamp_ms, left, key if self._keys.keep else self._keys.encode(key))
        waiting = self.dirty.get(slot)
        if waiting is not None and waiting[0]:
            del self.dirty[slot]
        elif waiting is not None or (slot not in self.dirty and self._data(slot) is not None):
            self.dirty[slot] = None

    def entries(self) -> Iterator[tuple[int, bool, Any, list[Any]]]:
        """Returns (timestamp, left, key, values) by timestamp, right before left, and key bytes.

        Rows may be removed meanwhile.
        """
        self.flush_writes()
        for name, data in self.engine.scan():
            timestamp_ms, side = _HEAD.unpack_from(name)
            left, key = side == 1, name[9:]
            kept = self._keys.decode(key) if self._keys.keep else key
            if (timestamp_ms, left, kept) in self.dirty:
                continue
            codec, values = self._left if left else self._right, self._values_of(data, left=left)
            yield (
                timestamp_ms,
                left,
                kept if self._keys.keep else self._keys.decode(key),
                values if codec.keep else [codec.decode(value) for value in values],
            )

    def flush_writes(self) -> None:
        for slot, waiting in self.dirty.items():
            if waiting is None:
                self.engine.delete(self._name(slot))
            else:
                values = self._left if slot[1] else self._right
                flag = b"\1" if slot[1] else b"\0"
                rows: list[bytes | None] = [
                    flag + (values.encode(value) if values.keep else value) for value in waiting[1]
                ]
                self.engine.put(self._name(slot), self._write_list(rows))
                self._has_rows = True
        self.dirty.clear()

    def reload(self) -> None:
        self.dirty.clear()
        # Most look-ups are for records that found their partner at once: as long as nothing was written, they are free.
        self._has_rows = next(self.engine.scan(), None) is not None

    def changelog_records(self, changes: Changes) -> list[ChangelogRecord]:
        return [(key, value, None) for key, value in changes.rows.items()]

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        self.engine.apply(Changes(rows={key: value for key, value, _ in records}))
        self.reload()

    def _name(self, slot: tuple[int, bool, Any]) -> bytes:
        timestamp_ms, left, name = slot
        return _HEAD.pack(timestamp_ms, left) + (self._keys.encode(name) if self._keys.keep else name)

    def _data(self, slot: tuple[int, bool, Any]) -> bytes | None:
        return self.engine.get(self._name(slot)) if self._has_rows else None

    def _values_of(self, data: bytes | None, *, left: bool) -> list[Any]:
        if data is None:
            return []
        values = self._left if left else self._right
        rows = [row[1:] for row in self._read_list(data) if row is not None]
        return [values.decode(row) for row in rows] if values.keep else rows
