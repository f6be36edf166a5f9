"""Joins: of streams in time, of streams with tables, of tables, and several in a row."""

from __future__ import annotations

import pytest

from headrace.sql.catalog.topic_directory import KnownTopics
from headrace.sql.errors import SqlStatementError
from headrace.sql.sql_engine import SqlEngine
from tests.sql.planning.session import planned, running, schema

L = "CREATE STREAM l (id INT KEY, a INT) WITH (KAFKA_TOPIC='l', VALUE_FORMAT='JSON');"
R = "CREATE STREAM r (id INT KEY, b INT) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='JSON');"
T = "CREATE TABLE t (id INT PRIMARY KEY, c INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');"
U = "CREATE TABLE u (id INT PRIMARY KEY, d INT) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON');"
ALL = (L, R, T, U)


def streams(kind: str, more: str = "") -> str:
    select = "ROWKEY AS k, l.id, a, b" if kind == "FULL OUTER" else "l.id, a, b"
    return f"CREATE STREAM o AS SELECT {select} FROM l {kind} JOIN r WITHIN 10 SECONDS {more} ON l.id = r.id;"


def test_rows_of_two_streams_meet_in_time() -> None:
    with running(*ALL, streams("INNER")) as session:
        assert session.send("L", 1, [5], 0) == []
        assert session.send("R", 1, [6], 10_000) == [(1, [5, 6], 10_000)]
        assert session.send("R", 1, [7], 10_001) == []
        assert session.send("R", 2, [7], 0) == []
        assert session.send("L", 1, [8], 9_000) == [(1, [8, 6], 10_000), (1, [8, 7], 10_001)]


def test_without_grace_an_unmatched_row_comes_out_at_once_and_again_with_its_partner() -> None:
    with running(*ALL, streams("LEFT")) as session:
        assert session.send("L", 1, [5], 0) == [(1, [5, None], 0)]
        assert session.send("R", 1, [6], 1_000) == [(1, [5, 6], 1_000)]
    with running(*ALL, streams("FULL OUTER")) as session:
        assert session.send("R", 1, [6], 0) == [(1, [None, None, 6], 0)]
        assert session.send("L", 1, [5], 0) == [(1, [1, 5, 6], 0)]


def test_with_grace_an_unmatched_row_waits_for_the_end_of_its_window() -> None:
    with running(*ALL, streams("LEFT", "GRACE PERIOD 1 SECOND")) as session:
        assert session.send("L", 1, [5], 0) == []
        assert session.send("L", 2, [6], 1_000) == []
        assert session.send("R", 2, [7], 2_000) == [(2, [6, 7], 2_000)]
        assert session.send("L", 3, [8], 11_001) == [(1, [5, None], 0)]


def test_a_right_join_keeps_the_rows_of_the_right_side() -> None:
    with running(*ALL, streams("RIGHT")) as session:
        assert session.send("L", 1, [5], 0) == []
        assert session.send("R", 2, [6], 0) == [(2, [None, 6], 0)]
        assert session.send("R", 1, [7], 0) == [(1, [5, 7], 0)]


def test_a_window_can_reach_further_in_one_direction() -> None:
    statement = "CREATE STREAM o AS SELECT l.id, a, b FROM l JOIN r WITHIN (1 SECOND, 5 SECONDS) ON l.id = r.id;"
    with running(*ALL, statement) as session:
        session.send("L", 1, [5], 10_000)
        assert session.send("R", 1, [6], 15_000) == [(1, [5, 6], 15_000)]
        assert session.send("R", 1, [7], 8_999) == []


def test_only_the_stream_asks_the_table() -> None:
    with running(*ALL, "CREATE STREAM o AS SELECT l.id, a, c FROM l LEFT JOIN t ON l.id = t.id;") as session:
        assert session.send("L", 1, [5]) == [(1, [5, None], 0)]
        assert session.send("T", 1, [6]) == []
        assert session.send("L", 1, [7]) == [(1, [7, 6], 0)]
        assert session.send("L", 1, None) == []


def test_a_stream_gets_the_tables_key_first() -> None:
    with running(*ALL, "CREATE STREAM o AS SELECT t.id, l.id AS lid, c FROM l JOIN t ON l.a = t.id;") as session:
        session.send("T", 5, [6])
        assert session.send("L", 1, [5]) == [(5, [1, 6], 0)]
        assert session.send("L", 1, [None]) == []


