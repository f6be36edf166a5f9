"""Shipping to the workers: functions with what they capture, and classes that workers cannot import."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headrace import Processor, Produced, Record, Serdes, StreamsBuilder, StreamsConfig, TopologyError, with_key
from headrace.spark.shipping import check_shippable

LOCK = threading.Lock()


class Client:
    """Holds something that belongs to this process, somewhere inside."""

    def __init__(self) -> None:
        self.pools = {"main": [threading.Lock()]}

    def call(self, value: Any) -> Any:
        return value


class Keep(Processor[Any, Any, Any, Any]):
    def __init__(self, client: Client) -> None:
        self.client = client

    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record)


def mapping(function: Any) -> None:
    """Checks a topology with one function of the user's."""
    builder = StreamsBuilder()
    builder.stream("in").map_values(function, name="parse").to("out")
    check_shippable(builder.build(), StreamsConfig())


def capturing() -> Callable[[Any], Any]:
    lock = threading.Lock()

    def parse(value: Any) -> Any:
        with lock:
            return value

    return parse


def using_client() -> Callable[[Any], Any]:
    client = Client()
    return lambda value: client.call(value)


def test_function_that_can_be_sent_is_not_complained_about() -> None:
    limit = 5
    mapping(lambda value: value > limit)


def test_message_names_node_function_and_what_it_captures() -> None:
    wanted = (
        r"node 'parse': the function capturing\.<locals>\.parse \(.*test_shipping\.py:\d+\) cannot be sent to the "
        r"workers: it captures 'lock', a _thread\.lock, which cannot be pickled; make it inside of the function"
    )
    with pytest.raises(TopologyError, match=wanted):
        mapping(capturing())


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (using_client(), "it captures 'client', and there .pools['main'][0] is a _thread.lock"),
        (Client().call, "it belongs to 'self', and there .pools['main'][0] is a _thread.lock"),
        (partial(lambda lock, value: value, threading.Lock()), "it has the argument 0, a _thread.lock"),
        (lambda value, lock=LOCK: value, "it has the default 'lock', a _thread.lock"),
        (with_key(lambda key, value, lock=LOCK: value), "it has the default 'lock', a _thread.lock"),
    ],
)
def test_way_to_what_cannot_be_sent(function: Any, reason: str) -> None:
    with pytest.raises(TopologyError, match=re.escape(reason)):
        mapping(function)


def test_global_of_a_script() -> None:
    script = """
import threading
from headrace import StreamsBuilder, StreamsConfig
from headrace.spark.shipping import check_shippable
lock = threading.Lock()
builder = StreamsBuilder()
builder.stream("in").filter(lambda key, value: lock.locked(), name="free").to("out")
check_shippable(builder.build(), StreamsConfig())
"""
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False).stderr
    assert "node 'free': the function <lambda> (<string>:7) cannot be sent" in said
    assert "it uses the global 'lock', a _thread.lock" in said


def test_supplier_of_a_processor() -> None:
    client = Client()
    builder = StreamsBuilder()
    builder.stream("in").process(lambda: Keep(client), name="keep").to("out")
    with pytest.raises(TopologyError, match=r"node 'keep': .* it captures 'client', and there \.pools"):
        check_shippable(builder.build(), StreamsConfig())


def test_setting_that_cannot_be_sent() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    lock = threading.Lock()
    config = StreamsConfig(default_timestamp_extractor=lambda record, partition_time_ms: lock.locked())
    with pytest.raises(TopologyError, match=r"setting 'default_timestamp_extractor': .* it captures 'lock'"):
        check_shippable(builder.build(), config)


def test_serde_that_cannot_be_sent_is_named() -> None:
    lock = threading.Lock()
    serde = Serdes.of(lambda value: b"", lambda data: lock.locked())
    builder = StreamsBuilder()
    builder.stream("in").to("out", Produced(value_serde=serde, name="sink"))
    with pytest.raises(TopologyError, match=r"node 'sink': .* captures 'lock' is a _thread\.lock"):
        check_shippable(builder.build(), StreamsConfig())


CLASSES = '''
from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import date

import msgspec

from headrace import Serdes
from headrace.spark.shipping import pack


class Item(msgspec.Struct, frozen=True):
    name: str
    day: date


class Order(msgspec.Struct, rename="camel", kw_only=True, tag=True):
    order_id: int
    items: list[Item] = []
    parent: Order | None = None
    size: int = 0

    def __post_init__(self) -> None:
        self.size = len(self.items)

    def twin(self) -> Order:
        return Order(order_id=self.order_id)


class Express(Order, kw_only=True):
    hours: int = 24

    def twin(self) -> Order:
        return super().twin()


@dataclass(frozen=True)
class Payment:
    day: date
    before: Payment | None = None


READ = """
import sys
from pyspark import cloudpickle
orders, expresses, payments, twin = cloudpickle.loads(sys.stdin.buffer.read())
item = b'{"name": "tea", "day": "2026-01-02"}'
parent = b'{"type": "Order", "orderId": 2}'
order = orders.deserialize(b'{"type": "Order", "orderId": 1, "items": [%s], "parent": %s}' % (item, parent))
print(order)
print(type(order.parent) is type(order), order.twin().order_id, twin(7))
print(orders.serialize(order.parent))
print(expresses.deserialize(b'{"type": "Express", "orderId": 3}').twin())
print(payments.deserialize(b'{"day": "2026-01-02", "before": {"day": "2026-01-01"}}'))
"""

serdes = [Serdes.json(kind) for kind in (Order, Express, Payment)]
packed = pack((*serdes, lambda n: Order(order_id=n).twin().order_id))
subprocess.run([sys.executable, "-c", READ], input=packed, check=True)
'''


def test_classes_of_a_script_can_be_read_elsewhere(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(CLASSES)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "Order(order_id=1, items=[Item(name='tea', day=datetime.date(2026, 1, 2))], "
        "parent=Order(order_id=2, items=[], parent=None, size=0), size=1)",
        "True 1 7",
        """b'{"type":"Order","orderId":2,"items":[],"parent":null,"size":0}'""",
        "Order(order_id=3, items=[], parent=None, size=0)",
        "Payment(day=datetime.date(2026, 1, 2), before=Payment(day=datetime.date(2026, 1, 1), before=None))",
    ]
