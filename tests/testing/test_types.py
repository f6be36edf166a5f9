"""Serdes give topics their types: `assert_type` is checked by mypy, and does nothing when the test runs."""

from __future__ import annotations

from typing import Any, assert_type

from headrace import (
    Consumed,
    FixedKeyProcessor,
    FixedKeyProcessorContext,
    FixedKeyRecord,
    KeyValue,
    KeyValueStore,
    KStream,
    KTable,
    Materialized,
    Processor,
    ProcessorContext,
    Record,
    Serdes,
    SessionStore,
    StreamsBuilder,
    TestInputTopic,
    TestOutputTopic,
    TimestampedKeyValueStore,
    TimestampedWindowStore,
    TopologyTestDriver,
    ValueAndTimestamp,
    ValueTransformerWithKey,
    VersionedKeyValueStore,
    VersionedRecord,
    Windowed,
    WindowStore,
    with_key,
)

STRING, LONG = Serdes.string(), Serdes.long()


def copying() -> TopologyTestDriver:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    return TopologyTestDriver(builder.build())


def test_serdes_give_an_input_topic_its_types() -> None:
    with copying() as driver:
        assert_type(driver.create_input_topic("in", STRING, LONG), TestInputTopic[str, int])
        assert_type(driver.create_input_topic("in", STRING, LONG, start_ms=5), TestInputTopic[str, int])
        assert_type(driver.create_input_topic("in", value_serde=LONG), TestInputTopic[Any, int])
        assert_type(driver.create_input_topic("in", None, LONG), TestInputTopic[Any, int])
        assert_type(driver.create_input_topic("in", STRING), TestInputTopic[str, Any])
        assert_type(driver.create_input_topic("in"), TestInputTopic[Any, Any])


def test_serdes_give_an_output_topic_its_types() -> None:
    with copying() as driver:
        driver.create_input_topic("in").pipe_key_values([("a", 1), ("b", 2)])
        output = driver.create_output_topic("out", STRING, Serdes.json(int))
        assert_type(output, TestOutputTopic[str, int])
        first = output.read_key_value()
        assert_type(first, KeyValue[str, int])
        assert (first.key.upper(), first.value + 1) == ("A", 2)
        assert assert_type(output.read_values(), list[int]) == [2]
        assert_type(driver.create_output_topic("out", value_serde=LONG), TestOutputTopic[Any, int])
        assert_type(driver.create_output_topic("out", STRING), TestOutputTopic[str, Any])
        assert_type(driver.create_output_topic("out"), TestOutputTopic[Any, Any])


class Parse(Processor[str, int, bytes, float]):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)

    def process(self, record: Record[str, int]) -> None:
        assert_type(self.context, ProcessorContext[bytes, float])
        self.context.forward(record.with_key(b"").with_value(0.5))
        self.context.forward(record)  # type: ignore[arg-type]  # that it is checked is the point


class Anything(Processor[object, object, str, str]):
    def init(self, context: ProcessorContext[str, str]) -> None:
        super().init(context)

    def process(self, record: Record[object, object]) -> None:
        pass


class Double(FixedKeyProcessor[str, int, float]):
    def process(self, record: FixedKeyRecord[str, int]) -> None:
        assert_type(self.context, FixedKeyProcessorContext[str, float])
        self.context.forward(record.with_value(2.0))


class Tag(ValueTransformerWithKey[str, int, str]):
    def transform(self, key: str, value: int | None) -> str | None:
        return None if value is None else f"{key}{value}"


def test_processors_give_streams_their_types() -> None:
    numbers = StreamsBuilder().stream("in", Consumed(STRING, LONG))
    assert_type(numbers.process(Parse), KStream[bytes, float])
    assert_type(numbers.process(lambda: Parse()), KStream[bytes, float])
    assert_type(numbers.process(Anything), KStream[str, str])
    assert_type(numbers.process_values(Double), KStream[str, float])
    assert_type(numbers.to_table().transform_values(Tag), KTable[str, str])
    assert_type(numbers.to_table().transform_values(Tag, Materialized("rows")), KTable[str, str])


def test_functions_with_the_key_give_streams_their_types() -> None:
    numbers = StreamsBuilder().stream("in", Consumed(STRING, LONG))
    assert_type(numbers.map_values(with_key(lambda key, value: f"{key}{value}")), KStream[str, str])
    assert_type(numbers.map_values(lambda value: f"{value}"), KStream[str, str])
    assert_type(numbers.flat_map_values(with_key(lambda key, _value: [key.encode()])), KStream[str, Any])
    assert_type(numbers.flat_map_values(lambda value: [value, 0.5]), KStream[str, float])
    table = numbers.to_table()
    assert_type(table.map_values(with_key(lambda key, value: f"{key}{value}")), KTable[str, str])
    assert_type(numbers.join(table, with_key(lambda key, one, two: f"{key}{one}{two}")), KStream[str, str])


def test_driver_gives_stores_their_kind() -> None:
    def read(driver: TopologyTestDriver) -> None:
        assert_type(driver.get_key_value_store("s"), KeyValueStore[Any, Any])
        assert_type(driver.get_timestamped_key_value_store("s"), TimestampedKeyValueStore[Any, Any])
        assert_type(driver.get_versioned_key_value_store("s"), VersionedKeyValueStore[Any, Any])
        assert_type(driver.get_window_store("s"), WindowStore[Any, Any])
        assert_type(driver.get_timestamped_window_store("s"), TimestampedWindowStore[Any, Any])
        assert_type(driver.get_session_store("s"), SessionStore[Any, Any])

    assert callable(read)


def test_stores_carry_their_types() -> None:
    def read(
        plain: KeyValueStore[str, int],
        timestamped: TimestampedKeyValueStore[str, int],
        versioned: VersionedKeyValueStore[str, int],
    ) -> None:
        assert_type(plain.get("a"), int | None)
        assert_type([row.value for row in plain.all()], list[int])
        assert_type(timestamped.get("a"), ValueAndTimestamp[int] | None)
        assert_type(versioned.get("a"), VersionedRecord[int] | None)

    def read_windows(
        plain: WindowStore[str, int], timestamped: TimestampedWindowStore[str, int], sessions: SessionStore[str, int]
    ) -> None:
        assert_type(plain.fetch("a", 0), int | None)
        assert_type([row.key for row in plain.fetch_range("a", 0, 5)], list[int])
        assert_type(timestamped.fetch("a", 0), ValueAndTimestamp[int] | None)
        assert_type([row.key for row in timestamped.all()], list[Windowed[str]])
        assert_type(sessions.fetch_session("a", 0, 5), int | None)

    assert callable(read)
    assert callable(read_windows)
