"""The programs of the engine's benchmark, as topologies.

The counts look at the amount first, so that every program has to parse its values: a native query would not read a
column that nobody needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec

from benchmarks.engine_load import CUSTOMERS, PAYMENTS, PURCHASES
from headrace import (
    Consumed,
    Grouped,
    Joined,
    JoinWindows,
    KStream,
    Materialized,
    Produced,
    Serde,
    Serdes,
    StreamJoined,
    StreamsBuilder,
    TimeWindows,
    Topology,
)

WINDOW_MS, GRACE_MS = 60_000, 10_000
JOIN_MS = 1_000
LONG_JOIN_MS = 10_000


class Purchase(msgspec.Struct):
    """A whole purchase."""

    id: int
    amount: float
    item: str
    card: str
    quantity: int
    at: int


class Sale(msgspec.Struct, frozen=True):
    """What the counts need of a purchase, as the schema of a native query names only the fields in use."""

    amount: float
    item: str


class Bought(msgspec.Struct, frozen=True):
    """What the joins need of a purchase."""

    id: int


class Payment(msgspec.Struct, frozen=True):
    purchase: int


class Customer(msgspec.Struct, frozen=True):
    region: int


STRING, JSON, LONG = Serdes.string(), Serdes.json(), Serdes.long()
PURCHASE, SALE, BOUGHT = Serdes.json(Purchase), Serdes.json(Sale), Serdes.json(Bought)
PAYMENT, CUSTOMER = Serdes.json(Payment), Serdes.json(Customer)
WRITE_JSON = Produced(key_serde=STRING, value_serde=JSON)
WRITE_COUNT = Produced(key_serde=STRING, value_serde=LONG)
GROUPED = Grouped(key_serde=STRING, value_serde=SALE)

Sales = KStream[str, Sale]


@dataclass(frozen=True)
class Program:
    """One piece of work; what it writes goes to the topic ``out``."""

    name: str
    title: str
    inputs: tuple[str, ...]
    build: Callable[[str], Topology]
    """Makes the topology that writes to this topic."""
    counts: bool = False
    """Whether results are counts by key, of which only the last one matters."""
    changes_key: bool = False
    has_native: bool = False
    native_factor: float | None = None
    """How many times the native query's rate is asked for."""
    wanted: int | None = None
    """The records/s that are asked for."""


def _read(serde: Serde[Any]) -> Consumed[str, Any]:
    return Consumed(key_serde=STRING, value_serde=serde)


def _masked(purchase: Purchase) -> Purchase:
    purchase.card = "xxxx-" + purchase.card[-4:]
    return purchase


def _purchases(builder: StreamsBuilder) -> Sales:
    return builder.stream(PURCHASES, _read(SALE)).filter(lambda customer, sale: sale.amount > 5)


def parse_filter_map(out: str) -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream(PURCHASES, _read(PURCHASE))
        .filter(lambda customer, purchase: purchase.amount > 50)
        .map_values(_masked)
        .to(out, Produced(key_serde=STRING, value_serde=PURCHASE))
    )
    return builder.build()


def count_by_key(out: str) -> Topology:
    builder = StreamsBuilder()
    counts = Materialized(key_serde=STRING, value_serde=LONG)
    _purchases(builder).group_by_key(GROUPED).count(materialized=counts).to_stream().to(out, WRITE_COUNT)
    return builder.build()


def rekey_and_count(out: str) -> Topology:
    builder = StreamsBuilder()
    counts = Materialized(key_serde=STRING, value_serde=LONG)
    (
        _purchases(builder)
        .select_key(lambda customer, sale: sale.item)
        .group_by_key(GROUPED)
        .count(materialized=counts)
        .to_stream()
        .to(out, WRITE_COUNT)
    )
    return builder.build()


def windowed_count(out: str) -> Topology:
    builder = StreamsBuilder()
    windows = TimeWindows.of_size_and_grace(timedelta(milliseconds=WINDOW_MS), timedelta(milliseconds=GRACE_MS))
    (
        _purchases(builder)
        .group_by_key(GROUPED)
        .windowed_by(windows)
        .count(materialized=Materialized(key_serde=STRING, value_serde=LONG))
        .to_stream()
        .to(out, Produced(key_serde=Serdes.time_windowed(STRING, WINDOW_MS), value_serde=LONG))
    )
    return builder.build()


def stream_table_join(out: str) -> Topology:
    builder = StreamsBuilder()
    table = builder.table(CUSTOMERS, _read(CUSTOMER), Materialized(key_serde=STRING, value_serde=CUSTOMER))
    (
        builder.stream(PURCHASES, _read(BOUGHT))
        .join(
            table,
            lambda bought, customer: {"id": bought.id, "region": customer.region},
            joined=Joined(key_serde=STRING, value_serde=BOUGHT, other_value_serde=CUSTOMER),
        )
        .to(out, WRITE_JSON)
    )
    return builder.build()


