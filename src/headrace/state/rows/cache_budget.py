"""The memory that the record caches of a task may use together."""

from __future__ import annotations

from typing import Any

# What an entry costs besides its key and value: links, flags and the position of its record.
_OVERHEAD = 64
_NUMBER = 8
_UNKNOWN_SIZE = 64


class CacheBudget:
    """Bytes that the caches of one task may hold; the store whose new entry passes the limit is flushed.

    >>> budget = CacheBudget(100)
    >>> budget.take(80), budget.take(30)
    (False, True)
    >>> budget.give_back(110)
    >>> budget.used_bytes
    0
    """

    __slots__ = ("max_bytes", "used_bytes")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used_bytes = 0

    def take(self, size: int) -> bool:
        """Counts an entry; True if the limit is passed."""
        self.used_bytes += size
        return self.used_bytes > self.max_bytes

    def give_back(self, size: int) -> None:
        self.used_bytes -= size


def entry_size(key: Any, value: Any) -> int:
    """Returns about how much memory an entry takes.

    It depends on the entry only, so that a replay flushes at the same place.

    >>> entry_size("key", "value"), entry_size(7, 1.5)
    (72, 80)
    """
    kind = type(key)
    size = _OVERHEAD + (len(key) if kind is str or kind is bytes else _NUMBER)
    if value is None:
        return size
    kind = type(value)
    if kind is str or kind is bytes:
        return size + len(value)
    return size + (_NUMBER if kind is int or kind is float or kind is bool else _UNKNOWN_SIZE)
