"""Sinks of queries: formats and time, streams that exist, and table functions on the way."""

from __future__ import annotations

import pickle
from decimal import Decimal

import pytest

from headrace.sql.errors import SqlStatementError
from headrace.sql.planning.record_functions.row_serde import StoredRowSerde
from headrace.sql.types import ARRAY, DECIMAL, INTEGER, MAP, STRING, STRUCT, StructField
from tests.sql.planning.session import planned, running, schema

SOURCE = "CREATE STREAM s (id INT KEY, v INT, at BIGINT, day STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');"
ARRAYS = "CREATE STREAM a (id INT KEY, xs ARRAY<INT>, ys ARRAY<STRING>) WITH (KAFKA_TOPIC='a', VALUE_FORMAT='JSON');"


def test_a_sink_takes_over_the_formats_of_its_source() -> None:
    sink = planned(SOURCE, "CREATE STREAM o AS SELECT * FROM s;").plan.sink
    assert (sink.key_format, sink.value_format) == ("KAFKA", "JSON")
    given = planned(SOURCE, "CREATE STREAM o WITH (KEY_FORMAT='JSON', VALUE_FORMAT='DELIMITED') AS SELECT * FROM s;")
    assert (given.plan.sink.key_format, given.plan.sink.value_format) == ("JSON", "DELIMITED")
    keyless = planned(SOURCE, "CREATE STREAM o AS SELECT id, v FROM s PARTITION BY NULL;")
    assert keyless.plan.sink.key_format == "NONE"


def test_a_delimiter_is_taken_over() -> None:
    source = (
        "CREATE STREAM s (id INT KEY, v INT, w INT)"
        " WITH (KAFKA_TOPIC='s', VALUE_FORMAT='DELIMITED', VALUE_DELIMITER='|');"
    )
    sink = planned(source, "CREATE STREAM o AS SELECT * FROM s;").plan.sink
    assert sink.value_options.delimiter == "|"


def test_a_column_gives_records_their_time() -> None:
    with running(SOURCE, "CREATE STREAM o WITH (TIMESTAMP='at') AS SELECT id, v, at FROM s;") as session:
        assert session.send("S", 1, [5, 99, None], 7) == [(1, [5, 99], 99)]
        assert session.send("S", 1, [5, None, None], 7) == []
        assert session.send("S", 1, [5, -1, None], 7) == []
        assert session.send("S", 1, None, 7) == [(1, None, 7)]
    source = SOURCE.replace(
        "VALUE_FORMAT='JSON'", "VALUE_FORMAT='JSON', TIMESTAMP='day', TIMESTAMP_FORMAT='yyyy-MM-dd'"
    )
    with running(source, "CREATE STREAM o AS SELECT id, ROWTIME AS t FROM s;") as session:
        assert session.send("S", 1, [5, None, "1970-01-02"], 7) == [(1, [86_400_000], 86_400_000)]
        assert session.send("S", 1, [5, None, "soon"], 7) == []


def test_rows_are_inserted_into_a_stream_that_exists() -> None:
    target = "CREATE STREAM o (id INT KEY, v DECIMAL(5, 2)) WITH (KAFKA_TOPIC='o', VALUE_FORMAT='JSON');"
    with running(SOURCE, target, "INSERT INTO o SELECT id, v FROM s;") as session:
        assert session.send("S", 1, [5, None, None]) == [(1, [Decimal("5.00")], 0)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT id, day AS v FROM s",
            "Incompatible schema between results and sink.\nResult schema is `ID` INTEGER KEY",
        ),
        ("SELECT id, v, at FROM s", "Sink schema is `ID` INTEGER KEY, `V` INTEGER"),
        ("SELECT id, v AS w FROM s", "Incompatible schema"),
        ("SELECT id, COUNT(*) AS v FROM s GROUP BY id", "type is KSTREAM but select query result is KTABLE"),
    ],
)
def test_what_cannot_be_inserted(query: str, message: str) -> None:
    target = "CREATE STREAM o (id INT KEY, v INT) WITH (KAFKA_TOPIC='o', VALUE_FORMAT='JSON');"
    with pytest.raises(SqlStatementError) as error:
        planned(SOURCE, target, f"INSERT INTO o {query};")
    assert message in error.value.message


def test_table_functions_make_rows_side_by_side() -> None:
    statement = "CREATE STREAM o AS SELECT id, EXPLODE(xs) + 1 AS x, EXPLODE(ys) AS y, id * 2 AS d FROM a WHERE id > 0;"
    assert schema(ARRAYS, statement) == "`ID` INTEGER KEY, `X` INTEGER, `Y` STRING, `D` INTEGER"
    with running(ARRAYS, statement) as session:
        assert session.send("A", 1, [[1, 2], ["p"]]) == [(1, [2, "p", 2], 0), (1, [3, None, 2], 0)]
        assert session.send("A", 1, [[], None]) == []
        assert session.send("A", 1, None) == []


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("TABLE o AS SELECT id, EXPLODE(xs), COUNT(*) FROM a GROUP BY id", "cannot be used with aggregations"),
        (
            "TABLE o AS SELECT EXPLODE(xs), COUNT(*) FROM a GROUP BY EXPLODE(xs)",
            "GROUP BY does not support table functions",
        ),
        (
            "STREAM o AS SELECT id, EXPLODE(EXPLODE(xs)) FROM a",
            "Table functions cannot be nested: `EXPLODE`(`EXPLODE`())",
        ),
        (
            "STREAM o AS SELECT id, CASE WHEN id > 1 THEN EXPLODE(xs) ELSE 0 END FROM a",
            "Table functions cannot be used in CASE: (CASE WHEN (A.ID > 1) THEN EXPLODE(A.XS) ELSE 0 END)",
        ),
    ],
)
def test_where_table_functions_cannot_be(query: str, message: str) -> None:
    with pytest.raises(SqlStatementError) as error:
        planned(ARRAYS, f"CREATE {query};")
    assert message in error.value.message


def test_a_plan_is_a_value_that_pickles() -> None:
    query = planned(
        SOURCE,
        "CREATE TABLE o AS SELECT v, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 1 SECOND)"
        " GROUP BY v HAVING COUNT(*) > 1;",
    )
    copy = pickle.loads(pickle.dumps(query.plan))
    assert (copy.schema, copy.sink) == (query.plan.schema, query.plan.sink)
    pickle.loads(pickle.dumps(query.topology))


def test_stored_rows_keep_decimals_wherever_they_are() -> None:
    money = DECIMAL(4, 2)
    types = (
        INTEGER,
        money,
        ARRAY(money),
        MAP(STRING, money),
        STRUCT((StructField("A", money), StructField("B", STRING))),
    )
    row = [1, Decimal("1.50"), [Decimal("2.00"), None], {"k": Decimal("3.10")}, {"A": Decimal("4.00"), "B": "x"}]
    serde = StoredRowSerde(types)
    assert serde.deserialize(serde.serialize(row)) == row
    nulls = [None] * len(types)
    assert serde.deserialize(serde.serialize(nulls)) == nulls
