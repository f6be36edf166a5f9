"""Windowed joins of streams: what is unmatched, when it comes out, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from headrace import JoinWindows, StreamsBuilder, with_key
from headrace.testing import TopologyTestDriver
from tests.operators.driving import STRING, Step, config, pair, run


def ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def _join(method: str, windows: JoinWindows) -> Callable[[StreamsBuilder], None]:
    def build(builder: StreamsBuilder) -> None:
        getattr(builder.stream("L"), method)(builder.stream("R"), pair, windows=windows).to("out")

    return build


FIVE_AND_GRACE = JoinWindows.of_time_difference_and_grace(ms(5), ms(3))


def test_unmatched_records_come_by_time_then_right_before_left_then_key() -> None:
    steps = [
        Step("L", "b", "l", 1),
        Step("L", "a", "l", 1),
        Step("R", "c", "r", 1),
        Step("R", "d", "r", 0),
        Step("L", "z", "now", 100),
    ]
    assert run(_join("outer_join", FIVE_AND_GRACE), steps).steps[-1] == [
        ("d", "null,r", 0),
        ("c", "null,r", 1),
        ("a", "l,null", 1),
        ("b", "l,null", 1),
    ]


def test_unmatched_records_of_one_key_and_time_come_in_their_order() -> None:
    steps = [Step("L", "a", "1", 0), Step("L", "a", "2", 0), Step("R", "z", "now", 100)]
    assert run(_join("left_join", FIVE_AND_GRACE), steps).steps[-1] == [("a", "1,null", 0), ("a", "2,null", 0)]


def test_search_for_unmatched_records_ends_at_the_second_value_of_a_row() -> None:
    """The search at 21 meets an open record of each side at 12 and 15, and ends at 15, not at 19: at 26 it goes on."""
    windows = JoinWindows.of_time_difference_and_grace(ms(3), ms(4)).before(ms(5))
    steps = [
        Step("R", "a", "x", 12),
        Step("L", "b", "1", 15),
        Step("L", "b", "2", 15),
        Step("R", "c", "y", 19),
        Step("L", "d", "z", 21),
        Step("R", "e", "now", 26),
    ]
    assert run(_join("outer_join", windows), steps).steps == [
        [],
        [],
        [],
        [],
        [],
        [("a", "null,x", 12), ("b", "1,null", 15), ("b", "2,null", 15)],
    ]


def test_unmatched_record_waits_until_window_and_grace_are_strictly_over() -> None:
    steps = [Step("L", "a", "x", 0), Step("R", "z", "t", 8), Step("R", "z", "t", 9)]
    assert run(_join("left_join", FIVE_AND_GRACE), steps).steps == [[], [], [("a", "x,null", 0)]]


def test_unmatched_results_come_before_the_join_of_the_record_that_closes_them() -> None:
    steps = [Step("L", "a", "x", 0), Step("R", "b", "y", 20), Step("L", "b", "z", 20)]
    assert run(_join("left_join", FIVE_AND_GRACE), steps).steps == [[], [("a", "x,null", 0)], [("b", "z,y", 20)]]


def test_late_unmatched_record_comes_at_once_although_its_grace_period_is_not_over() -> None:
    steps = [Step("L", "z", "t", 10), Step("L", "a", "x", 4), Step("R", "a", "y", 8)]
    assert run(_join("left_join", FIVE_AND_GRACE), steps).steps == [[], [("a", "x,null", 4)], [("a", "x,y", 8)]]


def test_matched_record_never_comes_out_unmatched() -> None:
    steps = [Step("L", "a", "x", 0), Step("R", "a", "y", 1), Step("L", "z", "t", 100)]
    assert run(_join("outer_join", FIVE_AND_GRACE), steps).steps == [[], [("a", "x,y", 1)], []]


def test_records_of_one_key_and_time_all_join_in_their_order() -> None:
    steps = [Step("R", "a", "1", 0), Step("R", "a", "2", 0), Step("R", "a", "3", 1), Step("L", "a", "x", 1)]
    assert run(_join("join", FIVE_AND_GRACE), steps).steps[-1] == [("a", "x,1", 1), ("a", "x,2", 1), ("a", "x,3", 1)]


def test_before_and_after_count_from_the_left_record() -> None:
    windows = JoinWindows.of_time_difference_with_no_grace(ms(5)).before(ms(0))
    steps = [
        Step("L", "a", "x", 10),
        Step("R", "a", "early", 9),
        Step("R", "a", "same", 10),
        Step("R", "a", "late", 15),
    ]
    assert run(_join("join", windows), steps).rows == [("a", "x,same", 10), ("a", "x,late", 15)]
    mirrored = [
        Step("R", "a", "y", 10),
        Step("L", "a", "early", 4),
        Step("L", "a", "five", 5),
        Step("L", "a", "after", 11),
    ]
    assert run(_join("join", windows), mirrored).rows == [("a", "five,y", 10)]


def test_null_keys_and_values_by_side() -> None:
    steps = [Step("L", None, "l", 0), Step("R", None, "r", 1), Step("L", "k", None, 2), Step("R", "k", None, 3)]
    left_null, right_null = (None, "l,null", 0), (None, "null,r", 1)
    expected = {"join": ([], 4), "left_join": ([left_null], 3), "outer_join": ([left_null, right_null], 2)}
    for method, (rows, dropped) in expected.items():
        result = run(_join(method, FIVE_AND_GRACE), steps)
        assert (result.rows, result.dropped) == (rows, dropped), method


def test_joiner_with_key_sees_key_left_and_right() -> None:
    def build(builder: StreamsBuilder) -> None:
        joiner = with_key(lambda key, left, right: f"{key}:{pair(left, right)}")
        builder.stream("L").outer_join(builder.stream("R"), joiner, windows=FIVE_AND_GRACE).to("out")

    steps = [Step("L", "a", "x", 0), Step("R", "a", "y", 1), Step("R", "b", "z", 2), Step("L", "t", "t", 50)]
    assert run(build, steps).rows == [("a", "a:x,y", 1), ("b", "b:null,z", 2)]


def test_result_has_the_headers_of_the_record_that_made_it() -> None:
    builder = StreamsBuilder()
    _join("outer_join", FIVE_AND_GRACE)(builder)
    settings = config()
    with TopologyTestDriver(builder.build(settings), settings, initial_wall_clock_ms=0) as driver:
        left = driver.create_input_topic("L", STRING, STRING)
        left.pipe_input("a", "x", timestamp_ms=0, headers=[("h", b"waiting")])
        left.pipe_input("b", "y", timestamp_ms=50, headers=[("h", b"trigger")])
        (record,) = driver.create_output_topic("out", STRING, STRING).read_records()
    assert (record.key, record.headers.last("h")) == ("a", b"trigger")


def test_unmatched_results_come_at_most_once_per_emit_interval() -> None:
    builder = StreamsBuilder()
    _join("left_join", JoinWindows.of_time_difference_with_no_grace(ms(2)))(builder)
    settings = config(emit_interval=ms(10))
    with TopologyTestDriver(builder.build(settings), settings, initial_wall_clock_ms=0) as driver:
        left, out = driver.create_input_topic("L", STRING, STRING), driver.create_output_topic("out", STRING, STRING)
        # The first record makes an attempt although nothing waits, so the next is due 10 ms later.
        left.pipe_input("a", "x", timestamp_ms=0)
        left.pipe_input("b", "y", timestamp_ms=20)
        assert out.read_records() == []
        driver.advance_wall_clock_time(ms(10))
        left.pipe_input("c", "z", timestamp_ms=21)
        assert [(record.key, record.value) for record in out.read_records()] == [("a", "x,null")]


def test_self_join_gives_the_same_with_one_store_as_with_two() -> None:
    def build(builder: StreamsBuilder) -> None:
        stream = builder.stream("L")
        stream.join(stream, pair, windows=JoinWindows.of_time_difference_with_no_grace(ms(3))).to("out")

    steps = [
        Step("L", "k", "A", 1),
        Step("L", "k", "B", 2),
        Step("L", "k", "E", 5),
        Step("L", "k", "F", 3),
        Step("L", None, "x", 4),
        Step("L", "k", None, 4),
        Step("L", "k", "G", 20),
    ]
    expected = [
        [("k", "A,A", 1)],
        [("k", "B,A", 2), ("k", "A,B", 2), ("k", "B,B", 2)],
        [("k", "E,B", 5), ("k", "B,E", 5), ("k", "E,E", 5)],
        [
            ("k", "F,A", 3),
            ("k", "F,B", 3),
            ("k", "F,E", 5),
            ("k", "A,F", 3),
            ("k", "B,F", 3),
            ("k", "F,F", 3),
            ("k", "E,F", 5),
        ],
        [],
        [],
        [("k", "G,G", 20)],
    ]
    assert run(build, steps).steps == expected
    assert run(build, steps, config(topology_optimization="all")).steps == expected


def test_with_eager_results_unmatched_records_do_not_wait() -> None:
    steps = [Step("L", "a", "x", 0), Step("R", "a", "y", 3), Step("R", "b", "z", 4), Step("L", "b", "w", 100)]
    eager = FIVE_AND_GRACE.with_eager_results()
    assert run(_join("left_join", eager), steps).steps == [
        [("a", "x,null", 0)],
        [("a", "x,y", 3)],
        [],
        [("b", "w,null", 100)],
    ]
    assert run(_join("outer_join", eager), steps).steps == [
        [("a", "x,null", 0)],
        [("a", "x,y", 3)],
        [("b", "null,z", 4)],
        [("b", "w,null", 100)],
    ]


def test_eager_results_need_no_store_for_unmatched_records() -> None:
    builder = StreamsBuilder()
    _join("outer_join", FIVE_AND_GRACE.with_eager_results())(builder)
    assert "OUTERSHARED" not in str(builder.build().describe())
