"""GROUP BY: what is aggregated, and what the results are made of.

Behind an aggregation a row has a column for each aggregate, then the columns of the group's key. Selected expressions
are rewritten to these: a call of an aggregate, and whatever equals a grouping expression, becomes a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headrace.sql.errors import SqlStatementError
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.planning.select import Selected
from headrace.sql.planning.sources import Sources, listed
from headrace.sql.planning.tree import calls, references, replaced
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import Call, ColumnReference, Expression, Node
from headrace.sql.syntax.statements import Query
from headrace.sql.types.schema import WINDOW_BOUNDS

_REMEDY = "Either add the column(s) to the GROUP BY or remove them from the SELECT."


@dataclass(frozen=True, slots=True)
class Grouping:
    """The GROUP BY clause with everything that is selected from the groups, over the columns of the results."""

    keys: tuple[Expression, ...]
    """The grouping expressions, with the source of every column."""
    key_names: tuple[str, ...]
    """What the columns of the key are called in the results."""
    aggregates: tuple[Call, ...]
    """Each aggregate once, with the source of every column."""
    having: Expression | None
    aggregate_names: tuple[str, ...] = ()
    """What the columns of the aggregates are called in the results: as messages write the calls."""


class Groups:
    """Checks the clauses of a query with aggregates, and rewrites them."""

    def __init__(self, query: Query, sources: Sources, functions: FunctionRegistry) -> None:
        self._query = query
        self._sources = sources
        self._functions = functions
        self._bounds = frozenset(WINDOW_BOUNDS) if query.window is not None else frozenset()

    def is_aggregate(self, expression: Expression) -> bool:
        """Whether the expression calls an aggregate function."""
        return any(self._functions.is_aggregate(call.name) for call in calls(expression))

    def check_columns(self) -> None:
        """Raises if GROUP BY or HAVING name a column that no source has: they are looked at before SELECT."""
        for expression in self._query.group_by:
            self._sources.qualified(expression, "GROUP BY", unknown=self._bounds)
        if self._query.having is not None:
            self._sources.qualified(self._query.having, "HAVING", unknown=self._bounds)

    def keys(self) -> tuple[Expression, ...]:
        """Returns the grouping expressions, with the source of every column."""
        keys: list[Expression] = []
        for expression in self._query.group_by:
            check_row_functions(expression, "GROUP BY", self._functions)
            self.check_bounds(expression)
            key = self._sources.qualified(expression, "GROUP BY")
            if key in keys:
                message = f"Duplicate GROUP BY expression: {expression_text(key)}"
                raise SqlStatementError(message, position=expression.position)
            keys.append(key)
        return tuple(keys)

    def key_texts(self, keys: Sequence[Expression]) -> list[str]:
        """Returns the grouping expressions as messages show them."""
        return [expression_text(self._sources.internal(key)) for key in keys]

    def grouping(self, keys: tuple[Expression, ...], selected: Sequence[Selected]) -> Grouping:
        """Returns the grouping of these expressions, with all aggregates of SELECT and HAVING."""
        having = self._query.having
        if having is not None:
            self.check_bounds(having)
            having = self._sources.qualified(having, "HAVING")
        everything = [one.expression for one in selected] + ([] if having is None else [having])
        aggregates = tuple(dict.fromkeys(call for one in everything for call in self._aggregates(one)))
        if not aggregates:
            message = "GROUP BY requires aggregate functions in either the SELECT or HAVING clause."
            raise SqlStatementError(message)
        names = tuple(self._key_name(key, number) for number, key in enumerate(keys))
        grouping = Grouping(keys, names, aggregates, None, tuple(map(self.aggregate_name, aggregates)))
        self._check_selected(grouping, selected)
        if having is None:
            return grouping
        rewritten = self.over_results(grouping, having)
        strange = self._strange(grouping, rewritten)
        if strange:
            text = ", ".join(expression_text(self._sources.internal(one)) for one in strange)
            message = (
                f"Non-aggregate HAVING expression not part of GROUP BY: {text}\n"
                "Consider switching the HAVING clause to a WHERE clause before the GROUP BY."
            )
            raise SqlStatementError(message)
        return replace(grouping, having=rewritten)

    def over_results(self, grouping: Grouping, expression: Expression) -> Expression:
        """Returns the expression over the columns of the results."""
        names = dict(zip(grouping.keys, grouping.key_names, strict=True))

        def column(node: Node) -> Expression | None:
            if isinstance(node, Call) and self._functions.is_aggregate(node.name):
                return ColumnReference(self.aggregate_name(node), position=node.position)
            found = names.get(node)  # type: ignore[call-overload]  # a node that is no expression is no key either
            return None if found is None else ColumnReference(found, position=node.position)

        return replaced(expression, column)

    def aggregate_name(self, call: Call) -> str:
        """Returns what the result of an aggregate is called: the call as messages show it."""
        return expression_text(self._sources.internal(call))

    def _key_name(self, key: Expression, number: int) -> str:
        return self._sources.internal_name(key) if isinstance(key, ColumnReference) else f"KSQL_GROUP_{number}"

    def _aggregates(self, expression: Expression) -> Iterator[Call]:
        for call in calls(expression):
            if not self._functions.is_aggregate(call.name):
                continue
            for argument in call.arguments:
                inner = next((one for one in calls(argument) if self._functions.is_aggregate(one.name)), None)
                if inner is not None:
                    message = f"Aggregate functions can not be nested: {call.name}({inner.name}())"
                    raise SqlStatementError(message, position=inner.position)
                self.check_bounds(argument)
            yield call

    def check_bounds(self, expression: Expression) -> None:
        """Raises if the bounds of the query's windows are used before there are any."""
        for reference in references(expression):
            if reference.name in self._bounds:
                message = (
                    f"Window bounds column {reference.name} can only be used in the SELECT clause of windowed "
                    "aggregations and can not be passed to aggregate functions."
                )
                raise SqlStatementError(message, position=reference.position)

    def _check_selected(self, grouping: Grouping, selected: Sequence[Selected]) -> None:
        strange = [
            one.expression for one in selected if self._strange(grouping, self.over_results(grouping, one.expression))
        ]
        if strange:
            raise not_grouped([expression_text(self._sources.internal(one)) for one in strange])

    def _strange(self, grouping: Grouping, rewritten: Expression) -> list[Expression]:
        """Returns the columns that are neither aggregates nor part of the group's key."""
        known = {*grouping.key_names, *grouping.aggregate_names, *self._bounds}
        return [one for one in references(rewritten) if one.source is not None or one.name not in known]


