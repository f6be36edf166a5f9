"""``+ - * / %`` and signs."""

from __future__ import annotations

from decimal import Decimal

from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions.analyser import Analyser, call_code, literal, merged, rule
from headrace.sql.expressions.casts import convert
from headrace.sql.expressions.coercion import NUMERIC
from headrace.sql.expressions.typed import TypedExpression
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import Binary, Unary
from headrace.sql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, SqlBaseType, SqlType
from headrace.sql.types.java_arithmetic import (
    DECIMAL_OPERATIONS,
    as_decimal_type,
    double_quotient,
    double_remainder,
    integer_quotient,
    integer_remainder,
    negated,
    operation_type,
    wrap_bigint,
    wrap_integer,
)


@rule(Binary)
def _binary(analyser: Analyser, node: Binary) -> TypedExpression:
    left, right = analyser.visit(node.left), analyser.visit(node.right)
    result = _result_type(node, left.type, right.type)
    if result == STRING:
        return _joined_texts(left, right)
    if result.base is SqlBaseType.DECIMAL:
        return _decimal(analyser, node.operator, left, right)
    if result == DOUBLE:
        return _double(node.operator, convert(analyser, left, DOUBLE), convert(analyser, right, DOUBLE))
    return _integer(analyser, node.operator, result, left, right)


def joined_texts(left: str | None, right: str | None) -> str:
    """Returns one text behind the other; NULL is written out, as Java does.

    >>> joined_texts("a", None)
    'anull'
    """
    return f"{'null' if left is None else left}{'null' if right is None else right}"


def _joined_texts(left: TypedExpression, right: TypedExpression) -> TypedExpression:
    constants: dict[str, object] = {}
    if left.nullable or right.nullable:
        code, constants = call_code(joined_texts, left.code, right.code)
    else:
        code = f"({left.code} + {right.code})"
    can_fail = left.can_fail or right.can_fail
    return TypedExpression(STRING, code, merged(left, right, extra=constants), can_fail, nullable=False)


def _result_type(node: Binary, left: SqlType | None, right: SqlType | None) -> SqlType:
    if left is not None and right is not None:
        if left == STRING and right == STRING and node.operator == "+":
            return STRING
        if left.base in NUMERIC and right.base in NUMERIC:
            if DOUBLE in (left, right):
                return DOUBLE
            if SqlBaseType.DECIMAL in (left.base, right.base):
                return operation_type(node.operator, as_decimal_type(left), as_decimal_type(right))
            return BIGINT if BIGINT in (left, right) else INTEGER
    if left is None or right is None:
        reason = f"Arithmetic on types {left or 'null'} and {right or 'null'} are not supported."
    else:
        reason = f"Unsupported arithmetic types. {left.base.value} {right.base.value}"
    message = f"Error processing expression: {expression_text(node)}. {reason}"
    raise SqlStatementError(message, position=node.position)


def _decimal(analyser: Analyser, operator: str, left: TypedExpression, right: TypedExpression) -> TypedExpression:
    assert left.type is not None
    assert right.type is not None
    first, second = as_decimal_type(left.type), as_decimal_type(right.type)
    result = operation_type(operator, first, second)
    left, right = convert(analyser, left, first), convert(analyser, right, second)
    code, constants = call_code(
        DECIMAL_OPERATIONS[operator], left.code, right.code, str(result.precision), str(result.scale)
    )
    return TypedExpression(result, code, merged(left, right, extra=constants), can_fail=True, nullable=False)


def _double(operator: str, left: TypedExpression, right: TypedExpression) -> TypedExpression:
    constants: dict[str, object] = {}
    if operator in "/%":
        code, constants = call_code(double_quotient if operator == "/" else double_remainder, left.code, right.code)
    else:
        code = f"({left.code} {operator} {right.code})"
    return TypedExpression(DOUBLE, code, merged(left, right, extra=constants), can_fail=True, nullable=False)


def _integer(
    analyser: Analyser, operator: str, result: SqlType, left: TypedExpression, right: TypedExpression
) -> TypedExpression:
    constants: dict[str, object] = {}
    if operator == "%":
        code, constants = call_code(integer_remainder, left.code, right.code)
        return TypedExpression(result, code, merged(left, right, extra=constants), can_fail=True, nullable=False)
    if operator == "/":
        plain, constants = call_code(integer_quotient, left.code, right.code)
    else:
        plain = f"({left.code} {operator} {right.code})"
    return _wrapped(analyser, result, plain, merged(left, right, extra=constants))


def _wrapped(analyser: Analyser, result: SqlType, plain: str, constants: dict[str, object]) -> TypedExpression:
    # Numbers that stay in range, nearly all, cost one comparison.
    name = analyser.new_name("t")
    smallest, largest = (-(2**31), 2**31 - 1) if result == INTEGER else (-(2**63), 2**63 - 1)
    wrap, more = call_code(wrap_integer if result == INTEGER else wrap_bigint, name)
    code = f"({name} if {smallest} <= ({name} := {plain}) <= {largest} else {wrap})"
    return TypedExpression(result, code, {**constants, **more}, can_fail=True, nullable=False)


@rule(Unary)
def _unary(analyser: Analyser, node: Unary) -> TypedExpression:
    operand = analyser.visit(node.operand)
    if node.operator == "NOT":
        if operand.type != BOOLEAN:
            message = (
                f"Unsupported type for NOT: {expression_text(node)}. It takes BOOLEAN, not {operand.type or 'NULL'}"
            )
            raise SqlStatementError(message, position=node.position)
        known = known_truth(analyser, operand)
        return TypedExpression(BOOLEAN, f"(not {known.code})", known.constants, known.can_fail, nullable=False)
    if operand.type is None or operand.type.base not in NUMERIC:
        message = (
            f"Error processing expression: {expression_text(node)}. "
            f"Unsupported arithmetic types. {'NULL' if operand.type is None else operand.type.base.value}"
        )
        raise SqlStatementError(message, position=node.position)
    if node.operator == "+":
        return operand
    if isinstance(operand.literal, Decimal):
        return literal(negated(operand.literal), operand.type)
    if isinstance(operand.literal, float) or (isinstance(operand.literal, int) and operand.literal > -(2**31)):
        return literal(-operand.literal, operand.type)
    if operand.type in (INTEGER, BIGINT):
        return _wrapped(analyser, operand.type, f"(-{operand.code})", dict(operand.constants))
    if operand.type == DOUBLE:
        return TypedExpression(DOUBLE, f"(-{operand.code})", operand.constants, can_fail=True, nullable=False)
    code, constants = call_code(negated, operand.code)
    return TypedExpression(operand.type, code, merged(operand, extra=constants), can_fail=True, nullable=False)


def known(value: bool | None) -> bool:  # noqa: FBT001
    """Returns the truth; raises ``TypeError`` for NULL, which is neither true nor false."""
    if value is None:
        message = "NULL is neither true nor false"
        raise TypeError(message)
    return value


def known_truth(analyser: Analyser, expression: TypedExpression) -> TypedExpression:
    """Returns a condition that fails where it would be NULL."""
    if not expression.nullable:
        return expression
    code, constants = call_code(known, expression.code)
    return TypedExpression(BOOLEAN, code, merged(expression, extra=constants), can_fail=True, nullable=False)
