"""SELECT DISTINCT ON (…) WITHIN …: which rows pass, that the DSL's ``distinct`` agrees, and where it cannot stand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import Consumed, Produced, Serdes, StreamsBuilder, TopologyTestDriver
from headrace.sql.driver import SqlTestDriver
from headrace.sql.errors import SqlError
from headrace.sql.syntax.formatter import statement_text
from headrace.sql.syntax.parser import parse_statement

CLICKS = "CREATE STREAM clicks (id INT KEY, page STRING, n INT) WITH (KAFKA_TOPIC='clicks', VALUE_FORMAT='JSON');"
USERS = "CREATE TABLE users (id INT PRIMARY KEY, name STRING) WITH (KAFKA_TOPIC='users', VALUE_FORMAT='JSON');"
DROPS = "CREATE STREAM drops (page STRING, at MAP<STRING, INT>) WITH (KAFKA_TOPIC='drops', VALUE_FORMAT='JSON');"

Click = tuple[int, int, str | None, int]
"""Time in seconds, id, page, n."""


def passed(
    query: str, clicks: Sequence[Click], columns: Sequence[str] = ("ID", "PAGE", "N")
) -> list[tuple[object, ...]]:
    """Returns columns and times in seconds of the rows that a query gives."""
    with SqlTestDriver(CLICKS + USERS) as driver:
        driver.insert("users", {"id": 1, "name": "Ada"})
        driver.insert("users", {"id": 2, "name": "Eve"})
        driver.execute(f"CREATE STREAM o AS {query} EMIT CHANGES;")
        for seconds, id, page, n in clicks:
            driver.insert("clicks", {"id": id, "page": page, "n": n}, timestamp_ms=seconds * 1000)
        return [(*(row.columns[one] for one in columns), row.timestamp_ms // 1000) for row in driver.rows("O")]


def test_row_passes_unless_it_repeats_one_of_the_same_key() -> None:
    query = "SELECT DISTINCT ON (page) WITHIN 10 SECONDS * FROM clicks"
    clicks = [(0, 1, "a", 1), (5, 1, "a", 2), (6, 2, "a", 3), (7, 1, "b", 4), (10, 1, "a", 5), (11, 1, "a", 6)]
    assert passed(query, clicks) == [(1, "a", 1, 0), (2, "a", 3, 6), (1, "b", 4, 7), (1, "a", 6, 11)]


def test_several_expressions_have_to_be_the_same_and_null_is_like_null() -> None:
    query = "SELECT DISTINCT ON (UCASE(page), n % 2) WITHIN 1 MINUTE * FROM clicks"
    clicks = [(0, 1, "a", 1), (1, 1, "A", 3), (2, 1, "a", 2), (3, 1, None, 1), (4, 1, None, 5)]
    assert passed(query, clicks) == [(1, "a", 1, 0), (1, "a", 2, 2), (1, None, 1, 3)]


def test_partition_by_says_what_belongs_together() -> None:
    query = "SELECT DISTINCT ON (n) WITHIN 1 MINUTE page, id, n FROM clicks PARTITION BY page"
    clicks = [(0, 1, "a", 1), (1, 2, "a", 1), (2, 2, "b", 1), (3, 3, "a", 2)]
    assert passed(query, clicks) == [(1, "a", 1, 0), (2, "b", 1, 2), (3, "a", 2, 3)]


def test_conditions_come_before_it_and_table_functions_behind_it() -> None:
    query = "SELECT DISTINCT ON (page) WITHIN 1 MINUTE id, EXPLODE(ARRAY[n, -n]) AS n FROM clicks WHERE n > 1"
    clicks = [(0, 1, "a", 1), (1, 1, "a", 2), (2, 1, "a", 3)]
    assert passed(query, clicks, ("ID", "N")) == [(1, 2, 1), (1, -2, 1)]


def test_rows_of_a_join_are_compared_with_the_columns_of_both_sides() -> None:
    query = (
        "SELECT DISTINCT ON (u.name, c.page) WITHIN 1 MINUTE c.id AS id, c.n AS n, u.name AS name "
        "FROM clicks c JOIN users u ON c.id = u.id"
    )
    clicks = [(0, 1, "a", 1), (1, 1, "a", 2), (2, 2, "a", 3), (3, 1, "b", 4)]
    assert passed(query, clicks, ("N", "NAME")) == [(1, "Ada", 0), (3, "Eve", 2), (4, "Ada", 3)]


@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(1, 2), st.sampled_from(["a", "b"]), st.integers(0, 9)), max_size=15
    )
)
def test_distinct_of_the_dsl_lets_the_same_rows_pass(clicks: list[Click]) -> None:
    builder = StreamsBuilder()
    stream = builder.stream("clicks", Consumed(Serdes.integer(), Serdes.json()))
    stream.distinct(lambda _, click: click[0], within=timedelta(seconds=10)).to(
        "out", Produced(Serdes.integer(), Serdes.json())
    )
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("clicks", key_serde=Serdes.integer(), value_serde=Serdes.json())
        for seconds, id, page, n in clicks:
            topic.pipe_input(id, [page, n], timestamp_ms=seconds * 1000)
        out = driver.create_output_topic("out", key_serde=Serdes.integer(), value_serde=Serdes.json()).read_records()
        expected = [(record.key, *record.value, (record.timestamp_ms or 0) // 1000) for record in out]
    assert passed("SELECT DISTINCT ON (page) WITHIN 10 SECONDS * FROM clicks", clicks) == expected


def test_statement_is_written_as_it_is_read() -> None:
    text = "SELECT DISTINCT ON (C.PAGE, (C.N + 1)) WITHIN 90 MINUTES\n  C.ID\nFROM CLICKS C\nEMIT CHANGES"
    statement = parse_statement(f"{text};")
    assert statement_text(statement) == text
    assert parse_statement(f"{statement_text(statement)};") == statement


@pytest.mark.parametrize(
    ("query", "message", "column"),
    [
        ("SELECT DISTINCT page FROM clicks", r"Expecting 'ON \(': write SELECT DISTINCT ON \(expression, ...\)", 36),
        ("SELECT DISTINCT ON page FROM clicks", r"Expecting 'ON \('", 36),
        ("SELECT DISTINCT ON () WITHIN 1 DAY * FROM clicks", r"Syntax error at or near '\)'", 40),
        ("SELECT DISTINCT ON (page) * FROM clicks", "Expecting 'WITHIN': write SELECT DISTINCT ON", 46),
        ("SELECT DISTINCT ON (page) WITHIN 1 PAGE * FROM clicks", "Syntax error at or near 'PAGE'", 55),
        ("SELECT DISTINCT ON (page) WITHIN 0 DAYS * FROM clicks", "needs a WITHIN that is longer than nothing", 27),
        ("SELECT DISTINCT ON (name) WITHIN 1 DAY * FROM users", "is for streams: a table has one row for each key", 27),
        (
            "SELECT DISTINCT ON (page) WITHIN 1 DAY id, COUNT(*) FROM clicks GROUP BY id",
            "does not go with GROUP BY: make a stream of the distinct rows first",
            27,
        ),
        ("SELECT DISTINCT ON (pages) WITHIN 1 DAY * FROM clicks", "Did you mean 'PAGE'", 40),
        ("SELECT DISTINCT ON (COUNT(*)) WITHIN 1 DAY * FROM clicks", "does not support aggregate functions: COUNT", 40),
        ("SELECT DISTINCT ON (page + 1) WITHIN 1 DAY * FROM clicks", "Invalid DISTINCT ON: .*STRING INTEGER", 45),
        ("SELECT DISTINCT ON (page) WITHIN 1 DAY * FROM drops", "the rows have none: add PARTITION BY", 27),
        (
            "SELECT DISTINCT ON (at) WITHIN 1 DAY * FROM drops PARTITION BY page",
            r"cannot compare maps: AT is of type MAP<STRING, INTEGER>",
            40,
        ),
    ],
)
def test_mistakes_are_told_with_their_place(query: str, message: str, column: int) -> None:
    with SqlTestDriver(CLICKS + USERS + DROPS) as driver, pytest.raises(SqlError, match=message) as raised:
        driver.execute(f"CREATE STREAM o AS {query};")
    place = raised.value.position
    assert place is not None
    assert (place.line, place.column) == (1, column)
