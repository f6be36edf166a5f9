"""Applications on Spark, from topics to topics."""

from __future__ import annotations

import re
import threading
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark import SparkContext

from headrace import (
    JoinWindows,
    LogAndContinueProcessingExceptionHandler,
    Materialized,
    ProcessingError,
    Processor,
    Produced,
    PunctuationType,
    Record,
    Serdes,
    StreamsBuilder,
    StreamsState,
    TimeWindows,
)
from headrace.errors import OffsetOutOfRangeError
from headrace.topics.log import Raw
from tests.spark.stand import LONG, Stand

pytestmark = pytest.mark.spark

SECOND = timedelta(seconds=1)


def counts_by_value(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in").group_by(lambda key, value: str(value))
    grouped.count(materialized=Materialized("counts")).to_stream().to("out", Produced(value_serde=Serdes.json()))


@pytest.mark.both_logs
def test_a_stateless_topology_is_a_plain_map(stand: Stand) -> None:
    stand.topic("in", 3)
    stand.write("in", *((f"k{number}", number, number) for number in range(20)))

    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").filter(lambda key, value: value % 2 == 0).map_values(lambda value: value * 10).to("out")

    stand.run(build)
    assert sorted(value for _, value, _ in stand.read("out")) == [number * 20 for number in range(10)]
    assert stand.log.describe_topic("out").partitions == 3
    # A second run goes on where the first has ended.
    stand.write("in", ("k", 100, 100))
    stand.run(build)
    assert stand.read("out") == [("k", 1000, 100)]


def test_functions_get_batches_of_records_as_tables(stand: Stand) -> None:
    stand.topic("in", 2)
    stand.write("in", *((f"k{number}", {"amount": number}, number) for number in range(40)))
    schema = pa.schema([("amount", pa.float64())])

    def build(builder: StreamsBuilder) -> None:
        def double(table: Any) -> Any:
            return [[amount * 2, len(table)] for amount in table["amount"].to_pylist()]

        builder.stream("in").map_batches(double, schema=schema, max_records=15).to("out")

    stand.run(build)
    rows = stand.read("out")
    assert sorted((key, value[0], time_ms) for key, value, time_ms in rows) == sorted(
        (f"k{number}", number * 2.0, number) for number in range(40)
    )
    sizes = [value[1] for _, value, _ in rows]
    assert max(sizes) == 15, "one of two partitions has at least twenty records"


def test_a_batch_that_fails_is_told_like_any_record(stand: Stand) -> None:
    stand.topic("in", 1)
    stand.write("in", ("a", 1, 1), ("b", 0, 2))

    def build(builder: StreamsBuilder) -> None:
        def invert(records: list[Any]) -> list[Any]:
            return [1 // record.value for record in records]

        builder.stream("in").map_batches(invert, name="invert").to("out")

    with pytest.raises(ProcessingError, match="ZeroDivisionError") as failed:
        stand.run(build)
    assert (failed.value.node, failed.value.topic, failed.value.offset) == ("invert", "in", 0)
    streams = stand.run(
        build,
        processing_exception_handler=LogAndContinueProcessingExceptionHandler(),
        errors_dead_letter_queue_topic_name="letters",
    )
    assert stand.read("out") == []
    letters = [
        (key, dict(headers)["__streams.errors.offset"]) for *_, key, _, headers in stand.log.read("letters", 0, 0)
    ]
    assert letters == [(b"a", b"0"), (b"b", b"1")]
    assert streams.metrics()["dropped-records-total"] == 2


@pytest.mark.both_logs
def test_counts_go_on_after_a_restart(stand: Stand) -> None:
    stand.topic("in", 2)
    stand.write("in", *((f"k{number}", number % 3, number) for number in range(30)))
    stand.run(counts_by_value)
    assert sorted(stand.read("out")) == [("0", 10, 27), ("1", 10, 28), ("2", 10, 29)]
    stand.write("in", ("k", 1, 40), ("k", 1, 41), ("k", 2, 42))
    stand.run(counts_by_value)
    assert sorted(stand.read("out")) == [("1", 12, 41), ("2", 11, 42)]


def descriptions() -> list[str]:
    """Returns what Spark's UI says of the jobs that it still knows."""
    context = SparkContext._active_spark_context
    assert context is not None
    # Any: what py4j returns. Events of jobs that have ended may still be on their way.
    java: Any = context._jsc.sc()
    java.listenerBus().waitUntilEmpty()
    jobs = java.statusStore().jobsList(None)
    return [str(jobs.apply(number).description().get()) for number in range(jobs.size())]


def test_jobs_say_in_sparks_ui_whose_batches_they_are(stand: Stand) -> None:
    stand.topic("in", 2)
    for number in range(2):
        stand.write("in", *((f"k{n}", n, n) for n in range(5 + number)))
        stand.run(counts_by_value, application_id="described")
    assert [batch.records_in for batch in stand.batches] == [5, 6]
    expected = [f"described: batch {batch.batch_id}, {batch.records_in} records" for batch in stand.batches]
    assert set(expected) <= set(descriptions())


def test_a_named_store_has_a_changelog(stand: Stand) -> None:
    stand.topic("in", 2)
    stand.write("in", ("a", 7, 10), ("b", 7, 11), ("a", 8, 12))
    stand.run(counts_by_value)
    changelog = "app-counts-changelog"
    assert stand.log.describe_topic(changelog).is_compacted
    rows: list[Raw] = [raw for partition in range(2) for raw in stand.log.read(changelog, partition, 0)]
    assert {(key, value) for _, _, key, value, _ in rows} == {
        (b"7", (2).to_bytes(8, "big")),
        (b"8", (1).to_bytes(8, "big")),
    }


def test_a_lost_working_copy_is_rebuilt(stand: Stand) -> None:
    stand.topic("in")
    stand.write("in", ("a", 1, 10), ("b", 1, 11))
    stand.run(counts_by_value)
    copy = stand.directory / "app" / "1_0" / "lmdb" / "data.mdb"
    copy.write_bytes(b"garbage" * 1000)
    stand.write("in", ("c", 1, 12))
    stand.run(counts_by_value)
    assert stand.read("out") == [("1", 2, 11), ("1", 3, 12)]


@pytest.mark.both_logs
def test_joins_windows_and_suppression(stand: Stand) -> None:
    for topic in ("orders", "payments"):
        stand.topic(topic, 2)
    stand.topic("users", 2)

    def build(builder: StreamsBuilder) -> None:
        orders = builder.stream("orders").select_key(lambda key, order: order["id"])
        payments = builder.stream("payments").select_key(lambda key, payment: payment["order"])
        within = JoinWindows.of_time_difference_and_grace(10 * SECOND, SECOND)
        paid = orders.join(payments, lambda order, payment: {**order, "paid": payment["sum"]}, windows=within)
        users = builder.table("users")
        named = paid.select_key(lambda key, order: order["user"]).join(users, lambda order, user: {**order, **user})
        named.to("named")
        windows = TimeWindows.of_size_and_grace(10 * SECOND, SECOND)
        sums = named.group_by_key().windowed_by(windows).aggregate(lambda: 0, lambda k, v, total: total + v["paid"])
        sums.to_stream(lambda windowed, value: f"{windowed.key}@{windowed.window.start_ms}").to("sums")

    stand.write("users", ("ada", {"name": "Ada"}, 0), ("bob", {"name": "Bob"}, 0))
    stand.write("orders", *((None, {"id": f"o{n}", "user": "ada" if n % 2 else "bob"}, n * 1000) for n in range(20)))
    stand.write("payments", *((None, {"order": f"o{n}", "sum": n}, n * 1000 + 500) for n in range(20)))
    stand.run(build)
    named = stand.read("named")
    assert sorted(value["id"] for _, value, _ in named) == sorted(f"o{n}" for n in range(20))
    assert all(value["name"] == key.title() for key, value, _ in named if key)
    last = {key: value for key, value, _ in stand.read("sums")}
    assert last == {"ada@0": 25, "ada@10000": 75, "bob@0": 20, "bob@10000": 70}


@pytest.mark.both_logs
def test_a_foreign_key_join_answers_over_a_back_edge(stand: Stand) -> None:
    stand.topic("orders", 2)
    stand.topic("users", 2)

    def build(builder: StreamsBuilder) -> None:
        orders, users = builder.table("orders"), builder.table("users")
        joined = orders.join(users, lambda order, user: [order["sum"], user], foreign_key=lambda order: order["user"])
        joined.to_stream().to("out")

    stand.write("orders", *((f"o{n}", {"user": f"u{n % 3}", "sum": n}, n) for n in range(9)))
    stand.write("users", *((f"u{n}", f"user {n}", n) for n in range(3)))
    stand.run(build)
    assert {key: value for key, value, _ in stand.read("out")} == {f"o{n}": [n, f"user {n % 3}"] for n in range(9)}


def test_a_global_table_is_seen_by_all_tasks(stand: Stand) -> None:
    stand.topic("in", 2)
    stand.topic("names", 2)

    def build(builder: StreamsBuilder) -> None:
        names = builder.global_table("names")
        joined = builder.stream("in").join(names, lambda v, name: [v, name], key_selector=lambda k, v: f"n{v}")
        joined.to("out")

    stand.write("names", *((f"n{n}", f"name {n}", n) for n in range(5)))
    stand.write("in", *((f"k{n}", n, n) for n in range(5)))
    stand.run(build)
    assert sorted(value for _, value, _ in stand.read("out")) == [[n, f"name {n}"] for n in range(5)]
    stand.write("names", ("n1", "other", 9))
    stand.write("in", ("k", 1, 9))
    stand.run(build)
    assert stand.read("out") == [("k", [1, "other"], 9)]


class Ticks(Processor[str, Any, str, Any]):
    """Forwards how often it was called by the wall clock."""

    def init(self, context: Any) -> None:
        super().init(context)
        context.schedule(timedelta(milliseconds=50), PunctuationType.WALL_CLOCK_TIME, self.tick)

    def tick(self, now_ms: int) -> None:
        self.context.forward(Record("tick", now_ms, now_ms))

    def process(self, record: Record[str, Any]) -> None:
        """Records are not what this one waits for."""


def test_clocks_tick_without_input(stand: Stand) -> None:
    stand.topic("in")
    ticked = threading.Event()
    streams = stand.streams(lambda builder: builder.stream("in").process(Ticks).to("out"))
    streams.add_batch_listener(lambda batch: ticked.set() if batch.batch_id == 3 else None)
    with streams:
        assert ticked.wait(LONG.total_seconds())
    times = [value for _, value, _ in stand.read("out")]
    assert len(times) >= 3
    assert times == sorted(set(times))
    assert streams.state is StreamsState.NOT_RUNNING


def test_pause_and_resume(stand: Stand) -> None:
    stand.topic("in")
    first, second = threading.Event(), threading.Event()
    streams = stand.streams(counts_by_value)
    streams.add_batch_listener(lambda batch: (second if batch.records_in else first).set())
    with streams:
        assert first.wait(LONG.total_seconds())
        streams.pause()
        stand.write("in", ("a", 1, 1))
        assert not second.wait(0.3)
        streams.resume()
        assert second.wait(LONG.total_seconds())
    assert stand.read("out") == [("1", 1, 1)]


@pytest.mark.both_logs
def test_a_topic_that_matches_a_pattern_later_is_read(stand: Stand) -> None:
    stand.topic("orders-eu")
    stand.write("orders-eu", ("a", 1, 1))
    first, both = threading.Event(), threading.Event()

    def build(builder: StreamsBuilder) -> None:
        counts = builder.stream(re.compile("orders-.*")).group_by_key().count()
        counts.to_stream().to("out", Produced(value_serde=Serdes.json()))

    streams = stand.streams(build)
    seen: list[int] = []

    def listen(batch: Any) -> None:
        seen.append(batch.records_in)
        first.set()
        if sum(seen) == 2:
            both.set()

    streams.add_batch_listener(listen)
    with streams:
        assert first.wait(LONG.total_seconds())
        stand.topic("orders-us")
        stand.write("orders-us", ("a", 1, 2))
        assert both.wait(LONG.total_seconds())
    assert stand.read("out") == [("a", 1, 1), ("a", 2, 2)]


@pytest.mark.both_logs
def test_a_topic_is_chosen_record_by_record(stand: Stand) -> None:
    stand.topic("in")
    stand.write("in", ("a", "red", 1), ("b", "blue", 2))
    stand.run(lambda builder: builder.stream("in").to(lambda key, value, context: f"{value}-things"))
    assert stand.read("red-things") == [("a", "red", 1)]
    assert stand.read("blue-things") == [("b", "blue", 2)]


def fails_on_three(value: int) -> int:
    if value == 3:
        message = "three is too much"
        raise ValueError(message)
    return value


def test_a_failing_function_stops_the_application_with_its_record(stand: Stand) -> None:
    stand.topic("in")
    stand.write("in", *(("k", number, number) for number in range(5)))

    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").map_values(fails_on_three).to("out")

    streams = stand.streams(build).start()
    with pytest.raises(ProcessingError, match=r"in-0 offset 3.*three is too much.*fails_on_three"):
        streams.wait(LONG)
    assert streams.state is StreamsState.ERROR
    assert stand.read("out") == []


def test_failed_records_go_to_the_dead_letter_topic(stand: Stand) -> None:
    stand.topic("in")
    stand.write("in", *(("k", number, number) for number in range(5)))
    streams = stand.run(
        lambda builder: builder.stream("in").map_values(fails_on_three).to("out"),
        processing_exception_handler=LogAndContinueProcessingExceptionHandler(),
        errors_dead_letter_queue_topic_name="letters",
    )
    assert [value for _, value, _ in stand.read("out")] == [0, 1, 2, 4]
    ((_, _, key, value, headers),) = stand.log.read("letters", 0, 0)
    assert (key, value) == (b"k", b"3")
    assert dict(headers)["__streams.errors.offset"] == b"3"
    assert streams.metrics()["dropped-records-total"] == 1


@pytest.mark.both_logs
def test_input_that_was_removed_unread_is_an_error(stand: Stand) -> None:
    stand.topic("in")
    stand.write("in", ("k", 1, 1))
    stand.run(counts_by_value)
    stand.write("in", ("k", 2, 2), ("k", 3, 3))
    stand.log.delete_records({("in", 0): 2})
    streams = stand.streams(counts_by_value).start()
    with pytest.raises(OffsetOutOfRangeError, match="records 1 to 1 were removed before they were read"):
        streams.wait(LONG)
