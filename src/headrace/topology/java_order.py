"""The orders in which Java's collections hand out their elements, where Kafka Streams' results show them.

Kafka Streams keeps names in a ``HashSet`` and sorts described nodes in a ``TreeSet`` while their sizes still change, so
the text of ``describe()``, and the order in which stores are flushed, follow the inner structure of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

_SMALLEST_TABLE = 16
_LONGEST_BUCKET = 8
_SMALLEST_TABLE_WITH_TREES = 64


def string_hash(text: str) -> int:
    """Returns Java's ``String.hashCode`` as an unsigned number.

    >>> string_hash("headrace")
    3180079281
    """
    data = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for high, low in zip(data[::2], data[1::2], strict=True):
        result = (31 * result + (high << 8 | low)) & 0xFFFFFFFF
    return result


def hash_order(names: Iterable[str], *, table: int = _SMALLEST_TABLE) -> tuple[str, ...]:
    """Returns the distinct names in the order of a ``HashSet`` to which they were added one by one.

    >>> hash_order(["out", "in1", "in0"])
    ('in0', 'in1', 'out')
    """
    spread: dict[str, int] = {}
    for name in names:
        if name in spread:
            continue
        code = string_hash(name)
        spread[name] = code ^ code >> 16
        # A crowded bucket doubles a small table; larger ones turn the bucket into a tree, which keeps its order.
        if table < _SMALLEST_TABLE_WITH_TREES:
            bucket = spread[name] & table - 1
            if sum(other & table - 1 == bucket for other in spread.values()) > _LONGEST_BUCKET:
                table *= 2
        if len(spread) > table * 3 // 4:
            table *= 2
    return tuple(sorted(spread, key=lambda name: spread[name] & table - 1))


def hash_order_of_copy(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the names in the order of ``new HashSet<>(names)``, whose table is made for their number at once.

    >>> hash_order_of_copy(["in1", "in0", "in1"])
    ('in0', 'in1')
    """
    elements = list(names)
    table = _SMALLEST_TABLE
    while table < int(len(elements) / 0.75) + 1:
        table *= 2
    return hash_order(elements, table=table)


class _Entry(Generic[T]):
    __slots__ = ("item", "left", "parent", "red", "right")

    def __init__(self, item: T, parent: _Entry[T] | None) -> None:
        self.item = item
        self.parent = parent
        self.left: _Entry[T] | None = None
        self.right: _Entry[T] | None = None
        self.red = True


class TreeSet(Generic[T]):
    """A ``java.util.TreeSet`` that only grows: a red-black tree.

    A plain sorted list would do if the comparison of two elements never changed. Here it does, and then the place of a
    new element depends on the path that its insertion takes.

    >>> letters = TreeSet[str](lambda a, b: (a > b) - (a < b))
    >>> for letter in "headrace":
    ...     letters.add(letter)
    >>> "".join(letters)
    'acdehr'
    """

    def __init__(self, compare: Callable[[T, T], int]) -> None:
        self._compare = compare
        self._root: _Entry[T] | None = None

    def __iter__(self) -> Iterator[T]:
        path: list[_Entry[T]] = []
        entry = self._root
        while path or entry is not None:
            while entry is not None:
                path.append(entry)
                entry = entry.left
            entry = path.pop()
            yield entry.item
            entry = entry.right

    def add(self, item: T) -> None:
        """Adds an element unless the insertion meets an equal one."""
        parent, order, entry = None, 0, self._root
        while entry is not None:
            parent, order = entry, self._compare(item, entry.item)
            if order == 0:
                return
            entry = entry.left if order < 0 else entry.right
        added = _Entry(item, parent)
        if parent is None:
            self._root = added
        elif order < 0:
            parent.left = added
        else:
            parent.right = added
        self._balance(added)

    def _balance(self, entry: _Entry[T]) -> None:
        while (parent := entry.parent) is not None and parent.red and (grandparent := parent.parent) is not None:
            on_left = parent is grandparent.left
            uncle = grandparent.right if on_left else grandparent.left
            if uncle is not None and uncle.red:
                parent.red = uncle.red = False
                grandparent.red = True
                entry = grandparent
                continue
            if entry is (parent.right if on_left else parent.left):
                self._rotate(parent, left=on_left)
                entry, parent = parent, entry
            parent.red = False
            grandparent.red = True
            self._rotate(grandparent, left=not on_left)
        if self._root is not None:
            self._root.red = False

    def _rotate(self, entry: _Entry[T], *, left: bool) -> None:
        rising = entry.right if left else entry.left
        if rising is None:
            return
        moved = rising.left if left else rising.right
        if left:
            entry.right, rising.left = moved, entry
        else:
            entry.left, rising.right = moved, entry
        if moved is not None:
            moved.parent = entry
        rising.parent = entry.parent
        if entry.parent is None:
            self._root = rising
        elif entry.parent.left is entry:
            entry.parent.left = rising
        else:
            entry.parent.right = rising
        entry.parent = rising
