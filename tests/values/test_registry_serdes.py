"""Serdes with a schema registry: in the clients' mock registry, and through HTTP."""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from google.rpc.http_pb2 import HttpHeader, HttpRequest

from headrace import Consumed, EmbeddedLog, Produced, Serdes, StreamsBuilder, TopologyTestDriver
from headrace.devtools.schema_registry import RegistryServer
from headrace.errors import ConfigError, DeserializationError, SerializationError
from headrace.serdes import BaseSerde
from headrace.serdes.registry import (
    AvroSerde,
    JsonSchemaSerde,
    ProtobufSerde,
    Schema,
    SchemaReference,
    SchemaRegistry,
    subject_of,
)

AVRO = """{"type": "record", "name": "Order", "fields": [
    {"name": "user", "type": "string"}, {"name": "amount", "type": "double"}]}"""
NEWER_AVRO = """{"type": "record", "name": "Order", "fields": [{"name": "user", "type": "string"},
    {"name": "amount", "type": "double"}, {"name": "note", "type": "string", "default": "none"}]}"""
JSON = """{"title": "Order", "type": "object", "required": ["user", "amount"],
    "properties": {"user": {"type": "string"}, "amount": {"type": "number"}}}"""


@dataclass(frozen=True)
class Order:
    user: str
    amount: float


@dataclass(frozen=True)
class Receipt:
    at: datetime
    total: Decimal
    orders: list[Order]


NUMBERS = count()
ORDER = {"user": "alice", "amount": 9.5}
SERDES: dict[str, tuple[Callable[[SchemaRegistry], BaseSerde[Any]], Any]] = {
    "avro": (lambda registry: AvroSerde(registry, AVRO), ORDER),
    "avro objects": (lambda registry: AvroSerde(registry, AVRO, Order), Order("alice", 9.5)),
    "json": (lambda registry: JsonSchemaSerde(registry, JSON), ORDER),
    "json objects": (lambda registry: JsonSchemaSerde(registry, JSON, Order), Order("alice", 9.5)),
    "protobuf": (lambda registry: ProtobufSerde(registry, HttpHeader), HttpHeader(key="a", value="b")),
}
KINDS = {"avro": "AVRO", "avro objects": "AVRO", "json": "JSON", "json objects": "JSON", "protobuf": "PROTOBUF"}


@pytest.fixture(params=["mock", "http"])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SchemaRegistry]:
    if request.param == "mock":
        yield SchemaRegistry(f"mock://serdes-{next(NUMBERS)}")
    else:
        with serving(tmp_path) as address:
            yield SchemaRegistry(address)


@contextmanager
def serving(directory: Path, user: str | None = None) -> Iterator[str]:
    """Gives the address of a registry for development."""
    with EmbeddedLog(directory / "log", sync="none") as log, RegistryServer(log, port=0, user=user) as server:
        yield server.url


@pytest.mark.parametrize("name", SERDES)
@pytest.mark.parametrize("is_key", [False, True])
def test_values_come_back_as_they_were(name: str, is_key: bool, registry: SchemaRegistry) -> None:  # noqa: FBT001
    make, value = SERDES[name]
    serde = make(registry)
    data = serde.serializer("orders", is_key=is_key)(value)
    assert data[:5] == b"\0\0\0\0\1"
    assert serde.deserializer("orders", is_key=is_key)(data) == value
    registered = registry.latest(subject_of("orders", is_key=is_key))
    assert registered is not None
    assert (registered.id, registered.version, registered.schema.kind) == (1, 1, KINDS[name])


@pytest.mark.parametrize("name", SERDES)
def test_serde_is_a_value(name: str) -> None:
    registry = SchemaRegistry("http://localhost:1", {"basic.auth.user.info": "me:secret"})
    serde = SERDES[name][0](registry)
    assert pickle.loads(pickle.dumps(serde)) == serde
    assert hash(serde) == hash(SERDES[name][0](registry))
    assert "secret" not in repr(serde)


