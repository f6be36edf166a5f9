"""A priority queue that breaks ties as ``java.util.PriorityQueue`` does.

Kafka Streams keeps its record queues and its punctuations in that class, and so inherits the order of equal times from
how its binary heap sifts. Users compare results record by record, so this heap sifts the same way; ``heapq`` does not.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class TieHeap(Generic[T]):
    """Items by priority, smallest first.

    >>> heap = TieHeap[str]()
    >>> for priority, item in [(2, "late"), (1, "a"), (1, "b")]:
    ...     heap.offer(priority, item)
    >>> [heap.poll() for _ in range(3)]
    ['a', 'b', 'late']
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[int, T]] = []

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def smallest(self) -> int:
        """The priority of the first item; there must be one."""
        return self._entries[0][0]

    def offer(self, priority: int, item: T) -> None:
        """Adds an item."""
        entries, entry = self._entries, (priority, item)
        position = len(entries)
        entries.append(entry)
        while position > 0:
            parent = (position - 1) >> 1
            if priority >= entries[parent][0]:
                break
            entries[position] = entries[parent]
            position = parent
        entries[position] = entry

    def poll(self) -> T:
        """Removes and returns the first item."""
        entries = self._entries
        first = entries[0][1]
        last = entries.pop()
        if entries:
            size, position = len(entries), 0
            while position < size >> 1:
                child = 2 * position + 1
                if child + 1 < size and entries[child][0] > entries[child + 1][0]:
                    child += 1
                if last[0] <= entries[child][0]:
                    break
                entries[position] = entries[child]
                position = child
            entries[position] = last
        return first
