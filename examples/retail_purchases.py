"""Retail purchases: one stream of sales feeds several uses.

The topology is in the package, ``headrace.devtools.demo.retail_purchases``, because ``headrace demo`` runs it on
Spark: cards are masked, every purchase gives a pattern and reward points, and who buys in the cafe and in the
electronics shop within 20 minutes gets a free coffee. Here it runs on the test driver, with four purchases.

    headrace describe examples/retail_purchases.py:build
    headrace generate purchases transactions --count 1000
    headrace run examples/retail_purchases.py:build --until-end
"""

from headrace import StreamsBuilder, TopologyTestDriver
from headrace.devtools.demo.retail_purchases import (
    CAFE,
    ELECTRONICS,
    FREE_COFFEES,
    PATTERNS,
    PURCHASE,
    PURCHASES,
    REWARDS,
    STRING,
    TRANSACTIONS,
    Purchase,
    build,
)


def main() -> None:
    builder = StreamsBuilder()
    build(builder)
    card = "4111-1111-1111-1234"
    sample = (
        (0, Purchase("ada", card, ELECTRONICS, "headphones", 1, 79_90, "10115")),
        (12, Purchase("ada", card, CAFE, "espresso", 2, 2_80, "10115")),
        (15, Purchase("bob", card, "garden", "rake", 1, 19_99, "20095")),
        (45, Purchase("ada", card, CAFE, "cake", 1, 4_20, "10115")),
    )
    with TopologyTestDriver(builder.build()) as driver:
        transactions = driver.create_input_topic(TRANSACTIONS, STRING, PURCHASE)
        for minute, purchase in sample:
            transactions.pipe_input(value=purchase, timestamp_ms=minute * 60_000)
        for topic in (PURCHASES, PATTERNS, REWARDS, CAFE, ELECTRONICS, FREE_COFFEES):
            print(topic)
            for customer, value in driver.create_output_topic(topic).read_key_values():
                print(f"    {customer}: {value}")


if __name__ == "__main__":
    main()
