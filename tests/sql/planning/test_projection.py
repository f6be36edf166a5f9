"""SELECT clause: names, the columns behind stars, and the place of the key."""

from __future__ import annotations

import pytest

from headrace.sql.errors import SqlStatementError
from tests.sql.planning.session import planned, running, schema

ORDERS = (
    "CREATE STREAM orders (id INT KEY, item STRING, price DOUBLE) WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON');"
)
ITEMS = "CREATE TABLE items (item STRING PRIMARY KEY, price DOUBLE) WITH (KAFKA_TOPIC='items', VALUE_FORMAT='JSON');"
NESTED = (
    "CREATE STREAM nested (id INT KEY, a STRUCT<x INT, y STRING>, b STRUCT<x INT>, x INT)"
    " WITH (KAFKA_TOPIC='nested', VALUE_FORMAT='JSON');"
)
TWO_KEYS = "CREATE STREAM two (k1 INT KEY, k2 INT KEY, v INT) WITH (KAFKA_TOPIC='two', FORMAT='JSON');"


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ((ORDERS, "CREATE STREAM o AS SELECT * FROM orders;"), "`ID` INTEGER KEY, `ITEM` STRING, `PRICE` DOUBLE"),
        (
            (ORDERS, "CREATE STREAM o AS SELECT price, id AS key, item item2 FROM orders;"),
            "`KEY` INTEGER KEY, `PRICE` DOUBLE, `ITEM2` STRING",
        ),
        (
            (ORDERS, "CREATE STREAM o AS SELECT id, price * 2, UCASE(item) FROM orders;"),
            "`ID` INTEGER KEY, `KSQL_COL_0` DOUBLE, `KSQL_COL_1` STRING",
        ),
        (
            (NESTED, "CREATE STREAM o AS SELECT id, a->y, a->x, b->x, x FROM nested;"),
            "`ID` INTEGER KEY, `Y` STRING, `X_1` INTEGER, `X_2` INTEGER, `X` INTEGER",
        ),
        ((NESTED, "CREATE STREAM o AS SELECT id, a->* FROM nested;"), "`ID` INTEGER KEY, `X` INTEGER, `Y` STRING"),
        (
            (ORDERS, "CREATE STREAM o AS SELECT id, AS_VALUE(id) AS copy FROM orders;"),
            "`ID` INTEGER KEY, `COPY` INTEGER",
        ),
        (
            (ORDERS, ITEMS, "CREATE STREAM o AS SELECT * FROM orders o JOIN items i ON o.item = i.item;"),
            "`O_ITEM` STRING KEY, `O_ID` INTEGER, `O_PRICE` DOUBLE, `I_ITEM` STRING, `I_PRICE` DOUBLE",
        ),
        (
            (
                ORDERS,
                ITEMS,
                "CREATE STREAM o AS SELECT i.item, id, i.price FROM orders o JOIN items i ON o.item = i.item;",
            ),
            "`I_ITEM` STRING KEY, `ID` INTEGER, `I_PRICE` DOUBLE",
        ),
        (
            (ORDERS, "CREATE STREAM o AS SELECT * FROM orders PARTITION BY item;"),
            "`ITEM` STRING KEY, `PRICE` DOUBLE, `ID` INTEGER",
        ),
    ],
)
def test_columns_of_a_result(statements: tuple[str, ...], expected: str) -> None:
    assert schema(*statements) == expected


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ((ORDERS, "CREATE STREAM o AS SELECT item FROM orders;"), "must include the key column ID in its projection"),
        ((TWO_KEYS, "CREATE STREAM o AS SELECT k1, v FROM two;"), "key columns K1 and K2 in its projection"),
        ((ORDERS, "CREATE STREAM o AS SELECT id, id AS i, item FROM orders;"), "aliased as: I and ID"),
        ((ORDERS, "CREATE STREAM o AS SELECT id FROM orders;"), "contains no value columns"),
        (
            (ORDERS, "CREATE STREAM o AS SELECT id, item, price AS item FROM orders;"),
            "Duplicate value columns found in schema: `ITEM`",
        ),
        (
            (ORDERS, "CREATE STREAM o AS SELECT id, item AS id FROM orders;"),
            "Duplicate value columns found in schema: `ID` STRING",
        ),
        (
            (ORDERS, "CREATE STREAM o AS SELECT item, item AS price, price FROM orders;"),
            "Duplicate value columns found in schema: `PRICE` DOUBLE",
        ),
        ((ORDERS, "CREATE STREAM o AS SELECT id, itme FROM orders;"), "SELECT column 'ITME' cannot be resolved"),
        ((ORDERS, "CREATE STREAM o AS SELECT id, itme FROM orders;"), "Did you mean 'ITEM'?"),
        ((ORDERS, "CREATE STREAM o AS SELECT id, price AS rowtime FROM orders;"), "cannot use it as an alias"),
        ((ORDERS, "CREATE STREAM o AS SELECT id, price->* FROM orders;"), "Column `PRICE` is not a STRUCT type."),
        ((NESTED, "CREATE STREAM o AS SELECT id, a->x->* FROM nested;"), "Field X is not a STRUCT type."),
        (
            (ORDERS, "CREATE STREAM o AS SELECT id, x.item FROM orders;"),
            "'X' is not a valid stream/table name or alias",
        ),
        ((ORDERS, "CREATE STREAM o AS SELECT x.* FROM orders;"), "'X' is not a valid stream/table name or alias"),
        ((ORDERS, "CREATE STREAM o AS SELECT id, ROWTIME FROM orders;"), "Reserved column name in select: `ROWTIME`"),
        ((ORDERS, "CREATE STREAM o AS SELECT id, price AS ROWOFFSET FROM orders;"), "`ROWOFFSET` is a reserved column"),
        ((ORDERS, "CREATE STREAM o AS SELECT id, item->* FROM orders;"), "not a STRUCT"),
        ((ORDERS, "CREATE STREAM o AS SELECT id, NULL AS n FROM orders;"), "Can't infer a type of null"),
        ((ORDERS, "CREATE TABLE o AS SELECT * FROM orders;"), "produces a STREAM. Please use CREATE STREAM AS SELECT"),
        ((ITEMS, "CREATE STREAM o AS SELECT * FROM items;"), "produces a TABLE. Please use CREATE TABLE AS SELECT"),
        (
            (ORDERS, ITEMS, "CREATE STREAM o AS SELECT id, price FROM orders JOIN items ON orders.item = items.item;"),
            "Column 'PRICE' is ambiguous. Could be ITEMS.PRICE or ORDERS.PRICE",
        ),
    ],
)
def test_what_cannot_be_selected(statements: tuple[str, ...], message: str) -> None:
    with pytest.raises(SqlStatementError) as error:
        planned(*statements)
    assert message in error.value.message


