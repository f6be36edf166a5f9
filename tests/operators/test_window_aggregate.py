"""Tumbling, hopping and unlimited windows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headrace import (
    LateRecord,
    LogAndContinueProcessingExceptionHandler,
    Materialized,
    StreamsBuilder,
    TimeWindow,
    TimeWindows,
    UnlimitedWindows,
)
from headrace.testing import TopologyTestDriver
from tests.operators.driving import STRING, Step, config, run
from tests.operators.windowing import CACHE, aggregate, ms, records, table_of

TUMBLING = TimeWindows.of_size_and_grace(ms(10), ms(5))
HOPPING = TUMBLING.advance_by(ms(4))


@pytest.mark.parametrize("cache", [0, CACHE])
def test_tumbling_windows_take_late_records_until_the_grace_period_is_over(cache: int) -> None:
    steps = records(("a", 1), ("b", 12), ("c", 9), ("d", 14), ("e", 3), ("f", 15), ("g", 2), ("h", 11))
    result = run(aggregate(TUMBLING), steps, config(cache=cache))
    assert result.steps == [
        [("k@0/10", "a", 1)],
        [("k@10/20", "b", 12)],
        [("k@0/10", "ac", 9)],
        [("k@10/20", "bd", 14)],
        [("k@0/10", "ace", 9)],
        [("k@10/20", "bdf", 15)],
        [],
        [("k@10/20", "bdfh", 15)],
    ]
    assert result.dropped == 1


@pytest.mark.parametrize("cache", [0, CACHE])
def test_hopping_windows_are_late_one_by_one(cache: int) -> None:
    result = run(aggregate(HOPPING), records(("a", 9), ("b", 18), ("c", 8), ("d", 0)), config(cache=cache))
    assert result.steps == [
        [("k@0/10", "a", 9), ("k@4/14", "a", 9), ("k@8/18", "a", 9)],
        [("k@12/22", "b", 18), ("k@16/26", "b", 18)],
        # Windows that ended at 10 are closed at stream time 18 with a grace period of 5.
        [("k@4/14", "ac", 9), ("k@8/18", "ac", 9)],
        [],
    ]
    assert result.dropped == 2


def test_unlimited_window_takes_everything_from_its_start() -> None:
    windows = UnlimitedWindows.of().start_on(datetime.fromtimestamp(0, tz=UTC) + timedelta(milliseconds=5))
    result = run(aggregate(windows), records(("a", 4), ("b", 100_000), ("c", 5)))
    end = 2**63 - 1
    assert result.steps == [[], [(f"k@5/{end}", "b", 100_000)], [(f"k@5/{end}", "bc", 100_000)]]
    assert result.dropped == 0


def test_null_keys_are_dropped_and_null_values_are_not() -> None:
    steps = [*records(("a", 50), key=None), *records((None, 1))]
    result = run(aggregate(TUMBLING), steps)
    # The record without a key has not moved the time of the windows.
    assert result.rows == [("k@0/10", "-", 1)]
    assert result.dropped == 1


def test_reduce_of_a_null_value_forwards_nothing_but_a_tombstone() -> None:
    def build(builder: StreamsBuilder) -> None:
        windowed = builder.stream("in").group_by_key().windowed_by(TUMBLING)
        table = windowed.reduce(lambda left, right: f"{left}+{right}", materialized=Materialized("windows"))
        table.to_stream(lambda key, value: key.key).to("out")

    result = run(build, records((None, 1), ("a", 2), (None, 3)))
    assert result.rows == [("k", None, 1), ("k", "a", 2), ("k", "a+None", 3)]


def test_late_record_is_offered_with_its_window() -> None:
    late: list[LateRecord] = []
    run(aggregate(TUMBLING), records(("a", 30), ("b", 4)), config(on_late=late.append))
    assert [(record.value, record.window, record.close_time_ms) for record in late] == [("b", TimeWindow(0, 10), 25)]


def test_old_value_of_a_new_window_is_the_initial_one() -> None:
    taken_out = []

    def subtract(key: str, value: str, all_values: str) -> str:
        taken_out.append(value)
        return all_values

    def build(builder: StreamsBuilder) -> None:
        grouped = table_of(builder, TUMBLING).group_by(lambda key, value: ("all", f"<{value}>"))
        grouped.aggregate(lambda: "", lambda key, value, values: values + value, subtract).to_stream().to("out")

    run(build, records(("a", 0), ("b", 10), ("c", 11)))
    assert taken_out == ["<>", "<b>"]


def test_error_in_one_window_gives_up_the_rest_of_the_record() -> None:
    def build(builder: StreamsBuilder) -> None:
        windowed = builder.stream("in").group_by_key().windowed_by(HOPPING)

        def fail_second(key: str, value: str, aggregate: str) -> str:
            if aggregate == "xy":
                message = "enough"
                raise ValueError(message)
            return aggregate + value

        table = windowed.aggregate(lambda: "", fail_second, materialized=Materialized("windows"))
        table.to_stream(lambda key, value: str(key.window.start_ms)).to("out")

    settings = config(processing_exception_handler=LogAndContinueProcessingExceptionHandler())
    result = run(build, records(("x", 5), ("y", 5), ("z", 8)), settings)
    assert [[key for key, _, _ in step] for step in result.steps] == [["0", "4"], ["0", "4"], []]
    assert result.dropped == 1


@pytest.mark.parametrize("cache", [0, CACHE])
def test_closed_windows_come_out_once_by_start_and_key(cache: int) -> None:
    steps = [
        Step("in", "b", "x", 0),
        Step("in", "a", "y", 1),
        Step("in", "a", "z", 14),
        Step("in", "c", "v", 15),
        Step("in", "a", "late", 3),
        Step("in", "c", "w", 35),
    ]
    result = run(aggregate(TUMBLING, final=True, retention=timedelta(seconds=1)), steps, config(cache=cache))
    assert result.steps == [
        [],
        [],
        [],
        [("a@0/10", "y", 1), ("b@0/10", "x", 0)],
        [],
        [("a@10/20", "z", 14), ("c@10/20", "v", 15)],
    ]
    assert result.dropped == 1


def test_closed_hopping_windows_come_out_by_start() -> None:
    windows = TimeWindows.of_size_with_no_grace(ms(10)).advance_by(ms(5))
    result = run(
        aggregate(windows, final=True, retention=timedelta(seconds=1)), records(("a", 7), ("b", 11), ("c", 30))
    )
    assert result.steps == [[], [("k@0/10", "a", 7)], [("k@5/15", "ab", 11), ("k@10/20", "b", 11)]]


def test_final_results_have_the_headers_of_the_record_that_closed_them() -> None:
    builder = StreamsBuilder()
    aggregate(TimeWindows.of_size_with_no_grace(ms(10)), final=True)(builder)
    settings = config()
    with TopologyTestDriver(builder.build(settings), settings) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        topic.pipe_input("k", "a", timestamp_ms=0, headers=[("h", b"first")])
        topic.pipe_input("k", "b", timestamp_ms=10, headers=[("h", b"second")])
        (record,) = driver.create_output_topic("out", STRING, STRING).read_records()
        assert (record.value, record.headers.last("h")) == ("a", b"second")


def test_final_results_wait_for_the_emit_interval() -> None:
    builder = StreamsBuilder()
    aggregate(TimeWindows.of_size_with_no_grace(ms(10)), final=True, retention=timedelta(seconds=1))(builder)
    settings = config(emit_interval=ms(100))
    with TopologyTestDriver(builder.build(settings), settings, initial_wall_clock_ms=0) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        output = driver.create_output_topic("out", STRING, STRING)
        # The first record makes the first attempt, which finds nothing; the next is due 100 ms later.
        topic.pipe_input("k", "a", timestamp_ms=0)
        topic.pipe_input("k", "b", timestamp_ms=10)
        driver.advance_wall_clock_time(ms(99))
        topic.pipe_input("k", "c", timestamp_ms=20)
        assert output.is_empty()
        driver.advance_wall_clock_time(ms(1))
        topic.pipe_input("k", "d", timestamp_ms=21)
        assert output.read_values() == ["a", "b"]


def test_window_lookup_joins_the_row_of_that_window() -> None:
    """A join of two windowed tables looks rows up by key and window."""

    def build(builder: StreamsBuilder) -> None:
        left = table_of(builder, TUMBLING)
        right = builder.stream("other").group_by_key().windowed_by(TUMBLING).reduce(lambda _, value: value)
        joined = left.join(right, lambda left, right: f"{left}/{right}")
        joined.to_stream(lambda key, value: f"{key.key}@{key.window.start_ms}").to("out")

    result = run(build, [Step("in", "k", "a", 1), Step("other", "k", "x", 12), Step("other", "k", "y", 2)])
    assert result.steps == [[], [], [("k@0", "a/y", 2)]]
