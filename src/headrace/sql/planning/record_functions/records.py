"""Functions over keys and rows: projections, keys, filters, joined rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from headrace.sql.expressions.row_functions import RowFunction
from headrace.sql.planning.record_functions.bound import Bound
from headrace.sql.planning.record_functions.generated import Generated

Row = list[Any]
Key = Any
"""A tuple of the key columns' values, or that in a window; None for a record without key."""


class RowFilter(Bound):
    """Whether a row passes a condition; a null row does not."""

    __slots__ = ()

    def __call__(self, key: Key, row: Row | None) -> bool:
        return row is not None and (self._function or self.bind())(row)

    def made_function(self) -> Callable[..., Any]:
        """Returns one function for both."""
        return self.compiled.variant("key, row", "if row is None: return False")


def has_row(key: Key, row: Row | None) -> bool:
    """Whether there is a row at all."""
    return row is not None


class ProjectRow(Bound):
    """A new row of each; a null row stays one."""

    __slots__ = ()

    def __call__(self, row: Row | None) -> Row | None:
        return None if row is None else (self._function or self.bind())(row)

    def made_function(self) -> Callable[..., Any]:
        """Returns one function for both."""
        return self.compiled.variant("row", "if row is None: return None")


class RowIdentity(Bound):
    """The values by which a row is compared with others; a null row has none."""

    __slots__ = ()

    def __call__(self, key: Key, row: Row | None) -> Row | None:
        return None if row is None else (self._function or self.bind())(row)

    def made_function(self) -> Callable[..., Any]:
        """Returns one function for both."""
        return self.compiled.variant("key, row", "if row is None: return None")


@dataclass(frozen=True, slots=True)
class RowKey:
    """The key that expressions over the row give. A single NULL is no key. A null row gets what the old key gives."""

    function: RowFunction
    for_null: Callable[[Key, None], Key]

    def __call__(self, key: Key, row: Row | None) -> Key:
        return self.for_null(key, None) if row is None else as_key(self.function(row))


@dataclass(frozen=True, slots=True)
class KeyKey:
    """The key that expressions over the old key give; all columns of no key are NULL."""

    function: RowFunction
    width: int
    """How many columns the old key has."""

    def __call__(self, key: Key, row: Row | None) -> Key:
        return as_key(self.function((None,) * self.width if key is None else key))


def as_key(values: Sequence[Any]) -> Key:
    """Returns the values as a key; a single NULL is none."""
    return None if len(values) == 1 and values[0] is None else tuple(values)


def same_row(row: Row) -> Row:
    """Returns the row as it is."""
    return row


def same_key(key: Key, row: Row | None) -> Key:
    """Returns the key as it is."""
    return key


def no_key(key: Key, row: Row | None) -> None:
    """Returns no key."""


@dataclass(frozen=True, slots=True)
class ExplodeRow:
    """The rows that table functions make of one: its columns, then an item of each list, NULL where one is shorter."""

    function: RowFunction

    def __call__(self, row: Row | None) -> Iterator[Row]:
        if row is None:
            return
        lists: list[Sequence[Any]] = [items or () for items in cast("list[list[Any] | None]", self.function(row))]
        for number in range(max(map(len, lists))):
            yield row + [items[number] if number < len(items) else None for items in lists]


def joined_rows(
    left_width: int, right_width: int, kind: str, *, swapped: bool = False, with_key: bool = False
) -> Generated:
    """Returns what puts two rows side by side, NULL for the columns of a row that is not there.

    ``swapped`` is for a right join, which is a left join seen from the other side: its first argument is the right row.
    """
    left = "left" if kind in ("INNER", "LEFT") else "(no_left if left is None else left)"
    right = "right" if kind in ("INNER", "RIGHT") else "(no_right if right is None else right)"
    names: dict[str, Any] = {"no_left": [None] * left_width, "no_right": [None] * right_width, "first_of": first_of}
    parameters = "right, left" if swapped else "left, right"
    if with_key:
        return Generated(f"key, {parameters}", f"[*{left}, *{right}, first_of(key)]", names)
    return Generated(parameters, f"{left} + {right}", names)


def first_of(key: Key) -> Any:
    """Returns the only column of a key."""
    plain = getattr(key, "key", key)
    return None if plain is None else plain[0]


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """The key of the partner that a row asks for."""

    function: RowFunction

    def __call__(self, row: Row) -> Key:
        return as_key(self.function(row))
