"""TTL in the WITH of tables: rows that expire, and where there can be none."""

from __future__ import annotations

import pytest

from headrace.sql.driver import SqlTestDriver
from headrace.sql.errors import SqlError

USERS = "CREATE TABLE users (id INT PRIMARY KEY, name STRING) WITH (KAFKA_TOPIC='users', VALUE_FORMAT='JSON'{});"
CLICKS = "CREATE STREAM clicks (id INT KEY, page STRING) WITH (KAFKA_TOPIC='clicks', VALUE_FORMAT='JSON');"
TTL = ", TTL='10 SECONDS'"

Row = tuple[object, object, int]


def rows(driver: SqlTestDriver, source: str, column: str) -> list[Row]:
    """Returns the key, a column and the time of each row; None: it was deleted."""
    return [
        (row.columns["ID"], None if row.deleted else row.columns[column], row.timestamp_ms)
        for row in driver.rows(source)
    ]


def test_rows_of_a_table_expire_in_the_queries_that_read_it() -> None:
    with SqlTestDriver(USERS.format(TTL) + "CREATE TABLE copy AS SELECT * FROM users;") as driver:
        driver.insert("users", {"id": 1, "name": "Ada"}, timestamp_ms=0)
        driver.insert("users", {"id": 2, "name": "Eve"}, timestamp_ms=9_999)
        driver.insert("users", {"id": 3, "name": "Zoe"}, timestamp_ms=10_000)
        assert rows(driver, "COPY", "NAME") == [
            (1, "Ada", 0),
            (2, "Eve", 9_999),
            (1, None, 10_000),
            (3, "Zoe", 10_000),
        ]


def test_stream_finds_no_row_of_a_table_that_has_expired() -> None:
    join = "CREATE STREAM named AS SELECT c.id AS id, page, name FROM clicks c LEFT JOIN users u ON c.id = u.id;"
    with SqlTestDriver(USERS.format(TTL) + CLICKS + join) as driver:
        driver.insert("users", {"id": 1, "name": "Ada"}, timestamp_ms=0)
        driver.insert("clicks", {"id": 1, "page": "a"}, timestamp_ms=9_000)
        driver.insert("clicks", {"id": 1, "page": "b"}, timestamp_ms=10_000)
        assert rows(driver, "NAMED", "NAME") == [(1, "Ada", 9_000), (1, None, 10_000)]


@pytest.mark.parametrize("column", ["COUNT(*)", "SUM(LEN(page))"])
def test_groups_of_a_stream_expire_and_begin_anew(column: str) -> None:
    query = f"CREATE TABLE seen WITH (TTL='10 seconds') AS SELECT id, {column} AS n FROM clicks GROUP BY id;"
    with SqlTestDriver(CLICKS + query) as driver:
        for seconds, id in ((0, 1), (5, 1), (14, 2), (15, 2), (16, 1)):
            driver.insert("clicks", {"id": id, "page": "a"}, timestamp_ms=seconds * 1000)
        assert rows(driver, "SEEN", "N") == [
            (1, 1, 0),
            (1, 2, 5_000),
            (2, 1, 14_000),
            (1, None, 15_000),
            (2, 2, 15_000),
            (1, 1, 16_000),
        ]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM users",
        "SELECT id, name FROM users WHERE name <> 'x'",
        "SELECT u.id AS id, u.name AS name FROM users u LEFT JOIN users2 v ON u.id = v.id",
    ],
)
def test_result_of_any_query_over_tables_can_expire(query: str) -> None:
    others = USERS.format("").replace("users", "users2")
    with SqlTestDriver(USERS.format("") + others + f"CREATE TABLE t WITH (TTL='10 SECONDS') AS {query};") as driver:
        driver.insert("users", {"id": 1, "name": "Ada"}, timestamp_ms=0)
        driver.insert("users", {"id": 2, "name": "Eve"}, timestamp_ms=10_000)
        assert rows(driver, "T", "NAME") == [(1, "Ada", 0), (1, None, 10_000), (2, "Eve", 10_000)]


