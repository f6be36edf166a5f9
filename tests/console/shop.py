"""A small shop that runs without Spark, with something to see on every page of the console."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

from headrace import Consumed, Grouped, KStream, Materialized, Produced, Serdes, Streams, StreamsBuilder
from headrace.app.engine import local_engine
from headrace.handlers import LogAndContinueExceptionHandler, LogAndContinueProcessingExceptionHandler
from headrace.topics.log import Output
from tests.views.kit import Place, topology_of

EVIL = "<img src=x onerror=\"document.title='broken'\">"


def priced(key: str, order: dict[str, Any]) -> bool:
    if order["cents"] < 0:
        message = f"an order cannot cost {order['cents']} cents"
        raise ValueError(message)
    return bool(order["cents"])


def add(customer: str, order: dict[str, Any], total: dict[str, Any]) -> dict[str, Any]:
    return {"orders": total["orders"] + 1, "cents": total["cents"] + order["cents"]}


def build(builder: StreamsBuilder) -> None:
    source: KStream[Any, Any] = builder.stream("orders", Consumed(name="orders-source"))
    orders = source.filter(priced, name="check-price")
    orders.map_values(lambda order: order["item"], name="item").to("items", Produced(name="items-sink"))
    by_customer = orders.group_by(lambda key, order: order["customer"], Grouped("by-customer"))
    totals = by_customer.aggregate(
        lambda: {"orders": 0, "cents": 0}, add, name="add-up", materialized=Materialized("totals")
    )
    totals.to_stream(name="changes").to("totals", Produced(value_serde=Serdes.json(), name="totals-sink"))


class Shop:
    """It is served; orders come in until it is closed."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.place = Place(directory, orders=2)
        config = self.place.config(
            application_id="shop",
            errors_dead_letter_queue_topic_name="orders-failed",
            deserialization_exception_handler=LogAndContinueExceptionHandler(),
            processing_exception_handler=LogAndContinueProcessingExceptionHandler(),
            metrics_recording_level="DEBUG",
            **settings,
        )
        self.streams = Streams(
            topology_of(build, config), config, log=self.place.log, engine=local_engine, http="localhost:0"
        )
        self.streams.start()
        self.url = f"{self.streams.http_address}/console/"
        self._random = random.Random(7)
        self._stopping = threading.Event()
        self._orders = 0
        self.order(150)
        self.place.log.append("orders", [self._record({"customer": "ada", "item": "book", "cents": -5})])
        self.place.log.append("orders", [(0, 1_790_000_000_000, b"k", b"{no json at all", ())])
        self.place.log.append("orders", [self._record({"customer": EVIL, "item": EVIL, "cents": 5})])
        self._selling = threading.Thread(target=self._sell, daemon=True)
        self._selling.start()

    def _record(self, order: dict[str, Any]) -> Output:
        self._orders += 1
        key = Serdes.string().serialize(f"order-{self._orders:05}")
        return (None, 1_790_000_000_000 + self._orders * 1000, key, Serdes.json().serialize(order), (("till", b"3"),))

    def order(self, count: int) -> None:
        """Writes some orders."""
        names, items = ("ada", "grace", "alan", "edsger", "barbara", "donald"), ("book", "tea", "lamp", "pen", "chair")
        choose, some = self._random.choice, self._random.randint
        orders = [{"customer": choose(names), "item": choose(items), "cents": 100 * some(1, 90)} for _ in range(count)]
        self.place.log.append("orders", [self._record(order) for order in orders])

    def _sell(self) -> None:
        while not self._stopping.wait(0.2):
            self.order(self._random.randint(5, 40))

    def stop_selling(self) -> None:
        self._stopping.set()
        self._selling.join()

    def close(self) -> None:
        self.stop_selling()
        self.streams.close()
        self.place.close()
