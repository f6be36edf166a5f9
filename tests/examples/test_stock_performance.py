from collections.abc import Iterator
from datetime import timedelta

import pytest

from examples.stock_performance import PERFORMANCE_STORE, REPORTS, TRADES, Report, Trade, build
from headrace import Serdes, StreamsBuilder, TestOutputTopic, TopologyTestDriver

TEN_SECONDS = timedelta(seconds=10)


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build(), initial_wall_clock_ms=0) as driver:
        yield driver


@pytest.fixture
def reports(driver: TopologyTestDriver) -> TestOutputTopic[str, Report]:
    return driver.create_output_topic(REPORTS, Serdes.string(), Serdes.json(Report))


def trade(driver: TopologyTestDriver, symbol: str, *prices: float, shares: int = 100) -> None:
    trades = driver.create_input_topic(TRADES, Serdes.string(), Serdes.json(Trade))
    for price in prices:
        trades.pipe_input(symbol, Trade(price, shares))


def test_trades_alone_report_nothing(driver: TopologyTestDriver, reports: TestOutputTopic[str, Report]) -> None:
    trade(driver, "ACME", 100.0, 200.0)
    driver.advance_wall_clock_time(timedelta(milliseconds=9_999))
    assert reports.is_empty()


def test_rise_is_reported_when_the_clock_ticks(
    driver: TopologyTestDriver, reports: TestOutputTopic[str, Report]
) -> None:
    trade(driver, "ACME", 90.0, 110.0, 125.0)
    driver.advance_wall_clock_time(TEN_SECONDS)
    records = reports.read_records()
    assert [(record.key, record.value, record.timestamp_ms) for record in records] == [
        ("ACME", Report(125.0, price_change=0.25, volume_change=0.0), 10_000)
    ]


def test_fall_is_reported(driver: TopologyTestDriver, reports: TestOutputTopic[str, Report]) -> None:
    trade(driver, "ACME", 100.0, 75.0)
    driver.advance_wall_clock_time(TEN_SECONDS)
    assert reports.read_values() == [Report(75.0, price_change=-0.25, volume_change=0.0)]


def test_volume_is_reported_at_the_same_price(
    driver: TopologyTestDriver, reports: TestOutputTopic[str, Report]
) -> None:
    trade(driver, "ACME", 100.0, shares=100)
    trade(driver, "ACME", 100.0, shares=150)
    driver.advance_wall_clock_time(TEN_SECONDS)
    assert reports.read_values() == [Report(100.0, price_change=0.0, volume_change=0.5)]


def test_small_moves_are_not_reported(driver: TopologyTestDriver, reports: TestOutputTopic[str, Report]) -> None:
    trade(driver, "ACME", 100.0, 101.9)
    trade(driver, "DULL", 100.0, 98.1, shares=10)
    driver.advance_wall_clock_time(TEN_SECONDS)
    assert reports.is_empty()


def test_first_trade_has_nothing_to_compare_with(
    driver: TopologyTestDriver, reports: TestOutputTopic[str, Report]
) -> None:
    trade(driver, "ACME", 100.0)
    driver.advance_wall_clock_time(TEN_SECONDS)
    assert reports.is_empty()


def test_stocks_are_reported_in_the_order_of_their_symbols(
    driver: TopologyTestDriver, reports: TestOutputTopic[str, Report]
) -> None:
    trade(driver, "ZINC", 10.0, 20.0)
    trade(driver, "ACME", 10.0, 20.0)
    driver.advance_wall_clock_time(TEN_SECONDS)
    assert [key for key, _ in reports.read_key_values()] == ["ACME", "ZINC"]


def test_stock_is_reported_at_every_tick_until_it_settles(
    driver: TopologyTestDriver, reports: TestOutputTopic[str, Report]
) -> None:
    trade(driver, "ACME", 100.0, 120.0)
    driver.advance_wall_clock_time(TEN_SECONDS)
    driver.advance_wall_clock_time(TEN_SECONDS)
    assert [record.timestamp_ms for record in reports.read_records()] == [10_000, 20_000]
    trade(driver, "ACME", 110.0)
    driver.advance_wall_clock_time(TEN_SECONDS)
    assert reports.is_empty()


def test_missed_ticks_are_one(driver: TopologyTestDriver, reports: TestOutputTopic[str, Report]) -> None:
    trade(driver, "ACME", 100.0, 120.0)
    driver.advance_wall_clock_time(timedelta(seconds=35))
    assert [record.timestamp_ms for record in reports.read_records()] == [35_000]


def test_only_the_last_twenty_trades_are_compared_with(
    driver: TopologyTestDriver, reports: TestOutputTopic[str, Report]
) -> None:
    trade(driver, "ACME", 1000.0, *[100.0] * 20, 100.0)
    driver.advance_wall_clock_time(TEN_SECONDS)
    assert reports.is_empty()
    performance = driver.get_key_value_store(PERFORMANCE_STORE).get("ACME")
    assert performance is not None
    assert len(performance.trades) == 21
