"""``CAST``, and the conversions that happen without being asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions.analyser import Analyser, call_code, constant_name, literal, merged, rule
from headrace.sql.expressions.typed import TypedExpression
from headrace.sql.syntax.nodes import Cast
from headrace.sql.types import SqlType
from headrace.sql.types.conversions import SURE, UnsupportedCast, converter


def attempt(function: Callable[[Any], Any], value: Any) -> Any:
    """Returns the converted value, NULL if it cannot be converted."""
    try:
        return function(value)
    except Exception:
        return None


def or_null(evaluate: Callable[[], Any]) -> Any:
    """Returns the value, NULL if evaluating it fails."""
    try:
        return evaluate()
    except Exception:
        return None


def convert(
    analyser: Analyser, expression: TypedExpression, target: SqlType, *, lenient: bool = False
) -> TypedExpression:
    """Returns the expression converted to another type; a lenient conversion that fails gives NULL, others raise."""
    if expression.type is None:
        return TypedExpression(target, "None", {}, literal=None)
    function = converter(expression.type, target)
    if function is None:
        return TypedExpression(
            target, expression.code, expression.constants, expression.can_fail, expression.nullable, expression.literal
        )
    if expression.is_literal:
        try:
            value = None if expression.literal is None else function(expression.literal)
            return literal(value, target)
        except (ValueError, ArithmeticError):
            pass  # fails at every row, as it would without folding
    sure = function in SURE
    first, later = analyser.held(expression) if expression.nullable else ("", expression.code)
    code, constants = call_code(function, later)
    if lenient and not sure:
        code, more = call_code(attempt, constant_name(function), later)
        constants |= more
    if expression.nullable:
        code = f"(None if {first} is None else {code})"
    can_fail = expression.can_fail or not (sure or lenient)
    nullable = expression.nullable or (lenient and not sure)
    return TypedExpression(target, code, merged(expression, extra=constants), can_fail, nullable)


@rule(Cast)
def _cast(analyser: Analyser, node: Cast) -> TypedExpression:
    operand = analyser.visit(node.operand)
    target = node.target.type
    if target is None:
        message = f"Cannot resolve unknown type: {node.target.text}"
        raise SqlStatementError(message, position=node.position)
    try:
        result = convert(analyser, operand, target, lenient=True)
    except UnsupportedCast as error:
        error.position = node.position
        raise
    if not result.can_fail:
        return result
    # The operand fails, not the conversion: a CAST around it is NULL, and what stands around the CAST sees that.
    code, constants = call_code(or_null, f"lambda: {result.code}")
    return TypedExpression(target, code, merged(result, extra=constants), can_fail=False, nullable=True)
