from __future__ import annotations

import pickle
from collections.abc import Iterator
from decimal import Decimal
from itertools import count
from typing import Annotated, Any, TypedDict, TypeVar

import pytest

from headrace.sql.errors import SqlFunctionError
from headrace.sql.expressions import RowFunction, aggregate_call, table_call
from headrace.sql.expressions.literals import value_of
from headrace.sql.functions import BUILTIN_FUNCTIONS, load_function, sql_function, udaf, udf, udtf
from headrace.sql.syntax.nodes import Call
from headrace.sql.syntax.parser import parse_expression
from headrace.sql.types import DATE, DECIMAL, INTEGER
from tests.sql.expressions.rows import ROW, Columns, typed, value

T = TypeVar("T")


class Point(TypedDict):
    x: float
    label: str


@udf
def reversed_text(text: str) -> str:
    """Returns the text backwards.

    More words follow.
    """
    return text[::-1]


@udf(name="twice")
def doubled(number: int) -> int:
    return number * 2


@udf
def or_else(value: str | None, otherwise: str = "none") -> str:
    return otherwise if value is None else value


@udf
def last(items: list[T]) -> T:
    return items[-1]


@udf
def total(*numbers: float) -> float:
    return sum(numbers)


@udf
def make_point(x: float) -> Point:
    return {"X": x, "LABEL": "here"}  # type: ignore[typeddict-item]  # names are in upper case in SQL


@udf
def cents(amount: Decimal) -> Annotated[Decimal, DECIMAL(10, 2)]:
    return amount.quantize(Decimal("0.01"))


@udf
def next_day(day: Annotated[int, DATE]) -> Annotated[int, DATE]:
    return day + 1


@udf
def broken(number: int) -> int:
    raise RuntimeError(number)


@udf
def wrong(kind: str) -> int:
    answers: dict[str, Any] = {"text": "7", "large": 2**63, "true": True, "null": None, "right": 7}
    return answers[kind]  # type: ignore[no-any-return]  # that is the point


@udf
def point(name: str) -> Point:
    return {name: 1}  # type: ignore[misc]  # names may be in lower case, and there may be one that is none


@udtf
def letters(text: str) -> Iterator[str]:
    yield from text


@udaf
class Longest:
    """Returns the longest text."""

    def initialize(self) -> str:
        return ""

    def aggregate(self, state: str, text: str) -> str:
        return max(state, text, key=len)

    def merge(self, left: str, right: str) -> str:
        return max(left, right, key=len)

    def map(self, state: str) -> Annotated[int, INTEGER]:
        return len(state)


@udaf
class PairCount:
    def initialize(self) -> int:
        return 0

    def aggregate(self, state: int, first: str | None, second: str) -> int:
        return state + len(second)

    def undo(self, state: int, first: str | None, second: str) -> int:
        return state - len(second)

    def map(self, state: int) -> str:
        return state  # type: ignore[return-value]  # that is the point


@udaf(name="above")
class CountAbove:
    def __init__(self, limit: Annotated[int, INTEGER]) -> None:
        self.limit = limit

    def initialize(self) -> int:
        return 0

    def aggregate(self, state: int, value: float) -> int:
        return state + (value > self.limit)

    def undo(self, state: int, value: float) -> int:
        return state - (value > self.limit)


FUNCTIONS = BUILTIN_FUNCTIONS.with_functions(
    *map(
        sql_function,
        (
            reversed_text, doubled, or_else, last, total, make_point, cents, next_day, broken, wrong, point, letters,
            Longest, CountAbove, PairCount,
        ),
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("REVERSED_TEXT(s)", "STRING", "revir"),
        ("reversed_text(ns)", "STRING", None),
        ("TWICE(i)", "BIGINT", 14),
        ("OR_ELSE(ns)", "STRING", "none"),
        ("OR_ELSE(ns, 'x')", "STRING", "x"),
        ("LAST(a)", "INTEGER", 3),
        ("TOTAL(i, d, 1)", "DOUBLE", 10.5),
        ("TOTAL()", "DOUBLE", 0),
        ("MAKE_POINT(d)->x", "DOUBLE", 2.5),
        ("CENTS(e)", "DECIMAL(10, 2)", Decimal("12.34")),
        ("NEXT_DAY(day)", "DATE", 19001),
        ("BROKEN(i)", "BIGINT", None),
        ("OR_ELSE(s, ns)", "STRING", None),
        ("WRONG('right')", "BIGINT", 7),
        ("WRONG('null')", "BIGINT", None),
        ("WRONG('text')", "BIGINT", None),
        ("WRONG('large')", "BIGINT", None),
        ("WRONG('true')", "BIGINT", None),
        ("POINT('x')", "STRUCT<`X` DOUBLE, `LABEL` STRING>", {"X": 1.0, "LABEL": None}),
        ("POINT('y')", "STRUCT<`X` DOUBLE, `LABEL` STRING>", None),
    ],
)
def test_python_functions_are_called_from_sql(text: str, kind: str, expected: Any) -> None:
    assert str(typed(text, FUNCTIONS).type) == kind
    assert value(text, FUNCTIONS) == expected


