"""``SqlTestDriver``: statements and rows in one process."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest

from headrace.sql.driver import SqlTestDriver
from headrace.sql.errors import SqlError

ORDERS = "CREATE STREAM orders (id INT KEY, price DECIMAL(6, 2)) WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON');"


def columns(driver: SqlTestDriver, source: str) -> list[dict[str, object]]:
    return [dict(row.columns) for row in driver.rows(source)]


def test_a_row_goes_through_all_queries_before_the_next_one() -> None:
    driver = SqlTestDriver(
        f"""{ORDERS}
        CREATE STREAM a AS SELECT id, price + 1 AS price FROM orders;
        CREATE STREAM b AS SELECT id, price + 1 AS price FROM orders;
        CREATE STREAM both (id INT KEY, price DECIMAL(7, 2)) WITH (KAFKA_TOPIC='both', VALUE_FORMAT='JSON');
        INSERT INTO both SELECT * FROM a;
        INSERT INTO both SELECT * FROM b;
        """
    )
    driver.insert("orders", {"id": 1, "price": Decimal("1.10")})
    driver.insert("orders", {"id": 2})
    found = columns(driver, "BOTH")
    assert [row["ID"] for row in found] == [1, 1, 2, 2]
    assert found[0]["PRICE"] == Decimal("2.10")
    assert columns(driver, "BOTH") == []


def test_a_query_reads_what_was_there_before_it_and_stops_when_it_is_terminated() -> None:
    with SqlTestDriver(ORDERS) as driver:
        driver.insert("orders", {"id": 1})
        driver.execute("CREATE STREAM late AS SELECT * FROM orders;")
        driver.execute("TERMINATE CSAS_LATE_0;")
        driver.insert("orders", {"id": 2})
        assert [row["ID"] for row in columns(driver, "late")] == [1]


def test_what_does_not_fit_is_an_error() -> None:
    driver = SqlTestDriver(ORDERS)
    with pytest.raises(SqlError, match="NOWHERE"):
        driver.insert("nowhere", {})
    with pytest.raises(SqlError, match="`X` does not exist"):
        driver.insert("orders", {"x": 1})
    with pytest.raises(SqlError, match="must be made of what JSON has"):
        driver.insert("orders", {"id": object()})


def test_the_id_of_a_query_is_found_in_any_case() -> None:
    copy = "CREATE STREAM copy (id INT KEY, price DECIMAL(6, 2)) WITH (KAFKA_TOPIC='copy', VALUE_FORMAT='JSON');"
    driver = SqlTestDriver(f"{ORDERS}{copy}")
    driver.execute("INSERT INTO copy WITH (QUERY_ID='mine') SELECT * FROM orders; TERMINATE mine;")
    assert not driver.engine.catalog.queries


def test_functions_of_time_go_by_the_clock_of_the_query() -> None:
    with SqlTestDriver(ORDERS, wall_clock_ms=2 * 86_400_000 + 5) as driver:
        driver.execute(
            """CREATE STREAM seen AS SELECT id, UNIX_TIMESTAMP() AS at, UNIX_DATE() AS day FROM orders;
            CREATE TABLE counted AS SELECT id, COUNT(*) AS n, MAX(UNIX_TIMESTAMP()) AS at FROM orders GROUP BY id;
            """
        )
        driver.insert("orders", {"id": 1, "price": Decimal(1)})
        [row] = columns(driver, "SEEN")
        assert (row["AT"], row["DAY"]) == (172_800_005, 2)
        assert [row["AT"] for row in columns(driver, "COUNTED")] == [172_800_005]


def test_the_clock_of_a_query_is_the_machines_unless_one_is_given() -> None:
    before_ms = time.time_ns() // 1_000_000
    with SqlTestDriver(f"{ORDERS} CREATE STREAM seen AS SELECT id, UNIX_TIMESTAMP() AS at FROM orders;") as driver:
        driver.insert("orders", {"id": 1})
        [row] = columns(driver, "SEEN")
    assert before_ms <= row["AT"] <= time.time_ns() // 1_000_000  # type: ignore[operator]  # a number
