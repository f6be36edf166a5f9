"""Output records that the sink's serde does not take: the sink is to blame, never the processor above it."""

from datetime import timedelta
from typing import Any

import pytest

from headrace import (
    Consumed,
    JoinWindows,
    LogAndContinueProcessingExceptionHandler,
    Materialized,
    ProcessingError,
    Processor,
    ProcessorStateError,
    Produced,
    ProductionError,
    PunctuationType,
    Record,
    Response,
    Serdes,
    SessionWindows,
    SlidingWindows,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
    TopologyTestDriver,
    dead_letter,
)
from headrace.errors import SerializationError

SECOND = timedelta(seconds=1)
NUMBERS = Produced(Serdes.string(), Serdes.long(), name="numbers")
KEYS = Produced(Serdes.long(), Serdes.json(), name="numbers")


class Forward(Processor[Any, Any, Any, Any]):
    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record)


class ForwardLater(Processor[Any, Any, Any, Any]):
    def init(self, context: Any) -> None:
        context.schedule(SECOND, PunctuationType.WALL_CLOCK_TIME, self.tick)

    def process(self, record: Record[Any, Any]) -> None:
        pass

    def tick(self, now_ms: int) -> None:
        self.context.forward(Record("k", "no number", now_ms))


def skip(_context: Any, _output: Any, _error: Exception) -> Response:
    return Response.resume()


def direct(builder: StreamsBuilder, produced: Any = NUMBERS) -> None:
    builder.stream("in").to("out", produced)


def below_processor(builder: StreamsBuilder, produced: Any = NUMBERS) -> None:
    builder.stream("in").process(Forward, name="innocent").to("out", produced)


def below_two_processors(builder: StreamsBuilder, produced: Any = NUMBERS) -> None:
    builder.stream("in").process(Forward).filter(lambda _k, _v: True).process(Forward).to("out", produced)


BUILDS = [direct, below_processor, below_two_processors]


def run(build: Any, produced: Any = NUMBERS, *, batched: bool = False, **settings: Any) -> tuple[list[Any], float]:
    builder = StreamsBuilder()
    build(builder, produced)
    with TopologyTestDriver(builder.build(), StreamsConfig(**settings), batched=batched) as driver:
        driver.create_input_topic("in").pipe_key_values([("k", "no number"), ("k", 5)])
        if batched:
            driver.commit()
        values = driver.create_output_topic("out", value_serde=Serdes.long()).read_values()
        return values, driver.metrics()["dropped-records-total"]


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(("produced", "what"), [(NUMBERS, "value"), (KEYS, "key")])
def test_by_default_the_application_stops_at_the_sink(build: Any, produced: Any, what: str, *, batched: bool) -> None:
    asked: list[Any] = []

    def handler(*given: Any) -> Response:
        asked.append(given)
        return Response.resume()

    message = (
        rf"^sink 'numbers': the {what} of the record at \S+-0 offset 0 cannot be written to the topic 'out': "
        rf"the long serde needs int, got str '[^']*'; convert it, or name another serde in Produced\({what}_serde=…\)$"
    )
    with pytest.raises(ProductionError, match=message) as caught:
        run(build, produced, batched=batched, processing_exception_handler=handler)
    assert isinstance(caught.value.__cause__, SerializationError)
    assert asked == [], "the processing handler has nothing to do with it"


WITHIN = JoinWindows.of_time_difference_with_no_grace(SECOND)
INTERNAL: dict[str, Any] = {
    r"Grouped\(key_serde=…\)": lambda b: b.stream("in").group_by(lambda _k, _v: 5).count(),
    r"Repartitioned\(key_serde=…\)": lambda b: b.stream("in").select_key(lambda _k, _v: 5).repartition(),
    r"Materialized\(key_serde=…\)": lambda b: b.stream("in").select_key(lambda _k, _v: 5).to_table(),
    r"Joined\(key_serde=…\)": lambda b: b.stream("in").select_key(lambda _k, _v: 5).join(b.table("t"), max),
    r"StreamJoined\(…\)": lambda b: (
        b.stream("in").select_key(lambda _k, _v: 5).join(b.stream("o"), max, windows=WITHIN)
    ),
}


@pytest.mark.parametrize("option", INTERNAL)
def test_for_an_internal_topic_the_error_names_the_option_that_has_its_serdes(option: str) -> None:
    builder = StreamsBuilder()
    INTERNAL[option](builder)
    message = (
        r"^sink '\S+': the key of the record at in-0 offset 0 cannot be written to the topic 'headrace-\S+-repartition'"
        rf": the string serde needs str, got int 5; convert it, or name another serde in {option}$"
    )
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in")
        with pytest.raises(ProductionError, match=message):
            topic.pipe_input("k", "v")


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("build", BUILDS)
def test_a_handler_can_skip_what_cannot_be_written(build: Any, *, batched: bool) -> None:
    assert run(build, batched=batched, production_exception_handler=skip) == ([5], 1)


