"""Literals, columns, and access to parts of arrays, maps and structs."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from headrace.sql.errors import SqlStatementError, suggestion
from headrace.sql.expressions.analyser import Analyser, call_code, literal, literal_code, merged, rule
from headrace.sql.expressions.casts import convert, or_null
from headrace.sql.expressions.coercion import coerced_list
from headrace.sql.expressions.typed import TypedExpression
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import (
    ColumnReference,
    FieldAccess,
    LambdaVariable,
    Literal,
    MakeArray,
    MakeMap,
    MakeStruct,
    Subscript,
)
from headrace.sql.types import (
    ARRAY,
    BIGINT,
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    INTEGER,
    MAP,
    STRING,
    STRUCT,
    SqlArray,
    SqlBaseType,
    SqlMap,
    SqlStruct,
    SqlType,
    StructField,
)
from headrace.sql.types.type_names import type_text


def literal_type(value: object) -> SqlType | None:
    """Returns the type of a literal, None for NULL.

    >>> from decimal import Decimal
    >>> str(literal_type(Decimal("1.50"))), str(literal_type(2**31))
    ('DECIMAL(3, 2)', 'BIGINT')
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return INTEGER if -(2**31) <= value < 2**31 else BIGINT
    if isinstance(value, float):
        return DOUBLE
    if isinstance(value, Decimal):
        _, digits, exponent = value.as_tuple()
        scale = max(0, -int(exponent))
        # Java counts the digits that are there: 0.08 has one, with a scale of two.
        precision = max(len("".join(map(str, digits)).lstrip("0")) or 1, scale)
        return DECIMAL(precision, scale)
    return STRING


@rule(Literal)
def _literal(_: Analyser, node: Literal) -> TypedExpression:
    return literal(node.value, literal_type(node.value))


@rule(ColumnReference)
def _column(analyser: Analyser, node: ColumnReference) -> TypedExpression:
    if node.source is None and node.name in analyser.variables:
        slot = analyser.variables[node.name]
    else:
        slot = analyser.scope.slot(node)
    return TypedExpression(slot.type, slot.code)


@rule(LambdaVariable)
def _variable(analyser: Analyser, node: LambdaVariable) -> TypedExpression:
    slot = analyser.variables.get(node.name)
    if slot is None:
        message = f"lambda: no parameter of the name {node.name}; declare it in front of the arrow"
        raise SqlStatementError(message, position=node.position)
    return TypedExpression(slot.type, slot.code)


def quiet(expression: TypedExpression) -> TypedExpression:
    """Returns the expression as one that is NULL where it fails, so that what stands around it goes on."""
    if not expression.can_fail:
        return expression
    code, constants = call_code(or_null, f"lambda: {expression.code}")
    return TypedExpression(expression.type, code, merged(expression, extra=constants), can_fail=False)


@rule(FieldAccess)
def _field(analyser: Analyser, node: FieldAccess) -> TypedExpression:
    base = quiet(analyser.visit(node.base))
    if not isinstance(base.type, SqlStruct):
        message = f"Expected STRUCT type, got: {type_text(base.type)}"
        raise SqlStatementError(message, position=node.position)
    field_type = base.type.field(node.name)
    if field_type is None:
        message = (
            f"Could not find field '{node.name}' in '{expression_text(node.base)}'. "
            f"Available fields: {', '.join(part.name for part in base.type.fields)}"
            f"{suggestion(node.name, (part.name for part in base.type.fields))}"
        )
        raise SqlStatementError(message, position=node.position)
    first, later = analyser.held(base)
    code = f"(None if {first} is None else {later}.get({node.name!r}))"
    return TypedExpression(field_type, code, base.constants)


def array_item(array: list[Any], index: int) -> Any:
    """Returns an item, counted from 1, or from the end if negative; NULL if there is none."""
    size = len(array)
    if 0 < index <= size:
        return array[index - 1]
    return array[index] if -size <= index < 0 else None


