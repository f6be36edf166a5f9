"""Order, payment and inventory: three services that know each other only by the events they publish.

    orders ──► payment service ────► payments ─────┐
       └─────► inventory service ──► reservations ─┴─► order service ──► outcomes ──► back to both, to undo

A new order goes to the payment service, which takes the money from the customer's account, and to the
inventory service, which takes the goods from the shelf. Each publishes its decision. The order service joins
the two: both accepted confirms the order; otherwise, or when a decision does not come in time, the order is
cancelled, and each service undoes its part.

Shows a saga without a coordinator that calls anyone. Here all three run in one topology; as they meet only in
topics, each function could as well be an application of its own. Payment and inventory are the same small
ledger, one of cents per customer and one of pieces per item.
"""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from headrace import (
    Consumed,
    JoinWindows,
    KeyValueStore,
    KStream,
    Processor,
    ProcessorContext,
    Produced,
    Record,
    Repartitioned,
    Serdes,
    Stores,
    StreamJoined,
    StreamsBuilder,
    TopologyTestDriver,
)

ORDERS = "orders"
DEPOSITS = "deposits"
DELIVERIES = "deliveries"
PAYMENTS = "payments"
RESERVATIONS = "reservations"
OUTCOMES = "order-outcomes"
ACCOUNTS = "accounts"
SHELVES = "shelves"

DECISION_TIME = JoinWindows.of_time_difference_with_no_grace(timedelta(minutes=10))


@dataclass(frozen=True, slots=True)
class Order:
    order_id: str
    customer: str
    item: str
    pieces: int
    cents: int


@dataclass(frozen=True, slots=True)
class Decision:
    order: Order
    accepted: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    order: Order
    paid: bool
    reserved: bool

    @property
    def confirmed(self) -> bool:
        return self.paid and self.reserved


@dataclass(frozen=True, slots=True)
class Entry:
    """A change of a balance; one made for an order needs a decision, others just happen."""

    amount: int
    order: Order | None = None


STRING, LONG = Serdes.string(), Serdes.long()
ORDER = Serdes.json(Order)
DECISION = Serdes.json(Decision)
OUTCOME = Serdes.json(Outcome)
ENTRY = Serdes.json(Entry)


class Ledger(Processor[str, Entry, str, Decision]):
    """Keeps balances, never below zero, and forwards its decision on every order."""

    def __init__(self, store: str) -> None:
        self.store = store

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.balances: KeyValueStore[str, int] = context.get_state_store(self.store)

    def process(self, record: Record[str, Entry]) -> None:
        entry = record.value
        balance = (self.balances.get(record.key) or 0) + entry.amount
        if balance >= 0:
            self.balances.put(record.key, balance)
        if entry.order is not None:
            decision = Decision(entry.order, accepted=balance >= 0)
            self.context.forward(record.with_key(entry.order.order_id).with_value(decision))


def payment_service(builder: StreamsBuilder) -> None:
    """Takes the price of an order from the customer's account, if it is there."""
    deposits = builder.stream(DEPOSITS, Consumed(STRING, LONG, name="deposits-source"))
    orders = builder.stream(ORDERS, Consumed(STRING, ORDER, name="orders-source"))
    outcomes = builder.stream(OUTCOMES, Consumed(STRING, OUTCOME, name="outcomes-source"))
    charges = orders.map(lambda _id, order: (order.customer, Entry(-order.cents, order)), name="charge")
    refunds = outcomes.filter(lambda _id, outcome: outcome.paid and not outcome.confirmed, name="paid-in-vain").map(
        lambda _id, outcome: (outcome.order.customer, Entry(outcome.order.cents)), name="refund"
    )
    entries = deposits.map_values(Entry, name="deposit").merge(charges, name="with-charges")
    decide(builder, entries.merge(refunds, name="with-refunds"), ACCOUNTS, PAYMENTS)


def inventory_service(builder: StreamsBuilder) -> None:
    """Takes the pieces of an order from the shelf, if they are there."""
    deliveries = builder.stream(DELIVERIES, Consumed(STRING, LONG, name="deliveries-source"))
    orders = builder.stream(ORDERS, Consumed(STRING, ORDER, name="orders-source"))
    outcomes = builder.stream(OUTCOMES, Consumed(STRING, OUTCOME, name="outcomes-source"))
    takings = orders.map(lambda _id, order: (order.item, Entry(-order.pieces, order)), name="take")
    returns = outcomes.filter(
        lambda _id, outcome: outcome.reserved and not outcome.confirmed, name="taken-in-vain"
    ).map(lambda _id, outcome: (outcome.order.item, Entry(outcome.order.pieces)), name="put-back")
    entries = deliveries.map_values(Entry, name="deliver").merge(takings, name="with-takings")
    decide(builder, entries.merge(returns, name="with-returns"), SHELVES, RESERVATIONS)


def decide(builder: StreamsBuilder, entries: KStream[str, Entry], store: str, decisions_topic: str) -> None:
    """Brings all entries of one balance together, in one ledger, and publishes its decisions."""
    builder.add_state_store(Stores.key_value_store_builder(Stores.persistent_key_value_store(store), STRING, LONG))
    by_balance = entries.repartition(Repartitioned(f"{store}-entries", STRING, ENTRY))
    decisions: KStream[str, Decision] = by_balance.process(partial(Ledger, store), store, name=f"{store}-ledger")
    decisions.to(decisions_topic, Produced(STRING, DECISION, name=f"{decisions_topic}-sink"))


def order_service(builder: StreamsBuilder) -> None:
    """Confirms an order that was both paid and reserved."""
    payments = builder.stream(PAYMENTS, Consumed(STRING, DECISION, name="payments-source"))
    reservations = builder.stream(RESERVATIONS, Consumed(STRING, DECISION, name="reservations-source"))
    payments.outer_join(
        reservations,
        outcome_of,
        windows=DECISION_TIME,
        joined=StreamJoined(STRING, DECISION, DECISION, name="decisions", store_name="decisions"),
    ).to(OUTCOMES, Produced(STRING, OUTCOME, name="outcomes-sink"))


def outcome_of(payment: Decision | None, reservation: Decision | None) -> Outcome:
    """A decision that did not come in time is None, and as good as a refusal."""
    decision = payment or reservation
    assert decision is not None, "a join has at least one side"
    return Outcome(
        decision.order,
        paid=payment is not None and payment.accepted,
        reserved=reservation is not None and reservation.accepted,
    )


def build(builder: StreamsBuilder) -> None:
    payment_service(builder)
    inventory_service(builder)
    order_service(builder)


def main() -> None:
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic(DEPOSITS, STRING, LONG).pipe_input("ada", 100_00)
        driver.create_input_topic(DELIVERIES, STRING, LONG).pipe_input("lamp", 3)
        orders = driver.create_input_topic(ORDERS, STRING, ORDER)
        outcomes = driver.create_output_topic(OUTCOMES, STRING, OUTCOME)
        for order in (
            Order("o1", "ada", "lamp", pieces=2, cents=60_00),
            Order("o2", "ada", "lamp", pieces=1, cents=60_00),
            Order("o3", "ada", "lamp", pieces=1, cents=40_00),
        ):
            orders.pipe_input(order.order_id, order)
        for order_id, outcome in outcomes.read_key_values():
            print(f"{order_id} was {'confirmed' if outcome.confirmed else 'cancelled'}: {outcome}")
        print("ada has", driver.get_key_value_store(ACCOUNTS).get("ada"), "cents left")
        print("there are", driver.get_key_value_store(SHELVES).get("lamp"), "lamps left")


if __name__ == "__main__":
    main()
