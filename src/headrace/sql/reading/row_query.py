"""Queries that look at one record at a time: a filter, then columns, perhaps several rows of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headrace.sql.expressions import RowFunction
from headrace.sql.planning.clause_checks import check_functions, check_table_functions
from headrace.sql.planning.group_by import check_row_functions
from headrace.sql.planning.planner import everything_in
from headrace.sql.planning.record_functions.records import ExplodeRow
from headrace.sql.planning.select import SelectClause
from headrace.sql.planning.sources import FromSource, Sources
from headrace.sql.planning.table_functions import TableFunctions
from headrace.sql.planning.typing import Typing
from headrace.sql.reading.record_rows import RecordRows, Row
from headrace.sql.reading.results import QueryContext
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import ColumnReference, Expression
from headrace.sql.syntax.statements import Query
from headrace.sql.types import SqlType
from headrace.sql.types.schema import WINDOW_BOUNDS, Column, Schema


class RowQuery:
    """A query on one stream or table without aggregates, compiled; columns of its result are all values."""

    def __init__(self, query: Query, context: QueryContext) -> None:
        self.source = FromSource(query.source.alias, context.catalog.source(query.source.name))
        self._sources = Sources((self.source,))
        self._typing = Typing(context.functions, context.settings, context.catalog.types)
        self._everything = everything_in(self._sources)
        where = None if query.where is None else self._sources.qualified(query.where, "WHERE")
        for one in query.partition_by:
            check_row_functions(one, "PARTITION BY", context.functions)
        partition_by = tuple(self._sources.qualified(one, "PARTITION BY") for one in query.partition_by)
        selected = SelectClause(query, self._sources, partition_by, self._type_of, transient=True).selected()
        check_functions((one.expression for one in selected), context.functions)
        table_functions = TableFunctions(context.functions, self._typing, self._sources)
        selected = table_functions.extracted(selected)
        self.predicate: Callable[[Row], bool] | None = None
        if where is not None:
            condition = self._sources.internal(where)
            self.predicate = self._typing.predicate(condition, self._everything, "WHERE").function
        layout = self._everything
        self._explode: ExplodeRow | None = None
        if table_functions.calls:
            check_table_functions(is_table=self.source.is_table, grouped=False)
            calls = [self._sources.internal(call) for call in table_functions.calls]
            typed = [self._typing.table(call, layout) for call in calls]
            layout = layout + table_functions.columns(layout)
            texts = [expression_text(call) for call in calls]
            self._explode = ExplodeRow(RowFunction([one.expression for one in typed], texts))
        expressions = [self._sources.internal(one.expression) for one in selected]
        project, types = self._typing.row_function(expressions, layout, "Invalid Select: ")
        self._project: Callable[[Row], list[Any]] = project.function
        self.schema = Schema(tuple(Column(one.name, type) for one, type in zip(selected, types, strict=True)))
        self._of_key = [self._is_key(one.expression) for one in selected]

    def _type_of(self, expression: Expression) -> SqlType:
        return self._typing.column_type(self._sources.internal(expression), self._everything)

    def _is_key(self, expression: Expression) -> bool:
        if not isinstance(expression, ColumnReference) or expression.name not in self.source.columns:
            return False
        is_bound = self.source.is_windowed and expression.name in WINDOW_BOUNDS
        return is_bound or self.source.is_key(expression.name)

    def records(self) -> RecordRows:
        """Returns what makes rows of the source's records."""
        return RecordRows(self.source, self._typing)

    def results(self, row: Row) -> Iterable[list[Any]]:
        """Returns what the query makes of a row that passes."""
        if self._explode is None:
            return (self._project(row),)
        return map(self._project, self._explode(row))

    def deleted(self, key_row: Row) -> list[Any]:
        """Returns what remains of a row that is gone: the columns of its key."""
        made = self._project(key_row)
        return [value if of_key else None for value, of_key in zip(made, self._of_key, strict=True)]