def test_a_change_of_either_table_changes_the_result() -> None:
    with running(*ALL, "CREATE TABLE o AS SELECT t.id, c, d FROM t LEFT JOIN u ON t.id = u.id WHERE c > 1;") as session:
        assert session.send("U", 1, [5]) == []
        assert session.send("T", 1, [6]) == [(1, [6, 5], 0)]
        assert session.send("U", 1, [7]) == [(1, [6, 7], 0)]
        assert session.send("U", 1, None) == [(1, [6, None], 0)]
        assert session.send("T", 1, [1]) == [(1, None, 0)]
        assert session.send("T", 1, None) == []


def test_a_table_looks_up_rows_by_a_foreign_key() -> None:
    statement = "CREATE TABLE o AS SELECT t.id, u.id AS uid, d FROM t JOIN u ON t.c = u.id;"
    with running(*ALL, statement) as session:
        assert session.send("T", 1, [9]) == []
        assert session.send("U", 9, [5]) == [(1, [9, 5], 0)]
        assert session.send("T", 2, [9]) == [(2, [9, 5], 0)]
        assert session.send("U", 9, [6]) == [(1, [9, 6], 0), (2, [9, 6], 0)]
        assert session.send("T", 1, None) == [(1, None, 0)]


def test_several_joins_in_a_row() -> None:
    statement = (
        "CREATE STREAM o AS SELECT t.id, a, b, c FROM l JOIN r WITHIN 10 SECONDS ON l.id = r.id JOIN t ON r.id = t.id;"
    )
    query = planned(*ALL, statement)
    assert "repartition" not in str(query.topology.describe())
    with running(*ALL, statement) as session:
        session.send("T", 1, [7])
        session.send("L", 1, [5])
        assert session.send("R", 1, [6]) == [(1, [5, 6, 7], 0)]


def test_a_key_that_no_source_has_is_called_rowkey() -> None:
    star = "CREATE STREAM o AS SELECT * FROM l FULL OUTER JOIN r WITHIN 1 SECOND ON l.id = r.id;"
    assert schema(*ALL, star) == "`ROWKEY` INTEGER KEY, `L_ID` INTEGER, `L_A` INTEGER, `R_ID` INTEGER, `R_B` INTEGER"
    both = (
        "CREATE STREAM o AS SELECT ROWKEY, AS_VALUE(ROWKEY) AS k, a"
        " FROM l JOIN r WITHIN 1 SECOND ON ABS(l.id) = ABS(r.id);"
    )
    with running(*ALL, both) as session:
        session.send("L", -1, [5])
        assert session.send("R", 1, [6]) == [(1, [1, 5], 0)]


def test_all_columns_of_a_join_that_is_partitioned() -> None:
    statement = (
        "CREATE STREAM o AS SELECT * FROM l JOIN r WITHIN 1 SECOND ON ABS(l.id) = ABS(r.id)"
        " WHERE ROWKEY > 0 PARTITION BY a;"
    )
    with running(*ALL, statement) as session:
        session.send("L", -1, [5], 10)
        columns = [column.name for column in session.query.plan.schema]
        assert columns[:2] == ["L_A", "L_ROWTIME"]
        assert columns[-1] == "ROWKEY"
        [(key, row, _)] = session.send("R", 1, [6], 20)
        assert key == 5
        assert dict(zip(columns[1:], row, strict=True)) == {
            "L_ROWTIME": 10,
            "L_ROWPARTITION": 0,
            "L_ROWOFFSET": 0,
            "L_ID": -1,
            "R_B": 6,
            "R_ROWTIME": 20,
            "R_ROWPARTITION": 0,
            "R_ROWOFFSET": 0,
            "R_ID": 1,
            "ROWKEY": 1,
        }


