"""Aggregations of a grouped stream without windows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from headrace import (
    KGroupedStream,
    KTable,
    Materialized,
    ProcessingError,
    Serdes,
    Stores,
    StreamsBuilder,
    StreamsConfig,
)
from headrace.handlers import LogAndContinueProcessingExceptionHandler
from headrace.testing import TopologyTestDriver
from tests.operators.driving import STRING, Step, config, run

RECORDS = (
    Step("in", "k", "a", 5),
    Step("in", "k", "b", 3),
    Step("in", "j", "c", 4),
    Step("in", None, "x", 6),
    Step("in", "k", None, 7),
    Step("in", "k", "d", 8),
)


def _grouped(aggregate: Callable[[KGroupedStream[str, str]], KTable[str, Any]]) -> Callable[[StreamsBuilder], None]:
    def build(builder: StreamsBuilder) -> None:
        table = aggregate(builder.stream("in").group_by_key())
        table.to_stream().map_values(lambda value: None if value is None else str(value)).to("out")

    return build


def concat(key: str, value: str, aggregate: str) -> str:
    return f"{aggregate}{value}"


@pytest.mark.parametrize(
    ("aggregate", "values"),
    [
        (lambda grouped: grouped.count(), ["1", "2", "1", "3"]),
        (lambda grouped: grouped.reduce(lambda left, right: left + right), ["a", "ab", "c", "abd"]),
        (lambda grouped: grouped.aggregate(lambda: "^", concat), ["^a", "^ab", "^c", "^abd"]),
    ],
    ids=["count", "reduce", "aggregate"],
)
@pytest.mark.parametrize("cache", [0, 10_000_000])
def test_result_has_the_latest_timestamp_and_nulls_are_dropped(
    aggregate: Callable[..., KTable[str, Any]], values: list[str], cache: int
) -> None:
    result = run(_grouped(aggregate), RECORDS, config(cache=cache))
    assert result.rows == list(zip("kkjk", values, (5, 5, 4, 8), strict=True))
    assert result.dropped == 2


@pytest.mark.parametrize(("cache", "timestamp_ms"), [(0, 9), (10_000_000, 2)])
def test_null_aggregate_deletes_the_row(cache: int, timestamp_ms: int) -> None:
    """A cache knows no time of a deleted row but that of the record that deleted it."""

    def keep_or_delete(key: str, value: str, aggregate: str) -> str | None:
        return None if value == "delete" else aggregate + value

    result = run(
        _grouped(lambda grouped: grouped.aggregate(lambda: "^", keep_or_delete)),
        [Step("in", "k", "a", 9), Step("in", "k", "delete", 2), Step("in", "k", "b", 1)],
        config(cache=cache),
    )
    assert result.rows == [("k", "^a", 9), ("k", None, timestamp_ms), ("k", "^b", 1)]


@pytest.mark.parametrize(("cache", "subtracted"), [(0, ["^"]), (10_000_000, [])])
def test_first_old_value_is_the_initial_one_unless_cached(cache: int, subtracted: list[str]) -> None:
    taken_out = []

    def subtract(key: str, value: str, aggregate: str) -> str:
        taken_out.append(value)
        return aggregate

    def build(builder: StreamsBuilder) -> None:
        table = builder.stream("in").group_by_key().aggregate(lambda: "^", concat)
        table.group_by(lambda key, value: ("all", value)).aggregate(lambda: "", concat, subtract).to_stream().to("out")

    # Nothing is subtracted from a group that is not there yet, so it takes a second key.
    result = run(build, [Step("in", "j", "z", 0), Step("in", "k", "a", 0)], config(cache=cache))
    assert taken_out == subtracted
    assert result.rows == [("all", "^z", 0), ("all", "^z^a", 0)]


def test_headers_are_those_of_the_record() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().reduce(lambda left, right: left + right).to_stream().to("out")
    settings = config()
    with TopologyTestDriver(builder.build(settings), settings) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        topic.pipe_input("k", "a", timestamp_ms=0, headers=[("h", b"1")])
        topic.pipe_input("k", "b", timestamp_ms=0, headers=[("h", b"2")])
        output = driver.create_output_topic("out", STRING, STRING)
        assert [record.headers.last("h") for record in output.read_records()] == [b"1", b"2"]


def test_cache_merges_the_changes_of_a_batch_in_the_order_of_the_last_updates() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count().to_stream().to("out")
    settings = config(cache=10_000_000)
    with TopologyTestDriver(builder.build(settings), settings, batched=True) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        for timestamp_ms, key in enumerate("abcab"):
            topic.pipe_input(key, "x", timestamp_ms=timestamp_ms, headers=[("at", b"%d" % timestamp_ms)])
        driver.commit()
        records = driver.create_output_topic("out", STRING, Serdes.long()).read_records()
        assert [(record.key, record.value, record.timestamp_ms) for record in records] == [
            ("c", 1, 2),
            ("a", 2, 3),
            ("b", 2, 4),
        ]
        assert [record.headers.last("at") for record in records] == [b"2", b"3", b"4"]


@pytest.mark.parametrize("cache", [0, 10_000_000])
@pytest.mark.parametrize("batched", [False, True])
def test_aggregator_may_change_its_aggregate_in_place(cache: int, *, batched: bool) -> None:
    """The list that the table forwards as old must not have the new value yet."""

    def append(key: str, value: str, items: list[str]) -> list[str]:
        items.append(value)
        return items

    builder = StreamsBuilder()
    lists = builder.stream("in").group_by_key().aggregate(list, append, materialized=Materialized("lists"))
    sizes = lists.group_by(lambda key, items: ("all", items)).aggregate(
        lambda: 0, lambda key, items, size: size + len(items), lambda key, items, size: size - len(items)
    )
    sizes.to_stream().to("out")
    settings = {"statestore_cache_max_bytes": cache}
    with TopologyTestDriver(builder.build(), settings, batched=batched) as driver:
        topic = driver.create_input_topic("in", value_serde=STRING)
        # Values travel as JSON here, so the strings are JSON documents.
        topic.pipe_key_values([("a", '"x"'), ("b", '"y"'), ("a", '"z"')], start_ms=0)
        if batched:
            driver.commit()
        assert driver.create_output_topic("out").read_values()[-1] == 3
        assert driver.get_key_value_store("lists").get("a") == ["x", "z"]


def test_versioned_store_marks_out_of_order_results_and_refuses_old_ones() -> None:
    def build(builder: StreamsBuilder) -> None:
        store = Stores.persistent_versioned_key_value_store("versions", timedelta(milliseconds=10))
        table = (
            builder.stream("in")
            .group_by_key()
            .reduce(lambda left, right: left + right, materialized=Materialized(store))
        )
        table.to_stream().to("out")

    result = run(build, [Step("in", "k", "a", 20), Step("in", "k", "b", 15), Step("in", "j", "c", 5)])
    assert result.rows == [("k", "a", 20), ("k", "ab", 20)]
    assert result.dropped == 1


def test_error_of_the_aggregator_names_node_and_leaves_the_row() -> None:
    def fail_on_bad(key: str, value: str, aggregate: str) -> str:
        if value == "bad":
            message = "no such value"
            raise LookupError(message)
        return aggregate + value

    build = _grouped(lambda grouped: grouped.aggregate(lambda: "^", fail_on_bad, name="concat"))
    steps = [Step("in", "k", "a", 0), Step("in", "k", "bad", 1), Step("in", "k", "b", 2)]
    with pytest.raises(ProcessingError, match=r"node 'concat' failed .*no such value"):
        run(build, steps)
    skipping = config(processing_exception_handler=LogAndContinueProcessingExceptionHandler())
    result = run(build, steps, skipping)
    assert result.rows == [("k", "^a", 0), ("k", "^ab", 2)]
    assert result.dropped == 1


@pytest.mark.parametrize("cache", [0, 1 << 20])
@pytest.mark.parametrize("value_serde", [Serdes.json(), Serdes.json(list), Serdes.string()])
def test_an_aggregator_that_returns_none_for_a_new_key_is_warned_of_once(
    cache: int, value_serde: Any, caplog: pytest.LogCaptureFixture
) -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    forgetful: Any = lambda _key, value, items: items.append(value)  # noqa: E731
    grouped.aggregate(list, forgetful, Materialized("rows", value_serde=value_serde), name="guilty").to_stream().to(
        "out"
    )
    with TopologyTestDriver(builder.build(), StreamsConfig(statestore_cache_max_bytes=cache)) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", 1), ("a", 2), ("b", 3)])
        assert driver.create_output_topic("out").read_values() == ([] if cache else [None] * 3)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert warnings[0].startswith("node 'guilty': ")
    assert "<lambda> (" in warnings[0]
