"""Common part of the tests of formats: columns of every type, and rows for them."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from headrace.sql.types import (
    ARRAY,
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DOUBLE,
    INTEGER,
    MAP,
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
)
from headrace.sql.types.schema import Column, Namespace

SCALARS: tuple[SqlType, ...] = (
    *(BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING, BYTES, DATE, TIME, TIMESTAMP),
    *(DECIMAL(6, 2), DECIMAL(30, 12)),
)
NESTED: tuple[SqlType, ...] = (
    ARRAY(DOUBLE),
    MAP(STRING, DECIMAL(5, 1)),
    STRUCT((StructField("A", INTEGER), StructField("B", BYTES))),
    ARRAY(STRUCT((StructField("X", DOUBLE), StructField("M", MAP(STRING, TIMESTAMP))))),
)
DAY_MS = 24 * 60 * 60 * 1000
_SCALARS: dict[SqlBaseType, st.SearchStrategy[Any]] = {
    SqlBaseType.BOOLEAN: st.booleans(),
    SqlBaseType.INTEGER: st.integers(-(2**31), 2**31 - 1),
    SqlBaseType.BIGINT: st.integers(-(2**63), 2**63 - 1),
    SqlBaseType.DOUBLE: st.floats(allow_nan=False),
    SqlBaseType.STRING: st.text(st.characters(exclude_categories=["Cs"])),
    SqlBaseType.BYTES: st.binary(),
    # What a calendar of Python holds, because Protobuf writes years and months.
    SqlBaseType.DATE: st.integers(-700_000, 2_900_000),
    SqlBaseType.TIME: st.integers(0, DAY_MS - 1),
    SqlBaseType.TIMESTAMP: st.integers(-(2**50), 2**50),
}


def value_columns(types: Iterable[SqlType]) -> tuple[Column, ...]:
    return tuple(Column(f"C{index}", type) for index, type in enumerate(types))


def key_columns(types: Iterable[SqlType]) -> tuple[Column, ...]:
    return tuple(Column(f"K{index}", type, Namespace.KEY) for index, type in enumerate(types))


def values(type: SqlType, *, nulls: bool = True) -> st.SearchStrategy[Any]:
    """Values of a type; ``nulls``: also None, everywhere."""
    found = _not_null(type, nulls=nulls)
    return found | st.none() if nulls else found


def _not_null(type: SqlType, *, nulls: bool) -> st.SearchStrategy[Any]:
    if isinstance(type, SqlDecimal):
        limit = 10**type.precision - 1
        return st.integers(-limit, limit).map(lambda number: Decimal(f"{number}E-{type.scale}"))
    if isinstance(type, SqlArray):
        return st.lists(values(type.item, nulls=nulls), max_size=3)
    if isinstance(type, SqlMap):
        return st.dictionaries(values(STRING, nulls=False), values(type.value, nulls=nulls), max_size=3)
    if isinstance(type, SqlStruct):
        return st.fixed_dictionaries({field.name: values(field.type, nulls=nulls) for field in type.fields})
    return _SCALARS[type.base]


def rows(columns: tuple[Column, ...], *, nulls: bool = True) -> st.SearchStrategy[list[Any]]:
    return st.tuples(*(values(column.type, nulls=nulls) for column in columns)).map(list)
