"""Expressions over one row with a column of every type."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions import RowFunction, Slot, TypedExpression, analyse
from headrace.sql.functions import BUILTIN_FUNCTIONS, FunctionRegistry
from headrace.sql.syntax.nodes import ColumnReference
from headrace.sql.syntax.parser import parse_expression
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
    SqlType,
    StructField,
)

COLUMNS: dict[str, tuple[SqlType, Any]] = {
    "I": (INTEGER, 7),
    "L": (BIGINT, 2**40),
    "D": (DOUBLE, 2.5),
    "E": (DECIMAL(5, 2), Decimal("12.34")),
    "S": (STRING, "river"),
    "F": (BOOLEAN, True),
    "B": (BYTES, b"\x01\x02"),
    "DAY": (DATE, 19000),
    "CLOCK": (TIME, 3_600_000),
    "AT": (TIMESTAMP, 1_600_000_000_000),
    "A": (ARRAY(INTEGER), [1, None, 3]),
    "M": (MAP(STRING, INTEGER), {"x": 1}),
    "T": (STRUCT((StructField("U", INTEGER), StructField("V", STRING))), {"U": 5, "V": None}),
    "N": (INTEGER, None),
    "NS": (STRING, None),
    "NF": (BOOLEAN, None),
    "NA": (ARRAY(INTEGER), None),
    "NM": (MAP(STRING, INTEGER), None),
    "NT": (STRUCT((StructField("U", INTEGER),)), None),
    "ROWTIME": (BIGINT, 1_600_000_000_000),
}
ROW = [value for _, value in COLUMNS.values()]


class Columns:
    def slot(self, reference: ColumnReference) -> Slot:
        if reference.name not in COLUMNS:
            message = f"column '{reference.name}' cannot be resolved"
            raise SqlStatementError(message)
        return Slot(COLUMNS[reference.name][0], f"row[{list(COLUMNS).index(reference.name)}]")


def typed(
    text: str, functions: FunctionRegistry = BUILTIN_FUNCTIONS, settings: dict[str, object] | None = None
) -> TypedExpression:
    return analyse(parse_expression(text), Columns(), functions, settings or {})


def value(text: str, functions: FunctionRegistry = BUILTIN_FUNCTIONS, settings: dict[str, object] | None = None) -> Any:
    return RowFunction([typed(text, functions, settings)], [text])(ROW)[0]


def type_of(text: str) -> str:
    return str(typed(text).type)
