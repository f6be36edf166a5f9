"""Rows of results as JSON: exactly as long as they are, decimals with their scale, doubles as Java writes them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from headrace.sql.syntax.formatter import number_text
from headrace.sql.types import SqlArray, SqlBaseType, SqlMap, SqlStruct, SqlType
from headrace.sql.types.schema import Schema

Writer = Callable[[Any], str]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1)


def row_writer(schema: Schema) -> Callable[[Sequence[Any]], str]:
    """Returns a function that writes the columns of a row as a JSON array.

    >>> from headrace.sql.types.schema import Column
    >>> from headrace.sql.types import DECIMAL, DOUBLE
    >>> write = row_writer(Schema((Column("A", DECIMAL(4, 2)), Column("B", DOUBLE))))
    >>> write([Decimal("1.50"), 1e10])
    '[1.50,1.0E10]'
    """
    writers = [_writer(column.type) for column in schema]

    def write(row: Sequence[Any]) -> str:
        parts = ["null" if value is None else one(value) for one, value in zip(writers, row, strict=True)]
        return f"[{','.join(parts)}]"

    return write


def cell_writer(schema: Schema) -> Callable[[Sequence[Any]], list[str | None]]:
    """Returns a function that writes each column as the text that a person reads, numbers with all their digits.

    >>> from headrace.sql.types.schema import Column
    >>> from headrace.sql.types import BIGINT, STRING
    >>> write = cell_writer(Schema((Column("A", BIGINT), Column("B", STRING), Column("C", STRING))))
    >>> write([2**62 + 1, 'say "so"', None])
    ['4611686018427387905', 'say "so"', None]
    """
    writers = [_cell_writer(column.type) for column in schema]
    return lambda row: [None if value is None else one(value) for one, value in zip(writers, row, strict=True)]


def _cell_writer(type: SqlType) -> Writer:
    if type.base is SqlBaseType.STRING:
        return str
    write = _writer(type)
    return write if isinstance(type, SqlArray | SqlMap | SqlStruct) else lambda value: write(value).strip('"')


def _writer(type: SqlType) -> Writer:
    match type:
        case SqlArray():
            item = _nullable(_writer(type.item))
            return lambda value: f"[{','.join(map(item, value))}]"
        case SqlMap():
            entry, name = _nullable(_writer(type.value)), _name_writer(type.key)
            return lambda value: f"{{{','.join(f'{name(key)}:{entry(each)}' for key, each in value.items())}}}"
        case SqlStruct():
            fields = [(json.dumps(each.name), each.name, _nullable(_writer(each.type))) for each in type.fields]
            return lambda value: f"{{{','.join(f'{key}:{one(value.get(name))}' for key, name, one in fields)}}}"
    return _PLAIN[type.base]


def _nullable(write: Writer) -> Writer:
    return lambda value: "null" if value is None else write(value)


def _name_writer(type: SqlType) -> Writer:
    if type.base is SqlBaseType.STRING:
        return _write_string
    write = _writer(type)
    return lambda value: json.dumps(write(value).strip('"'))


def _write_string(value: Any) -> str:
    return json.dumps(str(value), ensure_ascii=False)


def _double(value: float) -> str:
    text = number_text(value)
    # JSON has no numbers for these.
    return f'"{text}"' if text[-1].isalpha() and not text[-1].isdigit() else text


def _timestamp(value: int) -> str:
    try:
        moment = _EPOCH + timedelta(milliseconds=value)
    except OverflowError:
        return str(value)
    return f'"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}"'


def _date(value: int) -> str:
    try:
        return f'"{(_EPOCH_DAY + timedelta(days=value)).isoformat()}"'
    except OverflowError:
        return str(value)


def _time(value: int) -> str:
    moment = _EPOCH + timedelta(milliseconds=value)
    text = f"{moment:%H:%M:%S}"
    # Java leaves out what is zero at the end.
    text = text if moment.second or moment.microsecond else text[:5]
    return f'"{text}.{moment.microsecond // 1000:03}"' if moment.microsecond else f'"{text}"'


_PLAIN: dict[SqlBaseType, Writer] = {
    SqlBaseType.BOOLEAN: lambda value: "true" if value else "false",
    SqlBaseType.INTEGER: str,
    SqlBaseType.BIGINT: str,
    SqlBaseType.DOUBLE: _double,
    SqlBaseType.DECIMAL: lambda value: f"{Decimal(value):f}",
    SqlBaseType.STRING: _write_string,
    SqlBaseType.BYTES: lambda value: f'"{base64.b64encode(value).decode()}"',
    SqlBaseType.TIMESTAMP: _timestamp,
    SqlBaseType.DATE: _date,
    SqlBaseType.TIME: _time,
}
