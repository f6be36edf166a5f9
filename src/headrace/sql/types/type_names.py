"""Names of types in error messages."""

from __future__ import annotations

from headrace.sql.types import SqlType


def type_text(sql_type: SqlType | None) -> str:
    """Returns a type as error messages show it, ``null`` for that of a bare NULL.

    >>> from headrace.sql.types import INTEGER, STRUCT, StructField
    >>> type_text(STRUCT((StructField("ID", INTEGER),))), type_text(None)
    ('STRUCT<`ID` INTEGER>', 'null')
    """
    return "null" if sql_type is None else str(sql_type)
