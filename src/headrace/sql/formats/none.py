"""NONE: nothing is read and nothing is written."""

from __future__ import annotations

from typing import ClassVar

from headrace.sql.errors import SqlStatementError
from headrace.sql.formats.format import Format, FormatOptions, ReadRow, Target, WriteRow, column_list
from headrace.sql.types.schema import Column


class NoneFormat(Format):
    """The format of keys and values without columns."""

    name: ClassVar[str] = "NONE"

    def check(self, columns: tuple[Column, ...], options: FormatOptions | None = None) -> None:
        if columns:
            message = f"The 'NONE' format can only be used when no columns are defined. Got: {column_list(columns)}"
            raise SqlStatementError(message)

    def reader(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> ReadRow:
        return lambda data: None

    def writer(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> WriteRow:
        return lambda row: None
