"""Extensions of pull queries on tables beyond ksqlDB: order, pages, aggregates and joins."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.sql.errors import SqlParseError, SqlStatementError
from tests.sql.places import QueryPlace

SHOP = """
CREATE TABLE written_people (id INT PRIMARY KEY, name STRING, city STRING)
    WITH (KAFKA_TOPIC='people', VALUE_FORMAT='JSON', PARTITIONS=2);
CREATE SOURCE TABLE people (id INT PRIMARY KEY, name STRING, city STRING)
    WITH (KAFKA_TOPIC='people', VALUE_FORMAT='JSON');
CREATE TABLE written_orders (id INT PRIMARY KEY, buyer INT, price DECIMAL(6, 2))
    WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', PARTITIONS=3);
CREATE SOURCE TABLE orders (id INT PRIMARY KEY, buyer INT, price DECIMAL(6, 2))
    WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON');
INSERT INTO written_people VALUES (1, 'Ann', 'Oslo');
INSERT INTO written_people VALUES (2, 'Bob', 'Basel');
INSERT INTO written_people VALUES (3, 'Cid', NULL);
INSERT INTO written_orders VALUES (10, 1, 5.50);
INSERT INTO written_orders VALUES (11, 1, 2.00);
INSERT INTO written_orders VALUES (12, 2, 9.25);
INSERT INTO written_orders VALUES (13, 7, 1.00);
INSERT INTO written_orders (id, price) VALUES (14, 3.00);
"""


@pytest.fixture
def shop(place: QueryPlace) -> QueryPlace:
    place.run(SHOP)
    return place


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT id FROM orders ORDER BY id", [[10], [11], [12], [13], [14]]),
        ("SELECT id FROM orders ORDER BY price DESC, id LIMIT 2", [[12], [10]]),
        ("SELECT id FROM orders ORDER BY id LIMIT 2 OFFSET 3", [[13], [14]]),
        ("SELECT id AS n FROM orders ORDER BY n DESC OFFSET 4", [[10]]),
        ("SELECT id, buyer FROM orders ORDER BY 2 DESC, 1", [[13, 7], [12, 2], [10, 1], [11, 1], [14, None]]),
        ("SELECT id FROM orders WHERE id IN (12, 11) ORDER BY -id", [[12], [11]]),
        ("SELECT name FROM people ORDER BY city", [["Bob"], ["Ann"], ["Cid"]]),
    ],
)
def test_rows_are_ordered_and_paged(shop: QueryPlace, query: str, expected: list[Any]) -> None:
    assert shop.rows(f"{query};") == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT COUNT(*) FROM orders", [[5]]),
        ("SELECT COUNT(*), MAX(id) FROM orders WHERE id > 99", [[0, None]]),
        ("SELECT COUNT(buyer) AS n, MIN(id) FROM orders", [[4, 10]]),
        ("SELECT buyer, COUNT(*) AS n FROM orders GROUP BY buyer ORDER BY buyer", [[1, 2], [2, 1], [7, 1], [None, 1]]),
        ("SELECT buyer FROM orders GROUP BY buyer HAVING COUNT(*) > 1", [[1]]),
        (
            "SELECT buyer + 1 AS b FROM orders WHERE buyer < 7 GROUP BY buyer ORDER BY SUM(id)",
            [[3], [2]],
        ),
        ("SELECT city, COUNT(*) FROM people GROUP BY city HAVING city = 'Oslo'", [["Oslo", 1]]),
        ("SELECT LEN(name) AS l, COLLECT_LIST(id) AS ids FROM people GROUP BY LEN(name)", None),
    ],
)
def test_rows_are_aggregated(shop: QueryPlace, query: str, expected: list[Any] | None) -> None:
    found = shop.rows(f"{query};")
    if expected is None:
        assert [(row[0], sorted(row[1])) for row in found] == [(3, [1, 2, 3])]
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        ("orders o JOIN people p ON o.buyer = p.id", [[10, "Ann"], [11, "Ann"], [12, "Bob"]]),
        ("people p JOIN orders o ON p.id = o.buyer", [[10, "Ann"], [11, "Ann"], [12, "Bob"]]),
        (
            "orders o LEFT JOIN people p ON o.buyer = p.id",
            [[10, "Ann"], [11, "Ann"], [12, "Bob"], [13, None], [14, None]],
        ),
        ("orders o RIGHT JOIN people p ON o.buyer = p.id", [[10, "Ann"], [11, "Ann"], [12, "Bob"], [None, "Cid"]]),
        (
            "orders o FULL OUTER JOIN people p ON p.id = o.buyer",
            [[10, "Ann"], [11, "Ann"], [12, "Bob"], [13, None], [14, None], [None, "Cid"]],
        ),
        ("orders o JOIN people p ON o.buyer = p.id AND o.price > 3", [[10, "Ann"], [12, "Bob"]]),
        ("orders o LEFT JOIN people p ON o.buyer = p.id AND o.price > 3 WHERE o.id < 12", [[10, "Ann"], [11, None]]),
        ("orders o JOIN people p ON o.buyer > p.id", [[12, "Ann"], [13, "Ann"], [13, "Bob"], [13, "Cid"]]),
        ("orders o JOIN people p ON o.buyer = p.id WHERE o.id = 12", [[12, "Bob"]]),
        ("orders o JOIN people p ON o.buyer = p.id WHERE p.id = 2 OR o.id = 10", [[10, "Ann"], [12, "Bob"]]),
    ],
)
def test_tables_are_joined(shop: QueryPlace, join: str, expected: list[Any]) -> None:
    assert shop.rows(f"SELECT o.id, p.name FROM {join} ORDER BY o.id, p.name;") == expected


def test_three_tables_are_joined_and_a_table_with_itself(shop: QueryPlace) -> None:
    found = shop.rows(
        "SELECT a.id, p.name, b.id FROM orders a JOIN people p ON a.buyer = p.id JOIN orders b ON b.buyer = p.id "
        "WHERE a.id < b.id;"
    )
    assert found == [[10, "Ann", 11]]


def test_tables_that_cannot_be_pulled_alone_are_joined(shop: QueryPlace) -> None:
    shop.run("CREATE TABLE spent AS SELECT buyer, SUM(price) AS total FROM written_orders GROUP BY buyer;")
    tables = "written_people p LEFT JOIN spent s ON s.buyer = p.id JOIN orders o ON o.buyer = p.id"
    found = shop.rows(f"SELECT p.name, o.id, CAST(s.total AS STRING) FROM {tables} ORDER BY o.id;")
    assert found == [["Ann", 10, "7.50"], ["Ann", 11, "7.50"], ["Bob", 12, "9.25"]]
    alone = "The `WRITTEN_PEOPLE` table isn't queryable"
    with pytest.raises(SqlStatementError, match=alone):
        shop.rows("SELECT * FROM written_people;")


def test_joined_rows_are_aggregated(shop: QueryPlace) -> None:
    result = shop.pulled(
        "SELECT p.name, SUM(o.price) AS total FROM orders o JOIN people p ON o.buyer = p.id "
        "GROUP BY p.name ORDER BY total DESC;"
    )
    assert str(result.schema) == "`NAME` STRING, `TOTAL` DECIMAL(6, 2)"
    assert [[row.columns[0], str(row.columns[1])] for row in result.rows] == [["Bob", "9.25"], ["Ann", "7.50"]]


def test_all_columns_of_a_join_are_named_after_their_tables(shop: QueryPlace) -> None:
    result = shop.pulled("SELECT * FROM orders o JOIN people p ON o.buyer = p.id;")
    names = [column.name for column in result.schema]
    assert names == ["O_ID", "O_BUYER", "O_PRICE", "P_ID", "P_NAME", "P_CITY"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT id, COUNT(*) FROM orders;", "not part of GROUP BY: ID"),
        ("SELECT buyer, COUNT(*) FROM orders GROUP BY buyer ORDER BY price;", "not part of GROUP BY: PRICE"),
        ("SELECT id FROM orders ORDER BY 2;", "ORDER BY 2: the query selects 1 columns"),
        ("SELECT id FROM orders ORDER BY nothing;", "ORDER BY column 'NOTHING' cannot be resolved"),
        ("SELECT id FROM orders ORDER BY ARRAY[id];", "have no order"),
        ("SELECT * FROM orders JOIN orders ON buyer = id;", "'ORDERS' stands for two tables"),
        ("SELECT * FROM orders o JOIN people p ON o.buyer + p.id;", "Should evaluate to boolean"),
    ],
)
def test_what_makes_no_sense_is_said(shop: QueryPlace, query: str, message: str) -> None:
    with pytest.raises(SqlStatementError, match=message):
        shop.rows(query)


def test_streams_are_not_ordered(place: QueryPlace) -> None:
    place.run("CREATE STREAM s (k INT KEY, v INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);")
    with pytest.raises(SqlParseError, match="line 1:23: Syntax Error"):
        place.rows("SELECT * FROM s ORDER BY v;")
