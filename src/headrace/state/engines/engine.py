"""The seam below the stores: an ordered map of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from headrace.state.engines.changes import Changes

Row = tuple[bytes, bytes]

_FIRST_CHUNK, _LARGEST_CHUNK = 16, 1024


class Engine(Protocol):
    """An ordered map from bytes to bytes, on which every store is built.

    A scan may go on while rows are written: it sees what is there when it gets there, and never fails.

    >>> from headrace.state import MemoryEngine
    >>> engine = MemoryEngine()
    >>> engine.put(b"b", b"2")
    >>> engine.put(b"a", b"1")
    >>> list(engine.scan())
    [(b'a', b'1'), (b'b', b'2')]
    """

    def get(self, key: bytes) -> bytes | None:
        """Returns the value of a key, or None."""
        ...

    def put(self, key: bytes, value: bytes) -> None:
        """Sets the value of a key."""
        ...

    def delete(self, key: bytes) -> None:
        """Removes a key if it is there."""
        ...

    def delete_range(self, start: bytes, stop: bytes) -> None:
        """Removes the keys from ``start`` to before ``stop``."""
        ...

    def scan(self, start: bytes | None = None, stop: bytes | None = None, *, reverse: bool = False) -> Iterator[Row]:
        """Returns the rows from ``start`` to before ``stop`` in the order of their keys; None is an open end."""
        ...

    def apply(self, changes: Changes) -> None:
        """Makes all changes at once: ranges are deleted first, then rows are set and deleted."""
        ...

    def count(self) -> int:
        """Returns the number of rows; above some thousand, or above another engine, it may be an estimate."""
        ...

    def clear(self) -> None:
        """Removes all rows."""
        ...

    def close(self) -> None:
        """Gives resources back; the engine cannot be used afterwards."""
        ...


# (start, stop, reverse, limit) -> that many rows at most.
ReadChunk = Callable[[bytes | None, bytes | None, bool, int], list[Row]]


def in_chunks(read: ReadChunk, start: bytes | None, stop: bytes | None, *, reverse: bool) -> Iterator[Row]:
    """Scans in chunks, so that nothing is held open and writes between two chunks do no harm.

    The first chunk is small, because many scans want one row only.
    """
    size = _FIRST_CHUNK
    while True:
        chunk = read(start, stop, reverse, size)
        yield from chunk
        if len(chunk) < size:
            return
        last = chunk[-1][0]
        if reverse:
            stop = last
        else:
            start = last + b"\0"
        size = min(size * 8, _LARGEST_CHUNK)


def after_prefix(prefix: bytes) -> bytes | None:
    r"""Returns the smallest key above all keys with that prefix, None if there is none.

    >>> after_prefix(b"ab"), after_prefix(b"a\xff"), after_prefix(b"\xff")
    (b'ac', b'b', None)
    """
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,)) if stem else None
