"""Options check what they get when they are made."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import headrace
from headrace import (
    BufferConfig,
    Consumed,
    Grouped,
    Materialized,
    Produced,
    Record,
    Repartitioned,
    Serdes,
    Stores,
    StreamJoined,
    StreamsBuilder,
    TableJoined,
    TestRecord,
    Topology,
    TopologyError,
    TopologyTestDriver,
)

SECOND = timedelta(seconds=1)

# Any: the wrong types are the point.
given: Any = headrace


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: given.Consumed(key_serde="string"), "Consumed: key_serde must be a serde; found str 'string'"),
        (lambda: given.Consumed(value_serde=Serdes.string), r"call it: Serdes.string\(\)"),
        (lambda: given.Consumed(timestamp_extractor=1), "timestamp_extractor must be a function"),
        (lambda: given.Consumed(offset_reset="oldest"), "offset reset: must be one of"),
        (lambda: given.Consumed(name="a b"), "'a b' is illegal"),
        (lambda: given.Produced(partitioner=5), "Produced: partitioner must be a function"),
        (
            lambda: given.Produced(partitioner="hash"),
            "Produced: partitioner: 'hash' is not known here; write module:Name, or one of DefaultPartitioner",
        ),
        (lambda: given.Produced(partitioner="DefaultPartitoner"), "did you mean 'DefaultPartitioner'"),
        (lambda: given.Repartitioned(partitioner="shop.Spread"), "write module:Name, such as shop:Spread"),
        (
            lambda: given.TableJoined(other_partitioner="shop:Spread"),
            "'shop:Spread' cannot be imported",
        ),
        (
            lambda: given.Produced(partitioner="builtins:len"),
            r"partitioner must be a function \(topic, key, value, partitions\); found len, which takes \(obj, /\)",
        ),
        (lambda: given.Grouped(Serdes.string()), "a name must be a str"),
        (lambda: given.Grouped("g", "string"), "Grouped: key_serde must be a serde"),
        (lambda: given.Joined(grace_period=5), "grace_period must be a timedelta"),
        (lambda: given.Joined(grace_period=-SECOND), "must not be negative"),
        (lambda: given.TableJoined(partitioner=3), "partitioner must be a function"),
        (lambda: given.Repartitioned(partitions=0), "partitions must be an int of at least 1"),
        (lambda: given.Repartitioned(partitions="4"), "partitions must be an int of at least 1"),
        (lambda: given.Branched(name=""), "must be a str that is not empty"),
        (lambda: given.Branched(function=print, consumer=print), "not both"),
        (lambda: given.Branched(function="f"), "function must be a function"),
        (lambda: given.Printed.to_file(" "), "path of the file must not be empty"),
        (lambda: given.Printed(formatter=1), "formatter must be a function"),
        (lambda: given.Materialized("a b"), "'a b' is illegal"),
        (lambda: given.Materialized(5), "store must be a name or a store supplier; found int 5"),
        (lambda: given.Materialized("s", retention=-SECOND), "retention must not be negative"),
        (
            lambda: given.Materialized("s", store_type="tape"),
            "must be 'lmdb', 'rocksdb', 'disk' .* or 'in_memory'",
        ),
        (
            lambda: given.Materialized(Stores.in_memory_key_value_store("s"), store_type="disk"),
            "already says what type the store has",
        ),
        (lambda: given.StreamJoined(this_store_supplier="s"), "this_store_supplier must be a store supplier"),
        (lambda: given.StreamJoined(dsl_store="tape"), "must be 'lmdb', 'rocksdb', 'disk'"),
        (lambda: given.BufferConfig.max_records(-1), "must be an int that is not negative"),
        (lambda: given.Suppressed.until_time_limit(SECOND, None), "must be a BufferConfig; found None"),
        (lambda: given.Suppressed.until_time_limit(None, BufferConfig.unbounded()), "must be a timedelta; found None"),
        (lambda: given.Suppressed.until_time_limit(-SECOND, BufferConfig.unbounded()), "must not be negative"),
        (lambda: given.Suppressed.until_window_closes(BufferConfig.max_records(1)), "cannot give final results"),
    ],
)
def test_wrong_options_are_refused_with_a_reason(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        make()


def test_two_stores_of_a_join_need_two_names() -> None:
    supplier = Stores.in_memory_window_store("s", SECOND, SECOND, retain_duplicates=True)
    with pytest.raises(TopologyError, match="both store suppliers have the name 's'"):
        StreamJoined(this_store_supplier=supplier, other_store_supplier=supplier)


def test_options_are_values() -> None:
    assert Consumed(Serdes.string(), Serdes.string()) == Consumed(Serdes.string(), Serdes.string())
    assert Materialized("s", caching=False) != Materialized("s")
    with pytest.raises(AttributeError):
        Grouped("g").name = "h"  # type: ignore[misc]  # that it fails is the point


def test_kafkas_names_of_store_types_are_understood() -> None:
    assert Materialized("s", store_type="rocksDB").store_type == "rocksDB"
    assert StreamJoined(dsl_store="in_memory").dsl_store == "in_memory"


@pytest.mark.parametrize("reset", ["earliest", "latest", "none", timedelta(hours=1)])
def test_offset_resets_are_accepted(reset: str | timedelta) -> None:
    assert Consumed(offset_reset=reset).offset_reset == reset


def test_buffer_bounds_can_be_combined() -> None:
    config = BufferConfig.max_records(5).with_max_bytes(100).with_logging_disabled()
    assert (config.record_limit, config.byte_limit, config.strict, config.logging) == (5, 100, False, False)
    assert config.with_no_bound().strict


def only_public(_topic: str, key: str, _value: object, _partitions: int) -> tuple[int, ...] | None:
    """Drops records whose key begins with an underscore."""
    return () if key.startswith("_") else None


class OnlyPublic:
    def __call__(self, topic: str, key: str, value: object, partitions: int) -> tuple[int, ...] | None:
        return only_public(topic, key, value, partitions)


def keys_behind(topology: Topology) -> list[str]:
    """Returns the keys in 'out' of records that are written to 'in' with three keys."""
    with TopologyTestDriver(topology) as driver:
        source, target = driver.create_input_topic("in"), driver.create_output_topic("out")
        for key in ("a", "_b", "c"):
            source.pipe_input(key, "x")
        return [record.key for record in target.read_key_values()]


@pytest.mark.parametrize("name", [f"{__name__}:only_public", f"{__name__}:OnlyPublic"])
def test_partitioners_can_be_named_by_module_and_name(name: str) -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out", Produced(partitioner=name))
    assert keys_behind(builder.build()) == ["a", "c"]
    builder = StreamsBuilder()
    builder.stream("in").repartition(Repartitioned("r", partitioner=name)).to("out")
    assert keys_behind(builder.build()) == ["a", "c"]
    topology = Topology().add_source("source", "in").add_sink("sink", "out", "source", partitioner=name)
    assert keys_behind(topology) == ["a", "c"]


def test_partitioners_of_a_foreign_key_join_can_be_named() -> None:
    name = f"{__name__}:OnlyPublic"
    option: TableJoined[str, str] = TableJoined(partitioner=name, other_partitioner=name)
    builder = StreamsBuilder()
    builder.table("in").join(
        builder.table("others"), lambda value, _: value, foreign_key=lambda value: value, table_joined=option
    ).to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("others").pipe_input("x", 1)
        driver.create_input_topic("in").pipe_input("a", "x")
        assert driver.create_output_topic("out").read_key_values() == [("a", "x")]


@pytest.mark.parametrize(
    "name",
    [
        "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
        "org.apache.kafka.streams.processor.internals.DefaultStreamPartitioner",
        "WindowedStreamPartitioner",
    ],
)
def test_partitioners_of_kafka_that_go_by_the_key_are_none(name: str) -> None:
    assert Produced(partitioner=name) == Produced()


def test_options_and_records_can_be_made_with_explicit_types() -> None:
    assert Consumed[str, int](name="in") == Consumed(name="in")
    assert Materialized[str, int]("rows") == Materialized("rows")
    assert Record[str, int]("key", 1, 0) == Record("key", 1, 0)
    assert TestRecord[str, int]("key", 1) == TestRecord("key", 1)
