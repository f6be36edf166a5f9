"""Windowed aggregations: which windows a row falls into, how long they are open, and when they speak."""

from __future__ import annotations

import pytest

from headrace.sql.errors import SqlStatementError
from tests.sql.planning.session import planned, running

SOURCE = "CREATE STREAM s (id INT KEY, v INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');"
DAY = 86_400_000


def query(window: str, more: str = "") -> str:
    return f"CREATE TABLE o AS SELECT id, COUNT(*) AS n FROM s WINDOW {window} GROUP BY id {more};"


def test_tumbling_windows_take_late_rows_for_a_day_from_their_start() -> None:
    with running(SOURCE, query("TUMBLING (SIZE 10 SECONDS)")) as session:
        assert session.send("S", 1, [1], 1_000) == [((1, 0, 10_000), [1], 1_000)]
        assert session.send("S", 1, [1], 10_000) == [((1, 10_000, 20_000), [1], 10_000)]
        assert session.send("S", 1, [1], 9_000) == [((1, 0, 10_000), [2], 9_000)]
        session.send("S", 1, [1], DAY - 1)
        assert session.send("S", 1, [1], 5) == [((1, 0, 10_000), [3], 9_000)]
        session.send("S", 1, [1], DAY)
        assert session.send("S", 1, [1], 5) == []


def test_a_grace_period_says_how_late_rows_may_be() -> None:
    with running(SOURCE, query("TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 5 SECONDS)")) as session:
        session.send("S", 1, [1], 14_999)
        assert session.send("S", 1, [1], 1) == [((1, 0, 10_000), [1], 1)]
        session.send("S", 1, [1], 15_000)
        assert session.send("S", 1, [1], 1) == []


def test_a_row_is_in_every_hopping_window_that_covers_it() -> None:
    with running(SOURCE, query("HOPPING (SIZE 10 SECONDS, ADVANCE BY 5 SECONDS)")) as session:
        assert session.send("S", 1, [1], 7_000) == [((1, 0, 10_000), [1], 7_000), ((1, 5_000, 15_000), [1], 7_000)]


def test_sessions_grow_and_merge() -> None:
    with running(SOURCE, query("SESSION (10 SECONDS)")) as session:
        assert session.send("S", 1, [1], 0) == [((1, 0, 0), [1], 0)]
        assert session.send("S", 1, [1], 15_000) == [((1, 15_000, 15_000), [1], 15_000)]
        assert session.send("S", 1, [1], 8_000) == [
            ((1, 0, 0), None, 0),
            ((1, 15_000, 15_000), None, 15_000),
            ((1, 0, 15_000), [3], 15_000),
        ]


def test_final_results_come_once_when_the_window_has_closed() -> None:
    with running(SOURCE, query("TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 5 SECONDS)", "EMIT FINAL")) as session:
        for timestamp_ms in (0, 1_000, 12_000, 2_000):
            assert session.send("S", 1, [1], timestamp_ms) == []
        assert session.send("S", 1, [1], 15_000) == [((1, 0, 10_000), [3], 2_000)]
    with running(SOURCE, query("TUMBLING (SIZE 10 SECONDS)", "EMIT FINAL")) as session:
        session.send("S", 1, [1], 0)
        assert session.send("S", 1, [1], 10_000) == [((1, 0, 10_000), [1], 0)]


def test_bounds_of_the_window_can_be_selected() -> None:
    statement = (
        "CREATE TABLE o AS SELECT id, WINDOWSTART AS ws, s.WINDOWEND / 1000 AS we, COUNT(*) AS n"
        " FROM s WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY id;"
    )
    with running(SOURCE, statement) as session:
        assert session.send("S", 1, [1], 12_000) == [((1, 10_000, 20_000), [10_000, 20, 1], 12_000)]


def test_null_rows_do_not_count() -> None:
    with running(SOURCE, query("TUMBLING (SIZE 10 SECONDS)")) as session:
        assert session.send("S", 1, None) == []


def test_a_windowed_stream_can_be_read_again() -> None:
    source = (
        "CREATE STREAM w (id INT KEY, v INT)"
        " WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', WINDOW_TYPE='TUMBLING', WINDOW_SIZE='10 SECONDS');"
    )
    made = planned(source, "CREATE STREAM o AS SELECT * FROM w WHERE WINDOWSTART > 0;")
    assert str(made.plan.schema) == "`ID` INTEGER KEY, `V` INTEGER"
    assert made.plan.sink.window is not None
    assert made.plan.sink.window.kind == "TUMBLING"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT * FROM s WINDOW TUMBLING (SIZE 1 SECOND)", "WINDOW clause requires a GROUP BY clause."),
        (
            "SELECT id, MIN(WINDOWSTART) AS m FROM s WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY id",
            "Window bounds column WINDOWSTART can only be used in the SELECT clause of windowed aggregations",
        ),
        (
            "SELECT id, COUNT(*) FROM s WINDOW TUMBLING (SIZE 1 SECOND) WHERE WINDOWSTART > 1 GROUP BY id",
            "Window bounds column WINDOWSTART can only be used in the SELECT clause of windowed aggregations",
        ),
        (
            "SELECT id, WINDOWSTART, COUNT(*) FROM s WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY id",
            "Reserved column name in select: `WINDOWSTART`. Please remove or alias the column.",
        ),
        (
            "SELECT id, COUNT(*) FROM s WINDOW TUMBLING (SIZE 10 SECONDS, RETENTION 5 SECONDS) GROUP BY id",
            "RETENTION must be at least the size plus the grace period",
        ),
        (
            "SELECT id, COUNT(*) FROM s WINDOW HOPPING (SIZE 1 SECOND, ADVANCE BY 2 SECONDS) GROUP BY id",
            "ADVANCE BY must be longer than nothing and no longer than the size",
        ),
        ("SELECT id, COUNT(*) FROM s WINDOW TUMBLING (SIZE 0 SECONDS) GROUP BY id", "size must be longer than nothing"),
        ("SELECT id, COUNT(*) FROM s GROUP BY id LIMIT 3", "statements don't support LIMIT clause"),
    ],
)
def test_windows_where_there_are_none(statement: str, message: str) -> None:
    with pytest.raises(SqlStatementError) as error:
        planned(SOURCE, f"CREATE TABLE o AS {statement};")
    assert message in error.value.message


def test_windowed_tables_cannot_be_queried_persistently() -> None:
    source = (
        "CREATE TABLE w (id INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', WINDOW_TYPE='SESSION');"
    )
    with pytest.raises(SqlStatementError, match="does not support persistent queries on windowed tables"):
        planned(source, "CREATE TABLE o AS SELECT * FROM w;")


def test_final_results_can_be_switched_off() -> None:
    text = query("TUMBLING (SIZE 10 SECONDS)", "EMIT FINAL")
    with pytest.raises(SqlStatementError, match=r"Suppression is currently disabled.*ksql\.suppress\.enabled to true"):
        planned(SOURCE, text, ksql_suppress_enabled=False)
    assert planned(SOURCE, query("TUMBLING (SIZE 10 SECONDS)", "EMIT CHANGES"), ksql_suppress_enabled=False)
