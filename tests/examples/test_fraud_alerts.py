from collections.abc import Iterator

import pytest

from examples.fraud_alerts import (
    ACTIVITY_STORE,
    ALERT,
    ALERTS,
    PAYMENT,
    PAYMENTS,
    STRING,
    Activity,
    Alert,
    Payment,
    build,
)
from headrace import StreamsBuilder, TopologyTestDriver

MINUTE_MS = 60_000


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build()) as driver:
        yield driver


def pay(driver: TopologyTestDriver, country: str, *, at_ms: int, cents: int = 10_00, card: str = "card-1") -> None:
    driver.create_input_topic(PAYMENTS, STRING, PAYMENT).pipe_input(card, Payment(cents, country), timestamp_ms=at_ms)


def alerts(driver: TopologyTestDriver) -> list[tuple[str, Alert]]:
    return [(key, value) for key, value in driver.create_output_topic(ALERTS, STRING, ALERT).read_key_values()]


def test_payments_in_two_countries_within_one_session_raise_an_alert(driver: TopologyTestDriver) -> None:
    pay(driver, "FR", at_ms=0, cents=12_00)
    pay(driver, "FR", at_ms=3 * MINUTE_MS, cents=250_00)
    assert alerts(driver) == []
    pay(driver, "BR", at_ms=6 * MINUTE_MS, cents=180_00)
    assert alerts(driver) == [("card-1", Alert(0, 6 * MINUTE_MS, Activity(3, 442_00, ("BR", "FR"))))]


def test_two_payments_are_not_a_burst(driver: TopologyTestDriver) -> None:
    pay(driver, "FR", at_ms=0, cents=5_000_00)
    pay(driver, "BR", at_ms=1, cents=5_000_00)
    assert alerts(driver) == []


@pytest.mark.parametrize(("cents", "raised"), [(1_000_00, False), (1_000_01, True)])
def test_too_much_money_in_one_country_raises_an_alert(driver: TopologyTestDriver, *, cents: int, raised: bool) -> None:
    pay(driver, "FR", at_ms=0, cents=500_00)
    pay(driver, "FR", at_ms=1, cents=500_00)
    pay(driver, "FR", at_ms=2, cents=cents)
    assert bool(alerts(driver)) is raised


def test_further_payments_send_the_alert_again(driver: TopologyTestDriver) -> None:
    for at_ms, country in enumerate(("FR", "BR", "FR", "US")):
        pay(driver, country, at_ms=at_ms)
    assert [alert for _, alert in alerts(driver)] == [
        Alert(0, 2, Activity(3, 30_00, ("BR", "FR"))),
        Alert(0, 3, Activity(4, 40_00, ("BR", "FR", "US"))),
    ]


def test_pause_of_exactly_five_minutes_belongs_to_the_session(driver: TopologyTestDriver) -> None:
    pay(driver, "FR", at_ms=0)
    pay(driver, "BR", at_ms=5 * MINUTE_MS)
    pay(driver, "FR", at_ms=10 * MINUTE_MS)
    assert [alert.activity.payments for _, alert in alerts(driver)] == [3]


def test_longer_pause_starts_a_new_session(driver: TopologyTestDriver) -> None:
    pay(driver, "FR", at_ms=0)
    pay(driver, "BR", at_ms=5 * MINUTE_MS)
    pay(driver, "FR", at_ms=10 * MINUTE_MS + 1)
    assert alerts(driver) == []
    with driver.get_session_store(ACTIVITY_STORE).fetch("card-1") as sessions:
        assert [(key.window.start_ms, key.window.end_ms) for key, _ in sessions] == [
            (0, 5 * MINUTE_MS),
            (10 * MINUTE_MS + 1, 10 * MINUTE_MS + 1),
        ]


def test_cards_are_watched_apart(driver: TopologyTestDriver) -> None:
    pay(driver, "FR", at_ms=0)
    pay(driver, "BR", at_ms=1, card="card-2")
    pay(driver, "FR", at_ms=2)
    pay(driver, "BR", at_ms=3, card="card-2")
    assert alerts(driver) == []


def test_late_payment_bridges_two_sessions(driver: TopologyTestDriver) -> None:
    pay(driver, "FR", at_ms=0)
    pay(driver, "BR", at_ms=6 * MINUTE_MS)
    assert alerts(driver) == []
    pay(driver, "FR", at_ms=3 * MINUTE_MS)
    assert alerts(driver) == [("card-1", Alert(0, 6 * MINUTE_MS, Activity(3, 30_00, ("BR", "FR"))))]


@pytest.mark.parametrize(("now_ms", "dropped"), [(12 * MINUTE_MS - 1, 0), (12 * MINUTE_MS + 1, 3)])
def test_late_payments_count_until_gap_and_grace_are_over(
    driver: TopologyTestDriver, now_ms: int, dropped: int
) -> None:
    pay(driver, "DE", at_ms=now_ms, card="card-2")
    for country in ("FR", "BR", "FR"):
        pay(driver, country, at_ms=5 * MINUTE_MS)
    assert len(alerts(driver)) == (0 if dropped else 1)
    assert driver.metrics()["dropped-records-total"] == dropped
