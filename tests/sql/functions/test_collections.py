from __future__ import annotations

from typing import Any

import pytest

from tests.sql.expressions.rows import value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ARRAY_SORT(a)", [1, 3, None]),
        ("ARRAY_SORT(a, 'descending')", [3, 1, None]),
        ("ARRAY_SORT(a, 'sideways')", None),
        ("ARRAY_MAX(a)", 3),
        ("ARRAY_MIN(ARRAY[CAST(NULL AS INT)])", None),
        ("ARRAY_CONTAINS(a, NULL)", True),
        ("ARRAY_CONTAINS(na, 1)", False),
        ("ARRAY_CONCAT(na, a)", [1, None, 3]),
        ("ARRAY_DISTINCT(ARRAY[ARRAY[1], ARRAY[1]])", [[1]]),
        ("ARRAY_EXCEPT(a, ARRAY[1])", [None, 3]),
        ("ARRAY_UNION(a, na)", None),
        ("ARRAY_REMOVE(a, CAST(NULL AS INT))", [1, 3]),
        ("ARRAY_JOIN(a)", "1,null,3"),
        ("ARRAY_JOIN(ARRAY[1.50, 2.00], NULL)", "1.502.00"),
        ("GENERATE_SERIES(3, 1)", [3, 2, 1]),
        ("GENERATE_SERIES(1, 3, -1)", None),
        ("GENERATE_SERIES(1, 3, 0)", None),
        ("SLICE(a, 2, 3)", [None, 3]),
        ("SLICE(a, NULL, 1)", [1]),
        ("SLICE(a, 2, 9)", None),
        ("AS_MAP(ARRAY['a', 'b'], ARRAY[1])", {"a": 1}),
        ("ENTRIES(m, false)", [{"K": "x", "V": 1}]),
        ("MAP_UNION(nm, m)", {"x": 1}),
        ("MAP_UNION(nm, nm)", None),
        ("FILTER(m, (k, v) => v > 1)", {}),
        ("REDUCE(na, 5, (s, x) => s + x)", 5),
        ("TRANSFORM(m, (k, v) => UCASE(k), (k, v) => v + 1)", {"X": 2}),
        ("TRANSFORM(MAP('a' := 1, 'b' := 2), (k, v) => 'same', (k, v) => v)", None),
        ("NULLIF(i, 7)", None),
        ("NULLIF(n, n)", None),
        ("IFNULL(n, 3)", 3),
    ],
)
def test_collection_functions(text: str, expected: Any) -> None:
    assert value(text) == expected
