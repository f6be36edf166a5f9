"""Session windows."""

from __future__ import annotations

import pytest

from headrace import LateRecord, Materialized, SessionWindow, SessionWindows, StreamsBuilder
from headrace.testing import TopologyTestDriver
from tests.operators.driving import STRING, Step, config, run
from tests.operators.windowing import CACHE, aggregate, ms, records, table_of

SESSIONS = SessionWindows.of_inactivity_gap_and_grace(ms(5), ms(3))


@pytest.mark.parametrize("cache", [0, CACHE])
def test_record_extends_and_merges_sessions_and_their_old_windows_are_deleted(cache: int) -> None:
    result = run(aggregate(SESSIONS), records(("a", 10), ("b", 12), ("c", 18), ("d", 15)), config(cache=cache))
    assert result.steps == [
        [("k@10/10", "a", 10)],
        [("k@10/10", None, 10), ("k@10/12", "ab", 12)],
        [("k@18/18", "c", 18)],
        [("k@10/12", None, 12), ("k@18/18", None, 18), ("k@10/18", "abcd", 18)],
    ]


def test_update_within_a_session_deletes_and_writes_the_same_window() -> None:
    result = run(aggregate(SESSIONS), records(("a", 10), ("b", 14), ("c", 12)))
    assert result.steps[2] == [("k@10/14", None, 14), ("k@10/14", "abc", 14)]


def test_cached_update_within_a_session_is_one_change() -> None:
    result = run(aggregate(SESSIONS), records(("a", 10), ("b", 14), ("c", 12)), config(cache=CACHE))
    assert result.steps[2] == [("k@10/14", "abc", 14)]


def test_session_of_one_moment_is_overwritten() -> None:
    result = run(aggregate(SESSIONS), records(("a", 10), ("b", 10)))
    assert result.rows == [("k@10/10", "a", 10), ("k@10/10", "ab", 10)]


def test_gap_is_inclusive() -> None:
    result = run(aggregate(SESSIONS), records(("a", 10), ("b", 15), ("c", 21)))
    assert [row for row in result.rows if row[1] is not None] == [
        ("k@10/10", "a", 10),
        ("k@10/15", "ab", 15),
        ("k@21/21", "c", 21),
    ]


def test_late_record_is_taken_if_it_touches_an_open_session() -> None:
    late: list[LateRecord] = []
    # At stream time 30 sessions that end before 30 - 3 - 5 = 22 are closed.
    steps = records(("a", 26), ("b", 30), ("c", 21), ("d", 10), ("e", 22))
    result = run(aggregate(SESSIONS), steps, config(on_late=late.append))
    assert result.steps[2] == [("k@26/30", None, 30), ("k@21/30", "abc", 30)]
    assert result.steps[3] == []
    assert [(record.value, record.window, record.close_time_ms) for record in late] == [
        ("d", SessionWindow(10, 10), 22)
    ]
    assert result.dropped == 1


def test_null_keys_are_dropped_and_null_values_are_not() -> None:
    result = run(aggregate(SESSIONS), [*records(("a", 50), key=None), *records((None, 1))])
    assert result.rows == [("k@1/1", "-", 1)]
    assert result.dropped == 1


def test_count_adds_the_counts_of_merged_sessions() -> None:
    def build(builder: StreamsBuilder) -> None:
        counts = builder.stream("in").group_by_key().windowed_by(SESSIONS).count(materialized=Materialized("counts"))
        counts.to_stream(lambda key, value: key.key).map_values(str).to("out")

    result = run(build, records(("a", 2), ("b", 8), ("c", 5)))
    assert result.steps[2] == [("k", "None", 2), ("k", "None", 8), ("k", "3", 8)]


def test_results_carry_no_headers_unless_cached() -> None:
    for cache, expected in ((0, None), (CACHE, b"1")):
        builder = StreamsBuilder()
        aggregate(SESSIONS)(builder)
        settings = config(cache=cache)
        with TopologyTestDriver(builder.build(settings), settings) as driver:
            driver.create_input_topic("in", STRING, STRING).pipe_input("k", "a", timestamp_ms=0, headers=[("h", b"1")])
            assert driver.create_output_topic("out", STRING, STRING).read_record().headers.last("h") == expected


def test_old_value_of_a_deleted_session_is_its_aggregate() -> None:
    changes: list[str] = []

    def add(key: str, value: str, total: str) -> str:
        changes.append(f"+{value}")
        return total

    def subtract(key: str, value: str, total: str) -> str:
        changes.append(f"-{value}")
        return total

    def build(builder: StreamsBuilder) -> None:
        grouped = table_of(builder, SESSIONS).group_by(lambda key, value: ("all", value))
        grouped.aggregate(lambda: "", add, subtract).to_stream().to("out")

    run(build, records(("a", 0), ("b", 3)))
    assert changes == ["+a", "-a", "+ab"]


@pytest.mark.parametrize("cache", [0, CACHE])
def test_closed_sessions_come_out_once_by_end(cache: int) -> None:
    sessions = SessionWindows.of_inactivity_gap_with_no_grace(ms(5))
    steps = [
        Step("in", "b", "x", 2),
        Step("in", "a", "y", 1),
        Step("in", "b", "z", 3),
        Step("in", "c", "v", 7),
        Step("in", "c", "w", 9),
        Step("in", "c", "u", 40),
    ]
    result = run(aggregate(sessions, final=True, retention=ms(1000)), steps, config(cache=cache))
    assert result.steps == [
        [],
        [],
        [],
        [("a@1/1", "y", 1)],
        [("b@2/3", "xz", 3)],
        [("c@7/9", "vw", 9)],
    ]