def test_having_sees_the_groups_that_are_there() -> None:
    query = (
        "CREATE TABLE busy WITH (TTL='10 SECONDS') AS SELECT id, COUNT(*) AS n FROM clicks "
        "GROUP BY id HAVING COUNT(*) > 1;"
    )
    with SqlTestDriver(CLICKS + query) as driver:
        for seconds, id in ((0, 1), (1, 1), (11, 2), (12, 1)):
            driver.insert("clicks", {"id": id, "page": "a"}, timestamp_ms=seconds * 1000)
        assert rows(driver, "BUSY", "N") == [(1, 2, 1_000), (1, None, 11_000)]


def test_clock_is_stream_time_unless_the_statement_names_another() -> None:
    with SqlTestDriver(USERS.format(TTL)) as driver:
        lifetime = driver.source("USERS").lifetime
        assert lifetime is not None
        assert (lifetime.duration.total_seconds(), lifetime.clock) == (10, "stream_time")
        driver.execute("DROP TABLE users;" + USERS.format(TTL + ", TTL_CLOCK='wall_clock'"))
        lifetime = driver.source("USERS").lifetime
        assert lifetime is not None
        assert lifetime.clock == "wall_clock"


@pytest.mark.parametrize(
    ("statement", "message", "column"),
    [
        (USERS.format(", TTL='soon'"), "TTL is invalid: Invalid duration: 'soon'. Must be in format", 106),
        (
            USERS.format(", TTL='3 MOONS'"),
            "TTL is invalid: Invalid duration: '3 MOONS'. Unknown time unit: 'MOONS'",
            106,
        ),
        (
            USERS.format(", TTL='0 DAYS'"),
            "TTL is invalid: Invalid duration: '0 DAYS'. Rows must live longer than 0",
            106,
        ),
        (USERS.format(", TTL=5"), "TTL is invalid: Invalid duration: '5'. Must be in format", 106),
        (
            USERS.format(f"{TTL}, TTL_CLOCK='MOON'"),
            "TTL_CLOCK is invalid: Unknown clock: MOON. Must be one of STREAM_TIME, WALL_CLOCK",
            130,
        ),
        (USERS.format(", TTL_CLOCK='WALL_CLOCK'"), "TTL_CLOCK is invalid: it says which clock 'TTL' goes by", 112),
        (
            USERS.format(TTL).replace("TABLE", "SOURCE TABLE"),
            "TTL is invalid: a SOURCE table has what its topic has: make a table",
            113,
        ),
        (
            "CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', TTL='1 DAY');",
            "TTL is invalid: the rows of a stream do not expire",
            73,
        ),
        (
            "CREATE STREAM s WITH (TTL='1 DAY') AS SELECT * FROM clicks;",
            "TTL is invalid: the rows of a stream do not expire",
            27,
        ),
        (
            "CREATE TABLE t WITH (TTL='1 DAY') AS SELECT id, COUNT(*) FROM clicks "
            "WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY id;",
            "TTL is invalid: windows are kept for their retention: write RETENTION",
            26,
        ),
        (
            "CREATE TABLE t WITH (TTL='1 DAY') AS SELECT page, COUNT(*) FROM pages GROUP BY page;",
            "TTL is invalid: groups of a table's rows do not expire",
            26,
        ),
        ("INSERT INTO clicks WITH (TTL='1 DAY') SELECT * FROM clicks;", r"Invalid config variable\(s\).*: TTL", 1),
    ],
)
def test_ttl_where_there_can_be_none_is_refused_at_its_place(statement: str, message: str, column: int) -> None:
    pages = "CREATE TABLE pages (id INT PRIMARY KEY, page STRING) WITH (KAFKA_TOPIC='pages', VALUE_FORMAT='JSON');"
    with SqlTestDriver(CLICKS + pages) as driver, pytest.raises(SqlError, match=message) as raised:
        driver.execute(statement)
    place = raised.value.position
    assert place is not None
    assert place.column == column
