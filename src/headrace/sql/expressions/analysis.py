"""Expressions, typed and compiled: the entry points."""

from __future__ import annotations

from collections.abc import Mapping

# Each module registers the rules of its nodes.
from headrace.sql.expressions import arithmetic, calls, casts, comparisons, conditions, values
from headrace.sql.expressions.analyser import Analyser
from headrace.sql.expressions.calls import AggregateCall, TableCall
from headrace.sql.expressions.casts import convert
from headrace.sql.expressions.typed import Scope, TypedExpression
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.syntax.nodes import Call, Expression
from headrace.sql.types import SqlType

RULES = (arithmetic, calls, casts, comparisons, conditions, values)
_NO_SETTINGS: Mapping[str, object] = {}


def analyse(
    node: Expression, scope: Scope, functions: FunctionRegistry, settings: Mapping[str, object] = _NO_SETTINGS
) -> TypedExpression:
    """Returns the expression, typed and compiled to Python source; raises ``SqlStatementError`` if it has no type."""
    return Analyser(scope, functions, settings).visit(node)


def analyse_as(
    node: Expression,
    target: SqlType,
    scope: Scope,
    functions: FunctionRegistry,
    settings: Mapping[str, object] = _NO_SETTINGS,
) -> TypedExpression:
    """Returns the expression converted to a type, as an implicit cast would."""
    analyser = Analyser(scope, functions, settings)
    return convert(analyser, analyser.visit(node), target)


def aggregate_call(
    node: Call, scope: Scope, functions: FunctionRegistry, settings: Mapping[str, object] = _NO_SETTINGS
) -> AggregateCall:
    """Returns a call of an aggregate function: its arguments, and what folds the rows of a group."""
    return calls.aggregate_call_of(Analyser(scope, functions, settings), node)


def table_call(
    node: Call, scope: Scope, functions: FunctionRegistry, settings: Mapping[str, object] = _NO_SETTINGS
) -> TableCall:
    """Returns a call of a table function: a list with one item per row."""
    return calls.table_call_of(Analyser(scope, functions, settings), node)


__all__ = ["AggregateCall", "TableCall", "aggregate_call", "analyse", "analyse_as", "table_call"]