def stream_stream_join(out: str) -> Topology:
    builder = StreamsBuilder()
    return _paid(builder, builder.stream(PURCHASES, _read(BOUGHT)), JOIN_MS, out)


def long_stream_stream_join(out: str) -> Topology:
    """As many purchases as payments, each with all of its customer's within ten seconds to either side."""
    builder = StreamsBuilder()
    purchases = builder.stream(PURCHASES, _read(BOUGHT)).filter(lambda customer, bought: bought.id % 2 == 0)
    return _paid(builder, purchases, LONG_JOIN_MS, out)


def _paid(builder: StreamsBuilder, purchases: KStream[str, Bought], join_ms: int, out: str) -> Topology:
    windows = JoinWindows.of_time_difference_and_grace(timedelta(milliseconds=join_ms), timedelta(milliseconds=JOIN_MS))
    (
        purchases.join(
            builder.stream(PAYMENTS, _read(PAYMENT)),
            lambda bought, payment: {"id": bought.id, "purchase": payment.purchase},
            windows=windows,
            joined=StreamJoined(key_serde=STRING, value_serde=BOUGHT, other_value_serde=PAYMENT, store_name="paid"),
        ).to(out, WRITE_JSON)
    )
    return builder.build()


def newest_by_key(out: str) -> Topology:
    """One level that hands on when a record was sent, so that somebody can see how long it took."""
    return _newest(out, lambda stream: stream)


def newest_rekeyed(out: str) -> Topology:
    """The same with two levels: records cross an edge before they are aggregated."""
    return _newest(out, lambda stream: stream.select_key(lambda customer, purchase: f"again-{customer}"))


def _newest(out: str, prepare: Callable[[KStream[str, Any]], KStream[str, Any]]) -> Topology:
    builder = StreamsBuilder()
    (
        prepare(builder.stream(PURCHASES, _read(JSON)))
        .group_by_key(Grouped(key_serde=STRING, value_serde=JSON))
        .aggregate(
            lambda: {"count": 0, "sent": 0.0},
            lambda customer, purchase, newest: {"count": newest["count"] + 1, "sent": purchase["sent"]},
            Materialized("newest", key_serde=STRING, value_serde=JSON),
        )
        .to_stream()
        .to(out, WRITE_JSON)
    )
    return builder.build()


def counts_of_all_kinds(out: str) -> Topology:
    """By key, by key and window, and by another key: rows that change, rows that go, rows that cross an edge."""
    builder = StreamsBuilder()
    purchases = _purchases(builder)
    windows = TimeWindows.of_size_and_grace(timedelta(seconds=10), timedelta(seconds=1))
    by_customer = purchases.group_by_key(GROUPED)
    by_item = purchases.group_by(lambda customer, sale: sale.item, Grouped("items", STRING, SALE))
    counts = Materialized("counts", key_serde=STRING, value_serde=LONG)
    in_windows = Materialized("windows", key_serde=STRING, value_serde=LONG, retention=timedelta(seconds=20))
    items = Materialized("items", key_serde=STRING, value_serde=LONG)
    by_customer.count(materialized=counts).to_stream().to(out, WRITE_COUNT)
    by_item.count(materialized=items).to_stream().to(out, WRITE_COUNT)
    windowed = by_customer.windowed_by(windows).count(materialized=in_windows)
    windowed.to_stream().to(out, Produced(key_serde=Serdes.time_windowed(STRING, 10_000), value_serde=LONG))
    return builder.build()


PROGRAMS = {
    program.name: program
    for program in (
        Program("a", "parse, filter, map", (PURCHASES,), parse_filter_map, has_native=True, native_factor=1),
        Program(
            "b",
            "count by key",
            (PURCHASES,),
            count_by_key,
            counts=True,
            has_native=True,
            native_factor=2,
            wanted=700_000,
        ),
        Program("c", "re-key and count", (PURCHASES,), rekey_and_count, counts=True, changes_key=True, wanted=450_000),
        Program(
            "d", "tumbling window count", (PURCHASES,), windowed_count, counts=True, has_native=True, native_factor=2
        ),
        Program("e", "stream-table join", (PURCHASES, CUSTOMERS), stream_table_join),
        Program("f", "stream-stream join", (PURCHASES, PAYMENTS), stream_stream_join),
        Program("g", "stream-stream join, 10 s", (PURCHASES, PAYMENTS), long_stream_stream_join),
    )
}

FURTHER = {
    program.name: program
    for program in (
        Program("newest", "newest by key", (PURCHASES,), newest_by_key),
        Program("rekeyed", "newest by another key", (PURCHASES,), newest_rekeyed, changes_key=True),
        Program("counts", "counts of all kinds", (PURCHASES,), counts_of_all_kinds, counts=True),
    )
}
