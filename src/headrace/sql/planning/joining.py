"""The steps that read and join the sources of a query."""

from __future__ import annotations

from collections.abc import Callable

from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions import type_text
from headrace.sql.formats import FormatOptions
from headrace.sql.planning.checks import windowed_repartition
from headrace.sql.planning.joins import FromClause, JoinOn
from headrace.sql.planning.layout import Layout
from headrace.sql.planning.plan import JoinForeignKey, JoinRows, JoinWindow, KeyFormat, Read, SelectKey, Step
from headrace.sql.planning.sources import FromSource
from headrace.sql.planning.typing import Typing
from headrace.sql.schema import Column, Namespace
from headrace.sql.source_checks import check_key_columns
from headrace.sql.syntax.nodes import ColumnReference, Expression
from headrace.sql.syntax.writing import expression_text
from headrace.sql.types import SqlType

Needed = set[ColumnReference]


def joined_sources(
    clause: FromClause, read: Callable[[FromSource], Read], typing: Typing, everything: Layout, needed: Needed
) -> Step:
    """Returns the step that has all needed columns of all sources; ``everything`` has those that are not, too."""
    return _Joining(clause, read, typing, everything, needed).step()


class _Joining:
    def __init__(
        self,
        clause: FromClause,
        read: Callable[[FromSource], Read],
        typing: Typing,
        everything: Layout,
        needed: Needed,
    ) -> None:
        self._clause = clause
        self._sources = clause.sources
        self._needed = needed
        self._read = read
        self._typing = typing
        self._everything = everything

    def step(self) -> Step:
        first = self._sources.items[0]
        step: Step = self._read(first)
        joins = self._clause.joins
        for number, join in enumerate(joins):
            prefix = "L_" * (len(joins) - 1 - number)
            right = self._read(join.right)
            step = self._joined(step, right, join, prefix)
        return step

    def _joined(self, left: Step, right: Step, join: JoinOn, prefix: str) -> Step:
        self._check_windows(left, right, join)
        key_type = self._check_types(join)
        if join.foreign_key:
            return self._by_foreign_key(left, right, join, prefix)
        self._check_partitions(join)
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

    def _check_types(self, join: JoinOn) -> SqlType:
        types = [self._typing.column_type(self._sources.internal(side), self._everything) for side in join.sides]
        if types[0] != types[1]:
            shown = " = ".join(
                f"{expression_text(side)}{{{type_text(type)}}}" for side, type in zip(join.sides, types, strict=True)
            )
            message = f"Invalid join condition: types don't match. Got {shown}."
            raise SqlStatementError(message)
        return types[0]

    def _check_windows(self, left: Step, right: Step, join: JoinOn) -> None:
        windows = left.key_format.window, right.key_format.window
        if windows == (None, None):
            return
        if None in windows:
            texts = [
                f"`{alias}` is {'not' if window is None else window.kind} windowed"
                for alias, window in zip((join.left_alias, join.right.alias), windows, strict=True)
            ]
            message = "Can not join windowed source to non-windowed source.\n" + "\n".join(texts)
            raise SqlStatementError(message)
        kinds = [window.kind for window in windows if window is not None]
        if ("SESSION" in kinds) and kinds[0] != kinds[1]:
            message = (
                f"Incompatible windowed sources.\nLeft source: {kinds[0]}\nRight source: {kinds[1]}\n"
                "Session windowed sources can only be joined to other session windowed sources, and may still not "
                "result in expected behaviour as session bounds must be an exact match for the join to work\n"
                "Hopping and tumbling windowed sources can only be joined to other hopping and tumbling windowed "
                "sources"
            )
            raise SqlStatementError(message)

    def _check_partitions(self, join: JoinOn) -> None:
        left, right = self._sources[join.left_alias], join.right
        counts = left.definition.partitions, right.definition.partitions
        if counts[0] != counts[1]:
            message = (
                f"Can't join `{left.alias}` with `{right.alias}` since the number of partitions don't match. "
                f"`{left.alias}` partitions = {counts[0]}; `{right.alias}` partitions = {counts[1]}. "
                "Please repartition either one so that the number of partitions match."
            )
            raise SqlStatementError(message)
