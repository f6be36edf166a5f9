"""Pull queries on tables: checked and compiled when they are made, carried out when their rows are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headrace.sql.errors import SqlError, SqlStatementError
from headrace.sql.expressions import RowPredicate
from headrace.sql.planning.sources import FromSource, Sources
from headrace.sql.planning.tree import references, walk
from headrace.sql.reading.pull.clause_rules import EXTENSIONS
from headrace.sql.reading.pull.condition_checks import TABLE_SCANS, check_condition, check_like, is_on
from headrace.sql.reading.pull.conditions import conjunction, conjuncts
from headrace.sql.reading.pull.key_access import Access, KeyConditions
from headrace.sql.reading.pull.ordering import ordered, page
from headrace.sql.reading.pull.prepared import prepared_query
from headrace.sql.reading.results import QueryContext, ResultRow
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import Like
from headrace.sql.syntax.statements import Query

Row = list[Any]


class TableQuery:
    """A query on a table, or on several that are joined. ``schema`` is that of its result."""

    def __init__(self, query: Query, context: QueryContext) -> None:
        self._query = query
        self._prepared = prepared_query(query, context)
        self.schema = self._prepared.schema
        self._sources = self._prepared.sources
        self._where = None if query.where is None else self._sources.qualified(query.where, "WHERE")
        self._predicate = self._compiled_where()
        self._check_scan(context)
        self._access = self._access_to(self._sources.items[0])

    def _compiled_where(self) -> RowPredicate | None:
        if self._where is None:
            return None
        condition = self._sources.internal(self._where)
        if not self._sources.is_join:
            for node in walk(condition):
                if isinstance(node, Like):
                    check_like(node, self._sources.items[0].definition.schema)
        try:
            return self._prepared.typing.predicate(condition, self._prepared.everything, "WHERE")
        except SqlError as error:
            message = f"{error.message}\nStatement: {expression_text(condition)}"
            raise SqlStatementError(message, position=error.position) from error

    def _check_scan(self, context: QueryContext) -> None:
        extended = is_on(context.settings, EXTENSIONS)
        if self._sources.is_join or (extended and is_on(context.settings, TABLE_SCANS)):
            return
        condition = None if self._where is None else self._sources.internal(self._where)
        check_condition(condition, self._sources.items[0].definition, context.functions, context.settings)

    def _access_to(self, item: FromSource) -> Access | None:
        """Returns where rows of the first table can be, by the conditions that speak of it alone."""
        # Behind a right or full join there are rows without a row of this table, which a condition must not miss.
        if any(join.kind in ("RIGHT", "OUTER") for join in self._query.joins):
            return None
        own = [each for each in conjuncts(self._where) if {one.source for one in references(each)} == {item.alias}]
        condition = conjunction(own)
        if condition is None:
            return None
        typing = self._prepared.typing
        plain = Sources((item,)).internal(condition)
        return KeyConditions(item.definition, typing.functions, typing.settings).access(plain)

    def rows(self) -> Iterator[ResultRow]:
        """Yields the rows of the result."""
        query, prepared = self._query, self._prepared
        found: Iterable[Row] = prepared.first.rows(self._access)
        for join in prepared.joins:
            found = join.rows(found)
        if self._predicate is not None:
            found = filter(self._predicate.function, found)
        if prepared.groups is not None:
            found = prepared.groups.rows(found)
        made = ordered(map(prepared.project.function, found), prepared.order)
        for row in page(made, query.offset, query.limit):
            yield ResultRow(row[: prepared.width] if prepared.order else row)
