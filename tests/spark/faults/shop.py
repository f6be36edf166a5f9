"""The application that the fault tests disturb, and its input: everything follows from the seed."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from headrace import (
    Consumed,
    Grouped,
    JoinWindows,
    Materialized,
    Produced,
    Serdes,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
)
from headrace.topics.log import Output, TopicLog
from headrace.topology.topology import Topology

APPLICATION = "shop"
PARTITIONS = 2
INPUTS = ("orders", "payments", "users", "cities")
OUTPUTS = ("enriched", "paid", "counts", "user-cities", "stamped", "stamps")

USERS, CITIES = 40, 7
START_MS = 4_000_000_000_000
"""In the future, so that nothing is too old to be kept, on whatever day the test runs."""
ANY_TIME = {"message.timestamp.after.max.ms": str((1 << 63) - 1)}
"""Brokers would not take it otherwise."""
STEP_MS = 100
"""Event time between two orders."""
WINDOW_MS = 10_000
PAID_WITHIN_MS = 5_000
# No record is late, in whatever order it is read: what is dropped as late is another test's business.
GRACE = timedelta(days=1)

_STUMBLES_EVERY = 211


def config(directory: Path, master: str, **further: Any) -> StreamsConfig:
    """Returns the configuration; there is no record cache, so every update is seen."""
    return StreamsConfig.of(
        {
            "application.id": APPLICATION,
            "state.dir": directory,
            "statestore.cache.max.bytes": 0,
            # Small enough that batches are cut at a common time while there is a backlog.
            "max.batch.records": 600,
            "spark.master": master,
            "spark.driver.memory": "700m",
            **further,
        }
    )


def build(stumbles: Path | None = None) -> Topology:
    """Returns the topology.

    It has a repartition, a windowed aggregate, a join of two streams, one of a stream with a table, and one of two
    tables by a foreign key, whose answers come back through the log. Two functions never return the same twice: one
    stamps orders, which are written as they are and go to another task, where the other one stamps them again. With
    ``stumbles``, a directory, a function fails the first time that it meets one of some orders.
    """
    builder = StreamsBuilder()
    texts = Consumed(key_serde=Serdes.string(), value_serde=Serdes.json())
    written = Produced(key_serde=Serdes.string(), value_serde=Serdes.json())
    orders = builder.stream("orders", texts).map_values(_stumbling(stumbles), name="check")
    payments = builder.stream("payments", texts)
    users = builder.table("users", texts, Materialized("users-store"))
    cities = builder.table("cities", texts, Materialized("cities-store"))

    within = JoinWindows.of_time_difference_and_grace(timedelta(milliseconds=PAID_WITHIN_MS), GRACE)
    orders.join(payments, lambda order, payment: [order["n"], payment["n"]], windows=within, name="pay").to(
        "paid", written
    )
    by_user = orders.select_key(lambda key, order: order["user"], name="by-user")
    by_user.left_join(users, lambda order, user: [order["n"], user], name="enrich").to("enriched", written)
    windows = TimeWindows.of_size_and_grace(timedelta(milliseconds=WINDOW_MS), GRACE)
    counts = by_user.group_by_key(Grouped(name="users")).windowed_by(windows).count(Materialized("counts-store"))
    counts.to_stream().map(lambda key, n: (f"{key.key}@{key.window.start_ms}", n), name="flat").to("counts", written)
    users.join(
        cities, lambda user, city: [user["v"], city], foreign_key=lambda user: user["city"], name="city"
    ).to_stream().to("user-cities", written)
    stamped = orders.map_values(_stamped, name="stamp")
    stamped.to("stamped", written)
    stamps = stamped.group_by(lambda key, order: order["user"], Grouped(name="stamps")).aggregate(
        dict, _stamped_again, materialized=Materialized("stamps-store", value_serde=Serdes.json())
    )
    stamps.to_stream().to("stamps", written)
    return builder.build()


def _stamped(order: dict[str, Any]) -> dict[str, Any]:
    return {**order, "id": uuid4().hex, "at": time.time_ns()}


def _stamped_again(_user: str, order: dict[str, Any], _before: dict[str, Any]) -> dict[str, Any]:
    return {"n": order["n"], "id": order["id"], "own": uuid4().hex}


def _stumbling(stumbles: Path | None) -> Any:
    def check(order: dict[str, Any]) -> dict[str, Any]:
        if stumbles is not None and order["n"] % _STUMBLES_EVERY == 0:
            try:
                os.close(os.open(stumbles / str(order["n"]), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            except FileExistsError:
                return order
            message = f"order {order['n']} cannot be checked just now"
            raise TimeoutError(message)
        return order

    return check


def records(seed: int, orders: int) -> Iterator[tuple[str, Output]]:
    """Yields topic and record of the whole input, in the order in which it is written."""
    chance = random.Random(seed)
    number = 0

    def record(topic: str, key: str, value: object, time_ms: int) -> tuple[str, Output]:
        nonlocal number
        number += 1
        data = None if value is None else json.dumps(value).encode()
        return topic, (None, time_ms, key.encode(), data, (("number", str(number).encode()),))

    for n in range(orders):
        now_ms = START_MS + n * STEP_MS
        if n % 3 == 0:
            city = None if chance.random() < 0.05 else f"city {chance.randrange(1000)}"
            yield record("cities", f"c{chance.randrange(CITIES)}", city, now_ms - chance.randrange(1000))
        if n % 2 == 0:
            user = None if chance.random() < 0.05 else {"city": f"c{chance.randrange(CITIES)}", "v": n}
            yield record("users", f"u{chance.randrange(USERS)}", user, now_ms - chance.randrange(1000))
        order = {"n": n, "user": f"u{chance.randrange(USERS)}"}
        yield record("orders", f"o{n}", order, now_ms - chance.randrange(3000))
        for _ in range(chance.choice([0, 1, 1, 2])):
            paid = max(0, n - chance.randrange(60))
            number_of_payment = {"n": number}
            yield record("payments", f"o{paid}", number_of_payment, now_ms - chance.randrange(3000))


def create_topics(log: TopicLog) -> None:
    for topic in (*INPUTS, *OUTPUTS):
        log.create_topic(topic, partitions=PARTITIONS, configs=ANY_TIME)


def append(log: TopicLog, part: list[tuple[str, Output]]) -> None:
    """Writes a part of the input; records of one topic keep their order."""
    by_topic: dict[str, list[Output]] = {}
    for topic, output in part:
        by_topic.setdefault(topic, []).append(output)
    for topic, outputs in by_topic.items():
        log.append(topic, outputs)