def test_a_handler_sees_the_output_and_can_write_a_dead_letter() -> None:
    seen: list[Any] = []

    def handler(context: Any, output: Any, error: Exception) -> Response:
        seen.append((context.node, context.topic, context.offset, output.topic, output.value, output.origin.value))
        return Response.resume([dead_letter(context, error, topic="dlq")])

    builder = StreamsBuilder()
    below_processor(builder)
    config = StreamsConfig(production_exception_handler=handler)
    with TopologyTestDriver(builder.build(), config) as driver:
        driver.create_input_topic("in").pipe_input("k", "no number", timestamp_ms=3, headers=[("trace", b"1")])
        letter = driver.create_output_topic("dlq").read_record()
    assert seen == [("numbers", "in", 0, "out", "no number", "value")]
    assert (letter.key, letter.value, letter.timestamp_ms) == ("k", "no number", 3)
    assert letter.headers.last("trace") == b"1"
    assert letter.headers.last("__streams.errors.exception") == b"headrace.errors.SerializationError"
    assert letter.headers.last("__streams.errors.topic") == b"in"


def test_a_punctuation_is_not_to_blame_for_a_sink() -> None:
    builder = StreamsBuilder()
    builder.stream("in").process(ForwardLater, name="innocent").to("out", NUMBERS)
    config = StreamsConfig(processing_exception_handler=LogAndContinueProcessingExceptionHandler())
    with (
        TopologyTestDriver(builder.build(), config) as driver,
        pytest.raises(ProductionError, match="sink 'numbers'"),
    ):
        driver.advance_wall_clock_time(SECOND)


def test_an_error_of_a_node_below_is_not_the_processors_either() -> None:
    builder = StreamsBuilder()
    broken: Any = lambda _value: 1 // 0  # noqa: E731
    builder.stream("in").process(Forward, name="innocent").map_values(broken, name="guilty").to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in")
        with pytest.raises(ProcessingError, match="node 'guilty' failed") as caught:
            topic.pipe_input("k", 1)
    assert caught.value.node == "guilty"


LONG: dict[str, Any] = {"value_serde": Serdes.long()}
STORES: dict[str, Any] = {
    "aggregate": lambda g: g.aggregate(int, lambda *_: "x", materialized=Materialized("s", **LONG)),
    "reduce": lambda g: g.reduce(lambda *_: object(), materialized=Materialized("s")),
    "tumbling": lambda g: g.windowed_by(TimeWindows.of_size_with_no_grace(SECOND)).aggregate(
        int, lambda *_: "x", materialized=Materialized("s", **LONG)
    ),
    "sliding": lambda g: g.windowed_by(SlidingWindows.of_time_difference_with_no_grace(SECOND)).aggregate(
        int, lambda *_: "x", materialized=Materialized("s", **LONG)
    ),
    "session": lambda g: g.windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(SECOND)).aggregate(
        int, lambda *_: "x", lambda *_: 0, materialized=Materialized("s", **LONG)
    ),
}


@pytest.mark.parametrize("cache", [0, 1 << 20])
@pytest.mark.parametrize("operation", STORES)
def test_a_value_that_the_store_does_not_take_is_an_error_of_its_node(operation: str, cache: int) -> None:
    builder = StreamsBuilder()
    STORES[operation](builder.stream("in").group_by_key())
    message = r"task 0_0: node 'KSTREAM-.*' failed for the record at in-0 offset \d: value of store 's': "
    config = StreamsConfig(statestore_cache_max_bytes=cache)
    with TopologyTestDriver(builder.build(), config) as driver:
        topic = driver.create_input_topic("in")
        with pytest.raises(ProcessingError, match=message) as caught:
            topic.pipe_key_values([("k", 1), ("k", 2)], start_ms=0)
    assert isinstance(caught.value.__cause__, SerializationError)

    skipping = StreamsConfig(
        statestore_cache_max_bytes=cache, processing_exception_handler=LogAndContinueProcessingExceptionHandler()
    )
    with TopologyTestDriver(builder.build(), skipping) as driver:
        driver.create_input_topic("in").pipe_key_values([("k", 1), ("k", 2)], start_ms=0)
        assert driver.metrics()["dropped-records-total"] >= 1


def test_a_key_that_the_store_does_not_take_is_found_when_it_is_saved_at_the_latest() -> None:
    builder: Any = StreamsBuilder()
    builder.stream("in", Consumed(Serdes.string())).to_table(Materialized("s", key_serde=Serdes.long()))
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in")
        with pytest.raises(ProcessorStateError, match="store 's' failed: key of store 's': ") as caught:
            topic.pipe_input("k", 1)
    assert isinstance(caught.value.__cause__, SerializationError)


