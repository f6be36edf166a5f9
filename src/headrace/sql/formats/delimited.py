"""DELIMITED: a line of text with the columns between delimiters."""

from __future__ import annotations

import csv
import io
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, ClassVar

from headrace.sql.errors import SqlStatementError
from headrace.sql.formats.format import Format, FormatOptions, ReadRow, Row, Target, WriteRow
from headrace.sql.formats.java_numbers import fitting, parse_decimal, parse_double, parse_integer
from headrace.sql.types import SqlBaseType, SqlDecimal, SqlType
from headrace.sql.types.java_arithmetic import double_text
from headrace.sql.types.schema import Column

_NAMED = {"SPACE": " ", "TAB": "\t"}
_PLAIN = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_UNSUPPORTED = (SqlBaseType.ARRAY, SqlBaseType.MAP, SqlBaseType.STRUCT)


class DelimitedFormat(Format):
    """Text between delimiters, quoted where it has to be; no arrays, maps and structs."""

    name: ClassVar[str] = "DELIMITED"
    unwraps_singles: ClassVar[bool] = True
    properties: ClassVar[tuple[str, ...]] = ("delimiter",)

    def check(self, columns: tuple[Column, ...], options: FormatOptions | None = None) -> None:
        for column in columns:
            if column.type.base in _UNSUPPORTED:
                kind = column.type.base.value
                message = f"The 'DELIMITED' format does not support type '{kind}', column: `{column.name}`"
                raise SqlStatementError(message)

    def reader(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> ReadRow:
        parsers = [_parser(column.type) for column in columns]
        delimiter, count = delimiter_of(options.delimiter), len(columns)

        def read_row(data: bytes) -> list[Any] | None:
            text = str(data, "utf-8")
            fields = _fields(text, delimiter)
            if len(fields) != count:
                message = f"Unexpected field count, csvFields: {len(fields)}, schemaFields: {count}, line: {text}"
                raise ValueError(message)
            return [parse(field) if field else None for parse, field in zip(parsers, fields, strict=True)]

        return read_row

    def writer(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> WriteRow:
        texts = [_writer(column.type) for column in columns]
        delimiter = delimiter_of(options.delimiter)

        def write_row(row: Row) -> bytes:
            fields: list[str] = []
            for text_of, value in zip(texts, row, strict=True):
                fields.append("" if value is None else _quoted(text_of(value), delimiter, is_first=not fields))
            return delimiter.join(fields).encode()

        return write_row


def delimiter_of(text: str) -> str:
    r"""Returns the delimiter that a property names.

    >>> delimiter_of("TAB"), delimiter_of("|")
    ('\t', '|')
    """
    found = _NAMED.get(text.upper(), text) if len(text) > 1 else text
    if not text.strip():
        message = (
            "Delimiter cannot be empty, if you meant to have a tab or space for delimiter, please use the special "
            "values 'TAB' or 'SPACE'\nExample valid value: ';'"
        )
        raise SqlStatementError(message)
    if len(found) != 1:
        message = (
            f"Invalid delimiter value: '{text}'. Delimiter must be a single character or TAB,SPACE\n"
            "Example valid value: ';'"
        )
        raise SqlStatementError(message)
    return found


def _fields(text: str, delimiter: str) -> list[str]:
    if '"' not in text and "\n" not in text and "\r" not in text:
        if not text:
            message = "No fields in record"
            raise ValueError(message)
        return text.split(delimiter)
    for fields in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
        if fields:
            return fields
    message = "No fields in record"
    raise ValueError(message)


def _parser(type: SqlType) -> Callable[[str], Any]:
    match type.base:
        case SqlBaseType.BOOLEAN:
            return lambda text: text.lower() == "true"
        case SqlBaseType.INTEGER | SqlBaseType.DATE:
            return lambda text: parse_integer(text.strip(), 32)
        case SqlBaseType.BIGINT | SqlBaseType.TIME | SqlBaseType.TIMESTAMP:
            return lambda text: parse_integer(text.strip(), 64)
        case SqlBaseType.DOUBLE:
            return parse_double
        case SqlBaseType.DECIMAL:
            assert isinstance(type, SqlDecimal)
            fit = fitting(type)
            return lambda text: fit(parse_decimal(text.strip()))
        case SqlBaseType.BYTES:
            return lambda text: b64decode(text, validate=True)
        case _:
            return str


def _writer(type: SqlType) -> Callable[[Any], str]:
    match type.base:
        case SqlBaseType.BOOLEAN:
            return lambda value: "true" if value else "false"
        case SqlBaseType.DOUBLE:
            return double_text
        case SqlBaseType.DECIMAL:
            return lambda value: format(value, "f")
        case SqlBaseType.BYTES:
            return lambda value: b64encode(value).decode()
        case _:
            return str


def _quoted(text: str, delimiter: str, *, is_first: bool) -> str:
    # The rules of the library that ksqlDB writes with: it quotes more than a reader would need.
    if not text:
        return '""' if is_first else ""
    first = text[0]
    quote = (
        (is_first and first not in _PLAIN)
        or first <= "#"
        or text[-1] <= " "
        or delimiter in text
        or '"' in text
        or "\n" in text
        or "\r" in text
    )
    return '"' + text.replace('"', '""') + '"' if quote else text
