"""Rows that come as JSON objects: from their fields to the record that is written."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from headrace.sql.catalog import SourceDefinition
from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions.literals import constant
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.insert_values import InsertedRecord, inserted_record
from headrace.sql.syntax.nodes import Literal
from headrace.sql.types import SqlArray, SqlBaseType, SqlDecimal, SqlMap, SqlStruct, SqlType
from headrace.sql.types.schema import Column, Namespace

_SIZES = {SqlBaseType.INTEGER: 31, SqlBaseType.BIGINT: 63}
_TIMES = (SqlBaseType.DATE, SqlBaseType.TIME, SqlBaseType.TIMESTAMP)


def row_record(
    row: Mapping[str, Any], source: SourceDefinition, functions: FunctionRegistry, settings: Mapping[str, object]
) -> InsertedRecord:
    """Returns the record of a row; raises ``SqlError`` if it does not fit the columns."""
    values: dict[str, object] = {}
    for name, value in row.items():
        column = _column(name, source)
        values[column.name] = _value(value, column.type, column.name, functions, settings)
    return inserted_record(source, values)


def _column(name: str, source: SourceDefinition) -> Column:
    # In backticks or quotes a name is meant as it is written.
    is_quoted = len(name) > 1 and name[0] == name[-1] and name[0] in '`"'
    wanted = name[1:-1] if is_quoted else name.upper()
    found = source.schema.find(wanted)
    if found is None:
        message = f"Column name `{wanted}` does not exist in {source.name}"
        raise SqlStatementError(message)
    if found.namespace is Namespace.HEADERS:
        message = f"Cannot insert into HEADER columns: {wanted}"
        raise SqlStatementError(message)
    return found


# Any: what JSON holds, and the value of a column.
def _value(value: Any, type: SqlType, name: str, functions: FunctionRegistry, settings: Mapping[str, object]) -> Any:
    if value is None:
        return None

    def inner(each: Any, its_type: SqlType) -> Any:
        return _value(each, its_type, name, functions, settings)

    match type:
        case SqlArray() if isinstance(value, list):
            return [inner(each, type.item) for each in value]
        case SqlMap() if isinstance(value, dict):
            return {inner(key, type.key): inner(each, type.value) for key, each in value.items()}
        case SqlStruct() if isinstance(value, dict):
            folded = {key.upper(): each for key, each in value.items()}
            return {
                field.name: inner(value.get(field.name, folded.get(field.name)), field.type) for field in type.fields
            }
        case SqlDecimal() if isinstance(value, str | int | Decimal) and not isinstance(value, bool):
            return _decimal(value, type, name)
    match type.base:
        case SqlBaseType.BOOLEAN if isinstance(value, bool):
            return value
        case SqlBaseType.INTEGER | SqlBaseType.BIGINT if isinstance(value, int) and not isinstance(value, bool):
            if -(1 << _SIZES[type.base]) <= value < 1 << _SIZES[type.base]:
                return value
        case SqlBaseType.DOUBLE if isinstance(value, int | Decimal) and not isinstance(value, bool):
            return float(value)
        case SqlBaseType.STRING if isinstance(value, str):
            return value
        case SqlBaseType.BYTES if isinstance(value, str):
            try:
                return base64.b64decode(value, validate=True)
            except binascii.Error:
                pass
        case base if base in _TIMES and isinstance(value, str):
            return constant(Literal(value), type, functions, column=name, settings=settings)
    message = f"Can't coerce a field of type {_kind(value)} into type {type}: column `{name}`"
    raise SqlStatementError(message)


def _decimal(value: str | int | Decimal, type: SqlDecimal, name: str) -> Decimal:
    try:
        found = Decimal(value)
        exponent = found.as_tuple().exponent
        if isinstance(exponent, int) and -exponent <= type.scale and found.adjusted() < type.precision - type.scale:
            return found.quantize(Decimal(1).scaleb(-type.scale))
    except InvalidOperation:
        pass
    message = f"Can't coerce {value} into type {type}: column `{name}`"
    raise SqlStatementError(message)


def _kind(value: Any) -> str:
    kinds = {bool: "BOOLEAN", int: "BIGINT", Decimal: "DECIMAL", str: "STRING", list: "ARRAY", dict: "MAP"}
    return kinds.get(type(value), type(value).__name__)
