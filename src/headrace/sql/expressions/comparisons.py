"""``= <> < <= > >=``, IS DISTINCT FROM, BETWEEN and IS NULL. A comparison with NULL is false."""

from __future__ import annotations

from decimal import Decimal

from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions.analyser import Analyser, call_code, literal, merged, rule
from headrace.sql.expressions.casts import convert
from headrace.sql.expressions.coercion import NUMERIC
from headrace.sql.expressions.typed import TypedExpression
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import Between, ColumnReference, Comparison, Expression, IsNull, Literal
from headrace.sql.types import BIGINT, BOOLEAN, DOUBLE, STRING, SqlBaseType, SqlDecimal, SqlType
from headrace.sql.types.java_arithmetic import of_double
from headrace.sql.types.schema import WINDOW_BOUNDS
from headrace.sql.types.times import parse_timestamp
from headrace.sql.types.type_names import type_text

OPERATOR_NAMES = {
    "=": "EQUAL",
    "<>": "NOT_EQUAL",
    "<": "LESS_THAN",
    "<=": "LESS_THAN_OR_EQUAL",
    ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL",
    "IS DISTINCT FROM": "IS_DISTINCT_FROM",
    "IS NOT DISTINCT FROM": "IS_NOT_DISTINCT_FROM",
}
"""What messages call the operators."""
_PYTHON = {"=": "==", "<>": "!=", "IS DISTINCT FROM": "!=", "IS NOT DISTINCT FROM": "=="}
_EQUALITIES = frozenset(_PYTHON)
_TIMES = (SqlBaseType.DATE, SqlBaseType.TIME, SqlBaseType.TIMESTAMP)
_EQUAL_ONLY = (SqlBaseType.BOOLEAN, SqlBaseType.ARRAY, SqlBaseType.MAP, SqlBaseType.STRUCT)
_TIMES_OF_ROWS = ("ROWTIME", *WINDOW_BOUNDS)


@rule(Comparison)
def _comparison(analyser: Analyser, node: Comparison) -> TypedExpression:
    left, right = analyser.visit(node.left), analyser.visit(node.right)
    left, right = _magic(node.left, node.right, left, right)
    return compared(analyser, node.operator, node.left, node.right, left, right)


def compared(
    analyser: Analyser,
    operator: str,
    left_node: Expression,
    right_node: Expression,
    left: TypedExpression,
    right: TypedExpression,
) -> TypedExpression:
    """Returns the comparison of two expressions that are already typed."""
    if left.type is None or right.type is None:
        sides = ["NULL" if side.type is None else side.type.base.value for side in (left, right)]
        message = (
            f"Comparison with NULL not supported: {sides[0]} {operator} {sides[1]}\n"
            "Use 'IS NULL' or 'IS NOT NULL' instead."
        )
        raise SqlStatementError(message, position=left_node.position)
    common = comparable(left.type, right.type, operator)
    if common is None:
        message = (
            f"Cannot compare {expression_text(left_node)} ({type_text(left.type)}) to {expression_text(right_node)} "
            f"({type_text(right.type)}) with {OPERATOR_NAMES[operator]}."
        )
        raise SqlStatementError(message, position=left_node.position)
    left, right = _as_floats(left, right)
    return _code(analyser, operator, _in_type(analyser, left, right, common), _in_type(analyser, right, left, common))


def _as_floats(left: TypedExpression, right: TypedExpression) -> tuple[TypedExpression, TypedExpression]:
    """A float is compared with a decimal literal as a float, where that means the same: it is many times faster."""
    if left.type == DOUBLE and (number := _float_of(right)) is not None:
        return left, literal(number, DOUBLE)
    if right.type == DOUBLE and (number := _float_of(left)) is not None:
        return literal(number, DOUBLE), right
    return left, right


def _float_of(side: TypedExpression) -> float | None:
    value = side.literal
    if not isinstance(value, Decimal):
        return None
    return float(value) if of_double(float(value)) == value else None


def comparable(left: SqlType, right: SqlType, operator: str) -> SqlType | None:
    """Returns the type in which two types are compared, None if they cannot be."""
    if left.base in _EQUAL_ONLY and operator not in _EQUALITIES:
        return None
    if left.base in NUMERIC and right.base in NUMERIC:
        return left
    if left.base is right.base:
        return left
    if left.base in _TIMES and right.base in _TIMES:
        return SqlType(SqlBaseType.TIMESTAMP) if SqlBaseType.TIME not in (left.base, right.base) else None
    if left == STRING and right.base in _TIMES:
        return right
    if right == STRING and left.base in _TIMES:
        return left
    return None


