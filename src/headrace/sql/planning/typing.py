"""Types and code for the expressions of a query, with messages that name the clause they stand in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from headrace.sql.errors import SqlError, SqlStatementError
from headrace.sql.expressions import AggregateCall, TableCall, aggregate_call, analyse, table_call
from headrace.sql.expressions.row_functions import RowFunction, RowPredicate
from headrace.sql.expressions.typed import TypedExpression
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.planning.layout import Layout
from headrace.sql.planning.tree import replaced
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import Call, Cast, Expression, Literal, Node, TypeName
from headrace.sql.syntax.type_grammar import resolve_type
from headrace.sql.types import BOOLEAN, SqlType
from headrace.sql.types.type_names import type_text


class Typing:
    """Compiles expressions over rows of a layout."""

    def __init__(
        self, functions: FunctionRegistry, settings: Mapping[str, object], types: Mapping[str, SqlType]
    ) -> None:
        self.functions = functions
        self.settings = settings
        self._types = types

    def is_on(self, setting: str) -> bool:
        """Whether a setting is true."""
        return str(self.settings.get(setting, "false")).lower() == "true"

    def resolved(self, expression: Expression) -> Expression:
        """Returns the expression with the types that ``CREATE TYPE`` has named."""

        def known(node: Node) -> Expression | None:
            if not isinstance(node, Cast) or node.target.type is not None:
                return None
            target = TypeName(node.target.text, resolve_type(node.target, self._types))
            return Cast(self.resolved(node.operand), target, position=node.position)

        return replaced(expression, known)

    def typed(self, expression: Expression, layout: Layout, prefix: str = "") -> TypedExpression:
        """Returns the expression with its type and code."""
        resolved = self.resolved(expression)
        with clause_errors(prefix):
            return analyse(resolved, layout, self.functions, self.settings)

    def aggregate(self, call: Expression, layout: Layout) -> AggregateCall:
        """Returns the call of an aggregate function."""
        resolved = self.resolved(call)
        assert isinstance(resolved, Call)  # only casts are replaced
        with clause_errors():
            return aggregate_call(resolved, layout, self.functions, self.settings)

    def table(self, call: Expression, layout: Layout) -> TableCall:
        """Returns the call of a table function."""
        resolved = self.resolved(call)
        assert isinstance(resolved, Call)  # only casts are replaced
        with clause_errors():
            return table_call(resolved, layout, self.functions, self.settings)

    def column_type(self, expression: Expression, layout: Layout, prefix: str = "") -> SqlType:
        """Returns the type of a column of the result; raises if it has none."""
        return column_type(self.typed(expression, layout, prefix), expression)

    def row_function(
        self, expressions: Sequence[Expression], layout: Layout, prefix: str = ""
    ) -> tuple[RowFunction, tuple[SqlType, ...]]:
        """Returns what computes these expressions from a row, and the types of the results."""
        typed = [self.typed(one, layout, prefix) for one in expressions]
        types = tuple(column_type(one, node) for one, node in zip(typed, expressions, strict=True))
        return RowFunction(typed, [expression_text(one) for one in expressions]), types

    def predicate(self, expression: Expression, layout: Layout, clause: str) -> RowPredicate:
        """Returns the condition of WHERE or HAVING."""
        typed = self.typed(expression, layout, f"Error in {clause} expression: ")
        text = expression_text(expression)
        if typed.type != BOOLEAN:
            message = (
                f"Type error in {clause} expression: Should evaluate to boolean but is {text} "
                f"({type_text(typed.type)}) instead."
            )
            raise SqlStatementError(message, position=expression.position)
        return RowPredicate(typed, text)


@contextmanager
def clause_errors(prefix: str = "") -> Iterator[None]:
    """Turns whatever is wrong with an expression into an error of the statement, beginning with the prefix."""
    try:
        yield
    except SqlError as error:
        message = f"{prefix}{error.message}"
        raise SqlStatementError(message, position=error.position) from error


def column_type(typed: TypedExpression, expression: Expression) -> SqlType:
    """Returns the type of an expression that becomes a column; raises for NULL, which has none."""
    if typed.type is None:
        name = "null" if expression == Literal(None) else expression_text(expression)
        message = (
            f"Can't infer a type of {name}. Please explicitly cast it to a required type, e.g. CAST(null AS VARCHAR)."
        )
        raise SqlStatementError(message, position=expression.position)
    return typed.type


def shown_without_quotes(error: SqlError, names: Sequence[str]) -> SqlStatementError:
    """Returns the error with the names of computed columns as they would be written: without backticks."""
    message = error.message
    for name in names:
        message = message.replace(f"`{name}`", name)
    return SqlStatementError(message, position=error.position)
