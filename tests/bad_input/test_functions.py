"""Functions that cannot be called, or that return something else than they should."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest

from headrace import (
    ConfigError,
    Consumed,
    Grouped,
    KeyValue,
    ProcessingError,
    Produced,
    StreamsBuilder,
    StreamsConfig,
    Topology,
    TopologyError,
    TopologyTestDriver,
    with_key,
)
from headrace.arguments.signatures import describe_function

HERE = Path(__file__).name


def none() -> int:
    return 0


def one(a: Any) -> Any:
    return a


def two(a: Any, b: Any) -> Any:
    return a, b


def three(a: Any, b: Any, c: Any) -> Any:
    return a, b, c


# Any: wrong functions are the point
Build = Callable[[Any], Any]


def stream(builder: StreamsBuilder) -> Any:
    return builder.stream("in")


ARITIES: list[tuple[Build, str]] = [
    (lambda b: stream(b).filter(one), r"filter\(\) on .*: predicate must be a function \(key, value\); found one"),
    (lambda b: stream(b).filter_not(three), r"predicate must be a function \(key, value\); found three"),
    (lambda b: stream(b).map(one), r"mapper must be a function \(key, value\); found one .* takes \(a\)"),
    (
        lambda b: stream(b).map_values(two),
        r"mapper must be a function \(value\); .* takes \(a, b\); wrap it in with_key",
    ),
    (lambda b: stream(b).map_values(three), r"mapper must be a function \(value\); .*; give it these parameters"),
    (lambda b: stream(b).map_values(with_key(one)), r"\(key, value\); found one .*; leave out with_key"),
    (lambda b: stream(b).flat_map_values(two), "wrap it in with_key"),
    (lambda b: stream(b).select_key(one), "selector must be a function"),
    (lambda b: stream(b).peek(one), "action must be a function"),
    (lambda b: stream(b).for_each(one), "action must be a function"),
    (lambda b: stream(b).to(two), r"topic must be a function \(key, value, context\)"),
    (lambda b: stream(b).group_by(one), "selector must be a function"),
    (lambda b: stream(b).process(one), r"supplier must be a function \(\) that returns a new processor; found one"),
    (lambda b: stream(b).split().branch(one), "predicate must be a function"),
    (lambda b: stream(b).join(b.table("t"), three), r"joiner must be a function \(value, other_value\).*with_key"),
    (lambda b: stream(b).join(b.global_table("t"), two, key_selector=one), "key_selector must be a function"),
    (
        lambda b: stream(b).group_by_key().aggregate(one, three),
        "initializer must be a function .* without .* found one",
    ),
    (
        lambda b: stream(b).group_by_key().aggregate(none, two),
        r"aggregator must be a function \(key, value, aggregate\)",
    ),
    (lambda b: stream(b).group_by_key().reduce(three), r"reducer must be a function \(aggregate, value\)"),
    (lambda b: stream(b).group_by_key().cogroup(two), "aggregator must be a function"),
    (lambda b: b.table("t").filter(one), "predicate must be a function"),
    (lambda b: b.table("t").to_stream(one), "key_selector must be a function"),
    (lambda b: b.table("t").group_by(one), "selector must be a function"),
    (lambda b: b.table("t").group_by(two).reduce(two, one), "subtractor must be a function"),
    (lambda b: b.table("t").join(b.table("u"), two, foreign_key=two), "foreign_key must be a function .*with_key"),
    (lambda _: Produced(partitioner=two), "Produced: partitioner must be a function"),
    (lambda _: Consumed(timestamp_extractor=one), "Consumed: timestamp_extractor must be a function"),
    (lambda _: Topology().add_source("s", "in", timestamp_extractor=one), "timestamp extractor must be callable as"),
]


@pytest.mark.parametrize(("build", "message"), ARITIES, ids=[message[:40] for _, message in ARITIES])
def test_a_function_of_wrong_arity_is_refused_where_it_is_given(build: Build, message: str) -> None:
    with pytest.raises(TopologyError, match=message) as caught:
        build(StreamsBuilder())
    assert f"{HERE}:" in str(caught.value), "the function is named with its file and line"


@pytest.mark.parametrize(
    "settings",
    [
        {"deserialization_exception_handler": three},
        {"processing_exception_handler": two},
        {"production_exception_handler": one},
        {"default_timestamp_extractor": one},
        {"on_late": two},
    ],
)
def test_a_handler_of_wrong_arity_is_refused(settings: Any) -> None:
    with pytest.raises(ConfigError, match=rf"must be a function \(.*; (one|two|three) \(.*{HERE}:\d+\) takes"):
        StreamsConfig(**settings)


def adapted(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    @wraps(function)
    def adapt(_key: Any, value: Any) -> Any:
        return function(value)

    return adapt


class Callable2:
    def __call__(self, key: Any, value: Any) -> Any:
        return key, value


@pytest.mark.parametrize(
    "function",
    [
        adapted(one),
        partial(three, 0),
        Callable2(),
        Callable2().__call__,
        max,
        print,
        lambda *args: args,
        lambda a, b=0: a,
    ],
)
def test_what_can_be_called_with_two_arguments_is_taken(function: Any) -> None:
    StreamsBuilder().stream("in").select_key(function)


@pytest.mark.parametrize("function", [str.upper, repr, dict, partial(two, b=1), one])
def test_what_can_be_called_with_one_argument_is_taken(function: Any) -> None:
    StreamsBuilder().stream("in").map_values(function)


def test_functions_are_named_as_users_know_them() -> None:
    assert describe_function(str.upper) == "str.upper"
    assert describe_function(max) == "max"
    assert describe_function(int) == "int"
    assert HERE in describe_function(one)
    assert describe_function(partial(one)) == describe_function(one) == describe_function(with_key(one))
    assert describe_function(Callable2()).startswith("Callable2 (")


def run(build: Build, value: Any = "v") -> Any:
    builder = StreamsBuilder()
    build(builder)
    config = StreamsConfig(statestore_cache_max_bytes=0)
    with TopologyTestDriver(builder.build(), config) as driver:
        driver.create_input_topic("in").pipe_input("k", value)
        return driver.create_output_topic("out").read_key_values()


PAIRS: dict[str, Callable[[Callable[[Any, Any], Any]], Build]] = {
    "map": lambda mapper: lambda b: b.stream("in").map(mapper).to("out"),
    "flat_map": lambda mapper: lambda b: b.stream("in").flat_map(lambda k, v: [mapper(k, v)]).to("out"),
    "group_by": lambda mapper: (
        lambda b: b.table("in").group_by(mapper, Grouped("g")).reduce(two, two).to_stream().to("out")
    ),
}


@pytest.mark.parametrize("operation", PAIRS)
@pytest.mark.parametrize("result", ["ab", {"a": 1, "b": 2}, {1, 2}, 5, b"ab", (1, 2, 3), (1,), [1], iter((1, 2))])
def test_what_is_not_a_pair_is_refused(operation: str, result: Any) -> None:
    with pytest.raises(
        ProcessingError, match=rf"{operation} needs (a pair|pairs) \(key, value\); .*{HERE}:\d+"
    ) as caught:
        run(PAIRS[operation](lambda _key, _value: result))
    assert isinstance(caught.value.__cause__, TypeError)
    assert type(result).__name__ in str(caught.value)
    assert caught.value.node is not None


@pytest.mark.parametrize("operation", PAIRS)
@pytest.mark.parametrize("result", [("a", "b"), ["a", "b"], KeyValue("a", "b")])
def test_tuples_lists_and_key_values_are_pairs(operation: str, result: Any) -> None:
    assert run(PAIRS[operation](lambda _key, _value: result)) == [("a", "b")]


@pytest.mark.parametrize("operation", ["map", "flat_map"])
def test_none_is_not_a_pair_of_a_stream(operation: str) -> None:
    with pytest.raises(ProcessingError, match=r"(returned|gave) None"):
        run(PAIRS[operation](lambda _key, _value: None))


@pytest.mark.parametrize("result", [None, (None, "v"), ("k", None)])
def test_a_row_whose_pair_has_a_none_is_in_no_group(result: Any) -> None:
    assert run(PAIRS["group_by"](lambda _key, _value: result)) == []


@pytest.mark.parametrize("operation", ["flat_map", "flat_map_values"])
@pytest.mark.parametrize("result", [None, 5])
def test_what_cannot_be_iterated_over_is_refused(operation: str, result: Any) -> None:
    def build(builder: StreamsBuilder) -> None:
        getattr(builder.stream("in"), operation)(lambda *_: result).to("out")

    with pytest.raises(ProcessingError, match=rf"{operation} needs an iterable; .*{HERE}:\d+\) returned"):
        run(build)


def test_a_topic_name_extractor_must_return_a_name() -> None:
    nowhere: Any = lambda _key, _value, _context: None  # noqa: E731
    with pytest.raises(ProcessingError, match=rf"must return the name of a topic; it returned None.*{HERE}:\d+"):
        run(lambda b: b.stream("in").to(nowhere))


@pytest.mark.parametrize("answer", [7, -1, "ab", [0, 9], 0.5])
def test_a_partitioner_must_return_a_partition_that_exists(answer: Any) -> None:
    with pytest.raises(ProcessingError, match=rf"{HERE}:\d+"):
        run(lambda b: b.stream("in").to("out", Produced(partitioner=lambda *_: answer)))


@pytest.mark.parametrize("answer", ["now", None, 1.5])
def test_a_timestamp_extractor_must_return_a_number(answer: Any) -> None:
    extractor: Any = lambda _record, _time: answer  # noqa: E731
    with pytest.raises(
        ProcessingError, match=rf"extractor .*{HERE}:\d+\) must return .* an int; it returned"
    ) as caught:
        run(lambda b: b.stream("in", Consumed(timestamp_extractor=extractor)).to("out"))
    assert (caught.value.topic, caught.value.offset) == ("in", 0)


def test_the_result_of_a_subtractor_may_be_none() -> None:
    builder = StreamsBuilder()
    grouped = builder.table("in").group_by(lambda _key, value: ("all", value))
    grouped.reduce(lambda total, value: total + value, lambda _total, _value: None).to_stream().to("out")
    with TopologyTestDriver(builder.build(), StreamsConfig(statestore_cache_max_bytes=0)) as driver:
        topic = driver.create_input_topic("in")
        topic.pipe_key_values([("a", 1), ("a", None)], start_ms=0, advance=timedelta(milliseconds=1))
        assert driver.create_output_topic("out").read_values() == [1, None]
