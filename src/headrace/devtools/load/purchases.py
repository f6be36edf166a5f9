"""Purchases of a shopping centre: the input of ``examples/retail_purchases.py``."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.devtools.load.columns import Column, dice

# Department, items with their prices in cents, and how often something is bought there.
_DEPARTMENTS = (
    ("cafe", (("espresso", 280), ("cappuccino", 390), ("cake", 420), ("bagel", 550)), 3),
    ("electronics", (("headphones", 7990), ("charger", 2490), ("keyboard", 5900), ("cable", 990)), 2),
    ("garden", (("rake", 1999), ("tulips", 790), ("soil", 650)), 1),
    ("books", (("novel", 1400), ("atlas", 3900), ("notebook", 450)), 2),
    ("grocery", (("bread", 320), ("apples", 270), ("cheese", 610), ("rice", 240)), 4),
)
_ZIP_CODES = ("10115", "20095", "50667", "60311", "80331")


def purchases(keys: int, seed: int, size: int) -> Iterator[list[tuple[bytes | None, bytes]]]:
    """Yields purchases of ``keys`` customers, each with a card and a zip code of their own; records have no key."""
    customers = Column("customer", _customers(keys, seed), seed=seed)
    baskets = _baskets()
    wares = Column("ware", [text for text, _ in baskets], seed=seed, weights=[weight for _, weight in baskets])
    while True:
        yield [
            (None, head + ware + tail)
            for (head, tail), ware in zip(customers.take(size), wares.take(size), strict=True)
        ]


def _customers(keys: int, seed: int) -> list[tuple[bytes, bytes]]:
    random = dice("customers", seed=seed)
    width = len(str(keys - 1))
    made = []
    for number in range(keys):
        card = "-".join(f"{random.randrange(10_000):04}" for _ in range(4))
        head = f'{{"customer_id":"customer-{number:0{width}}","card_number":"{card}",'
        made.append((head.encode(), f',"zip_code":"{random.choice(_ZIP_CODES)}"}}'.encode()))
    return made


def _baskets() -> list[tuple[bytes, int]]:
    return [
        (f'"department":"{shop}","item":"{item}","quantity":{quantity},"price_cents":{cents}'.encode(), often)
        for shop, items, weight in _DEPARTMENTS
        for item, cents in items
        # Most people buy one of a thing.
        for quantity, often in ((1, 6 * weight), (2, 2 * weight), (3, weight))
    ]
