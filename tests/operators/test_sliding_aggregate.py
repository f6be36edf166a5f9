"""Sliding windows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import LateRecord, SlidingWindows, StreamsBuilder, TimeWindow
from headrace.testing import TopologyTestDriver
from tests.operators.driving import STRING, config, run
from tests.operators.windowing import CACHE, aggregate, ms, records

SLIDING = SlidingWindows.of_time_difference_and_grace(ms(10), ms(5))


@pytest.mark.parametrize("cache", [0, CACHE])
def test_record_ends_one_window_and_starts_one_for_the_records_after_it(cache: int) -> None:
    result = run(aggregate(SLIDING), records(("a", 20), ("b", 25), ("c", 40)), config(cache=cache))
    assert result.steps == [
        [("k@10/20", "a", 20)],
        [("k@21/31", "b", 25), ("k@15/25", "ab", 25)],
        [("k@30/40", "c", 40)],
    ]


def test_out_of_order_record_gets_both_windows() -> None:
    result = run(aggregate(SLIDING), records(("a", 20), ("b", 26), ("c", 23)))
    assert result.steps[2] == [
        ("k@21/31", "bc", 26),
        ("k@16/26", "abc", 26),
        ("k@13/23", "ac", 23),
        ("k@24/34", "b", 26),
    ]


def test_record_of_the_same_time_updates_the_windows_that_are_there() -> None:
    result = run(aggregate(SLIDING), records(("a", 20), ("b", 25), ("c", 20)))
    assert result.steps[2] == [("k@15/25", "abc", 25), ("k@10/20", "ac", 20)]


def test_early_records_share_the_first_window() -> None:
    result = run(aggregate(SLIDING), records(("a", 3), ("b", 7), ("c", 5)))
    assert result.steps == [
        [("k@0/10", "a", 3)],
        [("k@4/14", "b", 7), ("k@0/10", "ab", 7)],
        [("k@4/14", "bc", 7), ("k@6/16", "b", 7), ("k@0/10", "abc", 7)],
    ]


def test_windows_are_late_one_by_one() -> None:
    late: list[LateRecord] = []
    # At stream time 50 windows that end before 45 are closed.
    result = run(aggregate(SLIDING), records(("a", 50), ("b", 36), ("c", 34)), config(on_late=late.append))
    assert result.steps[1:] == [[], []]
    assert [(record.value, record.window) for record in late] == [("b", TimeWindow(26, 36)), ("c", TimeWindow(34, 44))]
    assert result.dropped == 2


def test_nulls_are_dropped() -> None:
    result = run(aggregate(SLIDING), [*records(("a", 50), key=None), *records((None, 60), ("b", 1))])
    assert result.rows == [("k@0/10", "b", 1)]
    assert result.dropped == 2


def test_closed_windows_come_out_once_by_start() -> None:
    windows = SlidingWindows.of_time_difference_with_no_grace(ms(10))
    steps = records(("a", 20), ("b", 25), ("c", 36), ("d", 60))
    result = run(aggregate(windows, final=True, retention=ms(1000)), steps)
    # A window that ends at the stream time still takes records.
    assert result.steps == [
        [],
        [("k@10/20", "a", 20)],
        [("k@15/25", "ab", 25), ("k@21/31", "b", 25)],
        [("k@26/36", "c", 36)],
    ]


def expected_windows(arrivals: list[int], difference_ms: int) -> dict[int, str]:
    """By definition: the windows that end at a record or start right after one, unless they are empty."""
    starts = {max(0, time_ms - difference_ms) for time_ms in arrivals} | {time_ms + 1 for time_ms in arrivals}
    windows = {
        start: "".join(letter(i) for i, time_ms in enumerate(arrivals) if start <= time_ms <= start + difference_ms)
        for start in starts
    }
    return {start: values for start, values in windows.items() if values}


def letter(index: int) -> str:
    return chr(ord("a") + index)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=12), st.integers(1, 12), st.sampled_from([0, CACHE]))
def test_windows_are_those_of_the_definition(arrivals: list[int], difference_ms: int, cache: int) -> None:
    builder = StreamsBuilder()
    aggregate(SlidingWindows.of_time_difference_and_grace(ms(difference_ms), ms(1000)))(builder)
    choice = config(cache=cache)
    with TopologyTestDriver(builder.build(choice), choice) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        for index, time_ms in enumerate(arrivals):
            topic.pipe_input("k", letter(index), timestamp_ms=time_ms)
        rows = driver.get_timestamped_window_store("windows").all()
        found = {key.window.start_ms: ("".join(sorted(value)), time_ms) for key, (value, time_ms) in rows}
    expected = {
        start: (values, max(arrivals[ord(value) - ord("a")] for value in values))
        for start, values in expected_windows(arrivals, difference_ms).items()
    }
    assert found == expected