def test_expressions_with_python_functions_pickle() -> None:
    function = RowFunction([typed("REVERSED_TEXT(s)", FUNCTIONS)])
    assert pickle.loads(pickle.dumps(function))(ROW) == ["revir"]


def test_a_decorated_function_is_still_a_function() -> None:
    assert reversed_text("ab") == "ba"
    assert sql_function(reversed_text).description == "Returns the text backwards."


def test_a_plain_function_and_another_name_will_do() -> None:
    def plain(text: str) -> int:
        return len(text)

    assert sql_function(plain, name="size").name == "SIZE"


def _call(text: str) -> Call:
    node = parse_expression(text)
    assert isinstance(node, Call)
    return node


def test_python_table_functions_give_rows() -> None:
    made = table_call(_call("LETTERS('ab')"), Columns(), FUNCTIONS)
    assert (str(made.item_type), value_of(made.expression)) == ("STRING", ["a", "b"])
    assert value_of(table_call(_call("LETTERS(NULL)"), Columns(), FUNCTIONS).expression) == []


def test_python_table_function_without_an_end_is_refused() -> None:
    def numbers(start: int) -> Iterator[int]:
        yield from count(start)

    functions = BUILTIN_FUNCTIONS.with_functions(sql_function(udtf(numbers)))
    endless = table_call(_call("NUMBERS(1)"), Columns(), functions).expression
    with pytest.raises(ValueError, match="numbers may return 1,000,000 rows at most for a row"):
        value_of(endless)


def test_python_aggregates_fold_rows() -> None:
    made = aggregate_call(_call("LONGEST(s)"), Columns(), FUNCTIONS).aggregate
    state = made.aggregate(made.aggregate(made.initialize(), "ab"), "a")
    assert (made.map(state), str(made.state_type), str(made.result_type)) == (2, "STRING", "INTEGER")
    assert made.map(made.merge(state, "abc")) == 3
    assert not made.can_undo


def test_python_aggregates_never_see_a_null_that_they_do_not_take() -> None:
    made = aggregate_call(_call("PAIRCOUNT(ns, s)"), Columns(), FUNCTIONS).aggregate
    assert made.aggregate(5, None, "abc") == 8
    assert made.aggregate(5, "abc", None) == 5
    assert made.undo(5, "abc", None) == 5


def test_results_of_python_aggregates_are_of_the_declared_type() -> None:
    made = aggregate_call(_call("PAIRCOUNT(ns, s)"), Columns(), FUNCTIONS).aggregate
    with pytest.raises(TypeError, match=r"PairCount\.map returned int 5, and is declared to return STRING"):
        made.map(5)


def test_python_aggregates_take_constants() -> None:
    made = aggregate_call(_call("ABOVE(d, 3)"), Columns(), FUNCTIONS).aggregate
    assert made.can_undo
    assert made.undo(made.aggregate(made.initialize(), 4.0), 4.0) == 0
    assert pickle.loads(pickle.dumps(made)).aggregate(0, 2.0) == 0


def _no_hint(text) -> str:  # type: ignore[no-untyped-def]  # that is the point
    return str(text)


def _no_result(text: str):  # type: ignore[no-untyped-def]  # that is the point
    return text


def _odd(text: complex) -> str:
    return str(text)


def _unsized(text: str) -> Decimal:
    return Decimal(text)


class _Incomplete:
    def initialize(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (_no_hint, "'text' has no type hint"),
        (_no_result, "no hint for its result"),
        (_odd, "means no SQL type"),
        (_unsized, r"such as Annotated\[Decimal, DECIMAL\(10, 2\)\]"),
        (_Incomplete, "no method aggregate"),
        (5, "is no function"),
        (udtf(_odd), "means no SQL type"),
    ],
)
def test_functions_without_sql_types_are_refused(target: Any, words: str) -> None:
    with pytest.raises(SqlFunctionError, match=words):
        sql_function(target)


def test_functions_are_found_by_module_and_name() -> None:
    function = load_function(f"{__name__}:reversed_text", name="backwards")
    assert value("BACKWARDS(s)", FUNCTIONS.with_functions(function)) == "revir"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("math", "write the place of a Python function as 'module:function'"),
        ("no_such_module:f", "cannot be imported"),
        ("math:f", "the module 'math' has no 'f'"),
        ("math:pi", "is no function"),
    ],
)
def test_places_without_a_function_are_refused(target: str, words: str) -> None:
    with pytest.raises(SqlFunctionError, match=words):
        load_function(target)