def test_keys_of_another_format_are_written_again() -> None:
    other = "CREATE STREAM m (id INT KEY, b INT) WITH (KAFKA_TOPIC='m', FORMAT='JSON');"
    statement = "CREATE STREAM o AS SELECT l.id, a, b FROM l JOIN m WITHIN 1 SECOND ON l.id = m.id;"
    query = planned(*ALL, other, statement)
    assert "Join-right-repartition" in str(query.topology.describe())
    assert "Join-left-repartition" not in str(query.topology.describe())
    with running(*ALL, other, statement) as session:
        session.send("L", 1, [5])
        assert session.send("M", 1, [6]) == [(1, [5, 6], 0)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("STREAM o AS SELECT * FROM l JOIN r ON l.id = r.id", "Stream-Stream joins must have a WITHIN clause"),
        ("STREAM o AS SELECT * FROM l JOIN t WITHIN 1 SECOND ON l.id = t.id", "provided for a Stream-Table join"),
        ("TABLE o AS SELECT * FROM t JOIN u WITHIN 1 SECOND ON t.id = u.id", "provided for a Table-Table join"),
        ("STREAM o AS SELECT * FROM t JOIN l ON l.id = t.id", "Got T [INNER] JOIN L."),
        ("STREAM o AS SELECT * FROM l FULL JOIN t ON l.id = t.id", "full-outer join not supported for stream-table"),
        ("STREAM o AS SELECT * FROM l JOIN t ON l.id = t.c", "require to join on the table's primary key"),
        ("TABLE o AS SELECT * FROM t JOIN u ON u.d = t.id", "primary key of the right input table. Got U.D = T.ID."),
        ("TABLE o AS SELECT * FROM t RIGHT JOIN u ON t.c = u.id", "RIGHT OUTER JOIN on a foreign key is not supported"),
        ("STREAM o AS SELECT * FROM l JOIN t ON l.id = t.id AND l.a = t.id", "joins on multiple conditions"),
        ("STREAM o AS SELECT * FROM l JOIN t ON l.id > t.id", "Only equality join criteria is supported."),
        ("STREAM o AS SELECT * FROM l JOIN t ON l.id = t.id AND l.a > 1", "Unsupported join expression: ((L.ID"),
        ("STREAM o AS SELECT * FROM l x FULL JOIN t y ON x.id = y.id", "Got L [FULL] OUTER JOIN T."),
        ("STREAM o AS SELECT * FROM l RIGHT JOIN t ON l.id = t.id", "type encountered: RIGHT [OUTER] JOIN"),
        (
            "TABLE o AS SELECT * FROM t JOIN u WITHIN 1 SECOND ON t.id = u.id",
            "(i.e. the WITHIN clause) and try to execute your Table-Table join again.",
        ),
        ("STREAM o AS SELECT z.id FROM l JOIN t ON l.id = t.id", "'Z' is not a valid stream/table name or alias."),
        ("STREAM o AS SELECT rowkey, l.id FROM l JOIN t ON l.id = t.id", "Column 'ROWKEY' cannot be resolved."),
        ("STREAM o AS SELECT * FROM l JOIN t ON l.id = 1", "Invalid comparison expression '1' in join '(L.ID = 1)'"),
        ("STREAM o AS SELECT * FROM l JOIN t ON l.id = l.a", "Left side references `L` and right references `L`"),
        ("STREAM o AS SELECT * FROM l JOIN t ON l.id = t.x", "JOIN ON column 'T.X' cannot be resolved."),
        (
            "STREAM o AS SELECT * FROM l JOIN t ON CAST(l.id AS STRING) = t.id",
            "Invalid join. Key types differ: STRING vs INTEGER",
        ),
        (
            "TABLE o AS SELECT * FROM t JOIN u ON CAST(t.id AS STRING) = u.id",
            "types don't match. Got CAST(T.ID AS STRING){STRING} = U.ID{INTEGER}.",
        ),
        ("STREAM o AS SELECT a, c FROM l JOIN t ON l.id = t.id", "must include the join expressions L.ID or T.ID"),
        (
            "STREAM o AS SELECT a, b FROM l FULL JOIN r WITHIN 1 SECOND ON l.id = r.id",
            "ROWKEY was added as a synthetic",
        ),
        ("TABLE o AS SELECT c, d FROM t JOIN u ON t.c = u.id", "Missing column: `ID`."),
        ("STREAM o AS SELECT * FROM l x JOIN l y WITHIN 1 SECOND ON x.id = y.id", "self joins are not yet supported"),
        (
            "TABLE o AS SELECT * FROM t JOIN u ON t.id = u.id JOIN v ON t.c = v.id",
            "foreign-key table-table joins are not supported as part of n-way joins. Got T.C = V.ID.",
        ),
        (
            "STREAM o AS SELECT * FROM l JOIN t ON l.id = v.id JOIN v ON l.id = v.id",
            "JOIN ON column 'V.ID' cannot be resolved.",
        ),
        (
            "TABLE o AS SELECT * FROM t JOIN u ON t.c = u.id JOIN v ON u.id = v.id",
            "make sure that the criteria uses the TABLE's key column T_ID instead of [U_ID]. Got U.ID = V.ID.",
        ),
    ],
)
def test_what_cannot_be_joined(query: str, message: str) -> None:
    third = "CREATE TABLE v (id INT PRIMARY KEY, e INT) WITH (KAFKA_TOPIC='v', VALUE_FORMAT='JSON');"
    with pytest.raises(SqlStatementError) as error:
        planned(*ALL, third, f"CREATE {query};")
    assert message in error.value.message


