"""Processors, transformers and callbacks that cannot work are refused when the topology is built, or at once."""

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from headrace import (
    ConfigError,
    Consumed,
    FixedKeyProcessor,
    MockProcessorContext,
    Processor,
    Produced,
    PunctuationType,
    Serdes,
    Stores,
    StreamsBuilder,
    StreamsConfig,
    StreamsError,
    Topology,
    TopologyError,
    TopologyTestDriver,
    ValueTransformerWithKey,
    with_key,
)

SECOND = timedelta(seconds=1)


class Empty(Processor[Any, Any, Any, Any]):
    pass


class EmptyValues(FixedKeyProcessor[Any, Any, Any]):
    pass


class EmptyTransformer(ValueTransformerWithKey[Any, Any, Any]):
    pass


class KeyAndValue(Processor[Any, Any, Any, Any]):
    def process(self, key: Any, value: Any) -> None:  # type: ignore[override]
        pass


class Later(Processor[Any, Any, Any, Any]):
    async def process(self, record: Any) -> None:  # type: ignore[override]
        pass


class ValueOnly(ValueTransformerWithKey[Any, Any, Any]):
    def transform(self, value: Any) -> Any:  # type: ignore[override]
        return value


class Idle(Processor[Any, Any, Any, Any]):
    def process(self, record: Any) -> None:
        pass


class IdleValues(FixedKeyProcessor[Any, Any, Any]):
    def process(self, record: Any) -> None:
        pass


# Any: wrong processors are the point.
Build = Callable[[Any], Any]
REFUSED: list[tuple[Build, str]] = [
    (
        lambda b: b.stream("in").process(Empty, name="p"),
        r"processor 'p': a method `process\(record\)` is needed; Empty ",
    ),
    (
        lambda b: b.stream("in").process_values(EmptyValues),
        r"`process\(record\)` is needed; EmptyValues does not define it",
    ),
    (lambda b: b.stream("in").process(KeyAndValue), r"`process` must take \(record\); found .* takes \(key, value\)"),
    (lambda b: b.stream("in").process(Later), r"must be a plain method; found Later.process .*, an async function"),
    (lambda b: b.table("in").transform_values(EmptyTransformer), r"`transform\(key, value\)` is needed"),
    (lambda b: b.table("in").transform_values(ValueOnly), r"`transform` must take \(key, value\); found .*\(value\)"),
    (lambda b: b.table("in").transform_values(Idle), "which has no method `transform`"),
    (
        lambda b: b.stream("in").process(IdleValues),
        r"process\(\) takes a Processor; found IdleValues, a FixedKeyProcessor; use process_values\(\)",
    ),
    (
        lambda b: b.stream("in").process_values(Idle),
        r"process_values\(\) takes a FixedKeyProcessor; found Idle, a Processor; use process\(\)",
    ),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_a_processor_that_cannot_work_is_refused_by_build(build: Build, message: str) -> None:
    builder = StreamsBuilder()
    build(builder)
    with pytest.raises(TopologyError, match=message):
        builder.build()


def test_a_processor_that_cannot_work_is_refused_by_a_topology() -> None:
    with pytest.raises(TopologyError, match="a method `process"):
        Topology().add_source("source", "in").add_processor("p", Empty, "source")


async def fetch(*_given: Any) -> Any:
    return None


async def stream_of(*_given: Any) -> AsyncIterator[Any]:
    yield None


def several(*_given: Any) -> Iterator[Any]:
    yield ["k", "v"]


class AsyncCallable:
    async def __call__(self, *_given: Any) -> Any:
        return None


DEFERRED: list[tuple[Build, str]] = [
    (lambda b: b.stream("in").map_values(fetch), r"found fetch \(.*\), an async function, .*; pass a plain function"),
    (lambda b: b.stream("in").map_values(with_key(fetch)), "an async function"),
    (lambda b: b.stream("in").map_values(partial(fetch, 1)), "an async function"),
    (lambda b: b.stream("in").map_values(AsyncCallable()), "an async function"),
    (lambda b: b.stream("in").filter(fetch), "an async function"),
    (lambda b: b.stream("in").flat_map_values(stream_of), "an async function"),
    (lambda b: b.stream("in").for_each(fetch), "an async function"),
    (lambda b: b.stream("in").map_values(several), "found several .*, a generator function, .*use flat_map"),
    (lambda b: b.stream("in").peek(several), "a generator function"),
    (lambda b: b.stream("in").group_by_key().aggregate(int, several), "a generator function"),
    (lambda b: b.stream("in").group_by_key().aggregate(fetch, several), "an async function"),
    (lambda b: b.stream("in").group_by_key().reduce(fetch), "an async function"),
    (lambda b: b.stream("in").join(b.table("t"), fetch), "an async function"),
    (lambda _: Consumed(timestamp_extractor=fetch), "an async function"),  # type: ignore[arg-type]
    (lambda _: Produced(partitioner=several), "a generator function"),
    (lambda _: Topology().add_source("s", "in", timestamp_extractor=fetch), "an async function"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("build", "message"), DEFERRED)
def test_a_function_that_gives_no_value_when_it_is_called_is_refused(build: Build, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        build(StreamsBuilder())


def test_an_async_handler_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"on_late must be a function .*fetch .* is an async function"):
        StreamsConfig(on_late=fetch)


def test_generators_are_what_flat_maps_take() -> None:
    builder = StreamsBuilder()
    builder.stream("in").flat_map(several).flat_map_values(several).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", 1)
        assert driver.create_output_topic("out").read_key_values() == [("k", ["k", "v"])]


class Scheduling(Processor[Any, Any, Any, Any]):
    callback: Any = None

    def init(self, context: Any) -> None:
        context.schedule(SECOND, PunctuationType.STREAM_TIME, self.callback)

    def process(self, record: Any) -> None:
        pass


class Nothing(Scheduling):
    callback = staticmethod(lambda: None)


class Async(Scheduling):
    callback = staticmethod(fetch)


@pytest.mark.parametrize(
    ("processor", "message"),
    [(Nothing, r"must be a function \(now_ms\); found .*, which takes \(\)"), (Async, "an async function")],
)
def test_the_callback_of_a_punctuation_is_checked_when_it_is_scheduled(processor: Any, message: str) -> None:
    builder = StreamsBuilder()
    builder.stream("in").process(processor, name="p")
    with pytest.raises(StreamsError, match=f"processor 'p': the callback of a punctuation .*{message}"):
        TopologyTestDriver(builder.build())
    with pytest.raises(StreamsError, match=f"callback of a punctuation .*{message}"):
        processor().init(MockProcessorContext())


class Bringing(Processor[Any, Any, Any, Any]):
    stores = (Stores.key_value_store_builder(Stores.in_memory_key_value_store("seen"), Serdes.string(), Serdes.long()),)

    def init(self, context: Any) -> None:
        context.get_state_store("seen")

    def process(self, record: Any) -> None:
        pass


def test_stores_of_a_class_that_a_lambda_hides_are_mentioned() -> None:
    builder = StreamsBuilder()
    builder.stream("in").process(lambda: Bringing())
    message = r"'seen' is not connected .*`stores` of Bringing is looked for on the supplier, .*<lambda> \(.*\): pass"
    with pytest.raises(StreamsError, match=message):
        TopologyTestDriver(builder.build())
