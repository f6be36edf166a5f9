"""Retail purchases: one stream of sales feeds several uses.

The card number is masked before anything else happens. Then every purchase gives a pattern (what sells where)
and reward points for its customer; purchases of the cafe and of the electronics shop go to topics of their
own; and who buys in both within 20 minutes is found by joining the two branches.

Shows ``map_values``, an explicit ``repartition`` that all later steps share, ``split``, ``aggregate``, and a
windowed join of two streams. ``headrace demo`` runs it on Spark; ``examples/retail_purchases.py`` runs it on the test
driver with a handful of purchases.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from headrace.dsl import (
    Branched,
    Consumed,
    Grouped,
    KStream,
    Materialized,
    Produced,
    Repartitioned,
    StreamJoined,
    StreamsBuilder,
)
from headrace.serdes import Serdes
from headrace.windows import JoinWindows

TRANSACTIONS = "transactions"
PURCHASES = "purchases"
PATTERNS = "patterns"
REWARDS = "rewards"
CAFE = "cafe"
ELECTRONICS = "electronics"
FREE_COFFEES = "free-coffees"
REWARDS_STORE = "rewards-store"

# With some grace, because a till may be slow to report.
WITHIN_20_MINUTES = JoinWindows.of_time_difference_and_grace(timedelta(minutes=20), grace=timedelta(minutes=5))


@dataclass(frozen=True, slots=True)
class Purchase:
    customer_id: str
    card_number: str
    department: str
    item: str
    quantity: int
    price_cents: int
    zip_code: str

    @property
    def total_cents(self) -> int:
        return self.quantity * self.price_cents

    def masked(self) -> "Purchase":
        """Returns the purchase with only the last four digits of its card."""
        return replace(self, card_number=f"xxxx-xxxx-xxxx-{self.card_number[-4:]}")


@dataclass(frozen=True, slots=True)
class Pattern:
    zip_code: str
    item: str
    total_cents: int


@dataclass(frozen=True, slots=True)
class Rewards:
    points: int = 0
    purchases: int = 0

    def add(self, purchase: Purchase) -> "Rewards":
        """One point for each whole dollar spent."""
        return Rewards(self.points + purchase.total_cents // 100, self.purchases + 1)


@dataclass(frozen=True, slots=True)
class FreeCoffee:
    electronics_item: str
    cafe_item: str
    spent_cents: int


STRING, PURCHASE = Serdes.string(), Serdes.json(Purchase)


def free_coffee(electronics: Purchase, cafe: Purchase) -> FreeCoffee:
    """Joins two purchases."""
    return FreeCoffee(electronics.item, cafe.item, electronics.total_cents + cafe.total_cents)


def build(builder: StreamsBuilder) -> None:
    """Describes the topology."""
    # Masked before the first internal topic is written, so that no broker ever stores a card number.
    purchases = (
        builder.stream(TRANSACTIONS, Consumed(STRING, PURCHASE, name="transactions-source"))
        .map_values(Purchase.masked, name="mask-card")
        .select_key(lambda _key, purchase: purchase.customer_id, name="select-customer")
        .repartition(Repartitioned("purchases-by-customer", STRING, PURCHASE))
    )
    purchases.to(PURCHASES, Produced(name="purchases-sink"))
    write_patterns(purchases)
    write_rewards(purchases)
    write_free_coffees(purchases)


def write_patterns(purchases: KStream[str, Purchase]) -> None:
    """Tells what sells where."""
    patterns = purchases.map_values(lambda p: Pattern(p.zip_code, p.item, p.total_cents), name="extract-pattern")
    patterns.to(PATTERNS, Produced(value_serde=Serdes.json(Pattern), name="patterns-sink"))


def write_rewards(purchases: KStream[str, Purchase]) -> None:
    """Adds up the points of every customer."""
    rewards = purchases.group_by_key(Grouped("rewards-by-customer")).aggregate(
        Rewards,
        lambda _customer, purchase, rewards: rewards.add(purchase),
        materialized=Materialized(REWARDS_STORE, key_serde=STRING, value_serde=Serdes.json(Rewards)),
        name="add-rewards",
    )
    rewards.to_stream(name="reward-changes").to(REWARDS, Produced(name="rewards-sink"))


def write_free_coffees(purchases: KStream[str, Purchase]) -> None:
    """Finds who buys in both shops within 20 minutes."""
    branches = (
        purchases.split(name="department-")
        .branch(lambda _customer, purchase: purchase.department == CAFE, Branched(CAFE))
        .branch(lambda _customer, purchase: purchase.department == ELECTRONICS, Branched(ELECTRONICS))
        .no_default_branch()
    )
    cafe, electronics = branches["department-cafe"], branches["department-electronics"]
    cafe.to(CAFE, Produced(name="cafe-sink"))
    electronics.to(ELECTRONICS, Produced(name="electronics-sink"))
    electronics.join(
        cafe,
        free_coffee,
        windows=WITHIN_20_MINUTES,
        joined=StreamJoined(STRING, PURCHASE, PURCHASE, name="both-shops", store_name="both-shops"),
    ).to(FREE_COFFEES, Produced(value_serde=Serdes.json(FreeCoffee), name="free-coffees-sink"))
