from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from headrace.sql.errors import SqlStatementError
from tests.sql.expressions.rows import type_of, typed, value


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("0.08", "DECIMAL(2, 2)", Decimal("0.08")),
        ("3000000000", "BIGINT", 3_000_000_000),
        ("1E3", "DOUBLE", 1000.0),
        ("a[1]", "INTEGER", 1),
        ("a[-1]", "INTEGER", 3),
        ("a[9]", "INTEGER", None),
        ("na[1]", "INTEGER", None),
        ("m['x']", "INTEGER", 1),
        ("m['y']", "INTEGER", None),
        ("nm['x']", "INTEGER", None),
        ("t->u", "INTEGER", 5),
        ("nt->u", "INTEGER", None),
        ("ARRAY[1, l, NULL]", "ARRAY<BIGINT>", [1, 2**40, None]),
        ("ARRAY[i, '2']", "ARRAY<INTEGER>", [7, 2]),
        ("ARRAY[i, '2.5', l]", "ARRAY<DECIMAL(20, 1)>", [Decimal("7.0"), Decimal("2.5"), Decimal(f"{2**40}.0")]),
        ("ARRAY['2', 3, true]", "ARRAY<STRING>", ["2", "3", "true"]),
        ("ARRAY[f, 'n', 'Ye']", "ARRAY<BOOLEAN>", [True, False, True]),
        ("ARRAY[day, '1970-01-02']", "ARRAY<DATE>", [19000, 1]),
        ("ARRAY[i / 0, 4]", "ARRAY<INTEGER>", [None, 4]),
        (
            "ARRAY[STRUCT(p := 1), STRUCT(q := 'a')]",
            "ARRAY<STRUCT<`P` INTEGER, `Q` STRING>>",
            [{"P": 1, "Q": None}, {"P": None, "Q": "a"}],
        ),
        ("MAP('a' := 1, 'b' := i / 0)", "MAP<STRING, INTEGER>", {"a": 1, "b": None}),
        ("STRUCT(p := i, q := 1 / n)->q", "INTEGER", None),
        ("(ARRAY[ARRAY[1]])[1][1]", "INTEGER", 1),
    ],
)
def test_parts_and_constructors(text: str, kind: str, expected: Any) -> None:
    assert type_of(text) == kind
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ARRAY[]", "Array constructor cannot be empty"),
        ("ARRAY[NULL]", "all NULL elements"),
        ("MAP()", "Map constructor cannot be empty"),
        ("MAP('a' := NULL)", "Cannot construct a map with all NULL values"),
        ("ARRAY[i, f]", "operator does not exist: INTEGER = BOOLEAN"),
        ("ARRAY['2', i]", "operator does not exist: STRING = INTEGER"),
        ("ARRAY[f, 'maybe']", 'invalid input syntax for type BOOLEAN: "maybe"'),
        ("s->x", "Expected STRUCT type, got: STRING"),
        ("t->x", "Could not find field 'X'"),
        ("i[1]", r"Subscript expression \(I\[1\]\) do not apply to INTEGER"),
        ("a['x']", "Array index must be an INTEGER"),
        ("STRUCT(p := 1, p := 2)", "Duplicate field names found in STRUCT"),
    ],
)
def test_parts_that_are_not_there_are_refused(text: str, words: str) -> None:
    with pytest.raises(SqlStatementError, match=words):
        typed(text)
