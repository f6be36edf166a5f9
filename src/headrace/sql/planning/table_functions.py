"""Table functions in SELECT: each call becomes a column of the rows that they make together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions import RowFunction
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.planning.layout import Layout
from headrace.sql.planning.plan import FlatMap, Step
from headrace.sql.planning.select import Selected
from headrace.sql.planning.sources import Sources
from headrace.sql.planning.tree import calls, replaced, walk
from headrace.sql.planning.typing import Typing
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import Call, Case, ColumnReference, Expression, Node
from headrace.sql.types.schema import Column


class TableFunctions:
    """Takes the calls of table functions out of selected expressions, and makes the step that carries them out."""

    def __init__(self, functions: FunctionRegistry, typing: Typing, sources: Sources) -> None:
        self._functions = functions
        self._typing = typing
        self._sources = sources
        self.calls: list[Call] = []
        """The calls that were found, in their order, with the source of every column."""

    def extracted(self, selected: Sequence[Selected]) -> tuple[Selected, ...]:
        """Returns the columns with a reference in the place of each call."""
        return tuple(replace(one, expression=self._without_calls(one.expression)) for one in selected)

    def _without_calls(self, expression: Expression) -> Expression:
        for case in walk(expression):
            if isinstance(case, Case) and any(self._functions.is_table(call.name) for call in calls(case)):
                message = f"Table functions cannot be used in CASE: {expression_text(case)}"
                raise SqlStatementError(message, position=case.position)

        def column(node: Node) -> Expression | None:
            if not isinstance(node, Call) or not self._functions.is_table(node.name):
                return None
            within = (call for argument in node.arguments for call in calls(argument))
            inner = next((call for call in within if self._functions.is_table(call.name)), None)
            if inner is not None:
                message = f"Table functions cannot be nested: `{node.name}`(`{inner.name}`())"
                raise SqlStatementError(message, position=inner.position)
            self.calls.append(node)
            return ColumnReference(f"KSQL_SYNTH_{len(self.calls) - 1}", position=node.position)

        return replaced(expression, column)

    def columns(self, layout: Layout) -> list[Column]:
        """Returns the columns that the calls become."""
        typed = [self._typing.table(self._sources.internal(call), layout) for call in self.calls]
        return [Column(f"KSQL_SYNTH_{number}", one.item_type) for number, one in enumerate(typed)]

    def applied(self, step: Step) -> Step:
        """Returns the step that makes the rows; the step itself if there are no table functions."""
        if not self.calls:
            return step
        typed = [self._typing.table(self._sources.internal(call), step.layout) for call in self.calls]
        return FlatMap(
            layout=step.layout + self.columns(step.layout),
            key=step.key,
            key_format=step.key_format,
            is_table=False,
            parent=step,
            function=RowFunction([one.expression for one in typed], [expression_text(call) for call in self.calls]),
        )
