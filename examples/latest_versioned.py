"""Latest and versioned: every version of a price on one topic, the current ones on another.

Prices arrive on a regular topic that keeps every version for a while. The topology keeps a second, compacted
topic up to date, with just the latest version of each product, for readers who want to start from the
present. Versions may arrive out of order: an older one must never replace a newer one there.

Orders need the price that was valid when they were placed, however late they or the prices arrive. So the
versions also fill a *versioned* table, which remembers its past, and the join looks up each order's own time
(an as-of join). With a grace period, orders wait a little for late prices before they are joined.
"""

from dataclasses import dataclass
from datetime import timedelta

from headrace import (
    Consumed,
    Grouped,
    Joined,
    KStream,
    Materialized,
    Produced,
    Serdes,
    Stores,
    StreamsBuilder,
    TopologyTestDriver,
)

PRICE_VERSIONS = "price-versions"
LATEST_PRICES = "latest-prices"
ORDERS = "orders"
PRICED_ORDERS = "priced-orders"
LATEST_STORE = "latest-price-store"
HISTORY_STORE = "price-history-store"

LATE_PRICES = timedelta(minutes=1)
HISTORY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Price:
    version: int
    cents: int
    on_sale: bool = True
    """Whether the product is sold at all; the last version of a product that is given up says no."""


@dataclass(frozen=True, slots=True)
class Order:
    customer: str
    pieces: int


@dataclass(frozen=True, slots=True)
class PricedOrder:
    customer: str
    price_version: int
    total_cents: int


STRING = Serdes.string()
PRICE = Serdes.json(Price)
ORDER = Serdes.json(Order)
PRICED_ORDER = Serdes.json(PricedOrder)


def newer(current: Price, arrived: Price) -> Price:
    return arrived if arrived.version >= current.version else current


def on_sale(_product: str, price: Price) -> bool:
    return price.on_sale


def at_price(order: Order, price: Price) -> PricedOrder:
    return PricedOrder(order.customer, price.version, order.pieces * price.cents)


def build(builder: StreamsBuilder) -> None:
    versions = builder.stream(PRICE_VERSIONS, Consumed(STRING, PRICE, name="price-versions-source"))
    write_latest(versions)
    write_priced_orders(builder.stream(ORDERS, Consumed(STRING, ORDER, name="orders-source")), versions)


def write_latest(versions: KStream[str, Price]) -> None:
    latest = versions.group_by_key(Grouped("by-product", STRING, PRICE)).reduce(
        newer,
        materialized=Materialized(LATEST_STORE, key_serde=STRING, value_serde=PRICE),
        name="keep-newer",
    )
    # A row that a filter leaves out is deleted: the compacted topic gets None. The store below still remembers the
    # version of a product that was given up, so that an older one cannot bring it back.
    latest.filter(on_sale, name="latest-on-sale").to_stream(name="latest-changes").to(
        LATEST_PRICES, Produced(STRING, PRICE, name="latest-prices-sink")
    )


def write_priced_orders(orders: KStream[str, Order], versions: KStream[str, Price]) -> None:
    history = versions.to_table(
        Materialized(
            Stores.persistent_versioned_key_value_store(HISTORY_STORE, HISTORY), key_serde=STRING, value_serde=PRICE
        ),
        name="price-history",
    )
    prices = history.filter(on_sale, name="history-on-sale")
    orders.join(
        prices, at_price, joined=Joined(STRING, ORDER, PRICE, name="price-as-of-order", grace_period=LATE_PRICES)
    ).to(PRICED_ORDERS, Produced(STRING, PRICED_ORDER, name="priced-orders-sink"))


def main() -> None:
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build()) as driver:
        versions = driver.create_input_topic(PRICE_VERSIONS, STRING, PRICE)
        orders = driver.create_input_topic(ORDERS, STRING, ORDER)
        second = 1_000
        versions.pipe_input("tea", Price(1, 3_00), timestamp_ms=0)
        orders.pipe_input("tea", Order("ada", 2), timestamp_ms=20 * second)
        versions.pipe_input("tea", Price(3, 4_00), timestamp_ms=30 * second)
        versions.pipe_input("tea", Price(2, 2_50), timestamp_ms=10 * second)  # late: it should have been the second
        orders.pipe_input("tea", Order("bob", 2), timestamp_ms=90 * second)
        orders.pipe_input("tea", Order("eve", 2), timestamp_ms=180 * second)

        print("latest:", driver.create_output_topic(LATEST_PRICES, STRING, PRICE).read_key_values_to_map())
        for product, order in driver.create_output_topic(PRICED_ORDERS, STRING, PRICED_ORDER).read_key_values():
            print(f"{product} for {order.customer}: {order.total_cents} cents (version {order.price_version})")


if __name__ == "__main__":
    main()