@rule(Subscript)
def _subscript(analyser: Analyser, node: Subscript) -> TypedExpression:
    base = quiet(analyser.visit(node.base))
    index = quiet(analyser.visit(node.index))
    constants: dict[str, object] = {}
    if isinstance(base.type, SqlArray):
        if index.type is None or index.type.base not in (SqlBaseType.INTEGER, SqlBaseType.BIGINT):
            message = (
                f"Array index must be an INTEGER: {expression_text(node)} has the index type {type_text(index.type)}"
            )
            raise SqlStatementError(message, position=node.position)
        item_type = base.type.item
    elif isinstance(base.type, SqlMap):
        item_type = base.type.value
        if index.type is not None and index.type != base.type.key:
            index = convert(analyser, index, base.type.key)
    else:
        message = f"Subscript expression ({expression_text(node)}) do not apply to {type_text(base.type)}."
        if isinstance(base.type, SqlStruct):
            field = expression_text(node.index).strip("'")
            message += f" Use the dereference operator for STRUCTS: {expression_text(node.base)}->{field}"
        raise SqlStatementError(message, position=node.position)
    first, later = analyser.held(base)
    if isinstance(base.type, SqlMap):
        access = f"{later}.get({index.code})"
    elif index.nullable:
        first_index, later_index = analyser.held(index)
        access, constants = call_code(array_item, later, later_index)
        access = f"(None if {first_index} is None else {access})"
    else:
        access, constants = call_code(array_item, later, index.code)
    code = f"(None if {first} is None else {access})"
    return TypedExpression(item_type, code, merged(base, index, extra=constants))


@rule(MakeArray)
def _array(analyser: Analyser, node: MakeArray) -> TypedExpression:
    if not node.items:
        message = (
            "Array constructor cannot be empty. Please supply at least one element "
            "(see https://github.com/confluentinc/ksql/issues/4239)."
        )
        raise SqlStatementError(message, position=node.position)
    item_type, items = coerced_list(analyser, node.items)
    items = [quiet(item) for item in items]
    if item_type is None:
        message = (
            "Cannot construct an array with all NULL elements (see https://github.com/confluentinc/ksql/issues/4239). "
            "As a workaround, you may cast a NULL value to the desired type."
        )
        raise SqlStatementError(message, position=node.position)
    return TypedExpression(
        ARRAY(item_type),
        f"[{', '.join(item.code for item in items)}]",
        merged(*items),
        nullable=False,
    )


@rule(MakeMap)
def _map(analyser: Analyser, node: MakeMap) -> TypedExpression:
    if not node.entries:
        message = (
            "Map constructor cannot be empty. Please supply at least one key value pair "
            "(see https://github.com/confluentinc/ksql/issues/4239)."
        )
        raise SqlStatementError(message, position=node.position)
    key_type, keys = coerced_list(analyser, tuple(key for key, _ in node.entries))
    value_type, values = coerced_list(analyser, tuple(value for _, value in node.entries))
    keys, values = [quiet(key) for key in keys], [quiet(value) for value in values]
    if key_type is None or value_type is None:
        what = "key" if key_type is None else "value"
        message = (
            f"Cannot construct a map with all NULL {what}s (see https://github.com/confluentinc/ksql/issues/4239). "
            f"As a workaround, you may cast a NULL {what} to the desired type."
        )
        raise SqlStatementError(message, position=node.position)
    entries = (f"{key.code}: {value.code}" for key, value in zip(keys, values, strict=True))
    return TypedExpression(
        MAP(key_type, value_type),
        f"{{{', '.join(entries)}}}",
        merged(*keys, *values),
        nullable=False,
    )


@rule(MakeStruct)
def _struct(analyser: Analyser, node: MakeStruct) -> TypedExpression:
    parts: list[str] = []
    fields: list[StructField] = []
    values: list[TypedExpression] = []
    for name, value_node in node.fields:
        value = quiet(analyser.visit(value_node))
        if value.type is None:
            message = (
                f"Can't infer a type of null for field {name}. "
                "Please explicitly cast it to a required type, e.g. CAST(null AS VARCHAR)."
            )
            raise SqlStatementError(message, position=value_node.position)
        other = next((part for part in fields if part.name == name), None)
        if other is not None:
            message = f"Duplicate field names found in STRUCT: '`{name}` {other.type}' and '`{name}` {value.type}'"
            raise SqlStatementError(message, position=node.position)
        fields.append(StructField(name, value.type))
        values.append(value)
        parts.append(f"{literal_code(name)[0]}: {value.code}")
    return TypedExpression(
        STRUCT(tuple(fields)),
        f"{{{', '.join(parts)}}}",
        merged(*values),
        nullable=False,
    )