def test_objects_hold_times_decimals_and_other_objects(registry: SchemaRegistry) -> None:
    schema = json.dumps(
        {
            "type": "record",
            "name": "Receipt",
            "fields": [
                {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
                {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
                {"name": "orders", "type": {"type": "array", "items": json.loads(AVRO)}},
            ],
        }
    )
    serde = AvroSerde[Receipt](registry, schema, Receipt)
    receipt = Receipt(datetime(2024, 5, 6, tzinfo=UTC), Decimal("12.50"), [Order("alice", 9.5), Order("bob", 3.0)])
    assert serde.deserialize(serde.serialize(receipt, "receipts"), "receipts") == receipt


def test_older_and_newer_schemas_are_read_into_the_readers(registry: SchemaRegistry) -> None:
    old, new = AvroSerde[Any](registry, AVRO), AvroSerde[Any](registry, NEWER_AVRO)
    assert new.deserialize(old.serialize(ORDER, "orders"), "orders") == {**ORDER, "note": "none"}
    assert old.deserialize(new.serialize({**ORDER, "note": "x"}, "orders"), "orders") == ORDER
    latest = registry.latest("orders-value")
    assert latest is not None
    assert latest.version == 2


def test_messages_may_be_any_of_their_file(registry: SchemaRegistry) -> None:
    serde = ProtobufSerde(registry, HttpRequest)
    request = HttpRequest(method="GET", headers=[HttpHeader(key="a", value="b")])
    assert serde.deserialize(serde.serialize(request, "requests"), "requests") == request


def test_newest_schema_is_seen_after_another_was_asked_for(registry: SchemaRegistry) -> None:
    assert registry.latest("orders-value") is None
    for number, text in enumerate(['"int"', '"long"', '"double"'], start=1):
        registry.register("orders-value", Schema(text))
        latest = registry.latest("orders-value")
        assert latest is not None
        assert (latest.version, latest.schema.text) == (number, text)


def test_schemas_are_found_by_number_and_version(registry: SchemaRegistry) -> None:
    event = Schema('syntax = "proto3"; message Event {}', "PROTOBUF")
    registry.register("event", event)
    log = Schema(
        'syntax = "proto3"; import "event.proto"; message Log { Event e = 1; }',
        "PROTOBUF",
        (SchemaReference("event.proto", "event", 1),),
    )
    number = registry.register("logs-value", log)
    assert registry.schema(number) == log
    assert registry.find(99) is None
    first = registry.version("event", 1)
    assert first is not None
    assert first.schema == event
    assert registry.version("event", 2) is None


@pytest.mark.parametrize("name", ["avro", "json", "protobuf"])
def test_values_that_the_schema_refuses_are_errors(name: str, registry: SchemaRegistry) -> None:
    serde = SERDES[name][0](registry)
    with pytest.raises(SerializationError, match=r"value of topic 'orders': .*Serde cannot write dict"):
        serde.serialize({"user": 5}, "orders")


@pytest.mark.parametrize("name", ["avro", "json", "protobuf"])
@pytest.mark.parametrize("data", [b"", b"\1\0\0\0\1", b"\0\0\0\0\x63\0\0", b"{}"])
def test_strange_bytes_are_errors(name: str, data: bytes, registry: SchemaRegistry) -> None:
    serde = SERDES[name][0](registry)
    with pytest.raises(DeserializationError, match=r"key of topic 'orders': .*Serde cannot read bytes"):
        serde.deserializer("orders", is_key=True)(data)


def test_schema_is_not_registered_if_that_is_not_wanted(registry: SchemaRegistry) -> None:
    serde = AvroSerde[Any](registry, AVRO, serializer_settings={"auto.register.schemas": False})
    with pytest.raises(SerializationError):
        serde.serialize(ORDER, "orders")
    registry.register("orders-value", Schema(AVRO))
    assert serde.serializer("orders", is_key=False)(ORDER)[:5] == b"\0\0\0\0\1"


def test_topology_reads_one_format_and_writes_another(registry: SchemaRegistry) -> None:
    orders, totals = AvroSerde[Order](registry, AVRO, Order), JsonSchemaSerde[Order](registry, JSON, Order)
    builder = StreamsBuilder()
    stream = builder.stream("orders", Consumed(Serdes.string(), orders))
    stream.map_values(lambda order: Order(order.user, order.amount * 2)).to("totals", Produced(Serdes.string(), totals))
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("orders", Serdes.string(), orders).pipe_input("a", Order("alice", 2.0))
        output = driver.create_output_topic("totals", Serdes.string(), totals)
        assert output.read_value() == Order("alice", 4.0)


def test_another_process_reads_with_the_pickled_serde(tmp_path: Path) -> None:
    with serving(tmp_path, "me:secret") as address:
        serde = AvroSerde[Any](SchemaRegistry(address, {"basic.auth.user.info": "me:secret"}), AVRO)
        sent = pickle.dumps((serde, serde.serialize(ORDER, "orders")))
        script = (
            "import pickle, sys; serde, data = pickle.load(sys.stdin.buffer); print(serde.deserialize(data, 'orders'))"
        )
        done = subprocess.run([sys.executable, "-c", script], input=sent, capture_output=True, check=False)
    assert done.stderr == b""
    assert done.stdout.decode().strip() == str(ORDER)


def test_wrong_password_is_an_error(tmp_path: Path) -> None:
    with serving(tmp_path, "me:secret") as address:
        registry = SchemaRegistry(address, {"basic.auth.user.info": "me:wrong"})
        with pytest.raises(SerializationError, match="401"):
            AvroSerde[Any](registry, AVRO).serialize(ORDER, "orders")


@pytest.mark.parametrize("url", ["localhost:8081", "", None, 5])
def test_address_must_be_one(url: Any) -> None:
    with pytest.raises(ConfigError, match="must begin with http://, https:// or mock://"):
        SchemaRegistry(url)


def test_registry_must_be_one() -> None:
    with pytest.raises(ConfigError, match=r"AvroSerde: the registry must be a SchemaRegistry, got str"):
        AvroSerde("http://localhost:8081", AVRO)  # type: ignore[arg-type]  # what a user may try
