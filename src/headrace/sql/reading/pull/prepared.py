"""The common part of pull queries on a table that differ only in their conditions: compiled once, used often."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from weakref import WeakKeyDictionary

from headrace.sql.catalog import Catalog
from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions import RowFunction
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.planning.clause_checks import check_names, check_table_functions
from headrace.sql.planning.group_by import Groups
from headrace.sql.planning.planner import everything_in
from headrace.sql.planning.select import SelectClause, Selected
from headrace.sql.planning.sources import FromSource, Sources
from headrace.sql.planning.tree import calls
from headrace.sql.planning.typing import Typing
from headrace.sql.reading.pull.clause_rules import check_aggregates, check_queryable, uses_groups
from headrace.sql.reading.pull.grouping import GroupedRows
from headrace.sql.reading.pull.joining import table_join
from headrace.sql.reading.pull.ordering import check_order, order_place
from headrace.sql.reading.pull.table_rows import TableRows
from headrace.sql.reading.results import QueryContext
from headrace.sql.reading.tables import SqlTables
from headrace.sql.reading.tables.expiry import expiry_of
from headrace.sql.syntax.nodes import Expression
from headrace.sql.syntax.statements import Query
from headrace.sql.types import SqlType
from headrace.sql.types.schema import WINDOW_BOUNDS, Column, Namespace, Schema

_MOST = 500


class PreparedQuery:
    """A query without its condition: its tables and joins, its groups, its order and its columns."""

    def __init__(self, query: Query, context: QueryContext) -> None:
        catalog = context.catalog
        named = (query.source, *(join.source for join in query.joins))
        items = [FromSource(one.alias, catalog.source(one.name)) for one in named]
        self._query = query
        self.sources = Sources(tuple(items))
        self._check_aliases()
        self.typing = Typing(context.functions, context.settings, catalog.types)
        self.everything = everything_in(self.sources)
        selected = SelectClause(query, self.sources, (), self._type_of, transient=True).selected()
        if any(self.typing.functions.is_table(call.name) for one in selected for call in calls(one.expression)):
            check_table_functions(is_table=True, grouped=uses_groups(query))
        self.groups: GroupedRows | None = None
        if uses_groups(query) or self._has_aggregates(selected):
            check_aggregates(context.settings)
            looked_at = (*selected, *self._only_ordered(selected))
            self.groups = GroupedRows(query, self.sources, self.typing, self.everything, looked_at)
        self.order: list[tuple[int, bool]] = []
        """Places of columns to order by, each with whether it is descending."""
        self.width = len(selected)
        """How many columns the result has; those behind it are only for the order."""
        self.project, self.schema = self._projection(selected)
        if len(items) == 1:
            # ksqlDB says so of a table alone; joins are beyond it, and every table has a view of its topic.
            check_queryable(items[0].definition)
        tables = [TableRows(item, self.typing, expiry_of(item.definition, catalog)) for item in items]
        self.first = tables[0]
        self.joins = [
            table_join(join, number, tables, self.sources, self.everything, self.typing)
            for number, join in enumerate(query.joins, 1)
        ]

    def refresh(self, tables: SqlTables) -> None:
        """Brings the views of all tables up to date."""
        self.first.refresh(tables)
        for join in self.joins:
            join.right.refresh(tables)

    def _check_aliases(self) -> None:
        aliases = [item.alias for item in self.sources.items]
        for place, alias in enumerate(aliases):
            if alias in aliases[:place]:
                message = f"'{alias}' stands for two tables; give one of them another alias: JOIN {alias} AS …"
                raise SqlStatementError(message)

    def _type_of(self, expression: Expression) -> SqlType:
        return self.typing.column_type(self.sources.internal(expression), self.everything)

    def _has_aggregates(self, selected: tuple[Selected, ...]) -> bool:
        groups = Groups(self._query, self.sources, self.typing.functions)
        return any(groups.is_aggregate(one.expression) for one in selected)

    def _only_ordered(self, selected: tuple[Selected, ...]) -> list[Selected]:
        """Returns what rows are ordered by and that is no column of the result."""
        others = [one for one, _ in self._query.order_by if order_place(one, selected) is None]
        return [Selected(self.sources.qualified(one, "ORDER BY"), "") for one in others]

    def _projection(self, selected: tuple[Selected, ...]) -> tuple[RowFunction, Schema]:
        layout = self.everything if self.groups is None else self.groups.layout
        expressions = [self._over_rows(one.expression) for one in selected]
        for one, descending in self._query.order_by:
            place = order_place(one, selected)
            if place is None:
                place = len(expressions)
                expressions.append(self._over_rows(self.sources.qualified(one, "ORDER BY")))
            self.order.append((place, descending))
        project, types = self.typing.row_function(expressions, layout, "Invalid Select: ")
        for (one, _), (place, _) in zip(self._query.order_by, self.order, strict=True):
            check_order(types[place], one)
        columns = [
            Column(one.name, type, Namespace.KEY if self._is_key(one.name) else Namespace.VALUE)
            for one, type in zip(selected, types, strict=False)
        ]
        return project, checked(Schema(tuple(columns)))

    def _over_rows(self, expression: Expression) -> Expression:
        if self.groups is None:
            return self.sources.internal(expression)
        return self.groups.over_results(expression)

    def _is_key(self, name: str) -> bool:
        """Whether a column of the result is told to be a key: by its name, as in ksqlDB, whatever is in it."""
        if self.sources.is_join or self.groups is not None:
            return False
        keys = self.sources.items[0].definition.schema.key
        return name in WINDOW_BOUNDS or any(column.name == name for column in keys)


class PreparedQueries:
    """Remembers prepared queries as long as the catalogue stays as it is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], PreparedQuery] = {}
        self._catalog: Catalog | None = None
        self._functions: FunctionRegistry | None = None

    def prepared(self, query: Query, context: QueryContext) -> PreparedQuery:
        """Returns the query without its condition, compiled."""
        # By their texts: 1 and TRUE are equal for Python.
        name = repr(replace(query, where=None, limit=None, offset=None)), _text(context.settings)
        with self._lock:
            if self._catalog is not context.catalog or self._functions is not context.functions:
                self._known, self._catalog, self._functions = {}, context.catalog, context.functions
            found = self._known.get(name)
        if found is None:
            found = PreparedQuery(query, context)
            with self._lock:
                if len(self._known) >= _MOST:
                    self._known.clear()
                if self._catalog is context.catalog:
                    self._known[name] = found
        return found


_PREPARED: WeakKeyDictionary[SqlTables, PreparedQueries] = WeakKeyDictionary()


def prepared_query(query: Query, context: QueryContext) -> PreparedQuery:
    """Returns the query without its condition, compiled now or before, with the newest rows of its tables."""
    known = _PREPARED.get(context.tables)
    if known is None:
        known = _PREPARED.setdefault(context.tables, PreparedQueries())
    found = known.prepared(query, context)
    found.refresh(context.tables)
    return found


def _text(settings: Mapping[str, object]) -> str:
    return repr(sorted(settings.items(), key=lambda item: item[0]))


def checked(schema: Schema) -> Schema:
    """Returns the schema of a result; raises if two of its columns have the same name."""
    check_names(schema.columns)
    return schema