def test_the_key_may_be_left_out_and_reordered_where_that_is_switched_on() -> None:
    query = "CREATE STREAM o AS SELECT k2, v, k1 FROM two;"
    switched_on: dict[str, object] = {"ksql_new_query_planner_enabled": "true"}
    assert schema(TWO_KEYS, query, **switched_on) == "`K2` INTEGER KEY, `K1` INTEGER KEY, `V` INTEGER"
    with running(TWO_KEYS, query, **switched_on) as session:
        assert session.send("TWO", (1, 2), [3]) == [((2, 1), [3], 0)]
    with running(ORDERS, "CREATE STREAM o AS SELECT item FROM orders;", **switched_on) as session:
        assert session.send("ORDERS", 1, ["tea", 2.0]) == [(None, ["tea"], 0)]


def test_rows_are_projected_and_filtered() -> None:
    query = "CREATE STREAM o AS SELECT id, price + id AS total FROM orders WHERE item <> 'tea' AND id > 1;"
    with running(ORDERS, query) as session:
        assert session.send("ORDERS", 1, ["milk", 2.0]) == []
        assert session.send("ORDERS", 2, ["tea", 2.0]) == []
        assert session.send("ORDERS", 2, ["milk", 2.0], 7) == [(2, [4.0], 7)]
        assert session.send("ORDERS", 2, None) == []


def test_null_rows_and_null_keys_pass_a_projection() -> None:
    with running(ORDERS, "CREATE STREAM o AS SELECT id, item FROM orders;") as session:
        assert session.send("ORDERS", 1, None) == [(1, None, 0)]
        assert session.send("ORDERS", None, ["tea", 1.0]) == [(None, ["tea"], 0)]


def test_pseudo_columns_and_headers() -> None:
    source = "CREATE STREAM s (id INT KEY, v INT, tag BYTES HEADER('tag')) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');"
    query = "CREATE STREAM o AS SELECT id, ROWTIME AS t, ROWPARTITION AS p, ROWOFFSET AS n, tag, v FROM s;"
    with running(source, query) as session:
        session.send("S", 1, [5], 10)
        assert session.send("S", 1, [6], 20) == [(1, [20, 0, 1, None, 6], 20)]


def test_a_row_that_fails_gives_null() -> None:
    with running(ORDERS, "CREATE STREAM o AS SELECT id, 10 / id AS d FROM orders;") as session:
        assert session.send("ORDERS", 0, ["tea", 1.0]) == [(0, [None], 0)]
        assert session.send("ORDERS", 5, ["tea", 1.0]) == [(5, [2], 0)]


def test_a_filtered_table_deletes_rows_that_pass_no_more() -> None:
    with running(ITEMS, "CREATE TABLE o AS SELECT * FROM items WHERE price > 1;") as session:
        assert session.send("ITEMS", "tea", [2.0]) == [("tea", [2.0], 0)]
        assert session.send("ITEMS", "tea", [1.0]) == [("tea", None, 0)]
        assert session.send("ITEMS", "tea", [0.5]) == []
        assert session.send("ITEMS", "milk", [0.5]) == []
        assert session.send("ITEMS", "tea", [3.0]) == [("tea", [3.0], 0)]
        assert session.send("ITEMS", "tea", None) == [("tea", None, 0)]


def test_a_star_has_the_values_before_the_headers() -> None:
    source = "CREATE STREAM s (id INT KEY, h BYTES HEADER('h'), v INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');"
    assert schema(source, "CREATE STREAM o AS SELECT * FROM s;") == "`ID` INTEGER KEY, `V` INTEGER, `H` BYTES"
    moved = schema(source, "CREATE STREAM o AS SELECT * FROM s PARTITION BY v;")
    assert moved == "`V` INTEGER KEY, `H` BYTES, `ID` INTEGER"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("TRANSFORM(a, v => v + 1)", "Lambda function argument can't be a column name: V"),
        ("TRANSFORM(a, x => REDUCE(a, 0, (x, y) => x + y))", "Reusing lambda arguments in nested lambda"),
    ],
)
def test_parameters_of_lambdas_have_names_of_their_own(function: str, message: str) -> None:
    source = "CREATE STREAM s (id INT KEY, v INT, a ARRAY<INT>) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');"
    with pytest.raises(SqlStatementError, match=message):
        planned(source, f"CREATE STREAM o AS SELECT id, {function} FROM s;")
