from collections.abc import Iterator

import pytest

from examples.latest_versioned import (
    HISTORY_STORE,
    LATEST_PRICES,
    ORDER,
    ORDERS,
    PRICE,
    PRICE_VERSIONS,
    PRICED_ORDER,
    PRICED_ORDERS,
    STRING,
    Order,
    Price,
    PricedOrder,
    build,
)
from headrace import StreamsBuilder, TopologyTestDriver

SECOND_MS = 1_000
MINUTE_MS = 60_000
HOUR_MS = 3_600_000


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build()) as driver:
        yield driver


def price(driver: TopologyTestDriver, version: Price, *, at_ms: int, product: str = "tea") -> None:
    driver.create_input_topic(PRICE_VERSIONS, STRING, PRICE).pipe_input(product, version, timestamp_ms=at_ms)


def order(driver: TopologyTestDriver, customer: str, *, at_ms: int, product: str = "tea") -> None:
    driver.create_input_topic(ORDERS, STRING, ORDER).pipe_input(product, Order(customer, 2), timestamp_ms=at_ms)


def latest(driver: TopologyTestDriver) -> list[Price]:
    return driver.create_output_topic(LATEST_PRICES, STRING, PRICE).read_values()


def priced(driver: TopologyTestDriver) -> list[tuple[PricedOrder | None, int | None]]:
    """Reads the priced orders with their times, after an order long after all others, so that none is waiting."""
    order(driver, "last", at_ms=24 * HOUR_MS, product="nothing we sell")
    records = driver.create_output_topic(PRICED_ORDERS, STRING, PRICED_ORDER).read_records()
    return [(record.value, record.timestamp_ms) for record in records]


def test_latest_topic_follows_the_versions(driver: TopologyTestDriver) -> None:
    price(driver, Price(1, 3_00), at_ms=0)
    price(driver, Price(2, 4_00), at_ms=10)
    assert latest(driver) == [Price(1, 3_00), Price(2, 4_00)]


def test_older_version_does_not_replace_a_newer_one(driver: TopologyTestDriver) -> None:
    price(driver, Price(2, 4_00), at_ms=10)
    price(driver, Price(1, 3_00), at_ms=0)
    assert latest(driver) == [Price(2, 4_00), Price(2, 4_00)]


def test_product_that_is_given_up_is_deleted_and_stays_deleted(driver: TopologyTestDriver) -> None:
    price(driver, Price(1, 3_00), at_ms=0)
    price(driver, Price(3, 0, on_sale=False), at_ms=20)
    price(driver, Price(2, 4_00), at_ms=10)
    assert latest(driver) == [Price(1, 3_00), None]
    price(driver, Price(4, 5_00), at_ms=30)
    assert latest(driver) == [Price(4, 5_00)]


def test_products_have_versions_of_their_own(driver: TopologyTestDriver) -> None:
    price(driver, Price(7, 3_00), at_ms=0)
    price(driver, Price(1, 9_00), at_ms=0, product="coffee")
    topic = driver.create_output_topic(LATEST_PRICES, STRING, PRICE)
    assert topic.read_key_values() == [("tea", Price(7, 3_00)), ("coffee", Price(1, 9_00))]


def test_order_gets_the_price_of_its_own_time(driver: TopologyTestDriver) -> None:
    price(driver, Price(1, 3_00), at_ms=0)
    price(driver, Price(2, 4_00), at_ms=30 * SECOND_MS)
    order(driver, "before", at_ms=30 * SECOND_MS - 1)
    order(driver, "after", at_ms=30 * SECOND_MS)
    assert priced(driver) == [
        (PricedOrder("before", 1, 6_00), 30 * SECOND_MS - 1),
        (PricedOrder("after", 2, 8_00), 30 * SECOND_MS),
    ]


def test_order_waits_a_minute_for_late_prices(driver: TopologyTestDriver) -> None:
    price(driver, Price(1, 3_00), at_ms=0)
    order(driver, "ada", at_ms=20 * SECOND_MS)
    order(driver, "bob", at_ms=80 * SECOND_MS - 1)
    priced_orders = driver.create_output_topic(PRICED_ORDERS, STRING, PRICED_ORDER)
    assert priced_orders.is_empty()
    price(driver, Price(2, 2_50), at_ms=10 * SECOND_MS)
    order(driver, "eve", at_ms=80 * SECOND_MS)
    assert priced_orders.read_values() == [PricedOrder("ada", 2, 5_00)]


def test_late_price_corrects_the_past_not_the_present(driver: TopologyTestDriver) -> None:
    price(driver, Price(1, 3_00), at_ms=0)
    price(driver, Price(3, 4_00), at_ms=30 * SECOND_MS)
    price(driver, Price(2, 2_50), at_ms=10 * SECOND_MS)
    order(driver, "ada", at_ms=20 * SECOND_MS)
    order(driver, "bob", at_ms=40 * SECOND_MS)
    assert [value for value, _ in priced(driver)] == [PricedOrder("ada", 2, 5_00), PricedOrder("bob", 3, 8_00)]


def test_late_order_is_priced_at_once_as_of_its_time(driver: TopologyTestDriver) -> None:
    price(driver, Price(1, 3_00), at_ms=0)
    price(driver, Price(2, 4_00), at_ms=5 * MINUTE_MS)
    order(driver, "ada", at_ms=10 * MINUTE_MS)
    order(driver, "bob", at_ms=1 * MINUTE_MS)
    topic = driver.create_output_topic(PRICED_ORDERS, STRING, PRICED_ORDER)
    assert topic.read_values() == [PricedOrder("bob", 1, 6_00)]


def test_order_without_a_valid_price_is_dropped(driver: TopologyTestDriver) -> None:
    order(driver, "too early", at_ms=0)
    price(driver, Price(1, 3_00), at_ms=10)
    price(driver, Price(2, 0, on_sale=False), at_ms=20)
    order(driver, "in time", at_ms=15)
    order(driver, "too late", at_ms=20)
    order(driver, "other product", at_ms=15, product="coffee")
    assert priced(driver) == [(PricedOrder("in time", 1, 6_00), 15)]


def test_version_older_than_the_history_is_dropped_and_counted(driver: TopologyTestDriver) -> None:
    price(driver, Price(1, 3_00), at_ms=0)
    price(driver, Price(3, 4_00), at_ms=2 * HOUR_MS)
    price(driver, Price(2, 1), at_ms=10 * MINUTE_MS)
    assert driver.metrics()["dropped-records-total"] == 1
    history = driver.get_versioned_key_value_store(HISTORY_STORE)
    latest = history.get("tea")
    assert latest is not None
    assert latest.value == Price(3, 4_00)
    assert history.get("tea", 11 * MINUTE_MS) is None


def test_history_can_be_asked(driver: TopologyTestDriver) -> None:
    price(driver, Price(1, 3_00), at_ms=0)
    price(driver, Price(2, 4_00), at_ms=100)
    found = driver.get_versioned_key_value_store(HISTORY_STORE).get("tea", 99)
    assert found is not None
    assert (found.value, found.timestamp_ms, found.valid_to_ms) == (Price(1, 3_00), 0, 100)
