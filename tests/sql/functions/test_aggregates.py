from __future__ import annotations

import math
import pickle
import time
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from headrace.sql.errors import SqlError, SqlFunctionError, SqlStatementError
from headrace.sql.expressions import aggregate_call, table_call
from headrace.sql.expressions.literals import value_of
from headrace.sql.functions import BUILTIN_FUNCTIONS, Aggregate
from headrace.sql.functions.aggregates import offsets
from headrace.sql.syntax.nodes import Call
from headrace.sql.syntax.parser import parse_expression
from headrace.testing import TopologyTestDriver
from tests.sql.expressions.rows import Columns
from tests.sql.planning.session import Session, planned


def aggregate(text: str, settings: dict[str, object] | None = None) -> Aggregate:
    node = parse_expression(text)
    assert isinstance(node, Call)
    made = aggregate_call(node, Columns(), BUILTIN_FUNCTIONS, settings or {}).aggregate
    return pickle.loads(pickle.dumps(made))  # type: ignore[no-any-return]  # what went in comes out


def results(made: Aggregate, rows: list[Any]) -> list[Any]:
    state = made.initialize()
    found = []
    for row in rows:
        state = made.aggregate(state, *(row if isinstance(row, tuple) else (row,)))
        found.append(made.map(state))
    return found


@pytest.mark.parametrize(
    ("text", "kind", "rows", "expected"),
    [
        ("COUNT(*)", "BIGINT", [(), ()], [1, 2]),
        ("COUNT(i)", "BIGINT", [1, None, 2], [1, 1, 2]),
        ("COUNT_DISTINCT(s)", "BIGINT", ["a", "a", None, "b"], [1, 1, 1, 2]),
        ("SUM(i)", "INTEGER", [2**31 - 1, 1, None], [2**31 - 1, -(2**31), -(2**31)]),
        ("SUM(e)", "DECIMAL(5, 2)", [Decimal("1.10"), Decimal("2.20")], [Decimal("1.10"), Decimal("3.30")]),
        ("SUM_LIST(a)", "INTEGER", [[1, None], None, [2]], [1, 1, 3]),
        ("AVG(i)", "DOUBLE", [1, None, 2], [1.0, 1.0, 1.5]),
        ("MIN(s)", "STRING", [None, "b", "a"], [None, "b", "a"]),
        ("MAX(day)", "DATE", [3, 9, 4], [3, 9, 9]),
        ("COLLECT_LIST(i)", "ARRAY<INTEGER>", [1, None, 1], [[1], [1, None], [1, None, 1]]),
        ("COLLECT_SET(a)", "ARRAY<ARRAY<INTEGER>>", [[1], [1], None], [[[1]], [[1]], [[1], None]]),
        ("HISTOGRAM(s)", "MAP<STRING, BIGINT>", ["a", "b", "a"], [{"a": 1}, {"a": 1, "b": 1}, {"a": 2, "b": 1}]),
        ("ATTR(i)", "INTEGER", [4, 4, 5], [4, 4, None]),
        ("EARLIEST_BY_OFFSET(i)", "INTEGER", [None, 1, 2], [None, 1, 1]),
        ("EARLIEST_BY_OFFSET(i, false)", "INTEGER", [None, 1], [None, None]),
        ("EARLIEST_BY_OFFSET(i, 2)", "ARRAY<INTEGER>", [None, 1, 2, 3], [[], [1], [1, 2], [1, 2]]),
        ("LATEST_BY_OFFSET(i)", "INTEGER", [1, None, 2], [1, 1, 2]),
        ("LATEST_BY_OFFSET(i, 2, false)", "ARRAY<INTEGER>", [1, None, 2], [[1], [1, None], [None, 2]]),
        ("STDDEV_SAMPLE(d)", "DOUBLE", [2.0, 4.0, 6.0], [0.0, math.sqrt(2), 2.0]),
        ("STDDEV_SAMP(i)", "DOUBLE", [2, 4, 6], [0.0, 2.0, 4.0]),
        ("CORRELATION(i, i)", "DOUBLE", [(1, 2), (None, 1), (2, 4)], [math.nan, math.nan, 1.0]),
        ("TOPK(i, 2)", "ARRAY<INTEGER>", [1, 3, None, 2, 3], [[1], [3, 1], [3, 1], [3, 2], [3, 3]]),
        (
            "TOPK(i, s, 1)",
            "ARRAY<STRUCT<`sort_col` INTEGER, `col0` STRING>>",
            [(1, "a"), (2, "b")],
            [[{"sort_col": 1, "col0": "a"}], [{"sort_col": 2, "col0": "b"}]],
        ),
        ("TOPKDISTINCT(s, 2)", "ARRAY<STRING>", ["a", "b", "b", "c"], [["a"], ["b", "a"], ["b", "a"], ["c", "b"]]),
    ],
)
def test_rows_fold_into_results(text: str, kind: str, rows: list[Any], expected: list[Any]) -> None:
    made = aggregate(text)
    assert str(made.result_type) == kind
    assert results(made, rows) == pytest.approx(expected, nan_ok=True) if "CORR" in text else expected


