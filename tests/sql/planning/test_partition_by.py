"""PARTITION BY: new keys, and what becomes of the old ones."""

from __future__ import annotations

import pytest

from headrace.sql.errors import SqlStatementError
from tests.sql.planning.session import planned, running, schema

SOURCE = "CREATE STREAM s (id INT KEY, name STRING, age INT) WITH (KAFKA_TOPIC='s', FORMAT='JSON');"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT name, age FROM s PARTITION BY name", "`NAME` STRING KEY, `AGE` INTEGER"),
        ("SELECT age, name AS n FROM s PARTITION BY name", "`N` STRING KEY, `AGE` INTEGER"),
        (
            "SELECT * FROM s PARTITION BY ABS(age)",
            "`KSQL_COL_0` INTEGER KEY, `NAME` STRING, `AGE` INTEGER, `ID` INTEGER",
        ),
        ("SELECT * FROM s PARTITION BY age, name", "`AGE` INTEGER KEY, `NAME` STRING KEY, `ID` INTEGER"),
        ("SELECT id, age FROM s PARTITION BY NULL", "`ID` INTEGER, `AGE` INTEGER"),
    ],
)
def test_columns_of_a_result(query: str, expected: str) -> None:
    assert schema(SOURCE, f"CREATE STREAM o AS {query};") == expected


def test_records_get_the_new_key() -> None:
    with running(SOURCE, "CREATE STREAM o AS SELECT name, id, age + 1 AS older FROM s PARTITION BY name;") as session:
        assert session.send("S", 1, ["ada", 36], 5) == [("ada", [1, 37], 5)]
        assert session.send("S", 1, [None, 36]) == [(None, [1, 37], 0)]
        assert session.send("S", 1, None) == [(None, None, 0)]


def test_the_key_of_a_null_row_is_made_of_the_old_key_as_far_as_that_goes() -> None:
    with running(SOURCE, "CREATE STREAM o AS SELECT id + 1, age FROM s PARTITION BY id + 1;") as session:
        assert session.send("S", 1, None) == [(2, None, 0)]
    with running(SOURCE, "CREATE STREAM o AS SELECT * FROM s PARTITION BY id, name;") as session:
        assert session.send("S", 1, None) == [((1, None), None, 0)]
        assert session.send("S", None, None) == [((None, None), None, 0)]
        assert session.send("S", 1, [None, 3]) == [((1, None), [3], 0)]


def test_the_key_it_has_already_is_kept() -> None:
    query = planned(SOURCE, "CREATE STREAM o AS SELECT * FROM s PARTITION BY id;")
    assert "KEY-SELECT" not in str(query.topology.describe())


def test_nothing_is_repartitioned_on_the_way_to_the_sink() -> None:
    query = planned(SOURCE, "CREATE STREAM o AS SELECT * FROM s PARTITION BY name;")
    assert "repartition" not in str(query.topology.describe())


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT id, age FROM s PARTITION BY name", "must include the partitioning expression S.NAME"),
        ("SELECT id, age FROM s PARTITION BY NULL, id", "Cannot PARTITION BY multiple columns including NULL"),
        ("SELECT id, name AS n, age FROM s PARTITION BY n", "'N' must be a column in the source schema"),
        ("SELECT * FROM s PARTITION BY name, name", "Duplicate PARTITION BY expression: NAME"),
        ("SELECT * FROM s PARTITION BY name, s.name", "Duplicate PARTITION BY expression: S.NAME"),
        (
            "SELECT ABS(id), ABS(id) AS other, age FROM s PARTITION BY ABS(id)",
            "(`KSQL_COL_0`) more than once, aliased as: KSQL_COL_0 and OTHER.",
        ),
        ("SELECT * FROM s PARTITION BY ()", "PARTITION BY requires at least one expression"),
        ("SELECT * FROM s PARTITION BY SUM(age)", "SUM is an aggregate function"),
        ("SELECT * FROM s PARTITION BY EXPLODE(ARRAY[age])", "PARTITION BY does not support table functions: EXPLODE"),
        ("SELECT * FROM s PARTITION BY MAP('a' := age)", "Map keys, including types that contain maps"),
    ],
)
def test_what_cannot_be_partitioned(query: str, message: str) -> None:
    with pytest.raises(SqlStatementError) as error:
        planned(SOURCE, f"CREATE STREAM o AS {query};")
    assert message in error.value.message


def test_tables_and_windowed_streams_keep_their_key() -> None:
    table = "CREATE TABLE t (id INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');"
    with pytest.raises(SqlStatementError, match=r"uses the TABLE's key column ID instead of \[V\]"):
        planned(table, "CREATE TABLE o AS SELECT * FROM t PARTITION BY v;")
    pair = "CREATE TABLE p (a INT PRIMARY KEY, b INT PRIMARY KEY) WITH (KAFKA_TOPIC='p', FORMAT='JSON');"
    with pytest.raises(SqlStatementError, match="joins on tables with multiple columns is not yet supported"):
        planned(pair, "CREATE TABLE o AS SELECT * FROM p PARTITION BY a;")
    assert schema(table, "CREATE TABLE o AS SELECT * FROM t PARTITION BY id;") == "`ID` INTEGER KEY, `V` INTEGER"
    windowed = (
        "CREATE STREAM w (id INT KEY, v INT)"
        " WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 SECOND');"
    )
    with pytest.raises(SqlStatementError, match="repartitioning of windowed sources is not supported"):
        planned(windowed, "CREATE STREAM o AS SELECT * FROM w PARTITION BY v;")
    assert schema(windowed, "CREATE STREAM o AS SELECT * FROM w PARTITION BY id;") == "`ID` INTEGER KEY, `V` INTEGER"


def test_a_stream_without_key_columns_has_no_format_for_them_if_the_query_takes_them_away() -> None:
    statement = "CREATE STREAM o {with_clause} AS SELECT id, name FROM s PARTITION BY NULL;"
    assert planned(SOURCE, statement.format(with_clause="")).plan.sink.key_format == "NONE"
    assert planned(SOURCE, statement.format(with_clause="WITH (KEY_FORMAT='NONE')")).plan.sink.key_format == "NONE"
    for given in ("KEY_FORMAT='JSON'", "FORMAT='JSON'"):
        with pytest.raises(SqlStatementError, match="Key format specified for stream without key columns"):
            planned(SOURCE, statement.format(with_clause=f"WITH ({given})"))


def test_a_stream_without_key_columns_keeps_the_format_of_its_source() -> None:
    plain = "CREATE STREAM p (name STRING, age INT) WITH (KAFKA_TOPIC='p', VALUE_FORMAT='JSON');"
    assert planned(plain, "CREATE STREAM o AS SELECT * FROM p;").plan.sink.key_format == "KAFKA"
    assert planned(plain, "CREATE STREAM o WITH (KEY_FORMAT='JSON') AS SELECT * FROM p;").plan.sink.key_format == "JSON"
