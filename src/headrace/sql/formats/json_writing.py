"""Rows to JSON, by a function that is generated for the columns."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec

from headrace.sql.formats.format import WriteRow
from headrace.sql.formats.generated import Source
from headrace.sql.types import SqlArray, SqlBaseType, SqlDecimal, SqlMap, SqlStruct, SqlType
from headrace.sql.types.java_arithmetic import double_text
from headrace.sql.types.schema import Column

_encode = msgspec.json.Encoder(decimal_format="number").encode
# Decimals with no more digits behind the point are never written with an exponent.
_PLAIN_SCALE = 6


@lru_cache(maxsize=1024)
def row_writer(columns: tuple[Column, ...], *, wrapped: bool) -> WriteRow:
    """Returns the function that writes rows of these columns."""
    source = Source()
    encode = source.constant(_encode)
    if wrapped:
        values = [source.fresh() for _ in columns]
        source.line("".join(f"{value}, " for value in values) + "= row" if values else "pass")
        parts = [_code(column.type, value, source) for column, value in zip(columns, values, strict=True)]
        source.line(f"return {encode}({_object([column.name for column in columns], parts, source)})")
    else:
        source.line("value = row[0]")
        source.line(f"return None if value is None else {encode}({_code(columns[0].type, 'value', source)})")
    made: WriteRow = source.function("row")
    return made


def _object(names: list[str], parts: list[str], source: Source) -> str:
    """Returns code that makes what msgspec writes as an object with these names."""
    try:
        attributes = [f"f{index}" for index in range(len(names))]
        fields = [(attribute, Any) for attribute in attributes]
        # An object of msgspec is made and written faster than a dict.
        record = msgspec.defstruct("Record", fields, rename=dict(zip(attributes, names, strict=True)), gc=False)
    except ValueError:
        # It takes no names with quotes and the like.
        return "{" + ", ".join(f"{name!r}: {part}" for name, part in zip(names, parts, strict=True)) + "}"
    return f"{source.constant(record)}({', '.join(parts)})"


def _code(type: SqlType, code: str, source: Source) -> str:
    """Returns code whose value msgspec writes as ksqlDB would; ``code`` is what is written, and may be evaluated twice.

    Values that msgspec writes in another way, or not at all, are given to it as ready text.
    """
    if isinstance(type, SqlArray):
        item = source.fresh()
        inner = _code(type.item, item, source)
        return code if inner == item else f"({code} and [{inner} for {item} in {code}])"
    if isinstance(type, SqlMap):
        key, item = source.fresh(), source.fresh()
        inner = _code(type.value, item, source)
        made = f"{{'null' if {key} is None else {key}: {inner} for {key}, {item} in {code}.items()}}"
        # Null is a key, too, and the names of an object are texts.
        return f"({code} if not {code}{f' or None not in {code}' if inner == item else ''} else {made})"
    if isinstance(type, SqlStruct):
        # As a name of its own, because a field would otherwise be looked up through all its parents for each part.
        struct = source.fresh()
        parts = [_code(field.type, f"{struct}.get({field.name!r})", source) for field in type.fields]
        made = _object([field.name for field in type.fields], parts, source)
        return f"(None if ({struct} := {code}) is None else {made})"
    match type.base:
        case SqlBaseType.DOUBLE:
            value = code if code.isidentifier() else source.fresh()
            first = value if value == code else f"({value} := {code})"
            return f"({value} if {first} is None or 0.001 <= {value} < 1e7 else {source.constant(_double)}({value}))"
        case SqlBaseType.DECIMAL if isinstance(type, SqlDecimal) and type.scale > _PLAIN_SCALE:
            value = source.fresh()
            return f"(None if ({value} := {code}) is None else {source.constant(_decimal)}({value}))"
    return code


def _double(number: float) -> Any:
    if 0.001 <= abs(number) < 1e7 or number == 0:
        return number
    text = double_text(number)
    return text if text[-1] in "Ny" else msgspec.Raw(text.encode())


def _decimal(number: Decimal) -> msgspec.Raw:
    return msgspec.Raw(format(number, "f").encode())
