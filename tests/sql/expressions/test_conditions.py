from __future__ import annotations

from typing import Any

import pytest

from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions import RowPredicate
from tests.sql.expressions.rows import ROW, type_of, typed, value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i = 7", True),
        ("i <> 7", False),
        ("d = 2.5", True),
        ("d > 2.49", True),
        ("e = 12.340", True),
        ("e < d", False),
        ("i < l", True),
        ("s < 'rivet'", True),
        ("f = true", True),
        ("a = ARRAY[1, CAST(NULL AS INT), 3]", True),
        ("m <> MAP('x' := 2)", True),
        ("t = STRUCT(u := 5, v := CAST(NULL AS STRING))", True),
        ("day = '2022-01-08'", True),
        ("day < at", False),
        ("at > '2020-09-13T12:26:39'", True),
        ("clock = '01:00'", True),
        ("rowtime > '2020-09-13'", True),
        ("rowtime BETWEEN '2020-09-13' AND '2020-09-14'", True),
        ("n = 1", False),
        ("n <> 1", False),
        ("NOT n = 1", True),
        ("n = n", False),
        ("n IS DISTINCT FROM i", True),
        ("n IS NOT DISTINCT FROM n", True),
        ("n IS NULL", True),
        ("s IS NOT NULL", True),
        ("i BETWEEN 7 AND 8", True),
        ("i + 1 BETWEEN 7 AND 8", True),
        ("n BETWEEN 1 AND 2", False),
        ("n NOT BETWEEN 1 AND 2", True),
        ("i IN (1, '7', l)", True),
        ("s IN ('a', 'river')", True),
        ("n IN (1, 2)", False),
        ("n NOT IN (1, 2)", True),
        ("a IN (ARRAY['1', NULL, '3'])", True),
        ("day IN ('2022-01-08')", True),
        ("b IN ('AQI=')", True),
        ("b IN (s)", None),
        ("s LIKE 'r_v%'", True),
        ("s NOT LIKE '%x%'", True),
        ("'50%' LIKE '50!%' ESCAPE '!'", True),
        ("s LIKE s", True),
        ("'abcabc' LIKE '%b%bc'", True),
        ("'abcab' LIKE 'ab%b%bc'", False),
        # Trying all places of all parts would take for ever.
        (f"'{'a' * 5000}' LIKE '{'%a' * 20}%b'", False),
        ("f AND i = 7", True),
        ("f OR nf", True),
        ("NOT f", False),
    ],
)
def test_truth(text: str, expected: object) -> None:
    assert type_of(text) == "BOOLEAN"
    assert value(text) is expected


@pytest.mark.parametrize("text", ["nf AND f", "f AND nf", "nf OR f", "NOT nf", "ns LIKE '%'"])
def test_null_is_neither_true_nor_false(text: str) -> None:
    assert value(text) is None
    assert RowPredicate(typed(text))(ROW) is False


@pytest.mark.parametrize("text", ["n = 1", "1 / n = 1", "nf", "n / 0 > 1 OR f"])
def test_a_predicate_that_is_null_or_fails_does_not_pass(text: str) -> None:
    assert RowPredicate(typed(text), text)(ROW) is False


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("CASE WHEN i > 5 THEN 'big' ELSE 'small' END", "STRING", "big"),
        ("CASE i WHEN 1 THEN 'one' WHEN 7 THEN 'seven' END", "STRING", "seven"),
        ("CASE WHEN i < 5 THEN 1 END", "INTEGER", None),
        ("CASE WHEN f THEN NULL ELSE 2 END", "INTEGER", None),
        ("CASE WHEN f THEN 1 ELSE 1 / 0 END", "INTEGER", 1),
    ],
)
def test_case_takes_the_first_branch_that_is_true(text: str, kind: str, expected: Any) -> None:
    assert type_of(text) == kind
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("i < 'x'", r"Cannot compare I \(INTEGER\) to 'x' \(STRING\) with LESS_THAN"),
        ("a < a", r"Cannot compare A \(ARRAY<INTEGER>\) to A"),
        ("clock = day", "Cannot compare"),
        ("i = NULL", "Comparison with NULL not supported: INTEGER = NULL"),
        ("i IN (1, 'x')", 'Invalid Predicate: invalid input syntax for type INTEGER: "x".'),
        ("i IN (f)", r"Invalid Predicate: operator does not exist: INTEGER = BOOLEAN \(F\)"),
        ("a IN (ARRAY[1, f])", r"Invalid Predicate: operator does not exist: INTEGER = BOOLEAN \(F\)"),
        ("b IN ('?')", 'Invalid Predicate: invalid input syntax for type BYTES: "\\?".'),
        ("a IN (i)", r"operator does not exist: ARRAY<INTEGER> = INTEGER \(I\)"),
        ("CASE WHEN f THEN 1 ELSE 'a' END", "default clause should be the same as for 'THEN' clauses"),
        ("CASE WHEN f THEN 1 WHEN f THEN 'a' END", "Type for all 'THEN' clauses should be the same"),
        ("CASE WHEN i THEN 1 END", "WHEN operand type should be boolean"),
        ("CASE WHEN f THEN NULL END", "All case branches have NULL type"),
        ("i AND f", "takes BOOLEAN"),
        ("NOT i", "takes BOOLEAN"),
        ("i LIKE 'a'", "between strings"),
        ("rowtime > 'soon'", "Failed to parse timestamp 'soon'"),
    ],
)
def test_conditions_that_make_no_sense_are_refused(text: str, words: str) -> None:
    with pytest.raises(SqlStatementError, match=words):
        typed(text)
