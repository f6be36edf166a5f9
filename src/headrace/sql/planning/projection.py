"""Projection of a query: the selected columns, split into key and value columns of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.sql.errors import SqlStatementError
from headrace.sql.planning.from_clause import FromClause
from headrace.sql.planning.select import Selected
from headrace.sql.planning.sources import listed
from headrace.sql.syntax.formatter import expression_text, name_text
from headrace.sql.syntax.nodes import ColumnReference, Expression, Literal


@dataclass(frozen=True, slots=True)
class Projection:
    """The columns of the result."""

    key: tuple[Selected, ...]
    """In the order of the key."""
    values: tuple[Selected, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(one.name for one in (*self.key, *self.values))


def keyed_by_source(selected: Sequence[Selected], clause: FromClause, sink: str, *, optional: bool) -> Projection:
    """Returns the projection of a query that keeps the key of its source. ``optional`` allows to leave the key out."""
    source = clause.sources.items[0]
    keys = [ColumnReference(column.name, source.alias) for column in source.definition.schema.key]
    if optional:
        chosen = [one for one in selected if one.expression in keys]
        _check_repeated(chosen)
        return _without(selected, chosen)
    missing = [key for key in keys if not _having(selected, key)]
    if missing:
        names = [name_text(key.name) for key in keys]
        raise _missing(sink, "key column", names, "and")
    return _without(selected, [_only(selected, key, key.name) for key in keys])


def keyed_by_join(selected: Sequence[Selected], clause: FromClause, sink: str) -> Projection:
    """Returns the projection of a join: its key is any column that holds the key, the first of them if several do."""
    last, sources = clause.joins[-1], clause.sources
    if last.foreign_key:
        return _keyed_by_left(selected, clause)
    if sources.synthetic_key is not None:
        name = sources.synthetic_key
        if not _having(selected, ColumnReference(name)):
            raise _missing(sink, "join expression", [name], "or", synthetic=True)
        return _without(selected, [_only(selected, ColumnReference(name), name)])
    found = [key for key in clause.viable_keys if _having(selected, key)]
    if not found:
        raise _missing(sink, "join expression", [expression_text(key) for key in clause.viable_keys], "or")
    return _without(selected, [_only(selected, found[0], sources.internal_name(found[0]))])


def _keyed_by_left(selected: Sequence[Selected], clause: FromClause) -> Projection:
    source = clause.sources.items[0]
    keys = [ColumnReference(column.name, source.alias) for column in source.definition.schema.key]
    missing = [f"`{key.name}`" for key in keys if not _having(selected, key)]
    if missing:
        several = "s" if len(missing) > 1 else ""
        message = (
            f"Primary key column{several} missing in projection. For foreign-key table-table joins, the projection "
            f"must include all primary key columns from the left input table (`{source.alias}`). "
            f"Missing column{several}: {', '.join(missing)}."
        )
        raise SqlStatementError(message)
    return _without(selected, [_only(selected, key, clause.sources.internal_name(key)) for key in keys])


def keyed_by_expressions(
    selected: Sequence[Selected], keys: Sequence[Expression], names: Sequence[str], sink: str
) -> Projection:
    """Returns the projection of a query with PARTITION BY; ``names`` are those of the new key's columns."""
    if tuple(keys) == (Literal(None),):
        return Projection((), tuple(selected))
    missing = [key for key in keys if not _having(selected, key)]
    if missing:
        raise _missing(sink, "partitioning expression", [expression_text(key) for key in keys], "and")
    return _without(selected, [_only(selected, key, name) for key, name in zip(keys, names, strict=True)])


def keyed_by_groups(
    selected: Sequence[Selected],
    keys: Sequence[Expression],
    texts: Callable[[Sequence[Expression]], list[str]],
    sink: str,
) -> Projection:
    """Returns the projection of a query with GROUP BY; ``texts`` gives expressions as messages show them."""
    missing = [key for key in keys if not _having(selected, key)]
    if missing:
        raise _missing(sink, "grouping expression", texts(missing), "and")
    for key in keys:
        _check_repeated(_having(selected, key))
    return _without(selected, [_having(selected, key)[0] for key in keys])


def _having(selected: Sequence[Selected], key: Expression) -> list[Selected]:
    return [one for one in selected if one.expression == key]


def _only(selected: Sequence[Selected], key: Expression, name: str) -> Selected:
    found = _having(selected, key)
    if len(found) > 1:
        aliases = listed(sorted(name_text(one.name) for one in found), "and")
        message = (
            f"The projection contains a key column (`{name}`) more than once, aliased as: {aliases}.\n"
            "Each key column must only be in the projection once. "
            "If you intended to copy the key into the value, then consider using the AS_VALUE function to indicate "
            "which key reference should be copied."
        )
        raise SqlStatementError(message)
    return found[0]


def _check_repeated(found: Sequence[Selected]) -> None:
    first = {one.expression: one for one in reversed(found)}
    for one in found:
        if first[one.expression] is not one:
            names = listed([f"`{other.name}`" for other in found if other.expression == one.expression], "and")
            message = (
                f"The projection contains a key column more than once: {names}.\n"
                "Each key column must only be in the projection once. "
                "If you intended to copy the key into the value, then consider using the AS_VALUE function to "
                "indicate which key reference should be copied."
            )
            raise SqlStatementError(message)


def _without(selected: Sequence[Selected], key: Sequence[Selected]) -> Projection:
    taken = {id(one) for one in key}
    return Projection(tuple(key), tuple(one for one in selected if id(one) not in taken))


def _missing(sink: str, what: str, names: list[str], word: str, *, synthetic: bool = False) -> SqlStatementError:
    several = "s" if len(names) > 1 else ""
    example = ", ".join(names) if word == "and" else names[0]
    keys = "Keys" if several and word == "and" else "Key"
    more, note = "", ""
    if synthetic:
        more = "See https://cnfl.io/2LV7ouS."
        note = (
            f"\n{names[0]} was added as a synthetic key column because the join criteria did not match any source "
            "column. This expression must be included in the projection and may be aliased. "
        )
    message = (
        f"{keys} missing from projection (ie, SELECT). {more}\n"
        f"The query used to build `{sink}` must include the {what}{several} {listed(names, word)} "
        f"in its projection (eg, SELECT {example}...).{note}"
    )
    return SqlStatementError(message)
