"""Names that a query does not give: of expressions, of struct fields, of synthetic keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

GENERATED = "KSQL_COL_"
SYNTHETIC_KEY = "ROWKEY"


def joined(alias: str, column: str) -> str:
    """Returns what a column of a joined source is called where sources have the same columns.

    >>> joined("L", "ID")
    'L_ID'
    """
    return f"{alias}_{column}"


class NameGenerator:
    """Gives names to what a query leaves unnamed; names of the sources' columns are not given again.

    >>> names = NameGenerator(["KSQL_COL_0", "B"])
    >>> names.expression(), names.field("A"), names.field("B"), names.field("B")
    ('KSQL_COL_1', 'A', 'B_1', 'B_2')
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = frozenset(taken)
        self._expressions = self._unused(f"{GENERATED}{number}" for number in count())
        self._fields: dict[str, Iterator[str]] = {}

    def expression(self) -> str:
        """Returns the next name of an expression."""
        return next(self._expressions)

    def field(self, name: str) -> str:
        """Returns the name of a struct's field as a column: the field's own, with a number where that is taken."""
        if name not in self._fields:
            self._fields[name] = self._unused(numbered(name))
        return next(self._fields[name])

    def _unused(self, names: Iterable[str]) -> Iterator[str]:
        return (name for name in names if name not in self._taken)


def numbered(name: str) -> Iterator[str]:
    """Yields the name, then the name with 1, with 2 and so on."""
    yield name
    for number in count(1):
        yield f"{name}_{number}"


def is_synthetic_key(name: str) -> bool:
    """Whether a join could have a key of that name.

    >>> is_synthetic_key("ROWKEY_2"), is_synthetic_key("ROWKEYS")
    (True, False)
    """
    rest = name.removeprefix(SYNTHETIC_KEY)
    return rest != name and (not rest or (rest[0] == "_" and rest[1:].isdecimal()))


def synthetic_key(taken: Iterable[str]) -> str:
    """Returns the name of a key that no source has: ROWKEY, or with a number behind it if that is a column.

    >>> synthetic_key(["ID"]), synthetic_key(["ROWKEY"])
    ('ROWKEY', 'ROWKEY_1')
    """
    used = set(taken)
    return next(name for name in numbered(SYNTHETIC_KEY) if name not in used)
