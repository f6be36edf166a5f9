"""The common type of the items of a list: of ``ARRAY[…]``, ``MAP(…)`` and ``IN (…)``.

The first item that is not NULL says what kind of type it is. Numbers then widen, structs get the fields of all, a text
literal becomes a number, truth or time, and any literal becomes text.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions.analyser import Analyser, literal, merged
from headrace.sql.expressions.casts import convert
from headrace.sql.expressions.typed import TypedExpression
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import Expression, Literal, MakeArray, MakeMap, MakeStruct
from headrace.sql.types import (
    ARRAY,
    BIGINT,
    DECIMAL,
    DOUBLE,
    INTEGER,
    MAP,
    STRUCT,
    SqlArray,
    SqlBaseType,
    SqlDecimal,
    SqlMap,
    SqlStruct,
    SqlType,
    StructField,
)
from headrace.sql.types.conversions import READ_FROM_TEXT, boolean_of
from headrace.sql.types.java_arithmetic import fitted, widest
from headrace.sql.types.type_names import type_text

NUMERIC = (SqlBaseType.INTEGER, SqlBaseType.BIGINT, SqlBaseType.DECIMAL, SqlBaseType.DOUBLE)
_MOST_DIGITS = 300


class _Mismatch(Exception):
    """Two types have nothing in common."""


def coerced_list(
    analyser: Analyser, nodes: Sequence[Expression], *, prefix: str = ""
) -> tuple[SqlType | None, list[TypedExpression]]:
    """Returns the common type of the expressions and each of them in that type; None if all are NULL."""
    try:
        typed = [analyser.visit(node) for node in nodes]
    except SqlStatementError as error:
        message = f"{prefix}{error.message}"
        raise SqlStatementError(message, position=error.position) from error
    common: SqlType | None = None
    for node, expression in zip(nodes, typed, strict=True):
        try:
            common = _common(analyser, common, node, expression.type)
        except _Mismatch:
            message = (
                f"{prefix}operator does not exist: {type_text(common)} = {type_text(expression.type)} "
                f"({expression_text(node)})\nHint: You might need to add explicit type casts."
            )
            raise SqlStatementError(message, position=node.position) from None
        except ValueError as error:
            message = f"{prefix}{error}"
            raise SqlStatementError(message, position=node.position) from None
    if common is None:
        return None, typed
    return common, [_coerced(analyser, node, one, common) for node, one in zip(nodes, typed, strict=True)]


def _common(
    analyser: Analyser, target: SqlType | None, node: Expression | None, found: SqlType | None
) -> SqlType | None:
    if target is None or found is None or target == found:
        return found if target is None else target
    if target.base in NUMERIC and found.base in NUMERIC:
        return widest(target, found)
    if isinstance(node, Literal):
        return _common_with_literal(target, node.value)
    for one, other in ((target, found), (found, target)):
        if one.base in READ_FROM_TEXT and other.base is SqlBaseType.STRING:
            return one
    if isinstance(target, SqlArray) and isinstance(found, SqlArray):
        return _common_array(analyser, target, node, found)
    if isinstance(target, SqlMap) and isinstance(found, SqlMap):
        return _common_map(analyser, target, node, found)
    if isinstance(target, SqlStruct) and isinstance(found, SqlStruct):
        return _common_struct(analyser, target, node, found)
    raise _Mismatch


def _common_with_literal(target: SqlType, value: object) -> SqlType:
    if isinstance(value, str):
        if target.base in NUMERIC:
            return widest(target, _number_in(value, target)[1])
        if target.base is SqlBaseType.BOOLEAN:
            if boolean_of(value) is None:
                raise ValueError(_invalid(target, value))
            return target
        if target.base in READ_FROM_TEXT:
            _read_text(value, target)
            return target
    elif target.base is SqlBaseType.STRING:
        return target
    raise _Mismatch


def _read_text(text: str, target: SqlType) -> object:
    try:
        return READ_FROM_TEXT[target.base](text)
    except ValueError:
        raise ValueError(_invalid(target, text)) from None


def _invalid(target: SqlType, value: str) -> str:
    return f'invalid input syntax for type {target.base.value}: "{value}".'


def _number_in(text: str, target: SqlType) -> tuple[int | float | Decimal, SqlType]:
    try:
        if target.base is SqlBaseType.DOUBLE:
            return float(text), DOUBLE
        number = Decimal(text.strip())
    except (ValueError, InvalidOperation):
        raise ValueError(_invalid(target, text)) from None
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or abs(number.adjusted()) > _MOST_DIGITS:
        raise ValueError(_invalid(target, text))
    if exponent >= 0:
        whole = int(number)
        if -(2**63) <= whole < 2**63:
            return whole, INTEGER if -(2**31) <= whole < 2**31 else BIGINT
        return number, DECIMAL(len(str(abs(whole))), 0)
    return number, DECIMAL(max(len(digits), -exponent), -exponent)


def _common_array(analyser: Analyser, target: SqlArray, node: Expression | None, found: SqlArray) -> SqlType:
    item: SqlType | None = target.item
    if isinstance(node, MakeArray):
        for part in node.items:
            item = _common(analyser, item, part, analyser.visit(part).type)
    else:
        item = _common(analyser, item, None, found.item)
    return ARRAY(item or found.item)


def _common_map(analyser: Analyser, target: SqlMap, node: Expression | None, found: SqlMap) -> SqlType:
    key: SqlType | None = target.key
    value: SqlType | None = target.value
    if isinstance(node, MakeMap):
        for key_node, value_node in node.entries:
            key = _common(analyser, key, key_node, analyser.visit(key_node).type)
            value = _common(analyser, value, value_node, analyser.visit(value_node).type)
    else:
        key, value = _common(analyser, key, None, found.key), _common(analyser, value, None, found.value)
    return MAP(key or found.key, value or found.value)


def _common_struct(analyser: Analyser, target: SqlStruct, node: Expression | None, found: SqlStruct) -> SqlType:
    nodes = dict(node.fields) if isinstance(node, MakeStruct) else {}
    fields = {part.name: part.type for part in target.fields}
    for part in found.fields:
        common = _common(analyser, fields.get(part.name), nodes.get(part.name), part.type)
        fields[part.name] = common or part.type
    return STRUCT(tuple(StructField(name, one) for name, one in fields.items()))


def _coerced(analyser: Analyser, node: Expression, expression: TypedExpression, target: SqlType) -> TypedExpression:
    if expression.type is None or expression.type == target:
        return expression if expression.type is not None else convert(analyser, expression, target)
    if isinstance(node, Literal) and isinstance(node.value, str) and target.base is not SqlBaseType.STRING:
        try:
            return literal(_value_in(node.value, target), target)
        except ValueError as error:
            raise SqlStatementError(str(error), position=node.position) from None
    if isinstance(node, MakeArray) and isinstance(target, SqlArray):
        items = [_coerced(analyser, part, analyser.visit(part), target.item) for part in node.items]
        code = f"[{', '.join(item.code for item in items)}]"
        return TypedExpression(target, code, merged(*items), any(item.can_fail for item in items), nullable=False)
    if isinstance(node, MakeMap) and isinstance(target, SqlMap):
        pairs = [
            (
                _coerced(analyser, key, analyser.visit(key), target.key),
                _coerced(analyser, one, analyser.visit(one), target.value),
            )
            for key, one in node.entries
        ]
        parts = [part for pair in pairs for part in pair]
        code = f"{{{', '.join(f'{key.code}: {one.code}' for key, one in pairs)}}}"
        return TypedExpression(target, code, merged(*parts), any(part.can_fail for part in parts), nullable=False)
    if isinstance(node, MakeStruct) and isinstance(target, SqlStruct):
        nodes = dict(node.fields)
        values: list[TypedExpression] = []
        for part in target.fields:
            value_node = nodes.get(part.name, Literal(None))
            values.append(_coerced(analyser, value_node, analyser.visit(value_node), part.type))
        entries = (f"{part.name!r}: {value.code}" for part, value in zip(target.fields, values, strict=True))
        return TypedExpression(
            target, f"{{{', '.join(entries)}}}", merged(*values), any(one.can_fail for one in values), nullable=False
        )
    return convert(analyser, expression, target)


def _value_in(text: str, target: SqlType) -> object:
    if target.base is SqlBaseType.BOOLEAN:
        return boolean_of(text)
    if target.base in READ_FROM_TEXT:
        return _read_text(text, target)
    number = _number_in(text, target)[0]
    if isinstance(target, SqlDecimal):
        return fitted(Decimal(number), target.precision, target.scale)
    return float(number) if target == DOUBLE else number
