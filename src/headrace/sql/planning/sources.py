"""The sources of a query, and what column names mean among them.

A reference is first *qualified*: it then names the source it belongs to, as messages show it. Steps of a plan know
columns by their *internal* name: that of the column, or in a join the source's alias and the column's name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from headrace.sql.catalog import SourceDefinition
from headrace.sql.errors import Position, SqlParseError, SqlStatementError, suggestion
from headrace.sql.planning.names import is_synthetic_key, joined
from headrace.sql.planning.tree import replaced, walk
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import ColumnReference, Expression, Lambda, Node
from headrace.sql.types.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS, Column, Namespace


@dataclass(frozen=True)
class FromSource:
    """A source behind FROM or JOIN."""

    alias: str
    definition: SourceDefinition

    @property
    def is_table(self) -> bool:
        """Whether it is a table."""
        return self.definition.is_table

    @property
    def is_windowed(self) -> bool:
        """Whether its keys have windows."""
        return self.definition.window is not None

    @cached_property
    def columns(self) -> dict[str, Column]:
        """All columns that a query can name, also those that no statement declares."""
        system = dict(PSEUDO_COLUMNS)
        if self.is_windowed:
            system |= WINDOW_BOUNDS
        declared = {column.name: column for column in self.definition.schema}
        return {**{name: Column(name, type) for name, type in system.items()}, **declared}

    @cached_property
    def starred(self) -> tuple[str, ...]:
        """The columns that ``*`` stands for: keys, the window's bounds, values, headers."""
        schema = self.definition.schema
        bounds = tuple(WINDOW_BOUNDS) if self.is_windowed else ()
        others = (column.name for column in (*schema.value, *schema.headers))
        return (*(column.name for column in schema.key), *bounds, *others)

    def is_key(self, name: str) -> bool:
        """Whether the column is part of the key."""
        return self.columns[name].namespace is Namespace.KEY


@dataclass(frozen=True)
class Sources:
    """The sources of a query, in the order in which it names them."""

    items: tuple[FromSource, ...]
    synthetic_key: str | None = None
    """Name of the key of a join that is none of the sources' columns."""

    @property
    def is_join(self) -> bool:
        """Whether there are several."""
        return len(self.items) > 1

    def __getitem__(self, alias: str) -> FromSource:
        return next(item for item in self.items if item.alias == alias)

    def find(self, alias: str) -> FromSource | None:
        """Returns the source with the alias, or None."""
        return next((item for item in self.items if item.alias == alias), None)

    def having(self, column: str, alias: str | None = None) -> tuple[FromSource, ...]:
        """Returns the sources that have the column."""
        return tuple(item for item in self.items if alias in (None, item.alias) and column in item.columns)

    def star(self, alias: str | None) -> tuple[FromSource, ...]:
        """Returns the sources that ``*`` or ``alias.*`` stands for."""
        if alias is None:
            return self.items
        found = self.find(alias)
        if found is None:
            raise self.unknown_source(alias)
        return (found,)

    def unknown_source(self, alias: str, position: Position | None = None) -> SqlParseError:
        """Returns the error for a name in front of a column that is none of the sources."""
        hint = suggestion(alias, (item.alias for item in self.items))
        message = f"Failed to prepare statement: '{alias}' is not a valid stream/table name or alias.{hint}"
        return SqlParseError(message, position=position)

    def all_columns(self) -> list[str]:
        """Returns the names of all columns of all sources."""
        return [name for item in self.items for name in item.columns]

    def clashing(self, column: str) -> bool:
        """Whether several sources have a column of that name."""
        return len(self.having(column)) > 1

    def internal_name(self, reference: ColumnReference) -> str:
        """Returns what steps call the column of a qualified reference."""
        if reference.source is None or not self.is_join:
            return reference.name
        return joined(reference.source, reference.name)

    def internal(self, expression: Expression) -> Expression:
        """Returns the qualified expression with internal names."""

        def unqualified(node: Node) -> Expression | None:
            if not isinstance(node, ColumnReference):
                return None
            return replace(node, name=self.internal_name(node), source=None)

        return replaced(expression, unqualified)

    def qualified(self, expression: Expression, clause: str, *, unknown: frozenset[str] = frozenset()) -> Expression:
        """Returns the expression with the source of every column; raises for names that mean nothing, or two things.

        ``unknown`` names columns that are no source's and still allowed here.
        """

        def with_source(node: Node) -> Expression | None:
            if isinstance(node, Lambda):
                self._check_parameters(node)
            if not isinstance(node, ColumnReference):
                return None
            return self.resolve(node, clause, unknown=unknown)

        return replaced(expression, with_source)

    def _check_parameters(self, node: Lambda) -> None:
        columns = {column.name for item in self.items for column in item.definition.schema}
        for parameter in node.parameters:
            if parameter in columns:
                message = f"Lambda function argument can't be a column name: {parameter}"
                raise SqlStatementError(message, position=node.position)
        inner = (one for one in walk(node.body) if isinstance(one, Lambda))
        again = next((name for one in inner for name in one.parameters if name in node.parameters), None)
        if again is not None:
            message = f"Reusing lambda arguments in nested lambda is not allowed: {again}"
            raise SqlStatementError(message, position=node.position)

    def resolve(
        self, reference: ColumnReference, clause: str, *, unknown: frozenset[str] = frozenset()
    ) -> ColumnReference:
        """Returns the reference with its source."""
        found = self.having(reference.name, reference.source)
        if len(found) == 1:
            return replace(reference, source=found[0].alias)
        if len(found) > 1:
            names = sorted(f"{item.alias}.{reference.name}" for item in found)
            message = (
                f"{place(reference.position)}Column '{reference.name}' is ambiguous. Could be {listed(names, 'or')}."
            )
            raise SqlStatementError(message, position=reference.position)
        if reference.name in unknown and (reference.source is None or self.find(reference.source)):
            return replace(reference, source=None)
        if reference.source is None and reference.name == self.synthetic_key:
            return reference
        if reference.source is not None and self.find(reference.source) is None:
            raise self.unknown_source(reference.source, reference.position)
        raise self.unresolved(reference, clause)

    def unresolved(self, reference: ColumnReference, clause: str) -> SqlStatementError:
        """Returns the error for a column that no source has."""
        shown = expression_text(reference)
        what = f"{clause} column"
        if clause == "SELECT" and self.is_join and reference.source is None and is_synthetic_key(reference.name):
            what = "Column"  # that of another join
        message = f"{place(reference.position)}{what} '{shown}' cannot be resolved."
        if clause in ("WHERE", "GROUP BY", "PARTITION BY"):
            message += f" '{shown}' must be a column in the source schema since {clause} is applied on the input."
        items = [item for item in self.items if reference.source in (None, item.alias)]
        message += suggestion(reference.name, (name for item in items for name in item.columns))
        return SqlStatementError(message, position=reference.position)


def place(position: Position | None) -> str:
    """Returns the beginning of a message about a place in the statement.

    >>> place(Position(3, 7))
    'Line: 3, Col: 7: '
    """
    return "" if position is None else f"Line: {position.line}, Col: {position.column}: "


def listed(names: list[str], word: str) -> str:
    """Returns names as a sentence lists them.

    >>> listed(["A", "B", "C"], "and"), listed(["A"], "and")
    ('A, B and C', 'A')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
