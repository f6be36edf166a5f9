"""From a query to its plan, clause by clause, in the order in which they take effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import chain

from headrace.sql.catalog import Catalog, SourceDefinition
from headrace.sql.errors import SqlError, SqlStatementError
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.planning import clause_checks
from headrace.sql.planning.aggregate_steps import aggregated
from headrace.sql.planning.distinct import check_distinct, without_repeated
from headrace.sql.planning.from_clause import check_join_kinds, check_joins, from_clause
from headrace.sql.planning.group_by import Grouping, Groups, check_row_functions, check_ungrouped
from headrace.sql.planning.join_steps import join_key_types, joined_sources
from headrace.sql.planning.keys import ordered_key, partitioned
from headrace.sql.planning.layout import Layout
from headrace.sql.planning.plan import (
    Expire,
    Filter,
    GroupedAggregate,
    KeyFormat,
    Project,
    QueryPlan,
    Read,
    Step,
)
from headrace.sql.planning.projection import (
    Projection,
    keyed_by_expressions,
    keyed_by_groups,
    keyed_by_join,
    keyed_by_source,
)
from headrace.sql.planning.reads import read, time_column
from headrace.sql.planning.select import SelectClause, Selected, key_column_names
from headrace.sql.planning.sink import casted, check_insert, sink_definition, sink_key_format, sink_value_format
from headrace.sql.planning.sink_request import SinkRequest
from headrace.sql.planning.sources import FromSource, Sources
from headrace.sql.planning.table_functions import TableFunctions
from headrace.sql.planning.tree import references
from headrace.sql.planning.typing import Typing, shown_without_quotes
from headrace.sql.syntax.nodes import ColumnReference, Expression, Literal
from headrace.sql.syntax.statements import Query
from headrace.sql.types import SqlType
from headrace.sql.types.schema import WINDOW_BOUNDS, Column, Namespace, Schema

NEW_PLANNER = "ksql.new.query.planner.enabled"


def plan_query(
    query: Query,
    catalog: Catalog,
    functions: FunctionRegistry,
    sink: SinkRequest,
    settings: Mapping[str, object],
    *,
    statement_text: str = "",
) -> QueryPlan:
    """Returns the plan of a query whose rows go to a sink; raises ``SqlStatementError`` if there can be none."""
    try:
        return _Planner(query, catalog, functions, sink, settings).plan()
    except SqlError as error:
        if error.statement is None and statement_text:
            error.statement = statement_text
        raise


class _Planner:
    def __init__(
        self,
        query: Query,
        catalog: Catalog,
        functions: FunctionRegistry,
        sink: SinkRequest,
        settings: Mapping[str, object],
    ) -> None:
        self._query = query
        self._catalog = catalog
        self._functions = functions
        self._sink = sink
        self._settings = settings
        self._typing = Typing(functions, settings, catalog.types)

    def plan(self) -> QueryPlan:
        query = self._query
        clause = from_clause(query, self._source)
        self._clause, self._sources = clause, clause.sources
        self._everything = everything_in(clause.sources)
        if clause.sources.synthetic_key is not None:
            key_type = self._type_of(clause.joins[-1].left_expression)
            self._everything += [Column(clause.sources.synthetic_key, key_type)]
        clause_checks.check_emit(query, self._settings)
        clause_checks.check_clauses(query, clause, self._sink)
        groups = Groups(query, self._sources, self._functions)
        where = None
        if query.where is not None:
            groups.check_bounds(query.where)
            where = self._sources.qualified(query.where, "WHERE")
        for one in query.partition_by:
            check_row_functions(one, "PARTITION BY", self._functions)
        partition_by = tuple(self._sources.qualified(one, "PARTITION BY") for one in query.partition_by)
        distinct = self._distinct()
        clause_checks.check_partition_by(query, partition_by, clause, self._key_names())
        select = SelectClause(query, self._sources, partition_by, self._type_of)
        select.check_names()
        groups.check_columns()
        selected = select.selected()
        group_by = groups.keys()
        check_joins(clause)
        key_types = join_key_types(clause, self._typing, self._everything)
        if where is not None:
            self._typing.predicate(self._sources.internal(where), self._everything, "WHERE")
        clause_checks.check_functions((one.expression for one in selected), self._functions)
        table_functions = TableFunctions(self._functions, self._typing, self._sources)
        selected = table_functions.extracted(selected)
        if table_functions.calls:
            clause_checks.check_table_functions(is_table=clause.is_table, grouped=bool(query.group_by))
        if not group_by:
            check_ungrouped(query, selected, self._sources, self._functions)
        grouping = groups.grouping(group_by, selected) if group_by else None
        clause_checks.check_names(self._result(selected, table_functions, groups, grouping))
        is_table = grouping is not None or clause.is_table
        projection = self._projection(selected, partition_by, grouping, groups)
        clause_checks.check_values(projection)
        needed = self._needed(projection, where, (*partition_by, *distinct), grouping, table_functions.calls)
        key_format = self._sink_key_format(projection)
        check_join_kinds(clause)

        step = joined_sources(clause, self._read(needed), self._typing, key_types, needed)
        if where is not None:
            step = self._filter(step, self._sources.internal(where), "WHERE")
        if partition_by:
            step = partitioned(step, partition_by, projection, self._sources, self._typing, key_format)
        if query.distinct is not None:
            step = without_repeated(step, query.distinct, distinct, self._sources, self._typing)
        step = table_functions.applied(step)
        expressions = [self._sources.internal(one.expression) for one in projection.values]
        if grouping is not None:
            expressions = [
                self._sources.internal(groups.over_results(grouping, one.expression)) for one in projection.values
            ]
            looked_at = [*expressions, *(() if grouping.having is None else (grouping.having,))]
            aggregate = aggregated(
                step,
                grouping,
                query,
                self._sources,
                self._typing,
                key_format,
                used={reference.name for one in looked_at for reference in references(one)},
                equal_to_key=clause.joins[-1].equal if clause.joins and not clause.joins[-1].foreign_key else (),
            )
            step = self._expiring_groups(aggregate, from_table=clause.is_table)
            if grouping.having is not None:
                step = self._having(step, grouping)
        made = self._finished(step, projection, expressions)
        clause_checks.check_kind(self._sink, is_table=is_table)
        return made

    def _distinct(self) -> tuple[Expression, ...]:
        """Returns the expressions of DISTINCT ON, with the source of every column."""
        given = self._query.distinct
        if given is None:
            return ()
        check_distinct(self._query, given, is_table=self._clause.is_table)
        for one in given.expressions:
            check_row_functions(one, "DISTINCT ON", self._functions)
        return tuple(self._sources.qualified(one, "DISTINCT ON") for one in given.expressions)

    def _source(self, name: str) -> SourceDefinition:
        return self._catalog.source(name)

    def _key_names(self) -> list[str]:
        """Returns the internal names of the columns that hold the key of a single source."""
        source = self._sources.items[0]
        return [
            self._sources.internal_name(ColumnReference(column.name, source.alias))
            for column in source.definition.schema.key
        ]

    def _type_of(self, expression: Expression) -> SqlType:
        return self._typing.column_type(self._sources.internal(expression), self._everything)

    def _result(
        self,
        selected: tuple[Selected, ...],
        table_functions: TableFunctions,
        groups: Groups,
        grouping: Grouping | None,
    ) -> list[Column]:
        """Returns the selected columns; raises if one has no type, before anything is said about what is missing."""
        if grouping is None:
            layout = self._everything + table_functions.columns(self._everything)
            expressions = [self._sources.internal(one.expression) for one in selected]
        else:
            layout = self._groups_layout(grouping)
            expressions = [self._sources.internal(groups.over_results(grouping, one.expression)) for one in selected]
        types = [self._typing.column_type(one, layout, "Invalid Select: ") for one in expressions]
        return [Column(one.name, type) for one, type in zip(selected, types, strict=True)]

    def _groups_layout(self, grouping: Grouping) -> Layout:
        """Returns a layout with all columns that a group's result can have."""
        calls = [self._typing.aggregate(self._sources.internal(one), self._everything) for one in grouping.aggregates]
        results = zip(grouping.aggregate_names, (call.aggregate.result_type for call in calls), strict=True)
        keys = zip(grouping.key_names, map(self._type_of, grouping.keys), strict=True)
        return Layout(tuple(Column(name, type) for name, type in (*results, *keys, *WINDOW_BOUNDS.items())))

    def _projection(
        self,
        selected: tuple[Selected, ...],
        partition_by: tuple[Expression, ...],
        grouping: Grouping | None,
        groups: Groups,
    ) -> Projection:
        name = self._sink.name
        if grouping is not None:
            return keyed_by_groups(selected, grouping.keys, groups.key_texts, name)
        if partition_by:
            return keyed_by_expressions(selected, partition_by, key_column_names(partition_by, self._sources), name)
        if self._sources.is_join:
            return keyed_by_join(selected, self._clause, name)
        return keyed_by_source(selected, self._clause, name, optional=self._typing.is_on(NEW_PLANNER))

    def _needed(
        self,
        projection: Projection,
        where: Expression | None,
        by_rows: tuple[Expression, ...],
        grouping: Grouping | None,
        table_calls: Iterable[Expression],
    ) -> set[ColumnReference]:
        """Returns the columns that some step looks at; of the key only those that the result has in its value."""
        looked_at: list[Expression] = [one.expression for one in projection.values]
        looked_at += chain(table_calls, by_rows, () if where is None else (where,))
        if grouping is not None:
            looked_at += grouping.aggregates
            if not self._groups_by_source_key(grouping):
                looked_at += grouping.keys
        for join in self._clause.joins:
            looked_at += join.computed
        return {ColumnReference(one.name, one.source) for expression in looked_at for one in references(expression)}

    def _groups_by_source_key(self, grouping: Grouping) -> bool:
        """Whether rows are grouped by the key that they have: it is then taken from there."""
        source = self._sources.items[0]
        keys = tuple(ColumnReference(column.name, source.alias) for column in source.definition.schema.key)
        return not (self._sources.is_join or source.is_table or source.is_windowed) and grouping.keys == keys

    def _read(self, needed: set[ColumnReference]) -> Callable[[FromSource], Read]:
        # The old row of a table has to be known to tell whether it passed a condition.
        keep_rows = self._query.where is not None
        return lambda source: read(source, self._sources, self._typing, needed, keep_rows=keep_rows)

    def _filter(self, step: Step, condition: Expression, clause: str) -> Step:
        predicate = self._typing.predicate(condition, step.layout, clause)
        return Filter(
            layout=step.layout,
            key=step.key,
            key_format=step.key_format,
            is_table=step.is_table,
            parent=step,
            predicate=predicate,
            name=clause.capitalize(),
        )

    def _having(self, step: Step, grouping: Grouping) -> Step:
        assert grouping.having is not None  # the caller's case
        try:
            return self._filter(step, self._sources.internal(grouping.having), "HAVING")
        except SqlStatementError as error:
            raise shown_without_quotes(error, grouping.aggregate_names) from error

    def _finished(self, step: Step, projection: Projection, expressions: list[Expression]) -> QueryPlan:
        if not (self._query.group_by or self._query.partition_by or self._sources.is_join):
            step = ordered_key(step, projection, self._sources, self._typing)
        key = tuple(
            Column(one.name, column.type, Namespace.KEY) for one, column in zip(projection.key, step.key, strict=True)
        )
        types = [self._typing.column_type(one, step.layout, "Invalid Select: ") for one in expressions]
        values = tuple(Column(one.name, type) for one, type in zip(projection.values, types, strict=True))
        schema = Schema((*key, *values))
        existing = self._sink.existing
        if existing is None:
            value_format = sink_value_format(self._sink, self._leftmost, self._settings)
            sink = sink_definition(
                self._sink,
                schema,
                self._key_format(step, projection),
                value_format,
                self._settings,
                is_table=step.is_table,
            )
        else:
            check_insert(existing, schema, is_table=step.is_table)
            expressions = casted(expressions, types, existing.schema.value)
            values, sink = existing.schema.value, existing
        time = sink.timestamp if existing is None else None
        return QueryPlan(
            root=self._expiring(self._project(step, expressions, values)),
            sink=sink,
            time=None if time is None else time_column(time, schema, self._typing),
            sources=tuple(item.definition for item in self._sources.items),
        )

    def _expiring_groups(self, step: GroupedAggregate, *, from_table: bool) -> GroupedAggregate:
        given = self._sink.properties
        if given.ttl is None:
            return step
        if step.window is not None:
            problem = "windows are kept for their retention: write RETENTION in the WINDOW clause"
            raise given.refused_ttl(problem)
        if from_table:
            problem = (
                "groups of a table's rows do not expire, for nothing could be taken out of them any more: "
                "set it for the table that is read"
            )
            raise given.refused_ttl(problem)
        return replace(step, lifetime=given.lifetime)

    def _expiring(self, step: Step) -> Step:
        given = self._sink.properties
        if given.lifetime is None:
            return step
        if not step.is_table:
            problem = "the rows of a stream do not expire: set it for a table, or RETENTION_MS for the topic"
            raise given.refused_ttl(problem)
        if self._query.group_by:
            return step
        return Expire(
            layout=step.layout,
            key=step.key,
            key_format=step.key_format,
            is_table=True,
            parent=step,
            lifetime=given.lifetime,
        )

    def _project(self, step: Step, expressions: list[Expression], values: tuple[Column, ...]) -> Step:
        names = [one.name for one in expressions if isinstance(one, ColumnReference)]
        if len(names) == len(expressions) and names == [column.name for column in step.layout.columns]:
            return replace(step, layout=Layout(values))
        function, _ = self._typing.row_function(expressions, step.layout, "Invalid Select: ")
        return Project(
            layout=Layout(values),
            key=step.key,
            key_format=step.key_format,
            is_table=step.is_table,
            parent=step,
            function=function,
        )

    @property
    def _leftmost(self) -> SourceDefinition:
        return self._sources.items[0].definition

    def _sink_key_format(self, projection: Projection) -> KeyFormat:
        return sink_key_format(
            self._sink,
            self._leftmost,
            self._settings,
            has_key=bool(projection.key),
            takes_key_away=self._query.partition_by == (Literal(None),),
        )

    def _key_format(self, step: Step, projection: Projection) -> KeyFormat:
        return replace(self._sink_key_format(projection), window=step.key_format.window)


def everything_in(sources: Sources) -> Layout:
    """Returns a layout with all columns of all sources, to type expressions with before rows have a layout."""
    columns = [
        Column(sources.internal_name(ColumnReference(name, item.alias)), column.type)
        for item in sources.items
        for name, column in item.columns.items()
    ]
    return Layout(tuple(columns))
