"""JSON: a row as an object with a field for each column."""

from __future__ import annotations

from typing import ClassVar

from headrace.sql.formats.format import Format, FormatOptions, ReadRow, Target, WriteRow, check_map_keys
from headrace.sql.formats.json_reading import row_reader
from headrace.sql.formats.json_writing import row_writer
from headrace.sql.types.schema import Column


class JsonFormat(Format):
    """Objects of JSON; maps have strings as keys."""

    name: ClassVar[str] = "JSON"
    wraps_singles: ClassVar[bool] = True
    unwraps_singles: ClassVar[bool] = True

    def check(self, columns: tuple[Column, ...], options: FormatOptions | None = None) -> None:
        check_map_keys(columns, "JSON only supports MAP types with STRING keys")

    def reader(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> ReadRow:
        return row_reader(columns, wrapped=is_wrapped(columns, options))

    def writer(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> WriteRow:
        return row_writer(columns, wrapped=is_wrapped(columns, options))

    def fast_reader(self, columns: tuple[Column, ...], options: FormatOptions) -> ReadRow:
        return row_reader(columns, wrapped=is_wrapped(columns, options))

    def fast_writer(self, columns: tuple[Column, ...], options: FormatOptions) -> WriteRow:
        return row_writer(columns, wrapped=is_wrapped(columns, options))


def is_wrapped(columns: tuple[Column, ...], options: FormatOptions) -> bool:
    """Whether the columns are fields of an object: several always are."""
    return options.wrapped or len(columns) != 1