def only_text(key: Any) -> bytes:
    if not isinstance(key, str):
        raise TypeError
    return key.encode()


TEXT_KEYS: dict[str, Any] = {"key_serde": Serdes.of(only_text, bytes.decode)}
KEYED: dict[str, Any] = {
    "count": lambda g: g.count(materialized=Materialized("s", **TEXT_KEYS)),
    "tumbling": lambda g: g.windowed_by(TimeWindows.of_size_with_no_grace(SECOND)).count(
        materialized=Materialized("s", **TEXT_KEYS)
    ),
    "hopping": lambda g: g.windowed_by(TimeWindows.of_size_with_no_grace(SECOND).advance_by(SECOND / 2)).count(
        materialized=Materialized("s", **TEXT_KEYS)
    ),
    "sliding": lambda g: g.windowed_by(SlidingWindows.of_time_difference_with_no_grace(SECOND)).count(
        materialized=Materialized("s", **TEXT_KEYS)
    ),
    "session": lambda g: g.windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(SECOND)).count(
        materialized=Materialized("s", **TEXT_KEYS)
    ),
}


@pytest.mark.parametrize("cache", [0, 1 << 20])
@pytest.mark.parametrize("operation", KEYED)
def test_a_key_that_cannot_be_looked_up_is_an_error_of_its_node(operation: str, cache: int) -> None:
    builder = StreamsBuilder()
    KEYED[operation](builder.stream("in", Consumed(Serdes.json())).group_by_key())
    settings: dict[str, Any] = {"statestore_cache_max_bytes": cache}
    with TopologyTestDriver(builder.build(), StreamsConfig(**settings)) as driver:
        topic = driver.create_input_topic("in", Serdes.json())
        with pytest.raises(ProcessingError, match=r"node 'KSTREAM-.*' failed for the record at in-0 offset 0: key of"):
            topic.pipe_input(5, 1)
    settings["processing_exception_handler"] = LogAndContinueProcessingExceptionHandler()
    with TopologyTestDriver(builder.build(), StreamsConfig(**settings)) as driver:
        driver.create_input_topic("in", Serdes.json()).pipe_key_values([(5, 1), ("k", 1)])
        assert driver.metrics()["dropped-records-total"] == 1


@pytest.mark.parametrize("kind", ["join", "left_join", "outer_join"])
def test_a_key_that_a_join_cannot_look_up_is_an_error_of_its_node(kind: str) -> None:
    builder: Any = StreamsBuilder()
    left, right = (builder.stream(topic, Consumed(Serdes.json())) for topic in ("left", "right"))
    windows, joined = JoinWindows.of_time_difference_with_no_grace(SECOND), StreamJoined(**TEXT_KEYS)
    getattr(left, kind)(right, lambda one, other: [one, other], windows=windows, joined=joined).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("left", Serdes.json())
        with pytest.raises(ProcessingError, match="failed for the record at left-0 offset 0: key of store"):
            topic.pipe_input(5, 1)


def test_a_value_that_a_left_join_cannot_keep_does_not_stop_the_task_at_the_commit() -> None:
    builder: Any = StreamsBuilder()
    left = builder.stream("left").map_values(lambda value: "text" if value == 1 else value)
    joined = StreamJoined(Serdes.string(), Serdes.long(), Serdes.long())
    windows = JoinWindows.of_time_difference_with_no_grace(SECOND)
    left.left_join(builder.stream("right"), lambda *both: list(both), windows=windows, joined=joined).to("out")
    config = StreamsConfig(
        processing_exception_handler=LogAndContinueProcessingExceptionHandler(), emit_interval=timedelta(0)
    )
    with TopologyTestDriver(builder.build(), config) as driver:
        topic = driver.create_input_topic("left")
        for value, timestamp_ms in ((1, 0), (2, 0), (3, 5000)):
            topic.pipe_input("k", value, timestamp_ms=timestamp_ms)
        assert driver.create_output_topic("out").read_values() == [[2, None]]


def test_a_change_that_a_cache_held_back_has_no_raw_record() -> None:
    seen: list[Any] = []

    def handler(context: Any, record: Any, _error: Exception) -> Response:
        seen.append((context.offset, context.key, context.value, record.key))
        return Response.resume()

    builder: Any = StreamsBuilder()
    table = builder.table("in", materialized=Materialized("s"))
    table.map_values(lambda value: 1 // value).to_stream().map_values(lambda value: 1 // (value - 1)).to("out")
    config = StreamsConfig(processing_exception_handler=handler)
    with TopologyTestDriver(builder.build(), config, batched=True) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", 0), ("b", 2)])
        driver.commit()
    # The record read last is that of b: its bytes are not those of the change that failed.
    assert seen == [(0, None, None, "a")]
