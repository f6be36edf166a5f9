"""The steps that read and join the sources of a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.sql.catalog.source_checks import check_key_columns
from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions import type_text
from headrace.sql.formats import FormatOptions
from headrace.sql.planning.clause_checks import windowed_repartition
from headrace.sql.planning.from_clause import FromClause, JoinOn
from headrace.sql.planning.layout import Layout
from headrace.sql.planning.plan import JoinForeignKey, JoinRows, JoinWindow, KeyFormat, Read, SelectKey, Step
from headrace.sql.planning.sources import FromSource
from headrace.sql.planning.typing import Typing
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import ColumnReference, Expression
from headrace.sql.types import SqlType
from headrace.sql.types.schema import Column, Namespace

Needed = set[ColumnReference]


def join_key_types(clause: FromClause, typing: Typing, everything: Layout) -> list[SqlType]:
    """Returns the type of the key that rows are joined by, for each join; raises if both sides differ in it."""
    return [_key_type(join, clause, typing, everything) for join in clause.joins]


def _key_type(join: JoinOn, clause: FromClause, typing: Typing, everything: Layout) -> SqlType:
    sides = join.sides if clause.is_table else (join.left_expression, join.right_expression)
    left, right = (typing.column_type(clause.sources.internal(side), everything) for side in sides)
    if left == right:
        return left
    if not clause.is_table:
        message = f"Invalid join. Key types differ: {left} vs {right}. Got {join.condition}; cast one side."
        raise SqlStatementError(message)
    shown = " = ".join(
        f"{expression_text(side)}{{{type_text(type)}}}" for side, type in zip(sides, (left, right), strict=True)
    )
    message = f"Invalid join condition: types don't match. Got {shown}."
    raise SqlStatementError(message)


def joined_sources(
    clause: FromClause,
    read: Callable[[FromSource], Read],
    typing: Typing,
    key_types: Sequence[SqlType],
    needed: Needed,
) -> Step:
    """Returns the step that has all needed columns of all sources; ``key_types`` are those of each join."""
    return _Joining(clause, read, typing, key_types, needed).step()


class _Joining:
    def __init__(
        self,
        clause: FromClause,
        read: Callable[[FromSource], Read],
        typing: Typing,
        key_types: Sequence[SqlType],
        needed: Needed,
    ) -> None:
        self._clause = clause
        self._sources = clause.sources
        self._needed = needed
        self._read = read
        self._typing = typing
        self._key_types = key_types

    def step(self) -> Step:
        joins = self._clause.joins
        self._check_partitions()
        step: Step = self._read(self._sources.items[0])
        for number, join in enumerate(joins):
            prefix = "L_" * (len(joins) - 1 - number)
            right = self._read(join.right)
            step = self._joined(step, right, number, prefix)
        return step

    def _joined(self, left: Step, right: Step, number: int, prefix: str) -> Step:
        join, key_type = self._clause.joins[number], self._key_types[number]
        if join.foreign_key:
            return self._by_foreign_key(left, right, join, prefix)
        move_left, move_right = join.moves_left, join.moves_right
        if (move_left or move_right) and left.key_format.window is not None:
            raise windowed_repartition()
        key_format = self._key_format(left, right, move_left=move_left, move_right=move_right)
        names = [one for one in join.equal if isinstance(one, ColumnReference)]
        synthetic = self._sources.synthetic_key or "ROWKEY"
        key = Column(self._sources.internal_name(names[0]) if names else synthetic, key_type, Namespace.KEY)
        check_key_columns((key,))
        left = self._keyed(left, join.left_expression, key, key_format, move=move_left, name=f"{prefix}LeftSourceKeyed")
        right = self._keyed(
            right, join.right_expression, key, key_format, move=move_right, name=f"{prefix}RightSourceKeyed"
        )
        layout = left.layout + right.layout
        is_last = join is self._clause.joins[-1]
        with_key = not names and is_last and ColumnReference(synthetic) in self._needed
        within = join.within
        return JoinRows(
            layout=Layout((*layout.columns, Column(synthetic, key_type))) if with_key else layout,
            key=(key,),
            key_format=key_format,
            is_table=left.is_table,
            left=left,
            right=right,
            kind=join.kind,
            window=None if within is None else JoinWindow(within.before, within.after, within.grace),
            name=f"{prefix}Join",
            key_column=synthetic if with_key else None,
        )

    def _by_foreign_key(self, left: Step, right: Step, join: JoinOn, prefix: str) -> Step:
        function, _ = self._typing.row_function([self._sources.internal(join.left_expression)], left.layout)
        return JoinForeignKey(
            layout=left.layout + right.layout,
            key=left.key,
            key_format=left.key_format,
            is_table=True,
            left=left,
            right=right,
            kind=join.kind,
            foreign_key=function,
            name=f"{prefix}FkJoin",
        )

    def _key_format(self, left: Step, right: Step, *, move_left: bool, move_right: bool) -> KeyFormat:
        """Returns the format that both sides' keys get: that of a side which keeps its key, the left one first."""
        candidates = [
            *(() if move_left else (left.key_format,)),
            *(() if move_right else (right.key_format,)),
            left.key_format,
            right.key_format,
        ]
        return next((one for one in candidates if one.name != "NONE"), KeyFormat("KAFKA", FormatOptions()))

    def _keyed(
        self, step: Step, expression: Expression, key: Column, key_format: KeyFormat, *, move: bool, name: str
    ) -> Step:
        if not move and step.key_format.same_bytes(key_format):
            return step
        if not move and step.key_format.window != key_format.window and not step.key_format.names_schemas:
            raise windowed_repartition()
        function = None
        if move:
            function, _ = self._typing.row_function([self._sources.internal(expression)], step.layout)
        return SelectKey(
            layout=step.layout,
            key=(key,) if move else step.key,
            key_format=key_format,
            is_table=step.is_table,
            parent=step,
            function=function,
            name=name,
        )

    def _check_partitions(self) -> None:
        """Raises unless sources have as many partitions as those they are joined with, the last join first."""
        joins, first = self._clause.joins, self._sources.items[0]
        for number in reversed(range(len(joins))):
            if joins[number].foreign_key:
                continue  # its rows find each other by messages, wherever they are
            before, right = (joins[number - 1].right if number else first), joins[number].right
            counts = before.definition.partitions, right.definition.partitions
            if counts[0] != counts[1]:
                message = (
                    f"Can't join `{first.alias}` with `{right.alias}` since the number of partitions don't match. "
                    f"`{first.alias}` partitions = {counts[0]}; `{right.alias}` partitions = {counts[1]}. "
                    "Please repartition either one so that the number of partitions match."
                )
                raise SqlStatementError(message)
