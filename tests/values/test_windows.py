"""Windows against their definitions, by brute force over small times, and Kafka's rules for specifications."""

import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.arguments.durations import MAX_LONG, to_ms
from headrace.errors import TopologyError, WindowError
from headrace.windows import (
    EmitStrategy,
    JoinWindows,
    SessionWindow,
    SessionWindows,
    SlidingWindows,
    TimeWindow,
    TimeWindows,
    UnlimitedWindow,
    UnlimitedWindows,
    Window,
    Windowed,
)


def ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


@st.composite
def hopping(draw: st.DrawFn) -> TimeWindows:
    size_ms = draw(st.integers(1, 40))
    advance_ms = draw(st.integers(1, size_ms))
    return TimeWindows.of_size_with_no_grace(ms(size_ms)).advance_by(ms(advance_ms))


@given(hopping(), st.integers(0, 200))
def test_time_windows_are_all_aligned_windows_around_a_timestamp(windows: TimeWindows, timestamp_ms: int) -> None:
    starts = range(0, timestamp_ms + 1, windows.advance_ms)
    expected = [start for start in starts if start <= timestamp_ms < start + windows.size_ms]
    assert windows.windows_for(timestamp_ms) == expected


@given(st.integers(1, 1000), st.integers(0, MAX_LONG))
def test_every_timestamp_has_exactly_one_tumbling_window(size_ms: int, timestamp_ms: int) -> None:
    (start_ms,) = TimeWindows.of_size_with_no_grace(ms(size_ms)).windows_for(timestamp_ms)
    assert start_ms % size_ms == 0
    assert 0 <= timestamp_ms - start_ms < size_ms


def test_hopping_windows_of_early_records_start_at_zero() -> None:
    assert TimeWindows(size_ms=12, advance_ms=5, grace_ms=0).windows_for(3) == [0]
    assert TimeWindows(size_ms=12, advance_ms=5, grace_ms=0).windows_for(21) == [10, 15, 20]


def test_advance_by_keeps_size_and_grace() -> None:
    windows = TimeWindows.of_size_and_grace(ms(10), ms(3)).advance_by(ms(4))
    assert (windows.size_ms, windows.advance_ms, windows.grace_ms) == (10, 4, 3)


@given(st.integers(0, 50), st.integers(0, 150))
def test_sliding_windows_of_a_record_end_with_it_and_begin_after_it(difference_ms: int, timestamp_ms: int) -> None:
    left, right = SlidingWindows(difference_ms, 0).windows_for(timestamp_ms)
    assert left <= timestamp_ms <= left + difference_ms
    assert left == 0 or left + difference_ms == timestamp_ms
    assert right == timestamp_ms + 1


@given(st.integers(-20, 40), st.integers(-20, 40), st.integers(0, 60), st.integers(0, 60))
def test_join_windows_look_as_far_from_both_sides(before_ms: int, after_ms: int, left_ms: int, right_ms: int) -> None:
    if before_ms + after_ms < 0:
        with pytest.raises(TopologyError, match="before \\+ after must not be negative"):
            JoinWindows(before_ms, after_ms, 0)
        return
    windows = JoinWindows(before_ms, after_ms, 0)
    mirrored = JoinWindows(after_ms, before_ms, 0)
    assert windows.joins(left_ms, right_ms) == (-before_ms <= right_ms - left_ms <= after_ms)
    assert windows.joins(left_ms, right_ms) == mirrored.joins(right_ms, left_ms)


def test_join_windows_may_lie_entirely_on_one_side() -> None:
    windows = JoinWindows.of_time_difference_with_no_grace(ms(10)).after(ms(-5))
    assert (windows.before_ms, windows.after_ms, windows.size_ms) == (10, -5, 5)
    assert windows.joins(20, 15)
    assert not windows.joins(20, 16)


