"""Formatter of statements for error messages: every column with its source, and names for what has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headrace.sql.catalog import Catalog
from headrace.sql.planning.tree import replaced
from headrace.sql.syntax.formatter import statement_text
from headrace.sql.syntax.nodes import ColumnReference, Expression, FieldAccess, Node
from headrace.sql.syntax.statements import (
    CreateAsSelect,
    InsertInto,
    Query,
    SelectAll,
    SelectFields,
    SelectItem,
    Statement,
)
from headrace.sql.types.schema import PSEUDO_COLUMNS

Selected = SelectItem | SelectAll | SelectFields


def shown_statement(statement: Statement, catalog: Catalog) -> str:
    """Returns the text of a statement for an error; a query is written out in full."""
    if isinstance(statement, CreateAsSelect | InsertInto):
        return statement_text(replace(statement, query=_qualify_query(statement.query, catalog)))
    return statement_text(statement)


def _qualify_query(query: Query, catalog: Catalog) -> Query:
    aliases = {source.alias: source.name for source in (query.source, *(join.source for join in query.joins))}

    def owner(name: str) -> str | None:
        """Returns the alias of the only source with the column."""
        owners = []
        for alias, source_name in aliases.items():
            source = catalog.find(source_name)
            if source is not None and (source.schema.find(name) is not None or name in PSEUDO_COLUMNS):
                owners.append(alias)
        return owners[0] if len(owners) == 1 else None

    def with_source(node: Node) -> Expression | None:
        if isinstance(node, ColumnReference) and node.source is None:
            return replace(node, source=owner(node.name))
        return None

    def shown(expression: Expression) -> Expression:
        return replaced(expression, with_source)

    return replace(
        query,
        select=tuple(_named(item, place, shown) for place, item in enumerate(query.select)),
        distinct=query.distinct and replace(query.distinct, expressions=tuple(map(shown, query.distinct.expressions))),
        where=None if query.where is None else shown(query.where),
        group_by=tuple(map(shown, query.group_by)),
        partition_by=tuple(map(shown, query.partition_by)),
        having=None if query.having is None else shown(query.having),
        emit=query.emit or "CHANGES",
    )


def _named(
    item: SelectItem | SelectAll | SelectFields, place: int, shown: Callable[[Expression], Expression]
) -> SelectItem | SelectAll | SelectFields:
    if not isinstance(item, SelectItem):
        return item
    alias = item.alias
    if alias is None:
        match item.expression:
            case ColumnReference(name=name) | FieldAccess(name=name):
                alias = name
            case _:
                alias = f"KSQL_COL_{place}"
    return replace(item, expression=shown(item.expression), alias=alias)