UNDOABLE: dict[str, list[Any]] = {
    "COUNT(i)": [1, None, 3],
    "SUM(i)": [1, None, 3],
    "SUM(e)": [Decimal("1.00"), None, Decimal("3.50")],
    "SUM_LIST(a)": [[1, 2], None, [3]],
    "AVG(i)": [1, None, 3],
    "COLLECT_LIST(i)": [1, None, 3],
    "HISTOGRAM(s)": ["a", "b", "a"],
    "ATTR(i)": [1, 1, 2],
    "STDDEV_SAMPLE(i)": [1, None, 3],
    "CORRELATION(i, i)": [(1, 2), (2, 5), (3, 1)],
}


@pytest.mark.parametrize("text", UNDOABLE)
def test_undoing_the_last_row_gives_the_state_before(text: str) -> None:
    made = aggregate(text)
    state = made.initialize()
    for row in UNDOABLE[text]:
        values = row if isinstance(row, tuple) else (row,)
        assert made.undo(made.aggregate(state, *values), *values) == state
        state = made.aggregate(state, *values)


def test_aggregates_that_tables_can_use_say_so() -> None:
    arguments = {"CORRELATION": "i, i", "SUM_LIST": "a", "TOPK": "i, 1", "TOPKDISTINCT": "i, 1", "HISTOGRAM": "s"}
    names = [function.name for function in BUILTIN_FUNCTIONS if function.kind == "AGGREGATE"]
    undoable = {name for name in names if aggregate(f"{name}({arguments.get(name, 'i')})").can_undo}
    assert undoable == {text.partition("(")[0] for text in UNDOABLE} | {"STDDEV_SAMP"}


@pytest.mark.parametrize(
    ("text", "left", "right", "expected"),
    [
        ("COUNT(i)", [1, 2], [3], 3),
        ("SUM(d)", [1.5], [2.0], 3.5),
        ("MAX(i)", [], [4], 4),
        ("COLLECT_SET(i)", [1, 2], [2, 3], [1, 2, 3]),
        ("TOPK(i, 2)", [1, 5], [3], [5, 3]),
        ("STDDEV_SAMP(i)", [2, 4], [6], 4.0),
        ("HISTOGRAM(s)", ["a"], ["a", "b"], {"a": 2, "b": 1}),
        ("EARLIEST_BY_OFFSET(i, 2, false)", [None], [1], [None, 1]),
        ("LATEST_BY_OFFSET(i)", [1], [2], 2),
    ],
)
def test_sessions_merge(text: str, left: list[Any], right: list[Any], expected: Any) -> None:
    made = aggregate(text)
    states = []
    for rows in (left, right):
        state = made.initialize()
        for row in rows:
            state = made.aggregate(state, row)
        states.append(state)
    assert made.map(made.merge(*states)) == pytest.approx(expected)