@given(st.integers(0, 100), st.integers(0, 200))
def test_unlimited_window_takes_everything_from_its_start(start_ms: int, timestamp_ms: int) -> None:
    start = datetime.fromtimestamp(0, UTC) + ms(start_ms)
    windows = UnlimitedWindows.of().start_on(start)
    assert windows.windows_for(timestamp_ms) == ([start_ms] if timestamp_ms >= start_ms else [])
    assert (windows.size_ms, windows.grace_ms) == (MAX_LONG, 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TimeWindows.of_size_with_no_grace(ms(0)), "the size must be at least 1 ms, got 0 ms"),
        (lambda: TimeWindows.of_size_with_no_grace(timedelta(microseconds=999)), "the size must be whole milliseconds"),
        (lambda: TimeWindows.of_size_and_grace(ms(5), ms(-1)), "grace period must not be negative, got -1 ms"),
        (lambda: TimeWindows.of_size_with_no_grace(ms(5)).advance_by(ms(0)), "advance must be at least 1 ms"),
        (lambda: TimeWindows.of_size_with_no_grace(ms(5)).advance_by(ms(6)), "at most the size, which is 5 ms"),
        (lambda: SlidingWindows.of_time_difference_with_no_grace(ms(-1)), "time difference must not be negative"),
        (lambda: SlidingWindows.of_time_difference_and_grace(ms(1), ms(-1)), "grace period must not be negative"),
        (lambda: SessionWindows.of_inactivity_gap_with_no_grace(ms(-1)), "inactivity gap must not be negative"),
        (lambda: SessionWindows.of_inactivity_gap_and_grace(ms(1), ms(-1)), "grace period must not be negative"),
        (lambda: JoinWindows.of_time_difference_with_no_grace(ms(-1)), "before \\+ after must not be negative"),
        (lambda: JoinWindows.of_time_difference_with_no_grace(ms(5)).before(ms(-6)), "before -6 ms and after 5 ms"),
        (lambda: JoinWindows.of_time_difference_and_grace(ms(5), ms(-1)), "grace period must not be negative"),
        (lambda: UnlimitedWindows(-1), "must not be before the epoch"),
        (lambda: UnlimitedWindows.of().start_on(datetime(2024, 1, 1)), "datetime with a time zone"),
    ],
)
def test_specifications_refuse_what_no_window_can_be(make: Any, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        make()


def test_zero_differences_and_gaps_are_allowed() -> None:
    assert SlidingWindows.of_time_difference_with_no_grace(ms(0)).difference_ms == 0
    assert SessionWindows.of_inactivity_gap_with_no_grace(ms(0)).gap_ms == 0
    assert JoinWindows.of_time_difference_with_no_grace(ms(0)).joins(5, 5)


def test_durations_must_be_timedeltas() -> None:
    seconds: Any = 5
    with pytest.raises(TopologyError, match="SessionWindows: the inactivity gap must be a timedelta, got int 5"):
        SessionWindows.of_inactivity_gap_with_no_grace(seconds)


@given(st.timedeltas(min_value=timedelta(0)))
def test_durations_are_whole_milliseconds_and_never_rounded(duration: timedelta) -> None:
    if duration.microseconds % 1000 == 0:
        assert ms(to_ms(duration, "x")) == duration
    else:
        with pytest.raises(TopologyError, match="x must be whole milliseconds"):
            to_ms(duration, "x")


def test_a_part_of_a_millisecond_is_refused_with_the_next_whole_one() -> None:
    with pytest.raises(TopologyError, match=r"got timedelta 0:00:00.001500; round it, .*timedelta\(milliseconds=2\)"):
        TimeWindows.of_size_with_no_grace(timedelta(microseconds=1500))


@given(st.integers(0, 30), st.integers(1, 10), st.integers(0, 30), st.integers(1, 10))
def test_windows_overlap_if_they_share_a_moment(start: int, size: int, other_start: int, other_size: int) -> None:
    moments, other_moments = set(range(start, start + size)), set(range(other_start, other_start + other_size))
    shared = bool(moments & other_moments)
    window, other = TimeWindow(start, start + size), TimeWindow(other_start, other_start + other_size)
    assert window.overlap(other) == shared
    session = SessionWindow(start, start + size - 1)
    other_session = SessionWindow(other_start, other_start + other_size - 1)
    assert session.overlap(other_session) == shared


def test_unlimited_windows_always_overlap() -> None:
    assert UnlimitedWindow(5).overlap(UnlimitedWindow(100))


def test_windows_of_different_kinds_are_not_comparable() -> None:
    time: Window = TimeWindow(0, 10)
    assert time != SessionWindow(0, 10)
    with pytest.raises(WindowError, match="only windows of one kind"):
        TimeWindow(0, 10).overlap(SessionWindow(0, 10))


@pytest.mark.parametrize("kind", [Window, TimeWindow, SessionWindow])
def test_windows_neither_start_before_zero_nor_end_before_they_start(kind: type[Window]) -> None:
    with pytest.raises(WindowError, match="cannot start before 0, got start -1"):
        kind(-1, 5)
    with pytest.raises(WindowError, match="got start 6 and end 5"):
        kind(6, 5)


def test_only_a_session_can_be_a_single_moment() -> None:
    assert SessionWindow(5, 5).end_ms == 5
    with pytest.raises(WindowError, match="must be longer than nothing"):
        TimeWindow(5, 5)


def test_window_times_are_utc() -> None:
    assert TimeWindow(1000, 2000).start_time == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert TimeWindow(1000, 2000).end_time == datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)


@pytest.mark.parametrize("window", [TimeWindow(0, 10), SessionWindow(3, 3), UnlimitedWindow(7)])
def test_windowed_keys_are_frozen_hashable_values(window: Window) -> None:
    windowed = Windowed("a", window)
    copy = pickle.loads(pickle.dumps(windowed))
    assert copy == windowed
    assert hash(copy) == hash(windowed)
    assert type(copy.window) is type(window)
    assert windowed != Windowed("b", window)
    with pytest.raises(AttributeError):
        windowed.key = "b"  # type: ignore[misc]  # that it fails is the point
    with pytest.raises(AttributeError):
        window.start_ms = 1  # type: ignore[misc]  # that it fails is the point


def test_windowed_key_prints_like_kafkas() -> None:
    assert str(Windowed("alice", TimeWindow(0, 10))) == "[alice@0/10]"


@pytest.mark.parametrize(
    "windows",
    [
        TimeWindows(10, 5, 1),
        SlidingWindows(10, 1),
        SessionWindows(10, 1),
        JoinWindows(1, 2, 3),
        UnlimitedWindows(5),
        EmitStrategy.ON_WINDOW_CLOSE,
    ],
    ids=lambda windows: type(windows).__name__,
)
def test_specifications_pickle(windows: Any) -> None:
    assert pickle.loads(pickle.dumps(windows)) == windows
