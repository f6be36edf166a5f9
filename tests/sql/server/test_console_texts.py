"""Queries in the words of their statements: what each node of a graph stands for, and what has failed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.sql.server.kit import SOON, Client, SqlPlace

SOURCES = """
CREATE STREAM orders (id INT KEY, customer STRING, cents BIGINT, tags ARRAY<STRING>)
  WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE STREAM payments (id INT KEY, order_id INT) WITH (KAFKA_TOPIC='payments', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING)
  WITH (KAFKA_TOPIC='customers', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE cities (city STRING PRIMARY KEY, country STRING)
  WITH (KAFKA_TOPIC='cities', VALUE_FORMAT='JSON', PARTITIONS=1);
"""


def texts_of(client: Client, statement: str) -> list[tuple[str, str]]:
    """Returns the SQL and the role of each node of a query, from its sources to its sink."""
    client.ksql(SOURCES)
    query = client.ksql(statement)[0]["commandStatus"]["queryId"]
    found = client.http.get(f"/console/api/queries/{query}").json()
    names = [node["name"] for part in found["topology"]["subtopologies"] for node in part["nodes"]]
    assert set(names) == set(found["texts"])
    order = list(found["texts"])
    return [(found["texts"][name]["sql"], found["texts"][name]["role"]) for name in order]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON.total_seconds()
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_clauses_are_as_they_were_written_on_one_line_without_comments(client: Client) -> None:
    statement = """CREATE STREAM big AS SELECT id, cents -- in cents
      , cents * 2 AS more FROM orders o
      WHERE cents  >  500 /* much */ AND customer IS DISTINCT FROM 'x' EMIT CHANGES;"""
    assert texts_of(client, statement) == [
        ("FROM orders o", ""),
        ("WHERE cents > 500 AND customer IS DISTINCT FROM 'x'", "filter"),
        ("SELECT id, cents , cents * 2 AS more", "columns"),
        ("CREATE STREAM BIG", ""),
    ]


def test_rows_that_go_are_named_by_the_words_that_let_them_go(client: Client) -> None:
    statement = "CREATE STREAM firsts AS SELECT DISTINCT ON (cents) WITHIN 1 HOUR id, cents FROM orders;"
    assert texts_of(client, statement) == [
        ("FROM orders", ""),
        ("DISTINCT ON (cents) WITHIN 1 HOUR", "leaves out what is repeated"),
        ("SELECT DISTINCT ON (cents) WITHIN 1 HOUR id, cents", "columns"),
        ("CREATE STREAM FIRSTS", ""),
    ]
    client.ksql("CREATE TABLE recent WITH (TTL='2 HOURS') AS SELECT name, UCASE(city) AS city FROM customers;")
    found = client.http.get("/console/api/queries/CTAS_RECENT_1").json()["texts"].values()
    assert {"sql": "WITH (TTL='2 HOURS')", "role": "rows that expire"} in found


def test_aggregation_is_its_group_by_with_its_window(client: Client) -> None:
    statement = """CREATE TABLE counts AS SELECT customer, COUNT(*) AS n FROM orders
      WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY customer HAVING COUNT(*) > 1;"""
    assert texts_of(client, statement) == [
        ("FROM orders", ""),
        ("GROUP BY customer", "new key"),
        ("GROUP BY customer", "leaves out NULL keys"),
        ("GROUP BY customer", ""),
        ("GROUP BY customer", ""),
        ("WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY customer", "aggregate"),
        ("GROUP BY customer", "results"),
        ("HAVING COUNT(*) > 1", "filter"),
        ("EMIT CHANGES", "changes"),
        ("CREATE TABLE COUNTS", ""),
    ]


def test_join_of_streams_is_the_join_within_its_time(client: Client) -> None:
    statement = """CREATE STREAM paid AS SELECT o.id AS id, cents FROM orders o
      LEFT JOIN payments p WITHIN 1 HOUR ON o.id = p.order_id;"""
    join = "LEFT JOIN payments p WITHIN 1 HOUR"
    assert texts_of(client, statement) == [
        ("FROM orders o", ""),
        ("FROM payments p", ""),
        ("ON o.id = p.order_id", "new key"),
        (join, ""),
        (join, ""),
        (join, ""),
        (join, "keeps rows"),
        (join, "keeps rows"),
        (join, "looks for partners"),
        (join, "looks for partners"),
        (join, "joined rows"),
        ("SELECT o.id AS id, cents", "columns"),
        ("CREATE STREAM PAID", ""),
    ]


def test_each_of_several_joins_has_its_own_clause(client: Client) -> None:
    statement = """CREATE STREAM all_of_it AS SELECT c.name, o.cents, p.order_id FROM orders o
      JOIN payments p WITHIN 2 DAYS ON o.id = p.id JOIN customers c ON o.customer = c.name;"""
    found = texts_of(client, statement)
    assert [text for text in found if text[1] == "looks for partners"] == [
        ("JOIN payments p WITHIN 2 DAYS", "looks for partners"),
        ("JOIN payments p WITHIN 2 DAYS", "looks for partners"),
        ("JOIN customers c", "looks for partners"),
    ]
    assert ("ON o.customer = c.name", "new key") in found


def test_foreign_key_join_of_tables_is_one_join(client: Client) -> None:
    statement = """CREATE TABLE where_they_live AS SELECT c.name AS name, country FROM customers c
      JOIN cities t ON c.city = t.city;"""
    found = texts_of(client, statement)
    assert ("FROM cities t", "latest row of each key") in found
    assert ("JOIN cities t", "asks for partners") in found
    assert ("JOIN cities t", "answers") in found
    assert found[-3:] == [
        ("SELECT c.name AS name, country", "columns"),
        ("EMIT CHANGES", "changes"),
        ("CREATE TABLE WHERE_THEY_LIVE", ""),
    ]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "CREATE STREAM parted AS SELECT * FROM orders PARTITION BY customer;",
            [("FROM orders", ""), ("FROM orders", "adds ID"), ("PARTITION BY customer", "new key")],
        ),
        (
            "CREATE STREAM tagged AS SELECT id, EXPLODE(tags) AS tag FROM orders;",
            [("FROM orders", ""), ("SELECT id, EXPLODE(tags) AS tag", "a row for each value")],
        ),
        (
            "CREATE STREAM timed WITH (TIMESTAMP='CENTS') AS SELECT id, cents FROM orders;",
            [("FROM orders", ""), ("SELECT id, cents", "columns"), ("WITH (TIMESTAMP='CENTS')", "time of the row")],
        ),
    ],
)
def test_other_clauses(client: Client, statement: str, expected: list[tuple[str, str]]) -> None:
    assert texts_of(client, statement)[: len(expected)] == expected


def test_insert_is_told_by_its_target(client: Client) -> None:
    client.ksql(f"{SOURCES} CREATE STREAM copy AS SELECT id, cents FROM orders;")
    found = client.ksql("INSERT INTO copy SELECT id, cents FROM orders;")[0]["commandStatus"]["queryId"]
    texts = client.http.get(f"/console/api/queries/{found}").json()["texts"]
    assert list(texts.values())[-1] == {"sql": "INSERT INTO COPY", "role": ""}


def failed(client: Client, query: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def is_failed() -> bool:
        found.update(client.http.get(f"/console/api/queries/{query}").json())
        return found["error"] is not None

    wait_for(is_failed)
    return found


def test_function_that_raises_is_told_by_its_clause(place: SqlPlace) -> None:
    client = place.server({"ksql.functions.python.modules": "tests.sql.server.failing"})
    client.ksql(f"{SOURCES} CREATE FUNCTION refuse AS 'tests.sql.server.failing:Refuse';")
    client.ksql("CREATE TABLE refused AS SELECT customer, REFUSE(cents) AS n FROM orders GROUP BY customer;")
    client.ksql("INSERT INTO orders (id, customer, cents) VALUES (1, 'ada', 7);")
    found = failed(client, "CTAS_REFUSED_0")
    assert found["error"] == "GROUP BY customer fails for a row: ValueError: 7 is too much"
    assert "KSTREAM-AGGREGATE" in found["error_details"]
    assert [name for name, figures in found["nodes"].items() if figures.get("failed")] == [
        name for name, text in found["texts"].items() if text["role"] == "aggregate"
    ]


def test_missing_topic_is_told_by_its_stream(client: Client, place: SqlPlace) -> None:
    client.ksql(f"{SOURCES} CREATE STREAM big AS SELECT id, cents FROM orders WHERE cents > 5;")
    client.settle()
    place.log.delete_topic("orders")
    error = failed(client, "CSAS_BIG_0")["error"]
    assert "'orders' of stream ORDERS" in error
    assert "application" not in error
    assert "sub-topology" not in error
    assert "\n" not in error


def test_node_has_the_name_of_its_topic_if_the_log_has_it(client: Client) -> None:
    client.ksql(f"{SOURCES} CREATE TABLE counts AS SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer;")
    parts = client.http.get("/console/api/queries/CTAS_COUNTS_0").json()["topology"]["subtopologies"]
    topics = [node["log_topic"] for part in parts for node in part["nodes"] if "log_topic" in node]
    assert topics == ["orders", "COUNTS"]
