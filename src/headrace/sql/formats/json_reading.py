"""JSON to rows: a typed decoder for what it surely reads right, and a patient one for everything else.

The typed decoder is msgspec's, for an object that has every column under its exact name and with a value of the
column's own kind. Whatever it refuses (a missing field, a name in another case, a number in quotes, an object where a
STRING is asked for) goes to the patient one, which knows all rules.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any

import msgspec

from headrace.sql.formats.format import ReadRow
from headrace.sql.formats.generated import Source
from headrace.sql.formats.java_numbers import cut, fitting, parse_decimal, parse_double, parse_integer
from headrace.sql.types import SqlArray, SqlBaseType, SqlDecimal, SqlMap, SqlStruct, SqlType
from headrace.sql.types.schema import Column

_INT = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_LONG = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_TYPES: dict[SqlBaseType, Any] = {
    SqlBaseType.BOOLEAN: bool,
    SqlBaseType.INTEGER: _INT,
    SqlBaseType.BIGINT: _LONG,
    SqlBaseType.DOUBLE: float,
    SqlBaseType.DECIMAL: Decimal,
    SqlBaseType.STRING: str,
    SqlBaseType.BYTES: bytes,
    SqlBaseType.DATE: _INT,
    SqlBaseType.TIME: _LONG,
    SqlBaseType.TIMESTAMP: _LONG,
}


@lru_cache(maxsize=1024)
def row_reader(columns: tuple[Column, ...], *, wrapped: bool) -> ReadRow:
    """Returns the function that reads rows of these columns."""
    patient = patient_reader(columns, wrapped=wrapped)
    try:
        fast = _typed_reader(columns, wrapped=wrapped)
    except ValueError:
        # msgspec takes no names with quotes and the like.
        return lambda data: patient(parse(data))

    def read(data: bytes) -> list[Any] | None:
        try:
            return fast(data)
        except (ValueError, ArithmeticError, RecursionError):
            return patient(parse(data))

    return read


def parse(data: bytes) -> Any:
    """Returns the JSON value at the start of bytes, with exact numbers.

    >>> parse(b'{"a": 1.10} ')
    {'a': Decimal('1.10')}
    """
    text = str(data, "utf-8").lstrip(" \t\r\n")
    return _DECODER.raw_decode(text)[0]


def _no_constant(text: str) -> Any:
    message = f"{text} is no JSON"
    raise ValueError(message)


_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_constant)


def _typed_reader(columns: tuple[Column, ...], *, wrapped: bool) -> Callable[[bytes], list[Any]]:
    source = Source()
    if wrapped:
        record = _record(((column.name, column.type) for column in columns), source)
        source.line(f"value = {source.constant(msgspec.json.Decoder(record).decode)}(data)")
        parts = (_code(column.type, f"value.f{index}", source) for index, column in enumerate(columns))
        source.line(f"return [{', '.join(parts)}]")
    else:
        type = columns[0].type
        decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_make_typed(type, source))
        source.line(f"value = {source.constant(decoder.decode)}(data)")
        source.line(f"return [{_code(type, 'value', source)}]")
    return source.function("data")


def _record(fields: Iterable[tuple[str, SqlType]], source: Source) -> Any:
    named = [(f"f{index}", name, type) for index, (name, type) in enumerate(fields)]
    return msgspec.defstruct(
        "Record",
        [(attribute, _make_typed(type, source)) for attribute, _, type in named],
        rename={attribute: name for attribute, name, _ in named},
        gc=False,
    )


def _make_typed(type: SqlType, source: Source) -> Any:
    if isinstance(type, SqlArray):
        return list[_make_typed(type.item, source)] | None  # type: ignore[misc]  # a type made at run time
    if isinstance(type, SqlMap):
        return dict[str, _make_typed(type.value, source)] | None  # type: ignore[misc]  # a type made at run time
    if isinstance(type, SqlStruct):
        return _record(((field.name, field.type) for field in type.fields), source) | None
    return _TYPES[type.base] | None


def _code(type: SqlType, code: str, source: Source) -> str:
    """Returns code that turns what msgspec has read into the value of a column; ``code`` may be evaluated twice."""
    if isinstance(type, SqlArray):
        item = source.fresh()
        inner = _code(type.item, item, source)
        return code if inner == item else f"({code} and [{inner} for {item} in {code}])"
    if isinstance(type, SqlMap):
        key, item = source.fresh(), source.fresh()
        inner = _code(type.value, item, source)
        return code if inner == item else f"({code} and {{{key}: {inner} for {key}, {item} in {code}.items()}})"
    if isinstance(type, SqlStruct):
        struct = source.fresh()
        fields = (
            f"{field.name!r}: {_code(field.type, f'{struct}.f{index}', source)}"
            for index, field in enumerate(type.fields)
        )
        return f"(None if ({struct} := {code}) is None else {{{', '.join(fields)}}})"
    if isinstance(type, SqlDecimal):
        value = source.fresh()
        return f"(None if ({value} := {code}) is None else {source.constant(fitting(type))}({value}))"
    return code


def patient_reader(columns: tuple[Column, ...], *, wrapped: bool) -> Callable[[Any], list[Any] | None]:
    """Returns the function that makes a row of what ``parse`` has read."""
    converters = [(column.name, column.name, _converter(column.type)) for column in columns]
    if not wrapped:
        convert = converters[0][2]

        def row_of_one(value: Any) -> list[Any] | None:
            return None if value is None else [convert(value)]

        return row_of_one

    def row_of_fields(value: Any) -> list[Any] | None:
        if value is None:
            return None
        return list(_fields(value, converters).values())

    return row_of_fields


def _fields(value: Any, converters: list[tuple[str, str, Callable[[Any], Any]]]) -> dict[str, Any]:
    if type(value) is not dict:
        raise _cannot(value, "an object")
    upper: dict[str, Any] | None = None
    found = {}
    for column, name, convert in converters:
        if name in value:
            field = value[name]
        else:
            upper = {key.upper(): field for key, field in value.items()} if upper is None else upper
            field = upper.get(name)
        try:
            found[column] = None if field is None else convert(field)
        except (ValueError, ArithmeticError) as error:
            message = f"{error}; at field {name}"
            raise ValueError(message) from None
    return found


def _converter(type: SqlType) -> Callable[[Any], Any]:
    if isinstance(type, SqlArray):
        return _array(_converter(type.item))
    if isinstance(type, SqlMap):
        return _map(_converter(type.value))
    if isinstance(type, SqlStruct):
        fields = [(field.name, field.name, _converter(field.type)) for field in type.fields]
        return lambda value: _fields(value, fields)
    if isinstance(type, SqlDecimal):
        return _decimal(fitting(type))
    return _SCALARS[type.base]


def _array(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def items(value: Any) -> list[Any]:
        if type(value) is not list:
            raise _cannot(value, "ARRAY")
        return [None if item is None else convert(item) for item in value]

    return items


def _map(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def entries(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise _cannot(value, "MAP")
        return {key: None if item is None else convert(item) for key, item in value.items()}

    return entries


def _decimal(fit: Callable[[Decimal], Decimal]) -> Callable[[Any], Decimal]:
    def number(value: Any) -> Decimal:
        if type(value) is Decimal:
            return fit(value)
        if type(value) is int:
            return fit(Decimal(value))
        if type(value) is str:
            return fit(parse_decimal(value))
        raise _cannot(value, "DECIMAL")

    return number


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise _cannot(value, "BOOLEAN")
    return value


def _whole(bits: int, name: str) -> Callable[[Any], int]:
    def number(value: Any) -> int:
        if type(value) is int or type(value) is Decimal:
            return cut(value, bits)
        if type(value) is str:
            return parse_integer(value, bits)
        raise _cannot(value, name)

    return number


def _double(value: Any) -> float:
    if type(value) is int or type(value) is Decimal:
        return float(value)
    if type(value) is str:
        return parse_double(value)
    raise _cannot(value, "DOUBLE")


def _string(value: Any) -> str:
    if type(value) is str:
        return value
    if type(value) is list:
        # As Java writes a list of texts, not as JSON.
        return "[" + ", ".join("null" if item is None else _string(item) for item in value) + "]"
    return json_text(value)


def _bytes(value: Any) -> bytes:
    if type(value) is not str:
        raise _cannot(value, "BYTES")
    return b64decode(value, validate=True)


def json_text(value: Any) -> str:
    """Returns what ``parse`` has read as JSON text again, without spaces.

    >>> json_text({"b": [Decimal("1.0"), True], "a": None})
    '{"b":[1.0,true],"a":null}'
    """
    if type(value) is dict:
        return "{" + ",".join(f"{_text(name)}:{json_text(item)}" for name, item in value.items()) + "}"
    if type(value) is list:
        return "[" + ",".join(map(json_text, value)) + "]"
    if type(value) is Decimal:
        return str(value or value.copy_abs())
    return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


_SCALARS: dict[SqlBaseType, Callable[[Any], Any]] = {
    SqlBaseType.BOOLEAN: _boolean,
    SqlBaseType.INTEGER: _whole(32, "INTEGER"),
    SqlBaseType.BIGINT: _whole(64, "BIGINT"),
    SqlBaseType.DOUBLE: _double,
    SqlBaseType.STRING: _string,
    SqlBaseType.BYTES: _bytes,
    SqlBaseType.DATE: _whole(32, "DATE"),
    SqlBaseType.TIME: _whole(64, "TIME"),
    SqlBaseType.TIMESTAMP: _whole(64, "TIMESTAMP"),
}


def _cannot(value: Any, required: str) -> ValueError:
    kinds = {bool: "a boolean", str: "a string", list: "an array", dict: "an object"}
    message = f"Can't convert type. sourceType: {kinds.get(type(value), 'a number')}, requiredType: {required}"
    return ValueError(message)
