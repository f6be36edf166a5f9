"""An engine that keeps only the rows used last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine, Row


class LruEngine:
    """Limits the number of rows of a base engine: beyond it, the row that was not used for longest goes.

    The order of use is kept in memory: after a restart rows count as used in the order of their keys.

    >>> from headrace.state import MemoryEngine
    >>> engine = LruEngine(MemoryEngine(), max_entries=2)
    >>> for key in (b"a", b"b"):
    ...     engine.put(key, b"")
    >>> engine.get(b"a")
    b''
    >>> engine.put(b"c", b"")
    >>> [key for key, _ in engine.scan()]
    [b'a', b'c']
    """

    __slots__ = ("_max", "_used", "base")

    def __init__(self, base: Engine, *, max_entries: int) -> None:
        self.base = base
        self._max = max_entries
        self._used: OrderedDict[bytes, None] = OrderedDict()
        self.reload()

    def reload(self) -> None:
        """Starts over with the rows of the base; if there are too many, the next put evicts them."""
        self._used = OrderedDict.fromkeys(key for key, _ in self.base.scan())

    def get(self, key: bytes) -> bytes | None:
        if key in self._used:
            self._used.move_to_end(key)
        return self.base.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        self._used[key] = None
        self._used.move_to_end(key)
        self.base.put(key, value)
        while len(self._used) > self._max:
            eldest, _ = self._used.popitem(last=False)
            self.base.delete(eldest)

    def delete(self, key: bytes) -> None:
        self._used.pop(key, None)
        self.base.delete(key)

    def delete_range(self, start: bytes, stop: bytes) -> None:
        for key in [key for key in self._used if start <= key < stop]:
            self.delete(key)

    def scan(self, start: bytes | None = None, stop: bytes | None = None, *, reverse: bool = False) -> Iterator[Row]:
        return self.base.scan(start, stop, reverse=reverse)

    def apply(self, changes: Changes) -> None:
        # Changes come from a store with the same limit, which has evicted what it had to.
        self.base.apply(changes)
        self.reload()

    def count(self) -> int:
        return len(self._used)

    def clear(self) -> None:
        self._used.clear()
        self.base.clear()

    def close(self) -> None:
        self._used.clear()
        self.base.close()