def _in_type(analyser: Analyser, side: TypedExpression, other: TypedExpression, common: SqlType) -> TypedExpression:
    assert side.type is not None
    if common.base in NUMERIC:
        if side.type == DOUBLE and isinstance(other.type, SqlDecimal):
            # Decimals are compared with floats as decimals: 1.1 is 1.1.
            first, later = analyser.held(side)
            code, constants = call_code(of_double, later)
            code = f"(None if {first} is None else {code})"
            return TypedExpression(common, code, merged(side, extra=constants), side.can_fail, side.nullable)
        return side  # Python compares exact numbers of all kinds, and integers with floats, by value
    if side.type.base is common.base:
        return side
    return convert(analyser, side, common)


def _code(analyser: Analyser, operator: str, left: TypedExpression, right: TypedExpression) -> TypedExpression:
    sign = _PYTHON.get(operator, operator)
    constants, can_fail = merged(left, right), left.can_fail or right.can_fail
    checks: list[str] = []
    first, later = left.code, left.code
    if operator in ("IS DISTINCT FROM", "IS NOT DISTINCT FROM"):
        pass  # None equals None and nothing else, as asked
    elif operator == "=" and not (left.nullable and right.nullable):
        pass  # the side that is never None decides
    else:
        if left.nullable:
            first, later = analyser.held(left)
            checks.append(f"{first} is not None")
            first = later
        if right.nullable and operator != "=":
            first_right, later_right = analyser.held(right)
            # The left side has to be there before the right one is looked at, as both may fail.
            if not left.nullable and not left.repeatable:
                name = analyser.new_name("t")
                checks.append(f"(({name} := {left.code}) is not None)")
                later = name
            checks.append(f"{first_right} is not None")
            return TypedExpression(
                BOOLEAN,
                f"({' and '.join([*checks, f'{later} {sign} {later_right}'])})",
                constants,
                can_fail,
                nullable=False,
            )
    code = " and ".join([*checks, f"{later} {sign} {right.code}"])
    return TypedExpression(BOOLEAN, f"({code})", constants, can_fail, nullable=False)


def _magic(
    left_node: Expression, right_node: Expression, left: TypedExpression, right: TypedExpression
) -> tuple[TypedExpression, TypedExpression]:
    """Text that is compared with the time of a row or a window means an instant."""
    if _is_row_time(left_node) and _is_text(right_node):
        return left, _instant(right_node, right)
    if _is_row_time(right_node) and _is_text(left_node):
        return _instant(left_node, left), right
    return left, right


def _is_row_time(node: Expression) -> bool:
    # Planning renames the columns of joined sources: L.ROWTIME is L_ROWTIME by then.
    return isinstance(node, ColumnReference) and any(
        node.name == name or node.name.endswith(f"_{name}") for name in _TIMES_OF_ROWS
    )


def _is_text(node: Expression) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, str)


def _instant(node: Expression, expression: TypedExpression) -> TypedExpression:
    try:
        return literal(parse_timestamp(str(expression.literal)), BIGINT)
    except ValueError as error:
        raise SqlStatementError(str(error), position=node.position) from None


@rule(Between)
def _between(analyser: Analyser, node: Between) -> TypedExpression:
    operand, low, high = analyser.visit(node.operand), analyser.visit(node.low), analyser.visit(node.high)
    operand_low, low = _magic(node.operand, node.low, operand, low)
    operand_high, high = _magic(node.operand, node.high, operand, high)
    if not operand.repeatable:
        # Evaluated once, by the first comparison, and read by the second.
        first, later = analyser.held(operand)
        operand_low = TypedExpression(operand.type, first, operand.constants, operand.can_fail, nullable=True)
        operand_high = TypedExpression(operand.type, later, operand.constants)
        holder = TypedExpression(operand.type, later)
        lower = compared(analyser, ">=", node.operand, node.low, holder, low)
        upper = compared(analyser, "<=", node.operand, node.high, operand_high, high)
        code = f"({first} is not None and {lower.code} and {upper.code})"
    else:
        lower = compared(analyser, ">=", node.operand, node.low, operand_low, low)
        upper = compared(analyser, "<=", node.operand, node.high, operand_high, high)
        code = f"({lower.code} and {upper.code})"
    can_fail = operand.can_fail or lower.can_fail or upper.can_fail
    if node.negated:
        code = f"(not {code})"
    return TypedExpression(BOOLEAN, code, merged(operand, lower, upper), can_fail, nullable=False)


@rule(IsNull)
def _is_null(analyser: Analyser, node: IsNull) -> TypedExpression:
    operand = analyser.visit(node.operand)
    if not operand.nullable and not operand.can_fail:
        return literal(node.negated, BOOLEAN)
    code = f"({operand.code} is {'not ' if node.negated else ''}None)"
    return TypedExpression(BOOLEAN, code, operand.constants, operand.can_fail, nullable=False)
