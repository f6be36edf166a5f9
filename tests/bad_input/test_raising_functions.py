"""A user's function that raises, in every operator: the application fails, goes on, or writes a dead letter."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest

from headrace import (
    Consumed,
    FixedKeyProcessor,
    Grouped,
    JoinWindows,
    LogAndContinueProcessingExceptionHandler,
    Materialized,
    Printed,
    ProcessingError,
    Processor,
    ProcessorStateError,
    Produced,
    PunctuationType,
    Record,
    Repartitioned,
    Serdes,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
    TopologyTestDriver,
    ValueTransformerWithKey,
    with_key,
)

SECOND = timedelta(seconds=1)
BYTES = Serdes.bytes()
TUMBLING = TimeWindows.of_size_with_no_grace(SECOND)
HOPPING = TimeWindows.of_size_with_no_grace(2 * SECOND).advance_by(SECOND)
SLIDING = SlidingWindows.of_time_difference_with_no_grace(SECOND)
SESSIONS = SessionWindows.of_inactivity_gap_with_no_grace(SECOND)
WITHIN = JoinWindows.of_time_difference_with_no_grace(SECOND)


class BoomError(Exception):
    pass


def boom(*_given: Any) -> NoReturn:
    message = "bang"
    raise BoomError(message)


def boom_later(*_given: Any) -> Any:
    yield ("k", "v")
    boom()


def add(_key: Any, _value: Any, total: int) -> int:
    return total + 1


def pair(left: Any, right: Any) -> Any:
    return left, right


class RaisingProcessor(Processor[Any, Any, Any, Any]):
    def process(self, record: Any) -> None:
        boom()


class RaisingFixedKeyProcessor(FixedKeyProcessor[Any, Any, Any]):
    def process(self, record: Any) -> None:
        boom()


class RaisingTransformer(ValueTransformerWithKey[Any, Any, Any]):
    def transform(self, key: Any, value: Any) -> Any:
        boom()


Build = Callable[[StreamsBuilder], Any]


def stream(builder: StreamsBuilder) -> Any:
    return builder.stream("in", Consumed(name="source"))


def table(builder: StreamsBuilder) -> Any:
    return builder.table("in", Consumed(name="source"))


# The name of the node that is to be blamed, unless Kafka Streams names it itself.
N: dict[str, Any] = {"name": "guilty"}
OPERATORS: dict[str, Build] = {
    "filter": lambda b: stream(b).filter(boom, **N),
    "filter_not": lambda b: stream(b).filter_not(boom, **N),
    "map": lambda b: stream(b).map(boom, **N),
    "map_values": lambda b: stream(b).map_values(boom, **N),
    "map_values with_key": lambda b: stream(b).map_values(with_key(boom), **N),
    "flat_map": lambda b: stream(b).flat_map(boom, **N),
    "flat_map generator": lambda b: stream(b).flat_map(boom_later, **N),
    "flat_map_values": lambda b: stream(b).flat_map_values(boom, **N),
    "flat_map_values generator": lambda b: stream(b).flat_map_values(boom_later, **N),
    "select_key": lambda b: stream(b).select_key(boom, **N),
    "peek": lambda b: stream(b).peek(boom, **N),
    "for_each": lambda b: stream(b).for_each(boom, **N),
    "print": lambda b: stream(b).print(Printed(formatter=boom, **N)),
    "branch": lambda b: stream(b).split(**N).branch(boom).no_default_branch(),
    "group_by": lambda b: stream(b).group_by(boom, Grouped("guilty")).count(),
    "to extractor": lambda b: stream(b).to(boom, Produced(**N)),
    "to partitioner": lambda b: stream(b).to("out", Produced(partitioner=boom, **N)),
    "repartition partitioner": lambda b: stream(b).repartition(Repartitioned("r", partitioner=boom)),
    "process": lambda b: stream(b).process(RaisingProcessor, **N),
    "process_values": lambda b: stream(b).process_values(RaisingFixedKeyProcessor, **N),
    "aggregate initializer": lambda b: stream(b).group_by_key().aggregate(boom, add, **N),
    "aggregate": lambda b: stream(b).group_by_key().aggregate(int, boom, **N),
    "aggregate old values": lambda b: stream(b).group_by_key().aggregate(int, boom, **N).filter(pair),
    "reduce": lambda b: stream(b).group_by_key().reduce(boom, **N),
    "cogroup": lambda b: stream(b).group_by_key().cogroup(boom).aggregate(int),
    "tumbling initializer": lambda b: stream(b).group_by_key().windowed_by(TUMBLING).aggregate(boom, add, **N),
    "tumbling": lambda b: stream(b).group_by_key().windowed_by(TUMBLING).aggregate(int, boom, **N),
    "tumbling reduce": lambda b: stream(b).group_by_key().windowed_by(TUMBLING).reduce(boom, **N),
    "hopping": lambda b: stream(b).group_by_key().windowed_by(HOPPING).aggregate(int, boom, **N),
    "sliding": lambda b: stream(b).group_by_key().windowed_by(SLIDING).aggregate(int, boom, **N),
    "session": lambda b: stream(b).group_by_key().windowed_by(SESSIONS).aggregate(int, boom, add, **N),
    "session merger": lambda b: stream(b).group_by_key().windowed_by(SESSIONS).aggregate(int, add, boom, **N),
    "session initializer": lambda b: stream(b).group_by_key().windowed_by(SESSIONS).aggregate(boom, add, add, **N),
    "table filter": lambda b: table(b).filter(boom, **N),
    "table filter stored": lambda b: table(b).filter(boom, materialized=Materialized("m"), **N),
    "table map_values": lambda b: table(b).map_values(boom, **N),
    "table map_values with_key": lambda b: table(b).map_values(with_key(boom), **N),
    "transform_values": lambda b: table(b).transform_values(RaisingTransformer, **N),
    "to_stream": lambda b: table(b).to_stream(boom),
    "table group_by": lambda b: table(b).group_by(boom, Grouped("guilty")).count(),
    "table aggregate initializer": lambda b: table(b).group_by(pair).aggregate(boom, add, add, **N),
    "table aggregate adder": lambda b: table(b).group_by(pair).aggregate(int, boom, add, **N),
    "table aggregate subtractor": lambda b: table(b).group_by(pair).aggregate(int, add, boom, **N),
    "table reduce adder": lambda b: table(b).group_by(lambda _k, v: ("x", v)).reduce(boom, pair, **N),
    "table reduce subtractor": lambda b: table(b).group_by(lambda _k, v: ("x", v)).reduce(pair, boom, **N),
    "stream-stream join": lambda b: stream(b).join(b.stream("other"), boom, windows=WITHIN),
    "stream-stream join with_key": lambda b: stream(b).join(b.stream("other"), with_key(boom), windows=WITHIN),
    "stream-stream left_join": lambda b: stream(b).left_join(b.stream("other"), boom, windows=WITHIN),
    "stream-stream outer_join": lambda b: stream(b).outer_join(b.stream("other"), boom, windows=WITHIN),
    "stream-table join": lambda b: stream(b).join(b.table("other"), boom, **N),
    "stream-table join with_key": lambda b: stream(b).join(b.table("other"), with_key(boom), **N),
    "stream-table left_join": lambda b: stream(b).left_join(b.table("other"), boom, **N),
    "stream-global join": lambda b: stream(b).join(b.global_table("other"), boom, key_selector=lambda k, _v: k, **N),
    "stream-global key_selector": lambda b: stream(b).join(b.global_table("other"), pair, key_selector=boom, **N),
    "table-table join": lambda b: table(b).join(b.table("other"), boom),
    "table-table outer_join": lambda b: table(b).outer_join(b.table("other"), boom),
    "foreign-key join": lambda b: table(b).join(b.table("other"), boom, foreign_key=lambda _v: "k"),
    "foreign-key function": lambda b: table(b).join(b.table("other"), pair, foreign_key=boom),
}

# The others are named by Kafka Streams' rules, after their parts.
NAMED = {
    name
    for name in OPERATORS
    if not name.startswith(("stream-stream", "table-table", "foreign-key"))
    and name not in {"cogroup", "to_stream", "repartition partitioner"}
}


def run(build: Build, **settings: Any) -> tuple[float, list[Any]]:
    """Pipes two records with one key, after one into the other topic; returns the drops and the dead letters."""
    builder = StreamsBuilder()
    build(builder)
    config = StreamsConfig(statestore_cache_max_bytes=0, **settings)
    with TopologyTestDriver(builder.build(), config, initial_wall_clock_ms=0) as driver:
        if "topics: [other]" in str(builder.build().describe()):
            driver.create_input_topic("other").pipe_input("k", 0, timestamp_ms=5)
        topic = driver.create_input_topic("in")
        topic.pipe_input("k", 1, timestamp_ms=5, headers=[("trace", b"7")])
        topic.pipe_input("k", 2, timestamp_ms=6)
        return driver.metrics()["dropped-records-total"], driver.create_output_topic("dlq", BYTES, BYTES).read_records()


@pytest.mark.parametrize("operator", OPERATORS)
def test_by_default_the_application_stops_and_the_error_says_where(operator: str) -> None:
    with pytest.raises(ProcessingError) as caught:
        run(OPERATORS[operator])
    error = caught.value
    assert isinstance(error.__cause__, BoomError)
    assert error.topic is not None
    assert error.offset in (0, 1)
    assert error.function is not None
    # The outermost function of the user's, at the line that raised, or that called what raised.
    assert f"({Path(__file__)}:" in error.function
    assert error.function in str(error)
    assert f"node '{error.node}' failed for the record at {error.topic}-0 offset {error.offset}" in str(error)
    if operator in NAMED:
        assert error.node == "guilty"


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_handler_can_skip_the_record(operator: str) -> None:
    handler = LogAndContinueProcessingExceptionHandler()
    dropped, letters = run(OPERATORS[operator], processing_exception_handler=handler)
    assert dropped >= 1
    assert letters == []


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_handler_can_write_a_dead_letter(operator: str) -> None:
    dropped, letters = run(
        OPERATORS[operator],
        processing_exception_handler=LogAndContinueProcessingExceptionHandler(),
        errors_dead_letter_queue_topic_name="dlq",
    )
    assert len(letters) == dropped
    for letter in letters:
        headers = letter.headers
        assert headers.last("__streams.errors.exception").endswith(b"BoomError")
        assert headers.last("__streams.errors.message") == b"bang"
        assert b"in boom" in headers.last("__streams.errors.stacktrace")
        assert headers.last("__streams.errors.topic") is not None
        assert headers.last("__streams.errors.partition") == b"0"
        assert headers.last("__streams.errors.offset") in (b"0", b"1")


def test_a_dead_letter_is_the_input_record() -> None:
    _, letters = run(
        OPERATORS["map_values"],
        processing_exception_handler=LogAndContinueProcessingExceptionHandler(),
        errors_dead_letter_queue_topic_name="dlq",
    )
    first = letters[0]
    assert (first.key, first.value, first.timestamp_ms) == (b"k", b"1", 5)
    assert first.headers[0] == ("trace", b"7")
    assert [name for name, _ in first.headers[1:]] == [
        f"__streams.errors.{reason}"
        for reason in ("exception", "message", "stacktrace", "topic", "partition", "offset")
    ]


def test_a_function_written_in_c_is_named_by_its_name() -> None:
    with pytest.raises(ProcessingError, match=r"node 'guilty' failed .*TypeError.* in str\.upper$"):
        run(lambda b: stream(b).map_values(str.upper, **N))
    with pytest.raises(ProcessingError, match=r"failed .* in int or slice\.indices$"):
        run(lambda b: stream(b).group_by_key().aggregate(int, slice.indices, **N))


def test_the_place_is_not_part_of_the_advice_and_is_named_once() -> None:
    with pytest.raises(
        ProcessingError, match=rf"BoomError\('bang'\); raised in boom \({Path(__file__)}:\d+\)$"
    ) as caught:
        run(OPERATORS["map_values"])
    assert str(caught.value).count("boom (") == 1
    with pytest.raises(ProcessingError, match=r"map needs a pair .*; return a tuple of two'\)$") as caught:
        run(lambda b: stream(b).map(lambda _key, _value: 5))
    assert str(caught.value).count("<lambda> (") == 1


def test_the_function_of_the_user_is_named_not_the_library_it_calls() -> None:
    with pytest.raises(ProcessingError, match=rf"in .*<lambda> \({Path(__file__)}:\d+\)$"):
        run(lambda b: stream(b).map_values(lambda _value: Path("/no/such/file").read_text()))


def test_an_error_behind_a_cache_names_the_function_as_well() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count().to_stream().map_values(boom, name="guilty")
    message = rf"node 'guilty' failed .* in boom \({Path(__file__)}:\d+\)"
    with TopologyTestDriver(builder.build(), batched=True) as driver:
        driver.create_input_topic("in").pipe_input("k", 1)
        with pytest.raises(ProcessorStateError, match=message) as caught:
            driver.commit()
    assert isinstance(caught.value.__cause__, BoomError)


class RaisingPunctuation(Processor[Any, Any, Any, Any]):
    def init(self, context: Any) -> None:
        context.schedule(SECOND, PunctuationType.STREAM_TIME, boom)

    def process(self, record: Record[Any, Any]) -> None:
        pass


def test_a_punctuation_that_raises_is_named() -> None:
    with pytest.raises(
        ProcessingError, match=rf"a punctuation of processor 'guilty' .* in boom \({Path(__file__)}:\d+\)"
    ):
        run(lambda b: stream(b).process(RaisingPunctuation, **N))
    handler = LogAndContinueProcessingExceptionHandler()
    dropped, _ = run(lambda b: stream(b).process(RaisingPunctuation, **N), processing_exception_handler=handler)
    assert dropped == 1


def test_a_timestamp_extractor_that_raises_stops_the_application_with_its_name() -> None:
    extractor: Any = boom
    with pytest.raises(ProcessingError, match=rf"source 'source': .* boom \({Path(__file__)}:\d+\) failed") as caught:
        run(lambda b: b.stream("in", Consumed(timestamp_extractor=extractor, name="source")).to("out"))
    assert isinstance(caught.value.__cause__, BoomError)
    assert (caught.value.topic, caught.value.offset) == ("in", 0)


def test_a_hook_for_late_records_that_raises_stops_the_application_with_node_and_position() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().windowed_by(TUMBLING).count(name="counts")
    config = StreamsConfig(on_late=boom, processing_exception_handler=LogAndContinueProcessingExceptionHandler())
    message = (
        rf"the hook on_late failed at node 'counts' for the record at in-0 offset 1: .* in boom \({Path(__file__)}"
    )
    with TopologyTestDriver(builder.build(), config) as driver:
        topic = driver.create_input_topic("in")
        topic.pipe_input("k", 1, timestamp_ms=5_000)
        with pytest.raises(ProcessingError, match=message) as caught:
            topic.pipe_input("k", 2, timestamp_ms=0)
    assert isinstance(caught.value.__cause__, BoomError)
    assert (caught.value.node, caught.value.offset) == ("counts", 1)
