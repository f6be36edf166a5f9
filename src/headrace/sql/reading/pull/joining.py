"""Joins of tables in pull queries: by the key of the right table where that is asked for, else by hash or loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from headrace.sql.expressions import RowFunction, RowPredicate
from headrace.sql.functions.resolution import NUMBERS
from headrace.sql.planning.layout import Layout
from headrace.sql.planning.sources import FromSource, Sources
from headrace.sql.planning.tree import references
from headrace.sql.planning.typing import Typing
from headrace.sql.reading.pull.conditions import conjuncts
from headrace.sql.reading.pull.table_rows import TableRows
from headrace.sql.reading.record_rows import Row
from headrace.sql.syntax.nodes import ColumnReference, Comparison, Expression
from headrace.sql.syntax.statements import Join
from headrace.sql.types import SqlArray, SqlMap, SqlStruct, SqlType


@dataclass(frozen=True, slots=True)
class TableJoin:
    """One join, of rows that hold the columns of all sources before it, with one more table."""

    kind: str
    right: TableRows
    left_width: int
    right_width: int
    condition: RowPredicate
    """Over the columns of both."""
    sides: tuple[RowFunction, RowFunction] | None
    """What must be equal of the left and of the right row; None: nothing that could be looked up."""
    by_key: bool
    """Whether the right side is the key of the right table."""

    def rows(self, left: Iterable[Row]) -> Iterator[Row]:
        """Yields the joined rows."""
        if self.by_key and self.kind in ("INNER", "LEFT"):
            yield from self._by_key(left)
            return
        right = list(self.right.rows(None))
        partners = self._partners(right)
        matched: set[int] = set()
        nothing = [None] * self.right_width
        for row in left:
            found = False
            for number in partners(row):
                joined = row + right[number]
                if self.condition(joined):
                    found = True
                    matched.add(number)
                    yield joined
            if not found and self.kind in ("LEFT", "OUTER"):
                yield row + nothing
        if self.kind in ("RIGHT", "OUTER"):
            for number, row in enumerate(right):
                if number not in matched:
                    yield [None] * self.left_width + row

    def _by_key(self, left: Iterable[Row]) -> Iterator[Row]:
        assert self.sides is not None  # by_key says so
        key_of, nothing = self.sides[0], [None] * self.right_width
        lookup = self.right.lookup()
        try:
            for row in left:
                key = key_of(row)
                found = None if key[0] is None else lookup.get(tuple(key))
                if found is not None and self.condition(row + found):
                    yield row + found
                elif self.kind == "LEFT":
                    yield row + nothing
        finally:
            lookup.close()

    def _partners(self, right: list[Row]) -> Callable[[Row], Iterable[int]]:
        if self.sides is None:
            everyone = range(len(right))
            return lambda _row: everyone
        left_side, right_side = self.sides
        numbers: dict[tuple[Any, ...], list[int]] = {}
        for number, row in enumerate(right):
            numbers.setdefault(tuple(right_side(row)), []).append(number)
        return lambda row: numbers.get(tuple(left_side(row)), ())


def table_join(
    join: Join, number: int, tables: list[TableRows], sources: Sources, everything: Layout, typing: Typing
) -> TableJoin:
    """Returns the join of the sources before ``number`` with the source of that number."""
    known, right = Sources(sources.items[: number + 1]), sources.items[number]
    condition = known.qualified(join.condition, "JOIN ON")
    left_width = sum(len(item.columns) for item in sources.items[:number])
    right_width = len(right.columns)
    both = Layout(everything.columns[: left_width + right_width])
    left_layout = Layout(both.columns[:left_width])
    right_layout = Layout(both.columns[left_width:])
    pairs = [
        pair
        for pair in (_sides(each, right) for each in conjuncts(condition))
        if pair is not None
        and _comparable(
            typing.column_type(sources.internal(pair[0]), left_layout),
            typing.column_type(sources.internal(pair[1]), right_layout),
        )
    ]
    sides = None
    if pairs:
        left_function, left_types = typing.row_function([sources.internal(pair[0]) for pair in pairs], left_layout)
        right_function, right_types = typing.row_function([sources.internal(pair[1]) for pair in pairs], right_layout)
        sides = left_function, right_function
    definition = right.definition
    by_key = (
        [pair[1] for pair in pairs] == [ColumnReference(column.name, right.alias) for column in definition.schema.key]
        and left_types == right_types
        and definition.window is None
        and (definition.key_format == "KAFKA" or definition.is_derived)
    )
    predicate = typing.predicate(sources.internal(condition), both, "JOIN ON")
    return TableJoin(join.kind, tables[number], left_width, right_width, predicate, sides, by_key)


def _sides(condition: Expression, right: FromSource) -> tuple[Expression, Expression] | None:
    """Returns the side of the sources before and that of the right source, of a condition that compares the two."""
    if not isinstance(condition, Comparison) or condition.operator != "=":
        return None
    for left_side, right_side in ((condition.left, condition.right), (condition.right, condition.left)):
        left_aliases = {reference.source for reference in references(left_side)}
        right_aliases = {reference.source for reference in references(right_side)}
        if right_aliases == {right.alias} and left_aliases and right.alias not in left_aliases:
            return left_side, right_side
    return None


def _comparable(left: SqlType, right: SqlType) -> bool:
    """Whether values that are equal have the same hash."""
    if isinstance(left, SqlArray | SqlMap | SqlStruct):
        return False
    return left == right or (left.base in NUMBERS and right.base in NUMBERS)
