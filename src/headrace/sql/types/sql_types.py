"""The types of SQL, as values.

How a value of each type is held while a row is processed:

======================= =====================================================================
SQL                      Python
======================= =====================================================================
BOOLEAN                  bool
INTEGER, BIGINT          int, wrapped around at 32 and 64 bits as Java does
DOUBLE                   float
DECIMAL(p, s)            decimal.Decimal with exactly s digits behind the point
STRING                   str
BYTES                    bytes
DATE                     int, days since 1970-01-01
TIME                     int, milliseconds of the day
TIMESTAMP                int, milliseconds since 1970-01-01 UTC
ARRAY                    list
MAP, STRUCT              dict
======================= =====================================================================

Dates and times are plain numbers because the type is known when a statement is compiled: nothing has to be asked of
a value, and no calendar limits it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class SqlBaseType(Enum):
    """The kind of a type, without its parameters, in the order of numeric widening."""

    BOOLEAN = "BOOLEAN"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    DECIMAL = "DECIMAL"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    BYTES = "BYTES"
    ARRAY = "ARRAY"
    MAP = "MAP"
    STRUCT = "STRUCT"
    TIME = "TIME"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type without parameters, and the base of those with some. ``str`` gives its SQL text.

    >>> str(ARRAY(STRUCT((StructField("ID", INTEGER), StructField("f o", DECIMAL(4, 2))))))
    'ARRAY<STRUCT<`ID` INTEGER, `f o` DECIMAL(4, 2)>>'
    """

    base: SqlBaseType

    def __str__(self) -> str:
        return self.base.value


BOOLEAN = SqlType(SqlBaseType.BOOLEAN)
INTEGER = SqlType(SqlBaseType.INTEGER)
BIGINT = SqlType(SqlBaseType.BIGINT)
DOUBLE = SqlType(SqlBaseType.DOUBLE)
STRING = SqlType(SqlBaseType.STRING)
BYTES = SqlType(SqlBaseType.BYTES)
TIME = SqlType(SqlBaseType.TIME)
DATE = SqlType(SqlBaseType.DATE)
TIMESTAMP = SqlType(SqlBaseType.TIMESTAMP)

PLAIN_TYPES: Mapping[str, SqlType] = {
    "BOOLEAN": BOOLEAN,
    "INT": INTEGER,
    "INTEGER": INTEGER,
    "BIGINT": BIGINT,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "VARCHAR": STRING,
    "BYTES": BYTES,
    "DATE": DATE,
    "TIME": TIME,
    "TIMESTAMP": TIMESTAMP,
}
"""The types without parameters, under all their names."""


@dataclass(frozen=True, slots=True)
class SqlDecimal(SqlType):
    """A number with ``precision`` digits, ``scale`` of them behind the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class SqlArray(SqlType):
    """A list of values of one type."""

    item: SqlType

    def __str__(self) -> str:
        return f"ARRAY<{self.item}>"


@dataclass(frozen=True, slots=True)
class SqlMap(SqlType):
    """A map from keys of one type to values of one type."""

    key: SqlType
    value: SqlType

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class StructField:
    """A named part of a struct."""

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class SqlStruct(SqlType):
    """A value with named fields, in their order."""

    fields: tuple[StructField, ...]

    def field(self, name: str) -> SqlType | None:
        """Returns the type of the field, or None if there is none of that name."""
        return next((field.type for field in self.fields if field.name == name), None)

    def __str__(self) -> str:
        return f"STRUCT<{', '.join(f'`{field.name}` {field.type}' for field in self.fields)}>"


def DECIMAL(precision: int, scale: int) -> SqlDecimal:
    """Returns the type of decimals of this size.

    >>> str(DECIMAL(4, 2))
    'DECIMAL(4, 2)'
    """
    return SqlDecimal(SqlBaseType.DECIMAL, precision, scale)


def ARRAY(item: SqlType) -> SqlArray:
    """Returns the type of arrays of ``item``."""
    return SqlArray(SqlBaseType.ARRAY, item)


def MAP(key: SqlType, value: SqlType) -> SqlMap:
    """Returns the type of maps from ``key`` to ``value``."""
    return SqlMap(SqlBaseType.MAP, key, value)


def STRUCT(fields: tuple[StructField, ...]) -> SqlStruct:
    """Returns the type of structs with these fields."""
    return SqlStruct(SqlBaseType.STRUCT, fields)


def quoted(name: str) -> str:
    """Returns the name as it is written in SQL: in backticks unless it is an upper-case word.

    >>> quoted("ID"), quoted("id"), quoted("a`b")
    ('ID', '`id`', '`a``b`')
    """
    plain = name.isascii() and name.replace("_", "A").isalnum() and not name[0].isdigit() and name == name.upper()
    return name if plain else "`" + name.replace("`", "``") + "`"
