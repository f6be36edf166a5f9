from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from examples.order_services import (
    ACCOUNTS,
    DECISION,
    DELIVERIES,
    DEPOSITS,
    LONG,
    ORDER,
    ORDERS,
    OUTCOME,
    OUTCOMES,
    PAYMENTS,
    RESERVATIONS,
    SHELVES,
    STRING,
    Decision,
    Order,
    Outcome,
    build,
    inventory_service,
    order_service,
    payment_service,
)
from headrace import StreamsBuilder, TopologyTestDriver

MINUTE_MS = 60_000
LAMP = Order("o1", "ada", "lamp", pieces=2, cents=60_00)

Run = Callable[..., TopologyTestDriver]


@pytest.fixture
def run() -> Iterator[Run]:
    """Runs some of the services in one driver."""
    with ExitStack() as drivers:

        def run(*services: Callable[[StreamsBuilder], None]) -> TopologyTestDriver:
            builder = StreamsBuilder()
            for service in services:
                service(builder)
            return drivers.enter_context(TopologyTestDriver(builder.build()))

        yield run


def stock(driver: TopologyTestDriver, *, cents: int, pieces: int) -> None:
    driver.create_input_topic(DEPOSITS, STRING, LONG).pipe_input("ada", cents, timestamp_ms=0)
    driver.create_input_topic(DELIVERIES, STRING, LONG).pipe_input("lamp", pieces, timestamp_ms=0)


def place(driver: TopologyTestDriver, *orders: Order) -> None:
    for order in orders:
        driver.create_input_topic(ORDERS, STRING, ORDER).pipe_input(order.order_id, order, timestamp_ms=0)


def decide(driver: TopologyTestDriver, topic: str, order: Order, *, at_ms: int, accepted: bool = True) -> None:
    decisions = driver.create_input_topic(topic, STRING, DECISION)
    decisions.pipe_input(order.order_id, Decision(order, accepted), timestamp_ms=at_ms)


def outcomes(driver: TopologyTestDriver) -> list[tuple[str, Outcome]]:
    return [(key, value) for key, value in driver.create_output_topic(OUTCOMES, STRING, OUTCOME).read_key_values()]


def left(driver: TopologyTestDriver) -> tuple[int | None, int | None]:
    """Returns the cents in ada's account and the lamps on the shelf."""
    return driver.get_key_value_store(ACCOUNTS).get("ada"), driver.get_key_value_store(SHELVES).get("lamp")


def test_order_that_is_paid_and_reserved_is_confirmed(run: Run) -> None:
    driver = run(build)
    stock(driver, cents=100_00, pieces=3)
    place(driver, LAMP)
    assert outcomes(driver) == [("o1", Outcome(LAMP, paid=True, reserved=True))]
    assert left(driver) == (40_00, 1)


def test_last_cent_and_last_piece_can_be_spent(run: Run) -> None:
    driver = run(build)
    stock(driver, cents=60_00, pieces=2)
    place(driver, LAMP)
    assert [outcome.confirmed for _, outcome in outcomes(driver)] == [True]
    assert left(driver) == (0, 0)


def test_without_the_money_the_goods_are_put_back(run: Run) -> None:
    driver = run(build)
    stock(driver, cents=59_99, pieces=3)
    place(driver, LAMP)
    assert outcomes(driver) == [("o1", Outcome(LAMP, paid=False, reserved=True))]
    assert left(driver) == (59_99, 3)


def test_without_the_goods_the_money_is_paid_back(run: Run) -> None:
    driver = run(build)
    stock(driver, cents=100_00, pieces=1)
    place(driver, LAMP)
    assert outcomes(driver) == [("o1", Outcome(LAMP, paid=True, reserved=False))]
    assert left(driver) == (100_00, 1)


def test_without_both_nothing_has_to_be_undone(run: Run) -> None:
    driver = run(build)
    stock(driver, cents=1, pieces=1)
    place(driver, LAMP)
    assert outcomes(driver) == [("o1", Outcome(LAMP, paid=False, reserved=False))]
    assert left(driver) == (1, 1)


def test_what_a_cancelled_order_gave_back_serves_the_next_one(run: Run) -> None:
    driver = run(build)
    stock(driver, cents=60_00, pieces=2)
    too_many = Order("o1", "ada", "lamp", pieces=3, cents=60_00)
    place(driver, too_many, Order("o2", "ada", "lamp", pieces=2, cents=60_00))
    assert [(order_id, outcome.confirmed) for order_id, outcome in outcomes(driver)] == [("o1", False), ("o2", True)]
    assert left(driver) == (0, 0)


def test_customers_have_accounts_of_their_own(run: Run) -> None:
    driver = run(build)
    stock(driver, cents=100_00, pieces=3)
    order = Order("o1", "bob", "lamp", pieces=1, cents=1)
    place(driver, order)
    assert outcomes(driver) == [("o1", Outcome(order, paid=False, reserved=True))]


def test_payment_service_alone_publishes_decisions_and_refunds(run: Run) -> None:
    driver = run(payment_service)
    driver.create_input_topic(DEPOSITS, STRING, LONG).pipe_input("ada", 60_00)
    place(driver, LAMP)
    decisions = driver.create_output_topic(PAYMENTS, STRING, DECISION)
    assert decisions.read_key_values() == [("o1", Decision(LAMP, accepted=True))]
    cancelled = Outcome(LAMP, paid=True, reserved=False)
    driver.create_input_topic(OUTCOMES, STRING, OUTCOME).pipe_input("o1", cancelled)
    assert driver.get_key_value_store(ACCOUNTS).get("ada") == 60_00
    assert decisions.is_empty()


def test_inventory_service_alone_refuses_what_it_has_not(run: Run) -> None:
    driver = run(inventory_service)
    place(driver, LAMP)
    decisions = driver.create_output_topic(RESERVATIONS, STRING, DECISION)
    assert decisions.read_key_values() == [("o1", Decision(LAMP, accepted=False))]


def test_decisions_may_come_in_any_order_ten_minutes_apart(run: Run) -> None:
    driver = run(order_service)
    decide(driver, RESERVATIONS, LAMP, at_ms=0)
    decide(driver, PAYMENTS, LAMP, at_ms=10 * MINUTE_MS)
    assert outcomes(driver) == [("o1", Outcome(LAMP, paid=True, reserved=True))]


def test_order_is_cancelled_when_a_decision_does_not_come_in_time(run: Run) -> None:
    driver = run(order_service)
    other = Order("o2", "bob", "lamp", pieces=1, cents=30_00)
    decide(driver, PAYMENTS, LAMP, at_ms=0)
    decide(driver, PAYMENTS, other, at_ms=10 * MINUTE_MS)
    assert outcomes(driver) == []
    decide(driver, RESERVATIONS, other, at_ms=10 * MINUTE_MS + 1)
    assert outcomes(driver) == [
        ("o1", Outcome(LAMP, paid=True, reserved=False)),
        ("o2", Outcome(other, paid=True, reserved=True)),
    ]


def test_decision_that_comes_after_the_order_was_cancelled_is_undone_too(run: Run) -> None:
    driver = run(order_service)
    other = Order("o2", "bob", "lamp", pieces=1, cents=30_00)
    decide(driver, PAYMENTS, LAMP, at_ms=0)
    decide(driver, RESERVATIONS, LAMP, at_ms=11 * MINUTE_MS)
    assert outcomes(driver) == [("o1", Outcome(LAMP, paid=True, reserved=False))]
    decide(driver, PAYMENTS, other, at_ms=30 * MINUTE_MS)
    assert outcomes(driver) == [("o1", Outcome(LAMP, paid=False, reserved=True))]
