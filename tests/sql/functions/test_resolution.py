from __future__ import annotations

import pytest

from headrace.sql.errors import SqlFunctionError
from headrace.sql.functions import BUILTIN_FUNCTIONS, FunctionRegistry
from headrace.sql.functions.definitions import overload, scalar
from tests.sql.expressions.rows import typed, value


def _name(*arguments: object) -> str:
    return "exact"


def _wide(*arguments: object) -> str:
    return "wide"


def _many(*arguments: object) -> str:
    return "many"


def _any(*arguments: object) -> str:
    return "any"


FUNCTIONS = BUILTIN_FUNCTIONS.with_functions(
    scalar("pick", "Picks.", "Test", [], overload("(a INT) STRING", _name), overload("(a DOUBLE) STRING", _wide)),
    scalar("many", "Picks.", "Test", [], overload("(a INT) STRING", _name), overload("(a INT...) STRING", _many)),
    scalar("kind", "Picks.", "Test", [], overload("(a INT) STRING", _name), overload("(a T) STRING", _any)),
    scalar("middle", "Picks.", "Test", [], overload("(a INT, b STRING..., c INT) STRING", _many)),
)


@pytest.mark.parametrize(
    ("call", "chosen"),
    [
        ("pick(1)", "exact"),
        ("pick(1.5)", "wide"),
        ("pick(l)", "wide"),
        ("many(1)", "exact"),
        ("many(1, 2)", "many"),
        ("many()", "many"),
        ("kind(1)", "exact"),
        ("kind('a')", "any"),
        ("middle(1, 2)", "many"),
        ("middle(1, 'a', 'b', 2)", "many"),
    ],
)
def test_the_closest_overload_is_called(call: str, chosen: str) -> None:
    assert value(call, FUNCTIONS) == chosen


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("pick(NULL)", r"Function 'pick' cannot be resolved due to ambiguous method parameters \(null\)"),
        ("pick('a')", r"Function 'pick' does not accept parameters \(STRING\)"),
        ("middle(1, 2, 3)", r"Function 'middle' does not accept parameters \(INTEGER, INTEGER, INTEGER\)"),
        ("TRANSFORM(a, (x, y) => x)", r"does not accept parameters \(ARRAY<INTEGER>, LAMBDA\)"),
        ("DATEADD(at, 1, day)", r"Function 'dateadd' does not accept parameters \(TIMESTAMP, INTEGER, DATE\)"),
        ("ARRAY_CONTAINS(a, 'x')", r"\(ARRAY<INTEGER>, STRING\)"),
        ("no_such()", "Can't find any functions with the name 'NO_SUCH'"),
        ("ucas('a')", "did you mean UCASE?"),
    ],
)
def test_calls_that_fit_nothing_are_refused(call: str, words: str) -> None:
    with pytest.raises(SqlFunctionError, match=words):
        typed(call, FUNCTIONS)


def test_the_message_lists_what_can_be_called() -> None:
    with pytest.raises(SqlFunctionError, match=r"Valid alternatives are:\npick\(INT a\)\npick\(DOUBLE a\)"):
        typed("pick('a')", FUNCTIONS)


def test_numbers_of_a_generic_call_become_the_widest() -> None:
    assert str(typed("COALESCE(n, l)").type) == "BIGINT"
    assert value("COALESCE(n, d)") == 2.5
    assert value("ARRAY_CONCAT(a, ARRAY[d])") == [1.0, None, 3.0, 2.5]


def test_text_becomes_a_date_where_one_is_needed() -> None:
    assert value("UNIX_DATE('1970-01-05')") == 4


def test_a_lambda_sees_the_columns_around_it() -> None:
    assert value("TRANSFORM(a, x => x + i)") is None  # one item is NULL, and the lambda fails on it
    assert value("FILTER(a, x => x > 1 AND i = 7)") == [3]
    assert value("REDUCE(m, 1, (state, key, item) => state + item)") == 2
    assert value("TRANSFORM(ARRAY[ARRAY[1], ARRAY[2]], x => TRANSFORM(x, y => y * i))") == [[7], [14]]


def test_registries_are_values() -> None:
    smaller = FUNCTIONS.without("pick")
    assert "PICK" in FUNCTIONS
    assert "pick" not in smaller
    assert FunctionRegistry().find("UCASE") is None
    assert BUILTIN_FUNCTIONS.is_table("explode")
    assert not BUILTIN_FUNCTIONS.is_table("ucase")
