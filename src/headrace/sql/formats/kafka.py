"""KAFKA: one column in the layout of Kafka's own serdes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from headrace.serdes.base import BaseSerde
from headrace.serdes.primitives import BytesSerde, DoubleSerde, IntegerSerde, LongSerde, StringSerde
from headrace.sql.errors import SqlStatementError
from headrace.sql.formats.format import Format, FormatOptions, ReadRow, Row, Target, WriteRow, column_list
from headrace.sql.types import SqlBaseType
from headrace.sql.types.schema import Column

_SERDES: dict[SqlBaseType, BaseSerde[Any]] = {
    SqlBaseType.INTEGER: IntegerSerde(),
    SqlBaseType.BIGINT: LongSerde(),
    SqlBaseType.DOUBLE: DoubleSerde(),
    SqlBaseType.STRING: StringSerde(),
    SqlBaseType.BYTES: BytesSerde(),
}


class KafkaFormat(Format):
    """INT, BIGINT and DOUBLE in 4 or 8 bytes, STRING in UTF-8, BYTES as they are; one column only."""

    name: ClassVar[str] = "KAFKA"
    unwraps_singles: ClassVar[bool] = True

    def check(self, columns: tuple[Column, ...], options: FormatOptions | None = None) -> None:
        if len(columns) > 1:
            message = f"The 'KAFKA' format only supports a single field. Got: {column_list(columns)}"
            raise SqlStatementError(message)
        for column in columns:
            if column.type.base not in _SERDES:
                message = f"The 'KAFKA' format does not support type '{column.type.base.value}'"
                raise SqlStatementError(message)

    def reader(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> ReadRow:
        if not columns:
            return lambda data: []
        read = _SERDES[columns[0].type.base].deserializer(target.topic, is_key=target.is_key)
        return lambda data: [read(data)]

    def writer(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> WriteRow:
        if not columns:
            return lambda row: None
        return _row_writer(_SERDES[columns[0].type.base].serializer(target.topic, is_key=target.is_key))

    def fast_reader(self, columns: tuple[Column, ...], options: FormatOptions) -> ReadRow | None:
        read = _SERDES[columns[0].type.base].fast_deserializer(is_key=False) if columns else None
        return None if read is None else lambda data: [read(data)]

    def fast_key_reader(
        self, columns: tuple[Column, ...], options: FormatOptions
    ) -> Callable[[bytes], tuple[Any, ...] | None] | None:
        read = _SERDES[columns[0].type.base].fast_deserializer(is_key=True) if columns else None
        return None if read is None else lambda data: (read(data),)

    def fast_writer(self, columns: tuple[Column, ...], options: FormatOptions) -> WriteRow | None:
        write = _SERDES[columns[0].type.base].fast_serializer(is_key=False) if columns else None
        return None if write is None else _row_writer(write)


def _row_writer(write: Callable[[Any], bytes]) -> WriteRow:
    def write_row(row: Row) -> bytes | None:
        value = row[0]
        return None if value is None else write(value)

    return write_row
