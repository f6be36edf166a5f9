"""Types of SQL, and what their values do.

| module | |
|---|---|
| ``sql_types`` | the types, as values; import them from this package |
| ``schema`` | the columns of a source: keys, values, headers |
| ``conversions`` | from one type to another |
| ``java_arithmetic``, ``times`` | numbers as Java computes them; dates and times without a limit on years |
| ``type_names`` | how messages call types |
"""

from headrace.sql.types.sql_types import (
    ARRAY,
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DOUBLE,
    INTEGER,
    MAP,
    PLAIN_TYPES,
    STRING,
    STRUCT,
    TIME,
    TIMESTAMP,
    SqlArray,
    SqlBaseType,
    SqlDecimal,
    SqlMap,
    SqlStruct,
    SqlType,
    StructField,
    quoted,
)

__all__ = [
    "ARRAY",
    "BIGINT",
    "BOOLEAN",
    "BYTES",
    "DATE",
    "DECIMAL",
    "DOUBLE",
    "INTEGER",
    "MAP",
    "PLAIN_TYPES",
    "STRING",
    "STRUCT",
    "TIME",
    "TIMESTAMP",
    "SqlArray",
    "SqlBaseType",
    "SqlDecimal",
    "SqlMap",
    "SqlStruct",
    "SqlType",
    "StructField",
    "quoted",
]