def test_windowed_and_plain_sources_do_not_mix() -> None:
    windowed = "CREATE STREAM w (id INT KEY, v INT) WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', WINDOW_TYPE='SESSION');"
    with pytest.raises(SqlStatementError) as error:
        planned(*ALL, windowed, "CREATE STREAM o AS SELECT * FROM w JOIN r WITHIN 1 SECOND ON w.id = r.id;")
    assert "`W` is SESSION windowed\n`R` is not windowed" in error.value.message


def test_topics_with_different_numbers_of_partitions_cannot_meet() -> None:
    engine = SqlEngine(topics=KnownTopics({"l": 1, "r": 3}))
    engine.execute(L)
    engine.execute(R)
    with pytest.raises(SqlStatementError, match="Can't join `L` with `R` since the number of partitions don't match"):
        engine.execute(streams("INNER"))


def test_the_last_join_names_the_first_source_and_the_partitions_of_the_one_before_it() -> None:
    engine = SqlEngine(topics=KnownTopics({"l": 2, "r": 2, "t": 5}))
    engine.execute(L + R + T)
    joined = "CREATE STREAM o AS SELECT * FROM l JOIN r WITHIN 1 SECOND ON l.id = r.id JOIN t ON r.id = t.id;"
    with pytest.raises(SqlStatementError, match=r"`L` with `T` .* `L` partitions = 2; `T` partitions = 5"):
        engine.execute(joined)


def test_a_foreign_key_join_needs_no_partitions_in_common_and_has_those_of_its_right_side() -> None:
    third = "CREATE TABLE v (id INT PRIMARY KEY, e INT) WITH (KAFKA_TOPIC='v', VALUE_FORMAT='JSON');"
    joined = "CREATE TABLE o AS SELECT * FROM t JOIN u ON t.c = u.id JOIN v ON t.id = v.id;"
    engine = SqlEngine(topics=KnownTopics({"t": 2, "u": 3, "v": 3}))
    engine.execute(T + U + third + joined)
    other = SqlEngine(topics=KnownTopics({"t": 2, "u": 3, "v": 2}))
    with pytest.raises(SqlStatementError, match="`T` partitions = 3; `V` partitions = 2"):
        other.execute(T + U + third + joined)


def test_windowed_sources_are_named_as_the_condition_names_them() -> None:
    windowed = "CREATE STREAM w (id INT KEY, v INT) WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', WINDOW_TYPE='SESSION');"
    with pytest.raises(SqlStatementError) as error:
        planned(*ALL, windowed, "CREATE STREAM o AS SELECT * FROM w JOIN r WITHIN 1 SECOND ON r.id = w.id;")
    assert "`R` is not windowed\n`W` is SESSION windowed" in error.value.message


def test_bounds_of_joined_windows_need_an_alias() -> None:
    first, second = (
        f"CREATE STREAM {name} (id INT KEY, v INT) WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON',"
        " WINDOW_TYPE='SESSION');"
        for name in ("w", "x")
    )
    joined = "FROM w JOIN x WITHIN 1 SECOND ON w.id = x.id;"
    with pytest.raises(SqlStatementError, match="Reserved column name in select: `WINDOWSTART`"):
        planned(first, second, f"CREATE STREAM o AS SELECT w.id, w.windowstart {joined}")
    made = schema(first, second, f"CREATE STREAM o AS SELECT w.id, w.windowstart AS s {joined}")
    assert made == "`W_ID` INTEGER KEY, `S` BIGINT"
