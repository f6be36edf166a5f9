"""GROUP BY and aggregates over the rows of a pull query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from headrace.sql.expressions import AggregateCall, RowFunction
from headrace.sql.planning.group_by import Grouping, Groups
from headrace.sql.planning.layout import Layout
from headrace.sql.planning.select import Selected
from headrace.sql.planning.sources import Sources
from headrace.sql.planning.typing import Typing
from headrace.sql.reading.record_rows import Row
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import Expression
from headrace.sql.syntax.statements import Query
from headrace.sql.types.schema import Column


class GroupedRows:
    """Aggregates rows by group. The rows it makes have the aggregates, then the columns of the group's key."""

    def __init__(
        self, query: Query, sources: Sources, typing: Typing, everything: Layout, selected: Sequence[Selected]
    ) -> None:
        self._groups = Groups(query, sources, typing.functions)
        self._sources = sources
        keys = self._groups.keys()
        self._grouping: Grouping = self._groups.grouping(keys, selected)
        calls: list[AggregateCall] = [
            typing.aggregate(sources.internal(call), everything) for call in self._grouping.aggregates
        ]
        self._aggregates = [call.aggregate for call in calls]
        self._widths = [len(call.arguments) for call in calls]
        arguments = [argument for call in calls for argument in call.arguments]
        self._arguments = RowFunction(
            arguments, [expression_text(node) for call in calls for node in call.argument_nodes]
        )
        self._key, types = typing.row_function([sources.internal(key) for key in keys], everything, "Invalid Select: ")
        results = zip(self._grouping.aggregate_names, self._aggregates, strict=True)
        self.layout = Layout(
            (
                *(Column(name, aggregate.result_type) for name, aggregate in results),
                *(Column(name, type) for name, type in zip(self._grouping.key_names, types, strict=True)),
            )
        )
        having = self._grouping.having
        self._having = None
        if having is not None:
            self._having = typing.predicate(sources.internal(having), self.layout, "HAVING")
        self._has_keys = bool(keys)

    def over_results(self, expression: Expression) -> Expression:
        """Returns an expression of the query over the columns of the groups' rows."""
        return self._sources.internal(self._groups.over_results(self._grouping, expression))

    def rows(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yields a row for each group, in the order in which the groups were first seen."""
        groups: dict[Any, tuple[list[Any], list[Any]]] = {}
        for row in rows:
            key = self._key(row)
            name = tuple(map(_hashable, key))
            found = groups.get(name)
            if found is None:
                found = groups[name] = (key, [one.initialize() for one in self._aggregates])
            self._add(found[1], self._arguments(row))
        if not groups and not self._has_keys:
            groups[()] = ([], [one.initialize() for one in self._aggregates])
        for key, states in groups.values():
            made = [one.map(state) for one, state in zip(self._aggregates, states, strict=True)] + key
            if self._having is None or self._having(made):
                yield made

    def _add(self, states: list[Any], arguments: list[Any]) -> None:
        place = 0
        for number, (aggregate, width) in enumerate(zip(self._aggregates, self._widths, strict=True)):
            states[number] = aggregate.aggregate(states[number], *arguments[place : place + width])
            place += width


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return "list", tuple(map(_hashable, value))
    if isinstance(value, dict):
        return "dict", frozenset((_hashable(key), _hashable(each)) for key, each in value.items())
    return value
