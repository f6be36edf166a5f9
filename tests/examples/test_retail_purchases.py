from collections.abc import Iterator
from typing import TypeVar

import pytest

from headrace import Serde, Serdes, StreamsBuilder, TestOutputTopic, TopologyTestDriver
from headrace.devtools.demo.retail_purchases import (
    CAFE,
    ELECTRONICS,
    FREE_COFFEES,
    PATTERNS,
    PURCHASE,
    PURCHASES,
    REWARDS,
    TRANSACTIONS,
    FreeCoffee,
    Pattern,
    Purchase,
    Rewards,
    build,
)

T = TypeVar("T")
MINUTE_MS = 60_000
CARD = "4111-1111-1111-1234"


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build()) as driver:
        yield driver


def buy(
    driver: TopologyTestDriver,
    department: str,
    item: str,
    *,
    at_ms: int = 0,
    customer: str = "ada",
    quantity: int = 1,
    price_cents: int = 3_00,
) -> None:
    purchase = Purchase(customer, CARD, department, item, quantity, price_cents, "10115")
    driver.create_input_topic(TRANSACTIONS, Serdes.string(), PURCHASE).pipe_input(value=purchase, timestamp_ms=at_ms)


def output(driver: TopologyTestDriver, topic: str, serde: Serde[T]) -> TestOutputTopic[str, T]:
    return driver.create_output_topic(topic, Serdes.string(), serde)


def free_coffees(driver: TopologyTestDriver) -> list[FreeCoffee]:
    return output(driver, FREE_COFFEES, Serdes.json(FreeCoffee)).read_values()


def test_purchase_is_published_by_customer_with_a_masked_card(driver: TopologyTestDriver) -> None:
    buy(driver, "garden", "rake", price_cents=19_99)
    assert output(driver, PURCHASES, PURCHASE).read_key_values() == [
        ("ada", Purchase("ada", "xxxx-xxxx-xxxx-1234", "garden", "rake", 1, 19_99, "10115"))
    ]


def test_card_number_reaches_no_topic_not_even_an_internal_one(driver: TopologyTestDriver) -> None:
    buy(driver, ELECTRONICS, "headphones")
    buy(driver, CAFE, "espresso", at_ms=MINUTE_MS)
    topics = driver.produced_topic_names()
    assert any(topic.endswith("-repartition") for topic in topics)
    assert any(topic.endswith("-changelog") for topic in topics)
    for topic in topics:
        for value in driver.create_output_topic(topic, Serdes.bytes(), Serdes.bytes()).read_values():
            assert value is None or b"1111" not in value


def test_pattern_says_what_sells_where(driver: TopologyTestDriver) -> None:
    buy(driver, "garden", "rake", quantity=2, price_cents=19_99)
    assert output(driver, PATTERNS, Serdes.json(Pattern)).read_values() == [Pattern("10115", "rake", 39_98)]


def test_rewards_add_up_whole_dollars_per_customer(driver: TopologyTestDriver) -> None:
    buy(driver, "garden", "rake", price_cents=19_99)
    buy(driver, CAFE, "cake", price_cents=4_00, customer="bob")
    buy(driver, "garden", "seeds", quantity=3, price_cents=1_50)
    assert output(driver, REWARDS, Serdes.json(Rewards)).read_key_values() == [
        ("ada", Rewards(points=19, purchases=1)),
        ("bob", Rewards(points=4, purchases=1)),
        ("ada", Rewards(points=23, purchases=2)),
    ]


def test_departments_are_branched(driver: TopologyTestDriver) -> None:
    buy(driver, CAFE, "espresso")
    buy(driver, ELECTRONICS, "cable")
    buy(driver, "garden", "rake")
    assert [p.item for p in output(driver, CAFE, PURCHASE).read_values() if p] == ["espresso"]
    assert [p.item for p in output(driver, ELECTRONICS, PURCHASE).read_values() if p] == ["cable"]
    assert output(driver, PURCHASES, PURCHASE).queue_size() == 3


def test_both_shops_within_20_minutes_give_a_free_coffee(driver: TopologyTestDriver) -> None:
    buy(driver, ELECTRONICS, "headphones", price_cents=79_90)
    buy(driver, CAFE, "espresso", at_ms=20 * MINUTE_MS, quantity=2, price_cents=2_80)
    records = output(driver, FREE_COFFEES, Serdes.json(FreeCoffee)).read_records()
    assert [(record.key, record.value, record.timestamp_ms) for record in records] == [
        ("ada", FreeCoffee("headphones", "espresso", 85_50), 20 * MINUTE_MS)
    ]


def test_a_millisecond_more_than_20_minutes_is_too_long(driver: TopologyTestDriver) -> None:
    buy(driver, ELECTRONICS, "headphones")
    buy(driver, CAFE, "espresso", at_ms=20 * MINUTE_MS + 1)
    assert free_coffees(driver) == []


def test_coffee_may_come_first(driver: TopologyTestDriver) -> None:
    buy(driver, CAFE, "espresso")
    buy(driver, ELECTRONICS, "cable", at_ms=5 * MINUTE_MS)
    assert free_coffees(driver) == [FreeCoffee("cable", "espresso", 6_00)]


def test_shops_are_joined_per_customer(driver: TopologyTestDriver) -> None:
    buy(driver, CAFE, "espresso", customer="bob")
    buy(driver, ELECTRONICS, "cable", customer="ada")
    assert free_coffees(driver) == []


def test_each_pair_counts(driver: TopologyTestDriver) -> None:
    buy(driver, CAFE, "espresso")
    buy(driver, CAFE, "cake", at_ms=MINUTE_MS)
    buy(driver, ELECTRONICS, "cable", at_ms=2 * MINUTE_MS)
    assert free_coffees(driver) == [FreeCoffee("cable", "espresso", 6_00), FreeCoffee("cable", "cake", 6_00)]


def test_purchase_reported_late_is_still_joined(driver: TopologyTestDriver) -> None:
    buy(driver, ELECTRONICS, "cable")
    buy(driver, CAFE, "cake", at_ms=22 * MINUTE_MS, customer="bob")
    buy(driver, CAFE, "espresso", at_ms=MINUTE_MS)
    assert free_coffees(driver) == [FreeCoffee("cable", "espresso", 6_00)]


def test_purchase_reported_hours_late_is_not_kept(driver: TopologyTestDriver) -> None:
    buy(driver, ELECTRONICS, "tv", at_ms=240 * MINUTE_MS, customer="bob")
    buy(driver, ELECTRONICS, "cable", at_ms=0)
    buy(driver, CAFE, "espresso", at_ms=MINUTE_MS)
    assert free_coffees(driver) == []
