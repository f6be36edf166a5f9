"""Fraud alerts: a burst of payments with one card, in too many countries or for too much money.

Shows session windows: payments of a card that follow one another within five minutes are one session, however
long it grows. A late payment can bridge the gap between two sessions; they become one, their aggregates are
merged, and results of the old sessions are taken back with None.
"""

from dataclasses import dataclass
from datetime import timedelta

from headrace import (
    Consumed,
    Grouped,
    Materialized,
    Produced,
    Serdes,
    SessionWindows,
    StreamsBuilder,
    TopologyTestDriver,
    Windowed,
)

PAYMENTS = "card-payments"
ALERTS = "fraud-alerts"
ACTIVITY_STORE = "card-activity-store"

SESSIONS = SessionWindows.of_inactivity_gap_and_grace(timedelta(minutes=5), grace=timedelta(minutes=2))
MAX_COUNTRIES = 1
MAX_CENTS = 2_000_00
MIN_PAYMENTS = 3


@dataclass(frozen=True, slots=True)
class Payment:
    cents: int
    country: str


@dataclass(frozen=True, slots=True)
class Activity:
    """What happened with a card in one session."""

    payments: int = 0
    cents: int = 0
    countries: tuple[str, ...] = ()

    def add(self, payment: Payment) -> "Activity":
        return self.merge(Activity(1, payment.cents, (payment.country,)))

    def merge(self, other: "Activity") -> "Activity":
        countries = tuple(sorted({*self.countries, *other.countries}))
        return Activity(self.payments + other.payments, self.cents + other.cents, countries)

    def is_suspicious(self) -> bool:
        remarkable = len(self.countries) > MAX_COUNTRIES or self.cents > MAX_CENTS
        return remarkable and self.payments >= MIN_PAYMENTS


@dataclass(frozen=True, slots=True)
class Alert:
    start_ms: int
    end_ms: int
    activity: Activity


STRING = Serdes.string()
PAYMENT = Serdes.json(Payment)
ACTIVITY = Serdes.json(Activity)
ALERT = Serdes.json(Alert)


def is_suspicious(_card: Windowed[str], activity: Activity | None) -> bool:
    return activity is not None and activity.is_suspicious()


def alert(card: Windowed[str], activity: Activity) -> tuple[str, Alert]:
    return card.key, Alert(card.window.start_ms, card.window.end_ms, activity)


def build(builder: StreamsBuilder) -> None:
    payments = builder.stream(PAYMENTS, Consumed(STRING, PAYMENT, name="payments-source"))
    activities = (
        payments.group_by_key(Grouped("by-card", STRING, PAYMENT))
        .windowed_by(SESSIONS)
        .aggregate(
            Activity,
            lambda _card, payment, activity: activity.add(payment),
            merger=lambda _card, one, other: one.merge(other),
            materialized=Materialized(ACTIVITY_STORE, key_serde=STRING, value_serde=ACTIVITY),
            name="card-activity",
        )
    )
    # Every further payment of a suspicious session sends the alert again, with what is known then.
    activities.to_stream(name="activity-changes").filter(is_suspicious, name="suspicious").map(
        alert, name="make-alert"
    ).to(ALERTS, Produced(STRING, ALERT, name="alerts-sink"))


def main() -> None:
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build()) as driver:
        payments = driver.create_input_topic(PAYMENTS, STRING, PAYMENT)
        for minute, card, cents, country in (
            (0, "card-1", 12_00, "FR"),
            (1, "card-2", 9_00, "DE"),
            (3, "card-1", 250_00, "FR"),
            (6, "card-1", 180_00, "BR"),
            (30, "card-1", 12_00, "BR"),
        ):
            payments.pipe_input(card, Payment(cents, country), timestamp_ms=minute * 60_000)
        for card, found in driver.create_output_topic(ALERTS, STRING, ALERT).read_key_values():
            activity, minutes = found.activity, (found.end_ms - found.start_ms) // 60_000
            countries = " and ".join(activity.countries)
            print(f"{card}: {activity.payments} payments, {activity.cents} cents, {countries} in {minutes} minutes")


if __name__ == "__main__":
    main()
