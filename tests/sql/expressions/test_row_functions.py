from __future__ import annotations

import logging
import pickle

import pytest

from headrace.sql.expressions import RowFunction, RowPredicate, analyse_as
from headrace.sql.functions import BUILTIN_FUNCTIONS
from headrace.sql.syntax.parser import parse_expression
from headrace.sql.types import DOUBLE
from tests.sql.expressions.rows import ROW, Columns, typed

TEXTS = ["i + 1", "UCASE(s)", "s LIKE 'r%'", "i IN (1, 7)", "e * 2", "TRANSFORM(a, x => COALESCE(x, 0) + i)", "i / 0"]
RESULTS = [8, "RIVER", True, True, None, [8, 7, 10], None]


def test_row_function_gives_one_value_per_expression() -> None:
    values = RowFunction([typed(text) for text in TEXTS], TEXTS)(ROW)
    assert [*values[:4], *values[5:]] == [*RESULTS[:4], *RESULTS[5:]]
    assert str(values[4]) == "24.68"


def test_row_functions_and_predicates_pickle() -> None:
    function = RowFunction([typed(text) for text in TEXTS], TEXTS)
    predicate = RowPredicate(typed("s LIKE 'r%' AND i IN (1, 7)"))
    assert pickle.loads(pickle.dumps(function))(ROW) == function(ROW)
    assert pickle.loads(pickle.dumps(predicate))(ROW) is True


def test_equal_expressions_have_equal_source() -> None:
    text = "s LIKE 'r%' AND s IN ('a', 'b', 'river') AND e > 1.5"
    assert RowPredicate(typed(text)).source == RowPredicate(typed(text)).source


def test_a_plain_column_needs_no_try() -> None:
    assert RowFunction([typed("i"), typed("s")]).source == "def function(row):\n    return [row[0], row[4]]"


def test_a_failed_expression_is_null_and_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "headrace.sql.processing"):
        assert RowFunction([typed("i / 0"), typed("i")], ["I / 0", "I"])(ROW) == [None, 7]
    assert "expression I / 0: ZeroDivisionError" in caplog.text


def test_an_expression_can_be_asked_for_in_a_type() -> None:
    expression = analyse_as(parse_expression("i"), DOUBLE, Columns(), BUILTIN_FUNCTIONS)
    assert RowFunction([expression])(ROW) == [7.0]
