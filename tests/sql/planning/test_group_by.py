"""GROUP BY: keys and results of groups, over streams and tables."""

from __future__ import annotations

import pytest

from headrace.sql.errors import SqlStatementError
from tests.sql.planning.session import planned, running, schema

SALES = "CREATE STREAM sales (id INT KEY, city STRING, sum INT) WITH (KAFKA_TOPIC='sales', FORMAT='JSON');"
SHOPS = "CREATE TABLE shops (id INT PRIMARY KEY, city STRING, staff INT) WITH (KAFKA_TOPIC='shops', FORMAT='JSON');"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT city, COUNT(*) FROM sales GROUP BY city", "`CITY` STRING KEY, `KSQL_COL_0` BIGINT"),
        ("SELECT SUM(sum) AS s, LEN(city) AS l FROM sales GROUP BY LEN(city)", "`L` INTEGER KEY, `S` INTEGER"),
        (
            "SELECT sum, city, sum + 1, COUNT(*) AS n FROM sales GROUP BY city, sum",
            "`CITY` STRING KEY, `SUM` INTEGER KEY, `KSQL_COL_0` INTEGER, `N` BIGINT",
        ),
    ],
)
def test_columns_of_a_result(query: str, expected: str) -> None:
    assert schema(SALES, f"CREATE TABLE o AS {query};") == expected


def test_every_row_updates_its_group() -> None:
    query = (
        "CREATE TABLE o AS SELECT city, SUM(sum) AS s, COUNT(*) + 100 AS n, MAX(sum) - MIN(sum) AS d"
        " FROM sales GROUP BY city;"
    )
    with running(SALES, query) as session:
        assert session.send("SALES", 1, ["Rome", 5], 10) == [("Rome", [5, 101, 0], 10)]
        assert session.send("SALES", 2, ["Oslo", 7], 11) == [("Oslo", [7, 101, 0], 11)]
        assert session.send("SALES", 1, ["Rome", 9], 4) == [("Rome", [14, 102, 4], 10)]


def test_rows_without_a_group_are_left_out() -> None:
    with running(SALES, "CREATE TABLE o AS SELECT city, COUNT(*) AS n FROM sales GROUP BY city;") as session:
        assert session.send("SALES", 1, [None, 5]) == []
        assert session.send("SALES", 1, None) == []
    with running(SALES, "CREATE TABLE o AS SELECT id, COUNT(*) AS n FROM sales GROUP BY id;") as session:
        assert session.send("SALES", None, ["Rome", 5]) == []
        assert session.send("SALES", 1, None) == []
        assert session.send("SALES", 1, ["Rome", 5]) == [(1, [1], 0)]


def test_a_groups_key_can_be_used_in_the_value() -> None:
    query = "CREATE TABLE o AS SELECT city, AS_VALUE(city) AS copy, LEN(city) + COUNT(*) AS n FROM sales GROUP BY city;"
    with running(SALES, query) as session:
        assert session.send("SALES", 1, ["Rome", 5]) == [("Rome", ["Rome", 5], 0)]


def test_having_deletes_groups_that_pass_no_more() -> None:
    query = "CREATE TABLE o AS SELECT city, SUM(sum) AS s FROM sales GROUP BY city HAVING SUM(sum) > 3 AND city <> 'x';"
    with running(SALES, query) as session:
        assert session.send("SALES", 1, ["Rome", 2]) == []
        assert session.send("SALES", 1, ["Rome", 2]) == [("Rome", [4], 0)]
        assert session.send("SALES", 1, ["Rome", -2]) == [("Rome", None, 0)]
        assert session.send("SALES", 1, ["Rome", -2]) == []
        assert session.send("SALES", 1, ["x", 9]) == []


def test_grouping_by_the_key_takes_no_repartition_topic() -> None:
    by_key = planned(SALES, "CREATE TABLE o AS SELECT id, COUNT(*) AS n FROM sales GROUP BY id;")
    by_value = planned(SALES, "CREATE TABLE o AS SELECT city, COUNT(*) AS n FROM sales GROUP BY city;")
    assert "repartition" not in str(by_key.topology.describe())
    assert "Aggregate-GroupBy-repartition" in str(by_value.topology.describe())


def test_a_tables_row_is_taken_out_of_its_old_group_first() -> None:
    query = "CREATE TABLE o AS SELECT city, COUNT(*) AS n, SUM(staff) AS s FROM shops GROUP BY city;"
    with running(SHOPS, query) as session:
        assert session.send("SHOPS", 1, ["Rome", 5]) == [("Rome", [1, 5], 0)]
        assert session.send("SHOPS", 2, ["Rome", 7]) == [("Rome", [2, 12], 0)]
        assert session.send("SHOPS", 1, ["Oslo", 4]) == [("Rome", [1, 7], 0), ("Oslo", [1, 4], 0)]
        assert session.send("SHOPS", 2, None) == [("Rome", [0, 0], 0)]
        assert session.send("SHOPS", 3, [None, 4]) == []


