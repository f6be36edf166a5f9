"""The engine in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import filterfalse
from typing import ClassVar, Generic, Literal, NoReturn, TypeVar

from sortedcontainers import SortedList

from headrace.errors import UnsupportedOperationError
from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Row, in_chunks

V = TypeVar("V")


class SortedRows(Generic[V]):
    """A dict whose keys are put in order when somebody asks for it: most stores are never scanned."""

    __slots__ = ("_ordered", "_unordered", "values")

    def __init__(self) -> None:
        self.values: dict[bytes, V] = {}
        self._ordered: SortedList[bytes] | None = None
        """The keys, except for those in ``_unordered``; None: they have no order, because nobody has asked for it."""
        self._unordered: set[bytes] = set()

    def put(self, key: bytes, value: V) -> None:
        if self._ordered is not None and key not in self.values:
            self._unordered.add(key)
        self.values[key] = value

    def put_all(self, rows: Mapping[bytes, V]) -> None:
        """Sets many values at once, without a step of Python for each."""
        if self._ordered is not None:
            # A difference of two dicts would walk through all of the second one.
            self._unordered.update(filterfalse(self.values.__contains__, rows))
            if len(self._unordered) > len(self._ordered):
                # Nobody has asked for long; sorting all of them anew costs no more.
                self._give_up_order()
        self.values.update(rows)

    def remove(self, key: bytes) -> None:
        if key not in self.values:
            return
        del self.values[key]
        if key in self._unordered:
            self._unordered.remove(key)
        elif self._ordered is not None:
            self._ordered.remove(key)

    def remove_range(self, start: bytes, stop: bytes) -> None:
        """Removes the keys from ``start`` to before ``stop``; while they have no order, by looking at all of them."""
        values = self.values
        if self._ordered is None:
            gone = [key for key in values if start <= key < stop]
        else:
            gone = list(self.keys(start, stop))
            first = self._ordered.bisect_left(start)
            del self._ordered[first : first + len(gone)]
        for key in gone:
            del values[key]

    def _give_up_order(self) -> None:
        self._ordered = None
        self._unordered.clear()

    def keys(self, start: bytes | None, stop: bytes | None, *, reverse: bool = False) -> Iterator[bytes]:
        """Returns the keys in order; nothing may be written until it is exhausted."""
        if self._ordered is None:
            self._ordered = SortedList(self.values)
        elif self._unordered:
            self._ordered.update(self._unordered)
            self._unordered.clear()
        return self._ordered.irange(start, stop, (True, False), reverse)

    def clear(self) -> None:
        self.values.clear()
        self._give_up_order()


class MemoryEngine:
    """Keeps rows in memory.

    >>> engine = MemoryEngine()
    >>> engine.put(b"key", b"value")
    >>> engine.get(b"key")
    b'value'
    >>> engine.delete_range(b"a", b"z")
    >>> engine.count()
    0
    """

    __slots__ = ("_rows", "get")

    def __init__(self) -> None:
        self._rows: SortedRows[bytes] = SortedRows()
        # The dict's own method: a lookup costs no Python frame.
        self.get = self._rows.values.get

    def put(self, key: bytes, value: bytes) -> None:
        self._rows.put(key, value)

    def delete(self, key: bytes) -> None:
        self._rows.remove(key)

    def delete_range(self, start: bytes, stop: bytes) -> None:
        for key in list(self._rows.keys(start, stop)):
            self._rows.remove(key)

    def scan(self, start: bytes | None = None, stop: bytes | None = None, *, reverse: bool = False) -> Iterator[Row]:
        return in_chunks(self._read, start, stop, reverse=reverse)

    def _read(self, start: bytes | None, stop: bytes | None, reverse: bool, limit: int) -> list[Row]:  # noqa: FBT001
        values, chunk = self._rows.values, []
        for key in self._rows.keys(start, stop, reverse=reverse):
            chunk.append((key, values[key]))
            if len(chunk) == limit:
                break
        return chunk

    def apply(self, changes: Changes) -> None:
        for start, stop in changes.ranges:
            self.delete_range(start, stop)
        put, remove = self._rows.put, self._rows.remove
        for key, value in changes.rows.items():
            if value is None:
                remove(key)
            else:
                put(key, value)

    def count(self) -> int:
        return len(self._rows.values)

    def clear(self) -> None:
        self._rows.clear()

    def close(self) -> None:
        self.clear()


class MemoryEnvironment:
    """Engines in memory, written together; see ``headrace.state.engines.environment.Environment``."""

    kind: ClassVar[Literal["in_memory"]] = "in_memory"

    def __init__(self) -> None:
        self._engines: dict[str, MemoryEngine] = {}

    def engine(self, name: str) -> MemoryEngine:
        return self._engines.setdefault(name, MemoryEngine())

    def names(self) -> list[str]:
        return sorted(self._engines)

    def apply(self, *steps: Mapping[str, Changes]) -> None:
        for changes in steps:
            for name, each in changes.items():
                self.engine(name).apply(each)

    def apply_if(self, key: bytes, value: bytes, *steps: Mapping[str, Changes]) -> bool:
        if self.engine(".").get(key) != value:
            return False
        self.apply(*steps)
        return True

    def snapshot(self) -> NoReturn:
        message = "stores in memory have no snapshots; views are kept on disk"
        raise UnsupportedOperationError(message)

    def pin(self) -> None:
        """Does nothing: reads are as fast as they can be."""

    def unpin(self) -> None:
        """Does nothing."""

    def flush(self) -> None:
        """Does nothing: there is no disk."""

    def disk_bytes(self) -> int:
        return 0

    def metrics(self) -> dict[str, float]:
        return {}

    def close(self) -> None:
        self._engines.clear()
