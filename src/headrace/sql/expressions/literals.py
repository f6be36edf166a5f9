"""Values that a statement writes down: the arguments of INSERT VALUES."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions.analyser import Analyser
from headrace.sql.expressions.call_timeout import in_time
from headrace.sql.expressions.typed import Slot, TypedExpression
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.functions.resolution import NUMBERS
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import ColumnReference, Expression
from headrace.sql.types import STRING, SqlArray, SqlBaseType, SqlDecimal, SqlMap, SqlStruct, SqlType
from headrace.sql.types.conversions import READ_FROM_TEXT, TextOf, converter

TIMEOUT_MS = "ksql.functions.python.timeout.ms"
"""The setting of how long a function may take where a statement waits for its one value."""
DEFAULT_TIMEOUT_MS = 10_000
_NO_SETTINGS: Mapping[str, object] = {}
_TIME_FORMATS = {
    SqlBaseType.DATE: ". Date format must be yyyy-mm-dd",
    SqlBaseType.TIME: ". Time format must be hh:mm:ss[.S]",
    SqlBaseType.TIMESTAMP: ". Timestamp format must be yyyy-mm-ddThh:mm:ss[.S]",
}


class _NoColumns:
    def slot(self, reference: ColumnReference) -> Slot:
        if reference.source is not None:
            message = f"'{reference.source}' is not a valid stream/table name or alias."
        else:
            message = f"Unsupported column reference in insert value: {expression_text(reference)}"
        raise SqlStatementError(message, position=reference.position)


def evaluate(
    node: Expression, functions: FunctionRegistry, settings: Mapping[str, object] = _NO_SETTINGS
) -> tuple[Any, SqlType | None]:
    """Returns the value and the type of an expression without columns; an error of a function is raised."""
    expression = Analyser(_NoColumns(), functions, settings).visit(node)
    return value_of(expression, settings), expression.type


def value_of(expression: TypedExpression, settings: Mapping[str, object] = _NO_SETTINGS) -> Any:
    """Returns the value of a compiled expression that needs no row; a function in Python has its time limit."""
    if expression.is_literal:
        return expression.literal

    def value() -> Any:
        return eval(expression.code, {**expression.constants, "row": []})

    if all(_is_ours(each) for each in expression.constants.values()):
        return value()
    return in_time(value, timedelta(milliseconds=int(str(settings.get(TIMEOUT_MS, DEFAULT_TIMEOUT_MS)))))


def _is_ours(constant: object) -> bool:
    """Whether it is a plain value, or a function that is known to return."""
    called = getattr(constant, "user_function", constant)
    return not callable(called) or str(getattr(called, "__module__", "")).startswith("headrace.sql.")


def constant(
    node: Expression,
    target: SqlType,
    functions: FunctionRegistry,
    *,
    column: str = "",
    settings: Mapping[str, object] = _NO_SETTINGS,
) -> Any:
    """Returns the value of an expression without columns, as a value of the type of the column it is written to.

    Numbers widen and text becomes dates and times; what does not fit raises ``SqlStatementError``.
    """
    try:
        value, found = evaluate(node, functions, settings)
    except SqlStatementError:
        raise
    except Exception as error:
        message = f"Failed to evaluate {expression_text(node)} for column {column or '?'}: {error}"
        raise SqlStatementError(message, position=node.position) from error
    if value is None or found is None:
        return None
    expected = f"Expected type {target} for field `{column}` but got {found.base.value}({TextOf(found)(value)})"
    try:
        if fits_constant(found, target, value):
            convert = converter(found, target)
            return value if convert is None else convert(value)
    except (ValueError, ArithmeticError) as error:
        message = f"{expected}{_TIME_FORMATS.get(target.base, f': {error}')}"
        raise SqlStatementError(message, position=node.position) from error
    raise SqlStatementError(expected, position=node.position)


def fits_constant(found: SqlType, target: SqlType, value: Any) -> bool:
    """Whether a constant of one type may be written to a column of another."""
    if found == target:
        return True
    if found.base in NUMBERS and target.base in NUMBERS:
        return NUMBERS.index(found.base) <= NUMBERS.index(target.base) and _digits_fit(found, target)
    if found == STRING:
        return target.base in READ_FROM_TEXT
    if isinstance(found, SqlArray) and isinstance(target, SqlArray):
        return all(one is None or fits_constant(found.item, target.item, one) for one in value)
    if isinstance(found, SqlMap) and isinstance(target, SqlMap):
        keys = all(one is None or fits_constant(found.key, target.key, one) for one in value)
        return keys and all(one is None or fits_constant(found.value, target.value, one) for one in value.values())
    if isinstance(found, SqlStruct) and isinstance(target, SqlStruct):
        # A field that the column has not is left out.
        return all(
            (have := target.field(part.name)) is None
            or value.get(part.name) is None
            or fits_constant(part.type, have, value[part.name])
            for part in found.fields
        )
    return False


def _digits_fit(found: SqlType, target: SqlType) -> bool:
    if isinstance(found, SqlDecimal) and isinstance(target, SqlDecimal):
        return found.scale <= target.scale and found.precision - found.scale <= target.precision - target.scale
    return True
