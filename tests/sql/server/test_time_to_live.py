"""Tables with a TTL on a server: what queries write, what pull queries show, and that Spark and the driver agree."""

from __future__ import annotations

import json
import time
from typing import Any

from headrace.sql.driver import SqlTestDriver
from tests.sql.server.kit import Client, until

TOPICS = """
CREATE TABLE users (id INT PRIMARY KEY, name STRING)
    WITH (KAFKA_TOPIC='users', VALUE_FORMAT='JSON', KEY_FORMAT='JSON', PARTITIONS=1, TTL='10 SECONDS'{0});
CREATE STREAM clicks (id INT KEY, page STRING)
    WITH (KAFKA_TOPIC='clicks', VALUE_FORMAT='JSON', KEY_FORMAT='JSON', PARTITIONS=1);
"""
QUERIES = """
CREATE TABLE copy AS SELECT * FROM users;
CREATE TABLE seen WITH (TTL='10 SECONDS'{0}) AS SELECT id, COUNT(*) AS n FROM clicks GROUP BY id;
"""
INSERTS = [
    ("users", 0, {"id": 1, "name": "Ada"}),
    ("clicks", 0, {"id": 1, "page": "a"}),
    ("clicks", 5_000, {"id": 1, "page": "b"}),
    ("users", 9_999, {"id": 2, "name": "Eve"}),
    ("clicks", 14_000, {"id": 2, "page": "a"}),
    ("users", 10_000, {"id": 3, "name": "Zoe"}),
    ("clicks", 15_000, {"id": 2, "page": "a"}),
    ("clicks", 16_000, {"id": 1, "page": "c"}),
]
COPIED = [(1, "Ada", 0), (2, "Eve", 9_999), (1, None, 10_000), (3, "Zoe", 10_000)]
"""The topic of COPY: key, name or None for a deletion, time."""
COUNTED = [(1, 1, 0), (1, 2, 5_000), (2, 1, 14_000), (1, None, 15_000), (2, 2, 15_000), (1, 1, 16_000)]


def insert(client: Client, source: str, time_ms: int, row: dict[str, Any]) -> None:
    values = ", ".join(repr(each) for each in row.values())
    client.ksql(f"INSERT INTO {source} (ROWTIME, {', '.join(row)}) VALUES ({time_ms}, {values});")


def written(client: Client, topic: str, column: str) -> list[tuple[int, Any, int]]:
    return [
        (json.loads(key or b"null"), None if value is None else json.loads(value)[column], time_ms)
        for _, time_ms, key, value, _ in client.records(topic)
    ]


def pulled(client: Client, text: str) -> list[list[Any]]:
    return [each["row"]["columns"] for each in client.query(text) if "row" in each]


def test_driver_writes_what_is_expected_of_servers() -> None:
    with SqlTestDriver(TOPICS.format("") + QUERIES.format("")) as driver:
        for source, time_ms, row in INSERTS:
            driver.insert(source, row, timestamp_ms=time_ms)
        for source, column, expected in (("COPY", "NAME", COPIED), ("SEEN", "N", COUNTED)):
            found = [
                (row.columns["ID"], None if row.deleted else row.columns[column], row.timestamp_ms)
                for row in driver.rows(source)
            ]
            assert found == expected


def test_rows_expire_by_stream_time(client: Client) -> None:
    check_expiry_by_stream_time(client)


def check_expiry_by_stream_time(client: Client) -> None:
    """Makes tables with a TTL and rows of them, on any engine."""
    client.ksql(TOPICS.format("") + QUERIES.format(""))
    shown = []
    for source, time_ms, row in INSERTS:
        insert(client, source, time_ms, row)
        client.settle()
        shown.append(sorted(pulled(client, "SELECT id, n FROM seen;")))
    assert written(client, "COPY", "NAME") == COPIED
    assert written(client, "SEEN", "N") == COUNTED
    assert shown[-1] == [[1, 1], [2, 2]]
    assert shown[-2] == [[2, 2]]
    assert sorted(pulled(client, "SELECT id, name FROM copy;")) == [[2, "Eve"], [3, "Zoe"]]
    assert pulled(client, "SELECT name FROM copy WHERE id = 1;") == []
    # The first table's view is that of the topic itself, in which nobody has deleted anything.
    joined = "SELECT u.id AS id, u.name AS name FROM users u LEFT JOIN seen s ON u.id = s.id;"
    assert sorted(pulled(client, joined)) == [[2, "Eve"], [3, "Zoe"]]


def test_rows_expire_by_the_wall_clock(client: Client) -> None:
    by_clock = ", TTL_CLOCK='WALL_CLOCK'"
    hour = "1 HOUR"
    client.ksql((TOPICS.format(by_clock) + QUERIES.format(by_clock)).replace("10 SECONDS", hour))
    now_ms = time.time_ns() // 1_000_000
    for id, time_ms in ((1, now_ms - 7_200_000), (2, now_ms)):
        insert(client, "users", time_ms, {"id": id, "name": "x"})
        insert(client, "clicks", time_ms, {"id": id, "page": "a"})
    client.settle()
    deadline_ms = now_ms - 3_600_000
    until(lambda: (1, None, deadline_ms) in written(client, "COPY", "NAME"))
    until(lambda: (1, None, deadline_ms) in written(client, "SEEN", "N"))
    assert pulled(client, "SELECT id FROM copy;") == [[2]]
    assert pulled(client, "SELECT id, n FROM seen;") == [[2, 1]]
    assert pulled(client, "SELECT u.id AS id FROM users u LEFT JOIN seen s ON u.id = s.id;") == [[2]]