def check_row_functions(expression: Expression, clause: str, functions: FunctionRegistry) -> None:
    """Raises if an expression that makes keys calls a function of several rows, or one that makes several rows."""
    for call in calls(expression):
        for kind, is_so in (("aggregate", functions.is_aggregate), ("table", functions.is_table)):
            if is_so(call.name):
                article = "an" if kind == "aggregate" else "a"
                message = f"{clause} does not support {kind} functions: {call.name} is {article} {kind} function."
                raise SqlStatementError(message, position=call.position)


def not_grouped(texts: Sequence[str]) -> SqlStatementError:
    """Returns the error for selected expressions that have no single value in a group."""
    unique = list(dict.fromkeys(texts))
    message = f"Non-aggregate SELECT expression(s) not part of GROUP BY: {', '.join(unique)}\n{_REMEDY}"
    return SqlStatementError(message)


def check_ungrouped(query: Query, selected: Sequence[Selected], sources: Sources, functions: FunctionRegistry) -> None:
    """Raises if a query without GROUP BY uses aggregates."""
    groups = Groups(query, sources, functions)
    aggregates = [one for one in selected if groups.is_aggregate(one.expression)]
    if not aggregates:
        if query.having is not None:
            message = "HAVING requires a GROUP BY clause."
            raise SqlStatementError(message)
        return
    others = [one for one in selected if one not in aggregates]
    if others:
        raise not_grouped([expression_text(sources.internal(one.expression)) for one in others])
    found = [
        "COUNT(ROWTIME)" if call.name == "COUNT" and not call.arguments else groups.aggregate_name(call)
        for one in aggregates
        for call in calls(one.expression)
        if functions.is_aggregate(call.name)
    ]
    message = (
        f"CREATE TABLE AS SELECT statement does not support aggregate function [{', '.join(found)}] "
        "without a GROUP BY clause."
    )
    raise SqlStatementError(message)


def check_undo(names: Sequence[str]) -> None:
    """Raises if there are aggregates that cannot be applied to a table: ``names`` are those without undo."""
    if names:
        unique = list(dict.fromkeys(name.upper() for name in names))
        several = "s" if len(unique) > 1 else ""
        message = (
            f"The aggregation function{several} {listed(unique, 'and')} cannot be applied to a table source, "
            "only to a stream source."
        )
        raise SqlStatementError(message)
