"""The engine in which a batch runs: its writes lie above a base until they are committed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from random import Random

from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine, Row, in_chunks
from headrace.state.engines.memory import SortedRows


class OverlayEngine:
    """Buffers writes above a base engine; the buffered writes are the changes of the batch.

    >>> from headrace.state import MemoryEngine
    >>> base = MemoryEngine()
    >>> overlay = OverlayEngine(base)
    >>> overlay.put(b"a", b"1")
    >>> overlay.get(b"a"), base.get(b"a"), overlay.changes().rows
    (b'1', None, {b'a': b'1'})
    >>> overlay.commit()
    >>> base.get(b"a"), bool(overlay.changes())
    (b'1', False)
    """

    __slots__ = ("_below", "_ranges", "_rows", "base")

    def __init__(self, base: Engine) -> None:
        self.base = base
        self._below = base.get
        self._rows: SortedRows[bytes | None] = SortedRows()
        # Disjoint and in order; what is written into a range later lies in the rows, which go before the ranges.
        self._ranges: list[tuple[bytes, bytes]] = []

    def on_read(self, listener: Callable[[], None]) -> None:
        """Calls a function whenever a row has to be read from the base."""
        below = self.base.get

        def read(key: bytes) -> bytes | None:
            listener()
            return below(key)

        self._below = read

    def get(self, key: bytes) -> bytes | None:
        rows = self._rows.values
        if key in rows:
            return rows[key]
        if self._ranges and self._deleted(key):
            return None
        return self._below(key)

    def put(self, key: bytes, value: bytes) -> None:
        self._rows.put(key, value)

    def delete(self, key: bytes) -> None:
        self._rows.put(key, None)

    def delete_range(self, start: bytes, stop: bytes) -> None:
        if start >= stop:
            return
        self._rows.remove_range(start, stop)
        apart = []
        for low, high in self._ranges:
            if high < start or stop < low:
                apart.append((low, high))
            else:
                start, stop = min(start, low), max(stop, high)
        self._ranges = sorted([*apart, (start, stop)])

    def _deleted(self, key: bytes) -> bool:
        place = bisect_right(self._ranges, key, key=lambda pair: pair[0]) - 1
        return place >= 0 and key < self._ranges[place][1]

    def scan(self, start: bytes | None = None, stop: bytes | None = None, *, reverse: bool = False) -> Iterator[Row]:
        return in_chunks(self._read, start, stop, reverse=reverse)

    def _read(self, start: bytes | None, stop: bytes | None, reverse: bool, limit: int) -> list[Row]:  # noqa: FBT001
        values, chunk = self._rows.values, list[Row]()
        above = self._rows.keys(start, stop, reverse=reverse)
        below = self.base.scan(start, stop, reverse=reverse)
        key, row = next(above, None), next(below, None)
        while len(chunk) < limit and (key is not None or row is not None):
            if row is None or (key is not None and (key >= row[0] if reverse else key <= row[0])):
                assert key is not None
                if row is not None and key == row[0]:
                    row = next(below, None)
                value = values[key]
                if value is not None:
                    chunk.append((key, value))
                key = next(above, None)
            else:
                if not (self._ranges and self._deleted(row[0])):
                    chunk.append(row)
                row = next(below, None)
        return chunk

    def apply(self, changes: Changes) -> None:
        for start, stop in changes.ranges:
            self.delete_range(start, stop)
        self._rows.put_all(changes.rows)

    def changes(self) -> Changes:
        """Returns what was written since the last commit.

        >>> from headrace.state import MemoryEngine
        >>> overlay = OverlayEngine(MemoryEngine())
        >>> overlay.delete_range(b"a", b"c")
        >>> overlay.delete(b"x")
        >>> overlay.changes()
        Changes(ranges=((b'a', b'c'),), rows={b'x': None})
        """
        return Changes(tuple(self._ranges), dict(self._rows.values))

    def commit(self) -> None:
        """Writes the changes to the base, at once."""
        self.base.apply(Changes(tuple(self._ranges), self._rows.values))
        self.rollback()

    def rollback(self) -> None:
        """Forgets the changes.

        >>> from headrace.state import MemoryEngine
        >>> overlay = OverlayEngine(MemoryEngine())
        >>> overlay.put(b"a", b"1")
        >>> overlay.rollback()
        >>> overlay.get(b"a") is None
        True
        """
        self._rows.clear()
        self._ranges = []

    @property
    def size(self) -> int:
        """How many rows lie above the base, deletions included."""
        return len(self._rows.values)

    def count(self) -> int:
        return self.base.count() + self.growth()

    def growth(
        self, bounds: tuple[bytes, bytes] | None = None, *, at_most: int | None = None, with_ranges: bool = True
    ) -> int:
        """Returns by how many rows the base grows with a commit, of those within bounds.

        Every row above the base is looked up in it. If there are more than ``at_most``, only so many are, and the
        answer is an estimate. Ranges that are deleted are walked through, unless they are not to count.

        >>> from headrace.state import MemoryEngine
        >>> overlay = OverlayEngine(MemoryEngine())
        >>> overlay.put(b"a", b"1")
        >>> overlay.commit()
        >>> overlay.put(b"a", b"2")
        >>> overlay.put(b"b", b"2")
        >>> overlay.growth()
        1
        """
        rows = self._rows.values
        keys = list(rows)
        looked_up = keys if at_most is None or len(keys) <= at_most else Random(0).sample(keys, at_most)
        grown = sum(
            (rows[key] is not None) - self._is_below(key)
            for key in looked_up
            if bounds is None or bounds[0] <= key < bounds[1]
        )
        deleted = 0
        for low, high in self._ranges if with_ranges else ():
            low, high = (low, high) if bounds is None else (max(low, bounds[0]), min(high, bounds[1]))
            deleted += sum(1 for _ in self.base.scan(low, high)) if low < high else 0
        return (grown * len(keys) // len(looked_up) if looked_up else 0) - deleted

    def _is_below(self, key: bytes) -> bool:
        return not (self._ranges and self._deleted(key)) and self.base.get(key) is not None

    def clear(self) -> None:
        self._rows.clear()
        for key, _ in self.base.scan():
            self._rows.put(key, None)

    def close(self) -> None:
        self.rollback()
        self.base.close()
