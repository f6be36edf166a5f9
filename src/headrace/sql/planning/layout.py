"""The columns of a row while it is processed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions.typed import Slot
from headrace.sql.syntax.nodes import ColumnReference
from headrace.sql.types.schema import Column


@dataclass(frozen=True)
class Layout:
    """Index of columns in the list that is a row. It is the scope of the expressions over such rows.

    >>> from headrace.sql.types import INTEGER
    >>> Layout((Column("A", INTEGER), Column("B", INTEGER))).slot(ColumnReference("B")).code
    'row[1]'
    """

    columns: tuple[Column, ...]

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def __len__(self) -> int:
        return len(self.columns)

    def index(self, name: str) -> int:
        """Returns the place of a column."""
        return self._places[name]

    def column(self, name: str) -> Column:
        """Returns the column of that name."""
        return self.columns[self._places[name]]

    def slot(self, reference: ColumnReference) -> Slot:
        """Returns the type of a column and the code that reads it."""
        place = self._places.get(reference.name)
        if place is None:
            message = f"column '{reference.name}' cannot be resolved."
            raise SqlStatementError(message, position=reference.position)
        return Slot(self.columns[place].type, f"row[{place}]")

    def __add__(self, more: Layout | Iterable[Column]) -> Layout:
        return Layout(self.columns + tuple(more.columns if isinstance(more, Layout) else more))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {column.name: place for place, column in enumerate(self.columns)}
