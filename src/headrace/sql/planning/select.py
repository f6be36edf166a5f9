"""The SELECT clause: every column it stands for, with its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from headrace.sql.errors import SqlStatementError
from headrace.sql.planning.names import NameGenerator, joined
from headrace.sql.planning.sources import FromSource, Sources
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import ColumnReference, Expression, FieldAccess, Literal
from headrace.sql.syntax.statements import Query, SelectAll, SelectFields, SelectItem
from headrace.sql.types import SqlStruct, SqlType
from headrace.sql.types.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS

_RESERVED = frozenset(PSEUDO_COLUMNS) | frozenset(WINDOW_BOUNDS)


@dataclass(frozen=True, slots=True)
class Selected:
    """A column of the result."""

    expression: Expression
    """With the source of every column."""
    name: str


class SelectClause:
    """Expands and names what a query selects."""

    def __init__(
        self,
        query: Query,
        sources: Sources,
        partition_by: tuple[Expression, ...],
        type_of: Callable[[Expression], SqlType],
        *,
        transient: bool = False,
    ) -> None:
        """``transient`` rows are only shown, not written: they may have the names that no statement declares."""
        self._query = query
        self._transient = transient
        self._sources = sources
        self._partition_by = partition_by
        self._type_of = type_of
        self._names = NameGenerator(sources.all_columns())
        self._bounds = frozenset(WINDOW_BOUNDS) if query.window is not None else frozenset()

    def selected(self) -> tuple[Selected, ...]:
        """Returns the columns of the result in their order."""
        return tuple(one for item in self._query.select for one in self._expanded(item))

    def _expanded(self, item: SelectItem | SelectAll | SelectFields) -> Iterator[Selected]:
        if isinstance(item, SelectAll):
            if self._partition_by and item.source is None:
                yield from self._partitioned_star()
            else:
                yield from self._star(item.source)
        elif isinstance(item, SelectFields):
            struct = self._sources.qualified(item.struct, "SELECT")
            struct_type = self._type_of(struct)
            if not isinstance(struct_type, SqlStruct):
                raise self._no_struct(struct, struct_type, item)
            for field in struct_type.fields:
                yield Selected(FieldAccess(struct, field.name), field.name)
        else:
            yield self._item(item)

    def check_names(self) -> None:
        """Raises if a column of the result would have a reserved name: names are looked at before expressions."""
        for item in self._query.select:
            if isinstance(item, SelectItem):
                self._named(item)

    def _item(self, item: SelectItem) -> Selected:
        expression, name = self._named(item)
        expression = self._sources.qualified(expression, "SELECT", unknown=self._bounds)
        return Selected(expression, self.name_of(expression) if name is None else name)

    def _named(self, item: SelectItem) -> tuple[Expression, str | None]:
        """Returns the expression and its name; None if the name is made of the expression."""
        expression, name = item.expression, item.alias
        reserved = None if name is None else next((one for one in _RESERVED if one == name.upper()), None)
        if reserved and not (isinstance(expression, ColumnReference) and expression.name == reserved):
            message = f"`{reserved}` is a reserved column name. You cannot use it as an alias for a column."
            raise SqlStatementError(message, position=item.position)
        if name is None and isinstance(expression, ColumnReference):
            name = expression.name
            # The bounds of windows are told apart by their aliases only.
            if self._sources.is_join and name not in WINDOW_BOUNDS and self._sources.clashing(name):
                expression = self._sources.resolve(expression, "SELECT")
                name = joined(str(expression.source), name)
        if name in _RESERVED and not self._transient:
            message = f"Reserved column name in select: `{name}`. Please remove or alias the column."
            raise SqlStatementError(message, position=item.position)
        return expression, name

    def _no_struct(self, struct: Expression, found: SqlType, item: SelectFields) -> SqlStatementError:
        if isinstance(struct, ColumnReference):
            message = f"Column `{self._sources.internal_name(struct)}` is not a STRUCT type."
        elif isinstance(struct, FieldAccess):
            message = f"Field {struct.name} is not a STRUCT type."
        else:
            message = f"Unsupported struct column expression: {expression_text(struct)} is no STRUCT."
        return SqlStatementError(f"{message} It is of type {found}.", position=item.position)

    def name_of(self, expression: Expression) -> str:
        """Returns the name of an expression without alias."""
        return _name_of(expression, self._sources, self._names)

    def _star(self, alias: str | None) -> Iterator[Selected]:
        if alias is None and self._sources.synthetic_key is not None:
            yield Selected(ColumnReference(self._sources.synthetic_key), self._sources.synthetic_key)
        for source in self._sources.star(alias):
            for name in source.starred:
                if self._transient or self._sources.is_join or name not in WINDOW_BOUNDS:
                    yield self._column(source, name)

    def _partitioned_star(self) -> Iterator[Selected]:
        """After PARTITION BY a row is the new key, the values, then what was the key; of joins, pseudo columns, too."""
        keys = [one for one in self._partition_by if one != Literal(None)]
        for key in keys:
            yield Selected(key, self.name_of(key))
        for source in self._sources.items:
            schema = source.definition.schema
            values = [column.name for column in (*schema.value, *schema.headers)]
            pseudo = list(PSEUDO_COLUMNS) if self._sources.is_join else []
            for name in (*values, *pseudo, *(column.name for column in schema.key)):
                column = self._column(source, name)
                if column.expression not in keys:
                    yield column
        synthetic = self._sources.synthetic_key
        if synthetic is not None and ColumnReference(synthetic) not in keys:
            yield Selected(ColumnReference(synthetic), synthetic)

    def _column(self, source: FromSource, name: str) -> Selected:
        reference = ColumnReference(name, source.alias)
        return Selected(reference, self._sources.internal_name(reference))


def key_column_names(keys: Sequence[Expression], sources: Sources) -> list[str]:
    """Returns what the columns of a key that is made of expressions are called before anything is selected."""
    names = NameGenerator(sources.all_columns())
    return [_name_of(key, sources, names) for key in keys]


def _name_of(expression: Expression, sources: Sources, names: NameGenerator) -> str:
    if isinstance(expression, ColumnReference):
        return sources.internal_name(expression)
    return names.field(expression.name) if isinstance(expression, FieldAccess) else names.expression()