def test_which_value_came_first_does_not_depend_on_the_order_of_merging() -> None:
    made = aggregate("LATEST_BY_OFFSET(i)")
    first = made.aggregate(made.initialize(), 1)
    last = made.aggregate(made.initialize(), 2)
    assert made.map(made.merge(last, first)) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("EARLIEST_BY_OFFSET(v)", 1),
        ("EARLIEST_BY_OFFSET(v, 2)", [1, 2]),
        ("LATEST_BY_OFFSET(v)", 2),
        ("LATEST_BY_OFFSET(v, 1)", [2]),
    ],
)
def test_which_value_came_first_is_a_matter_of_the_clock_of_the_query_and_of_no_machine(
    text: str, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row is read by another process, on a machine whose clock is an hour behind the one before."""
    query = planned(
        "CREATE STREAM s (id INT KEY, v INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');",
        f"CREATE TABLE o AS SELECT id, {text} AS found FROM s WINDOW SESSION (10 SECONDS) GROUP BY id;",
    )
    with TopologyTestDriver(query.topology, {"emit_interval_ms": 0}, initial_wall_clock_ms=5_000) as driver:
        session = Session(query, driver)
        for hours, value, timestamp_ms in ((9, 1, 0), (8, 2, 15_000), (7, None, 8_000)):
            monkeypatch.setattr(time, "time_ns", lambda hours=hours: hours * 3_600_000_000_000)
            monkeypatch.setattr(offsets, "_last_number", 0)
            out = session.send("S", 1, [value], timestamp_ms)
            driver.advance_wall_clock_time(timedelta(seconds=1))
    # The third one, whose value does not count, has merged the sessions of the others.
    assert out[-1] == ((1, 0, 15_000), [expected], 15_000)


def test_lists_have_limits() -> None:
    assert results(aggregate("COLLECT_LIST(i)", {"ksql.functions.collect_list.limit": 1}), [1, 2]) == [[1], [1]]
    assert results(aggregate("COLLECT_SET(i)", {"ksql.functions.collect_set.limit": "1"}), [1, 2]) == [[1], [1]]


def test_a_sum_that_does_not_fit_its_decimal_fails() -> None:
    with pytest.raises(ArithmeticError, match="Numeric field overflow"):
        results(aggregate("SUM(e)"), [Decimal("999.99"), Decimal("0.01")])


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("TOPK(i, i)", SqlStatementError, "Parameter 2 passed to function TOPK must be a literal constant"),
        ("SUM(s)", SqlFunctionError, r"Function 'SUM' does not accept parameters \(STRING\)"),
        ("LATEST_BY_OFFSET(i, 0)", SqlError, "latestN must be 1 or greater"),
        ("UCASE(s)", SqlStatementError, "ucase is no aggregate function"),
    ],
)
def test_calls_that_cannot_be_aggregated_are_refused(text: str, kind: type[SqlError], words: str) -> None:
    with pytest.raises(kind, match=words):
        aggregate(text)


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("EXPLODE(ARRAY[1, 2])", "INTEGER", [1, 2]),
        ("EXPLODE(CAST(NULL AS ARRAY<STRING>))", "STRING", []),
        ("CUBE_EXPLODE(ARRAY[1, 2])", "ARRAY<INTEGER>", [[None, None], [None, 2], [1, None], [1, 2]]),
        ("CUBE_EXPLODE(ARRAY[1, NULL])", "ARRAY<INTEGER>", [[None, None], [1, None]]),
    ],
)
def test_table_functions_give_rows(text: str, kind: str, expected: list[Any]) -> None:
    node = parse_expression(text)
    assert isinstance(node, Call)
    made = table_call(node, Columns(), BUILTIN_FUNCTIONS)
    assert str(made.item_type) == kind
    assert value_of(made.expression) == expected