def test_groups_of_a_join() -> None:
    cities = "CREATE TABLE cities (city STRING PRIMARY KEY, land STRING) WITH (KAFKA_TOPIC='cities', FORMAT='JSON');"
    query = (
        "CREATE TABLE o AS SELECT c.land, SUM(s.sum) AS total FROM sales s JOIN cities c ON s.city = c.city "
        "GROUP BY c.land;"
    )
    with running(SALES, cities, query) as session:
        session.send("CITIES", "Rome", ["Italy"])
        assert session.send("SALES", 1, ["Rome", 5]) == [("Italy", [5], 0)]
        assert session.send("SALES", 2, ["Rome", 6]) == [("Italy", [11], 0)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT COUNT(*) FROM sales GROUP BY city", "must include the grouping expression CITY in its projection"),
        ("SELECT city, city AS c, COUNT(*) FROM sales GROUP BY city", "more than once: `CITY` and `C`"),
        (
            "SELECT city, COUNT(*) AS city FROM sales GROUP BY city",
            "Duplicate value columns found in schema: `CITY` BIGINT",
        ),
        (
            "SELECT SUM(sum) AS s, LEN(city) + MAX(sum) AS s FROM sales GROUP BY city",
            "Duplicate value columns found in schema: `S` INTEGER",
        ),
        ("SELECT city, sum, COUNT(*) FROM sales GROUP BY city", "not part of GROUP BY: SUM\n"),
        (
            "SELECT city, COUNT(*) + sum FROM sales GROUP BY city",
            "SELECT expression(s) not part of GROUP BY: (COUNT(*) + SUM)\n",
        ),
        ("SELECT city, SUM(1 + COUNT(sum)) FROM sales GROUP BY city", "can not be nested: SUM(COUNT())"),
        (
            "SELECT city, COUNT(*) FROM sales GROUP BY city, sum, id",
            "must include the grouping expressions SUM and ID in its projection (eg, SELECT SUM, ID...)",
        ),
        ("SELECT city, COUNT(*) FROM sales GROUP BY ()", "GROUP BY requires at least one expression"),
        ("SELECT COUNT(*), MAX(sum) FROM sales", "function [COUNT(ROWTIME), MAX(SUM)] without a GROUP BY clause"),
        (
            "SELECT city, COUNT(*) FROM sales GROUP BY city HAVING sum > 1",
            "HAVING expression not part of GROUP BY: SUM",
        ),
        ("SELECT city, COUNT(*) FROM sales", "not part of GROUP BY: CITY"),
        ("SELECT town, COUNT(*) FROM sales GROUP BY town", "GROUP BY column 'TOWN' cannot be resolved."),
        ("SELECT town, COUNT(*) FROM sales GROUP BY city HAVING hall > 1", "HAVING column 'HALL' cannot be resolved."),
        ("SELECT COUNT(*) FROM sales", "does not support aggregate function [COUNT(ROWTIME)] without a GROUP BY"),
        ("SELECT city, SUM(COUNT(*)) FROM sales GROUP BY city", "Aggregate functions can not be nested"),
        ("SELECT city, COUNT(*) FROM sales GROUP BY city, sales.city", "Duplicate GROUP BY expression: SALES.CITY"),
        ("SELECT city, COUNT(*) FROM sales GROUP BY MAX(sum)", "GROUP BY does not support aggregate functions: MAX"),
        ("SELECT city, sum FROM sales GROUP BY city, sum", "GROUP BY requires aggregate functions"),
        ("SELECT city, NO_SUCH(sum) FROM sales GROUP BY city", "Can't find any functions with the name 'NO_SUCH'"),
        ("SELECT city, COUNT(*) FROM sales GROUP BY city EMIT FINAL", "EMIT FINAL is only supported for windowed"),
        (
            "SELECT city, COUNT(*) FROM sales GROUP BY city HAVING COUNT(*) > 'x'",
            "Error in HAVING expression: Cannot compare COUNT(*) (BIGINT) to 'x' (STRING) with GREATER_THAN.",
        ),
        (
            "SELECT city, MIN(staff), MAX(staff) FROM shops GROUP BY city",
            "The aggregation functions MIN and MAX cannot",
        ),
    ],
)
def test_what_cannot_be_grouped(query: str, message: str) -> None:
    with pytest.raises(SqlStatementError) as error:
        planned(SALES, SHOPS, f"CREATE TABLE o AS {query};")
    assert message in error.value.message


def test_a_format_that_cannot_hold_the_states_is_refused() -> None:
    source = "CREATE STREAM s (id INT KEY, v INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='DELIMITED');"
    with pytest.raises(SqlStatementError, match="intermediate type that the value format can not handle"):
        planned(source, "CREATE TABLE o AS SELECT id, AVG(v) FROM s GROUP BY id;")
