"""Kafka's own programs, in Java, on the other side of the broker."""

from __future__ import annotations

import random
import struct
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from string import printable
from typing import Any

import pytest

pytest.importorskip("confluent_kafka")
pytest.importorskip("pyspark")

import pyspark
from py4j.java_gateway import (  # type: ignore[import-untyped]
    GatewayParameters,
    JavaGateway,
    launch_gateway,
)

from headrace import Serde, Serdes
from headrace.devtools.kafka_broker.jars import kafka_jars
from headrace.spark.java import find_java
from headrace.topics.kafka import KafkaLog
from headrace.topics.partitioner import default_partitioner, partition_for
from headrace.windows import SessionWindow, TimeWindow, Windowed
from tests.jars import streams_jars, tools_jars
from tests.topics.journals import open_transaction, run_batch
from tests.topics.kit import everything, record

pytestmark = pytest.mark.kafka

KEYS = 1_000
PARTITIONS = 7


@pytest.fixture(scope="module")
def java() -> Path:
    return find_java().home / "bin" / "java"


def tool(java: Path, name: str, *arguments: str, stdin: str = "") -> str:
    """Runs one of Kafka's command-line tools; returns what it prints."""
    classes = f"{kafka_jars(java)}/*:{tools_jars(java)}/*"
    done = subprocess.run(
        [
            str(java),
            "-Xmx128m",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            classes,
            f"org.apache.kafka.tools.{name}",
            *arguments,
        ],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


def test_what_the_console_producer_writes_is_read_from_the_partitions_we_expect(kafka: KafkaLog, java: Path) -> None:
    kafka.create_topic("in", partitions=PARTITIONS)
    chance = random.Random(5)
    keys = [f"{chance.randrange(1 << 60):x}{chance.choice(['', 'ä', '€uro', '🙂'])}" for _ in range(KEYS)]
    lines = "".join(f"{key}:value of {key}\n" for key in keys)
    arguments = ("--bootstrap-server", kafka.bootstrap_servers, "--topic", "in")
    tool(
        java,
        "ConsoleProducer",
        *arguments,
        "--property",
        "parse.key=true",
        "--property",
        "key.separator=:",
        stdin=lines,
    )
    found = {
        key: (partition, value)
        for partition in range(PARTITIONS)
        for _, _, key, value, _ in everything(kafka, "in", partition)
        if key is not None
    }
    expected = {key.encode(): (partition_for(key.encode(), PARTITIONS), f"value of {key}".encode()) for key in keys}
    assert found == expected


def test_what_is_written_in_transactions_is_read_once_by_the_console_consumer(kafka: KafkaLog, java: Path) -> None:
    kafka.create_topic("out", partitions=2)
    journal = kafka.open_journal("app", ["0_0", "0_1"])
    aborted = open_transaction(kafka, "0_0", "out", [record(f"k{number}", "aborted") for number in range(10)])
    aborted.abort_transaction(10)
    run_batch(kafka, journal, 0, {"out": [record(f"k{number}", f"v{number}") for number in range(10)]})
    left_open = open_transaction(kafka, "0_1", "out", [record("k", "open")])
    printed = tool(
        java,
        "consumer.ConsoleConsumer",
        *("--bootstrap-server", kafka.bootstrap_servers, "--topic", "out", "--from-beginning"),
        *("--isolation-level", "read_committed", "--timeout-ms", "4000", "--property", "print.key=true"),
    )
    left_open.abort_transaction(10)
    assert sorted(printed.splitlines()) == sorted(f"k{number}\tv{number}" for number in range(10))


@pytest.fixture(scope="module")
def classes(java: Path) -> Iterator[Any]:
    """The classes of Kafka's client and of Kafka Streams, to be called from here."""
    (py4j,) = Path(pyspark.__file__).parent.glob("jars/py4j-*.jar")
    jars = f"{kafka_jars(java)}/*:{streams_jars(java)}/*"
    port = launch_gateway(jarpath=str(py4j), classpath=jars, java_path=str(java), die_on_exit=True)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    yield gateway.jvm.org.apache.kafka
    gateway.shutdown()


CHANCE = random.Random(7)
SERDES: dict[str, tuple[Serde[Any], Callable[[], Any]]] = {
    "string": (Serdes.string(), lambda: "".join(CHANCE.choices(printable + "äß€🙂", k=CHANCE.randrange(30)))),
    "bytes": (Serdes.bytes(), lambda: CHANCE.randbytes(CHANCE.randrange(40))),
    "integer": (Serdes.integer(), lambda: CHANCE.randrange(-(1 << 31), 1 << 31)),
    "long": (Serdes.long(), lambda: CHANCE.randrange(-(1 << 63), 1 << 63)),
    "short": (Serdes.short(), lambda: CHANCE.randrange(-(1 << 15), 1 << 15)),
    "double": (Serdes.double(), lambda: CHANCE.gauss(0, 1e9)),
    "float": (Serdes.float(), lambda: struct.unpack(">f", struct.pack(">f", CHANCE.gauss(0, 1e9)))[0]),
    "boolean": (Serdes.boolean(), lambda: CHANCE.random() < 0.5),
    "uuid": (Serdes.uuid(), lambda: uuid.UUID(int=CHANCE.getrandbits(128))),
    "json": (Serdes.json(), lambda: {"id": CHANCE.randrange(1 << 40), "name": CHANCE.choice("äbc")}),
}


@pytest.mark.parametrize("name", SERDES)
def test_keys_of_every_serde_go_where_javas_partitioner_sends_them(name: str, classes: Any) -> None:
    serde, make = SERDES[name]
    serialize = serde.serializer("topic", is_key=True)
    partitioner = classes.clients.producer.internals.BuiltInPartitioner
    for _ in range(KEYS):
        data = serialize(make())
        assert partition_for(data, PARTITIONS) == partitioner.partitionForKey(bytearray(data), PARTITIONS)


# Java's serdes are told from the keys: text, and whole numbers that do not fit into an Integer.
WINDOWED_KEYS: dict[str, tuple[Serde[Any], Callable[[], Any]]] = {
    "String": (Serdes.string(), SERDES["string"][1]),
    "Long": (Serdes.long(), lambda: CHANCE.randrange(1 << 31, 1 << 63)),
}


@pytest.mark.parametrize("kind", ["Time", "Session"])
@pytest.mark.parametrize("name", WINDOWED_KEYS)
def test_windowed_keys_are_written_and_go_where_kafka_streams_writes_and_sends_them(
    name: str, kind: str, classes: Any
) -> None:
    inner, make = WINDOWED_KEYS[name]
    is_session = kind == "Session"
    serde: Serde[Any] = Serdes.session_windowed(inner) if is_session else Serdes.time_windowed(inner, 500)
    serialize, choose = serde.serializer("topic", is_key=True), default_partitioner(serde, "topic")
    assert choose is not None
    kstream = classes.streams.kstream
    serializer = getattr(kstream, f"{kind}WindowedSerializer")(
        getattr(classes.common.serialization, f"{name}Serializer")()
    )
    partitioner = kstream.internals.WindowedStreamPartitioner(serializer)
    window_of = getattr(kstream.internals, f"{kind}Window")
    for _ in range(KEYS // 4):
        key, start_ms = make(), CHANCE.randrange(1 << 42)
        end_ms = start_ms + (CHANCE.randrange(1 << 20) if is_session else 500)
        ours = Windowed(key, SessionWindow(start_ms, end_ms) if is_session else TimeWindow(start_ms, end_ms))
        theirs = kstream.Windowed(key, window_of(start_ms, end_ms))
        assert serialize(ours) == bytes(serializer.serialize("topic", theirs))
        partitions = partitioner.partitions("topic", theirs, None, PARTITIONS)
        assert str(partitions) == f"Optional[[{choose('topic', ours, None, PARTITIONS)}]]"
