"""Suppression: what comes out when, and what is there meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headrace import BufferConfig, ProcessingError, StreamsBuilder, Suppressed, TimeWindows
from headrace.testing import TopologyTestDriver
from tests.operators.driving import STRING, Step, config, pair, run
from tests.operators.windowing import ms, records, show, table_of

UNBOUNDED = BufferConfig.unbounded()


def _limited(limit_ms: int, buffer: Any = UNBOUNDED) -> Callable[[StreamsBuilder], None]:
    def build(builder: StreamsBuilder) -> None:
        table = builder.table("in").suppress(Suppressed.until_time_limit(ms(limit_ms), buffer, name="hold"))
        table.to_stream().to("out")

    return build


def test_final_results_of_windows_come_out_when_they_close() -> None:
    def build(builder: StreamsBuilder) -> None:
        table = table_of(builder, TimeWindows.of_size_and_grace(ms(10), ms(5)))
        table.suppress(Suppressed.until_window_closes(UNBOUNDED)).to_stream(show).to("out")

    result = run(build, records(("a", 1), ("b", 12), ("c", 9), ("d", 15), ("e", 31), ("f", 36)))
    assert result.steps == [[], [], [], [("k@0/10", "ac", 9)], [("k@10/20", "bd", 15)], []]


def test_time_limit_counts_from_the_first_change_and_the_latest_comes_out() -> None:
    steps = [Step("in", "k", "a", 0), Step("in", "k", "b", 4), Step("in", "j", "x", 9), Step("in", "j", "y", 10)]
    assert run(_limited(10), steps).steps == [[], [], [], [("k", "b", 4)]]


def test_equal_times_come_out_by_key() -> None:
    steps = [Step("in", key, "a", 0) for key in "cab"] + [Step("in", "z", "a", 10)]
    assert [key for key, _, _ in run(_limited(10), steps).steps[-1]] == ["a", "b", "c"]


def test_tombstone_comes_out_after_a_time_limit() -> None:
    steps = [Step("in", "k", "a", 0), Step("in", "k", None, 1), Step("in", "j", "x", 10)]
    assert run(_limited(10), steps).steps[-1] == [("k", None, 1)]


def test_no_wait_lets_everything_through() -> None:
    assert run(_limited(0), [Step("in", "k", "a", 0), Step("in", "k", "b", 1)]).steps == [
        [("k", "a", 0)],
        [("k", "b", 1)],
    ]


def test_full_buffer_emits_early() -> None:
    steps = [Step("in", "k", "a", 2), Step("in", "j", "b", 1), Step("in", "k", "c", 3), Step("in", "i", "d", 4)]
    result = run(_limited(100, BufferConfig.max_records(1).emit_early_when_full()), steps)
    assert result.steps == [[], [("j", "b", 1)], [], [("k", "c", 3)]]


def test_bytes_of_the_buffer_are_limited_too() -> None:
    # An entry takes 8 + 1 for time and key, 1 for the value, and 20 + 2 for the record's position in the topic "in".
    steps = [Step("in", "k", "a", 0), Step("in", "j", "b", 1)]
    assert run(_limited(100, BufferConfig.max_bytes(64).emit_early_when_full()), steps).steps == [[], []]
    assert run(_limited(100, BufferConfig.max_bytes(63).emit_early_when_full()), steps).steps == [[], [("k", "a", 0)]]


def test_full_buffer_shuts_down() -> None:
    build = _limited(100, BufferConfig.max_records(1).shut_down_when_full())
    with pytest.raises(ProcessingError, match=r"node 'hold'.*buffer is full, with 2 records"):
        run(build, [Step("in", "k", "a", 0), Step("in", "j", "b", 1)])


def test_headers_are_those_of_the_latest_change() -> None:
    builder = StreamsBuilder()
    _limited(10)(builder)
    settings = config()
    with TopologyTestDriver(builder.build(settings), settings) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        for index, timestamp_ms in enumerate((0, 1, 10)):
            topic.pipe_input("k" if index < 2 else "j", "a", timestamp_ms=timestamp_ms, headers=[("n", b"%d" % index)])
        (record,) = driver.create_output_topic("out", STRING, STRING).read_records()
        assert record.headers.last("n") == b"1"


def test_join_sees_what_was_emitted_last() -> None:
    def build(builder: StreamsBuilder) -> None:
        held = builder.table("in").suppress(Suppressed.until_time_limit(ms(10), UNBOUNDED))
        builder.stream("asks").left_join(held, pair).to("out")

    steps = [
        Step("in", "k", "a", 0),
        Step("asks", "k", "1", 1),
        Step("in", "j", "x", 10),
        Step("asks", "k", "2", 11),
        Step("in", "k", "b", 12),
        Step("in", "k", "c", 13),
        Step("asks", "k", "3", 14),
    ]
    assert [value for _, value, _ in run(build, steps).rows] == ["1,null", "2,a", "3,a"]
