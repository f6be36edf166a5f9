"""Errors of building and starting that must lead to the right line: the node, what is required, and what to do."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from headrace import (
    FixedKeyProcessor,
    JoinWindows,
    Materialized,
    MockProcessorContext,
    Processor,
    Record,
    Repartitioned,
    Serdes,
    StreamsBuilder,
    StreamsConfig,
    TopologyError,
    TopologyTestDriver,
    ValueTransformerWithKey,
)

WITHIN = JoinWindows.of_time_difference_with_no_grace(timedelta(seconds=1))


def pair(left: Any, right: Any) -> Any:
    return [left, right]


def stream_table(b: StreamsBuilder) -> None:
    b.stream("orders").join(b.table("users"), pair, name="enrich").to("out")


def stream_derived_table(b: StreamsBuilder) -> None:
    users = b.table("users").map_values(str).filter(lambda _k, _v: True)
    b.stream("orders").left_join(users, pair, name="enrich").to("out")


def second_stream_of_a_table(b: StreamsBuilder) -> None:
    users = b.table("users")
    b.stream("clicks").join(users, pair, name="innocent")
    b.stream("orders").join(users, pair, name="enrich")


def repartitioned_stream_table(b: StreamsBuilder) -> None:
    b.stream("orders").repartition(Repartitioned("r", partitions=2)).join(b.table("users"), pair, name="enrich")


def tables(b: StreamsBuilder) -> None:
    b.table("orders").join(b.table("users"), pair, name="enrich")


def streams(b: StreamsBuilder) -> None:
    b.stream("orders").join(b.stream("users"), pair, windows=WITHIN, name="enrich")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (stream_table, r"join 'enrich': .*partitions=6\)\)` on the stream, or create 'users' with as many partitions"),
        (stream_derived_table, r"join 'enrich': .* on the stream, or create 'users'"),
        (second_stream_of_a_table, r"join 'enrich': .*'orders' has 4 partitions.* on the stream, or create 'users'"),
        (repartitioned_stream_table, r"join 'enrich': .*'r-repartition' has 2 .*partitions=6\)\)` on the stream"),
        (tables, r"join 'enrich': .*; create the topics with 6 partitions each$"),
        (streams, r"join 'enrich-merge': .*; call `\.repartition\(Repartitioned\(partitions=6\)\)` on one side"),
    ],
)
def test_inputs_that_are_not_copartitioned_name_the_join_and_what_can_be_moved(
    build: Callable[[StreamsBuilder], None], message: str
) -> None:
    builder = StreamsBuilder()
    build(builder)
    topology = builder.build()
    read = {topic for source in topology.source_nodes for topic in source.topics}
    partitions = {topic: count for topic, count in {"orders": 4, "users": 6, "clicks": 6}.items() if topic in read}
    with pytest.raises(TopologyError, match=message):
        TopologyTestDriver(topology, partitions=partitions)


@pytest.mark.parametrize(
    ("first", "second", "remedy"),
    [
        ("table", "stream", r"call `\.to_stream\(\)` on the table or `\.to_table\(\)` on the stream"),
        ("stream", "table", r"call `\.to_stream\(\)` on the table or `\.to_table\(\)` on the stream"),
        ("table", "table", r"call table\(\) once and use its result twice"),
        ("global_table", "stream", "needs a topic of its own"),
        ("table", "global_table", "needs a topic of its own"),
    ],
)
def test_a_topic_that_is_read_twice_has_a_remedy_in_the_dsl(first: str, second: str, remedy: str) -> None:
    builder = StreamsBuilder()
    getattr(builder, first)("in")
    getattr(builder, second)("in")
    with pytest.raises(TopologyError, match=f"topic 'in' has already been registered: .*{remedy}"):
        builder.build()


class Forgetful(Processor[Any, Any, Any, Any]):
    def init(self, context: Any) -> None:
        self.seen = 0

    def process(self, record: Record[Any, Any]) -> None:
        self.seen += 1
        self.context.forward(record.with_value(self.seen))


class ForgetfulFixedKey(FixedKeyProcessor[Any, Any, Any]):
    def init(self, context: Any) -> None:
        pass

    def process(self, record: Any) -> None:
        self.context.forward(record)


class ForgetfulTransformer(ValueTransformerWithKey[Any, Any, Any]):
    def init(self, context: Any) -> None:
        pass

    def transform(self, key: Any, value: Any) -> Any:
        return self.context.task_id


class Foreign:
    """Not one of ours, and without room for a context."""

    __slots__ = ("got",)

    def init(self, context: Any) -> None:
        self.got = context

    def process(self, record: Any) -> None:
        self.got.forward(record)

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda b: b.stream("in").process(Forgetful), 1),
        (lambda b: b.stream("in").process_values(ForgetfulFixedKey), "v"),
        (lambda b: b.table("in").transform_values(ForgetfulTransformer).to_stream(), "0_0"),
        (lambda b: b.stream("in").process(Foreign), "v"),
    ],
)
def test_a_processor_has_its_context_also_if_its_init_forgets_to_call_ours(build: Any, expected: Any) -> None:
    builder = StreamsBuilder()
    build(builder).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("k", "v")
        assert driver.create_output_topic("out").read_value() == expected


@pytest.mark.parametrize("config", [None, {}, StreamsConfig(), {"state.dir": "/tmp/x"}])
def test_the_application_id_is_the_same_wherever_none_is_named(config: Any) -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count(materialized=Materialized("counts"))
    with TopologyTestDriver(builder.build(), config) as driver:
        assert driver.config.application_id == StreamsConfig().application_id
        driver.create_input_topic("in").pipe_input("k", "v")
        assert driver.create_output_topic("headrace-counts-changelog", value_serde=Serdes.bytes()).queue_size() == 1


def test_a_context_of_a_unit_test_is_another_matter() -> None:
    assert MockProcessorContext().application_id == "mock-application"
