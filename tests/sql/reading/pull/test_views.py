"""The views of tables: kept between runs, read as of one moment."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from headrace.sql.errors import SqlStatementError
from headrace.sql.reading.tables import open_tables
from tests.sql.places import QueryPlace

TABLES = """
CREATE TABLE written (k INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=2);
CREATE SOURCE TABLE t (k INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
"""


@pytest.fixture
def table(place: QueryPlace) -> QueryPlace:
    place.run(TABLES + "".join(f"INSERT INTO written VALUES ({number}, 0);" for number in range(20)))
    return place


def test_a_view_goes_on_where_it_was(table: QueryPlace, tmp_path: Path) -> None:
    assert len(table.rows("SELECT * FROM t;")) == 20
    table.tables.close()
    table.run("INSERT INTO written VALUES (3, 33); INSERT INTO written VALUES (20, 0);")
    table.tables = open_tables(table.log, tmp_path / "views")
    assert len(table.rows("SELECT * FROM t;")) == 21
    assert table.rows("SELECT v FROM t WHERE k = 3;") == [[33]]


def test_rows_are_those_of_the_moment_in_which_reading_began(table: QueryPlace) -> None:
    reading = table.pulled("SELECT v FROM t;").rows
    first = next(reading).columns
    table.run("".join(f"INSERT INTO written VALUES ({number}, 1);" for number in range(20)))
    assert table.rows("SELECT COUNT(*) FROM t WHERE v = 1;") == [[20]]
    assert [first, *(row.columns for row in reading)] == [[0]] * 20


def test_many_threads_ask_at_once_while_rows_change(table: QueryPlace) -> None:
    found: list[list[Any]] = []

    def ask() -> None:
        for number in range(20):
            found.extend(table.rows(f"SELECT k FROM t WHERE k = {number};"))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(20):
        table.run(f"INSERT INTO written VALUES ({number}, 2);")
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted([[number] for number in range(20)] * 4)


def test_a_table_without_topic_is_said_to_be_so(table: QueryPlace) -> None:
    table.log.delete_topic("t")
    with pytest.raises(SqlStatementError, match="the topic 't' of table T does not exist"):
        table.rows("SELECT * FROM t;")
