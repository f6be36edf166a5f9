"""Pull queries on tables whose rows expire, read from the topic itself: joins do that with tables of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.sql.reading.tables import open_tables
from tests.sql.places import QueryPlace

TABLES = """
CREATE TABLE users (id INT PRIMARY KEY, name STRING, at BIGINT)
    WITH (KAFKA_TOPIC='users', VALUE_FORMAT='JSON', PARTITIONS=1{});
CREATE TABLE cities (id INT PRIMARY KEY, city STRING) WITH (KAFKA_TOPIC='cities', VALUE_FORMAT='JSON', PARTITIONS=1);
INSERT INTO cities VALUES (1, 'Oslo'); INSERT INTO cities VALUES (2, 'Basel'); INSERT INTO cities VALUES (3, 'Rome');
"""
TTL = ", TTL='10 SECONDS'"
BY_KEY = "SELECT name FROM cities c JOIN users u ON c.id = u.id WHERE c.id = {};"
ALL = "SELECT name FROM users u JOIN cities c ON c.id = u.id;"


def names(place: QueryPlace) -> list[Any]:
    """Returns the names that a scan of the table finds, having made sure that lookups by key find the same."""
    scanned = [row[0] for row in place.rows(ALL)]
    looked_up = [row[0] for id in (1, 2, 3) for row in place.rows(BY_KEY.format(id))]
    assert sorted(looked_up) == sorted(scanned)
    return scanned


def insert(place: QueryPlace, time_ms: int, id: int, name: str, at: int = 0) -> None:
    place.run(f"INSERT INTO users (ROWTIME, id, name, at) VALUES ({time_ms}, {id}, '{name}', {at});")


def test_rows_are_gone_when_the_stream_time_of_their_partition_has_reached_their_end(place: QueryPlace) -> None:
    place.run(TABLES.format(TTL))
    insert(place, 0, 1, "Ada")
    insert(place, 9_999, 2, "Eve")
    assert names(place) == ["Ada", "Eve"]
    insert(place, 10_000, 3, "Zoe")
    assert names(place) == ["Eve", "Zoe"]
    insert(place, 15_000, 2, "Eva")
    insert(place, 22_000, 1, "Ann")
    assert names(place) == ["Ann", "Eva"]


def test_table_without_ttl_on_the_same_topic_keeps_its_rows(place: QueryPlace) -> None:
    place.run(
        TABLES.format(TTL) + TABLES.split("CREATE TABLE cities")[0].format("").replace("TABLE users", "TABLE kept")
    )
    insert(place, 0, 1, "Ada")
    insert(place, 50_000, 2, "Eve")
    assert names(place) == ["Eve"]
    assert place.rows(ALL.replace("users", "kept")) == [["Ada"], ["Eve"]]


def test_deletion_of_a_row_moves_the_clock_also_for_a_view_that_is_opened_later(
    place: QueryPlace, tmp_path: Path
) -> None:
    place.run(TABLES.format(TTL))
    insert(place, 0, 1, "Ada")
    insert(place, 1_000, 2, "Eve")
    key = place.log.read("users", 0, 0)[0][2]
    place.log.append("users", [(0, 10_500, key, None, ())])
    assert names(place) == ["Eve"]
    place.log.append("users", [(0, 11_000, key, None, ())])
    assert names(place) == []
    place.tables.close()
    place.tables = open_tables(place.log, tmp_path / "views")
    assert names(place) == []


def test_rows_go_by_a_clock_on_the_wall_if_the_table_says_so(place: QueryPlace, tmp_path: Path) -> None:
    now_ms = 10_000
    place.tables.close()
    place.tables = open_tables(place.log, tmp_path / "views", clock=lambda: now_ms)
    place.run(TABLES.format(f"{TTL}, TTL_CLOCK='WALL_CLOCK'"))
    insert(place, 1, 1, "Ada")
    insert(place, 5_000, 2, "Eve")
    insert(place, 90_000, 3, "Zoe")
    assert names(place) == ["Ada", "Eve", "Zoe"]
    now_ms = 10_001
    assert names(place) == ["Eve", "Zoe"]
    now_ms = 99_999
    assert names(place) == ["Zoe"]


@pytest.mark.parametrize("headers", ["", ", h ARRAY<STRUCT<key STRING, value BYTES>> HEADERS"])
def test_rows_go_by_the_column_that_gives_them_their_time(place: QueryPlace, headers: str) -> None:
    place.run(TABLES.replace("at BIGINT", f"at BIGINT{headers}").format(f"{TTL}, TIMESTAMP='at'"))
    insert(place, 70_000, 1, "Ada", at=0)
    insert(place, 60_000, 2, "Eve", at=9_999)
    assert names(place) == ["Ada", "Eve"]
    insert(place, 0, 3, "Zoe", at=10_000)
    assert names(place) == ["Eve", "Zoe"]
