"""Windows of one's own."""

from __future__ import annotations

import pickle
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace import (
    LateRecord,
    Materialized,
    ProcessingError,
    Serdes,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindow,
    TimeWindows,
    TopologyError,
    TopologyTestDriver,
    UnlimitedWindows,
    Windowed,
    Windows,
)
from headrace.dsl import BufferConfig
from tests.operators.driving import STRING, config, run
from tests.operators.windowing import CACHE, aggregate, concat, ms, records, show, table_of

BOUNDS = (0, 10, 30, 35, 100)


@dataclass(frozen=True)
class Periods:
    """Windows of different lengths, one after the other; none after the last bound."""

    bounds: tuple[int, ...] = BOUNDS
    grace_ms: int = 0

    @property
    def size_ms(self) -> int:
        return max(end - start for start, end in zip(self.bounds, self.bounds[1:], strict=False))

    def windows_for(self, timestamp_ms: int) -> list[int]:
        place = bisect_right(self.bounds, timestamp_ms)
        return [self.bounds[place - 1]] if place < len(self.bounds) else []

    def window_at(self, start_ms: int) -> TimeWindow:
        return TimeWindow(start_ms, self.bounds[self.bounds.index(start_ms) + 1])


@dataclass(frozen=True)
class Months:
    grace_ms: int = 0
    size_ms: int = 31 * 86_400_000

    def windows_for(self, timestamp_ms: int) -> list[int]:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, tz=UTC)
        return [in_ms(datetime(moment.year, moment.month, 1, tzinfo=UTC))]

    def window_at(self, start_ms: int) -> TimeWindow:
        start = datetime.fromtimestamp(start_ms / 1000, tz=UTC)
        end = datetime(start.year + start.month // 12, start.month % 12 + 1, 1, tzinfo=UTC)
        return TimeWindow(start_ms, in_ms(end))


def in_ms(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000


class Nested(Periods):
    """A record belongs to a short window and to a long one, which starts a millisecond earlier."""

    @property
    def size_ms(self) -> int:
        return 40

    def windows_for(self, timestamp_ms: int) -> list[int]:
        return [19, 20]

    def window_at(self, start_ms: int) -> TimeWindow:
        return TimeWindow(start_ms, 59 if start_ms == 19 else 25)


@pytest.mark.parametrize("cache", [0, CACHE])
def test_each_window_closes_at_its_own_end(cache: int) -> None:
    steps = records(("a", 1), ("b", 9), ("c", 29), ("d", 2), ("e", 30), ("f", 12), ("g", 34), ("h", 35), ("i", 31))
    result = run(aggregate(Periods()), steps, config(cache=cache))
    assert result.steps == [
        [("k@0/10", "a", 1)],
        [("k@0/10", "ab", 9)],
        [("k@10/30", "c", 29)],
        [],
        [("k@30/35", "e", 30)],
        [],
        [("k@30/35", "eg", 34)],
        [("k@35/100", "h", 35)],
        [],
    ]
    assert result.dropped == 3


def test_grace_period_lets_late_records_in() -> None:
    result = run(aggregate(Periods(grace_ms=5)), records(("a", 1), ("b", 14), ("c", 2), ("d", 15), ("e", 3)))
    assert result.steps == [
        [("k@0/10", "a", 1)],
        [("k@10/30", "b", 14)],
        [("k@0/10", "ac", 2)],
        [("k@10/30", "bd", 15)],
        [],
    ]


def test_record_outside_of_all_windows_changes_nothing() -> None:
    result = run(aggregate(Periods()), records(("a", 100), ("b", 99)))
    assert (result.steps, result.dropped) == ([[], []], 1)


def test_record_goes_to_all_of_its_windows_in_their_order() -> None:
    result = run(aggregate(Nested()), records(("a", 21), ("b", 25)))
    assert result.steps == [[("k@19/59", "a", 21), ("k@20/25", "a", 21)], [("k@19/59", "ab", 25)]]


@pytest.mark.parametrize("cache", [0, CACHE])
def test_final_results_come_when_stream_time_reaches_the_end_of_their_own_window(cache: int) -> None:
    steps = records(("a", 1), ("b", 9), ("c", 10), ("d", 29), ("e", 30), ("f", 34), ("g", 35), ("h", 99))
    result = run(aggregate(Periods(), final=True), steps, config(cache=cache))
    assert result.steps == [
        [],
        [],
        [("k@0/10", "ab", 9)],
        [],
        [("k@10/30", "cd", 29)],
        [],
        [("k@30/35", "ef", 34)],
        [],
    ]


def test_shorter_window_is_final_before_a_longer_one_that_started_earlier() -> None:
    result = run(aggregate(Nested(), final=True), records(("a", 21), ("b", 25), ("c", 58), ("d", 59)))
    assert result.steps == [[], [("k@20/25", "a", 21)], [], [("k@19/59", "abc", 58)]]


def test_months_have_their_own_lengths() -> None:
    february, march = datetime(2024, 2, 29, 12, tzinfo=UTC), datetime(2024, 3, 1, tzinfo=UTC)
    result = run(aggregate(Months(), final=True), records(("a", in_ms(february)), ("b", in_ms(march))))
    start_ms = in_ms(datetime(2024, 2, 1, tzinfo=UTC))
    assert result.steps == [[], [(f"k@{start_ms}/{in_ms(march)}", "a", in_ms(february))]]


def test_store_and_batched_caches_know_the_ends_of_windows() -> None:
    builder, settings = StreamsBuilder(), config(cache=CACHE)
    table_of(builder, Periods()).to_stream(show).to("out")
    with TopologyTestDriver(builder.build(settings), settings, batched=True) as driver:
        driver.create_input_topic("in").pipe_key_values([("k", "a"), ("k", "b")], start_ms=5, advance=ms(10))
        driver.commit()
        assert driver.create_output_topic("out").read_key_values() == [("k@0/10", "a"), ("k@10/30", "b")]
        rows = list(driver.get_window_store("windows").all())
    assert rows == [(Windowed("k", TimeWindow(0, 10)), "a"), (Windowed("k", TimeWindow(10, 30)), "b")]


def test_store_that_was_chosen_knows_the_ends_of_windows_too() -> None:
    builder = StreamsBuilder()
    supplier = Stores.in_memory_window_store("mine", ms(1000), ms(65))
    grouped = builder.stream("in").group_by_key().windowed_by(Periods())
    grouped.count(materialized=Materialized(supplier))
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("k", "a", timestamp_ms=12)
        assert list(driver.get_window_store("mine").all()) == [(Windowed("k", TimeWindow(10, 30)), 1)]


def test_written_keys_are_read_back_with_their_ends_if_the_serde_knows_the_windows() -> None:
    builder, settings = StreamsBuilder(), config()
    table_of(builder, Periods()).to_stream().to("out")
    with TopologyTestDriver(builder.build(settings), settings) as driver:
        driver.create_input_topic("in").pipe_input("k", "a", timestamp_ms=12)
        output = driver.create_output_topic("out", Serdes.time_windowed(STRING, windows=Periods()))
        assert output.read_key_value() == (Windowed("k", TimeWindow(10, 30)), "a")


def test_suppressed_results_wait_for_the_end_of_their_own_window() -> None:
    def build(builder: StreamsBuilder) -> None:
        closed = Suppressed.until_window_closes(BufferConfig.unbounded())
        table_of(builder, Periods()).suppress(closed).to_stream(show).to("out")

    result = run(build, records(("a", 12), ("b", 29), ("c", 30), ("d", 35)))
    assert result.steps == [[], [], [("k@10/30", "ab", 29)], [("k@30/35", "c", 30)]]


def test_cogrouped_streams_can_have_windows_of_ones_own() -> None:
    def build(builder: StreamsBuilder) -> None:
        cogrouped = builder.stream("in").group_by_key().cogroup(concat)
        cogrouped.windowed_by(Periods()).aggregate(lambda: "").to_stream(show).to("out")

    assert run(build, records(("a", 12))).steps == [[("k@10/30", "a", 12)]]


def test_late_record_names_its_window() -> None:
    late: list[LateRecord] = []
    run(aggregate(Periods()), records(("a", 30), ("b", 12)), config(on_late=late.append))
    assert [(record.window, record.close_time_ms) for record in late] == [(TimeWindow(10, 30), 30)]


@pytest.mark.parametrize("windows", [TimeWindows(10, 5, 0), UnlimitedWindows.of(), Periods()])
def test_all_windows_follow_the_protocol(windows: Windows) -> None:
    assert isinstance(windows, Windows)
    assert [windows.window_at(start_ms).start_ms for start_ms in windows.windows_for(7)] == list(windows.windows_for(7))


def test_serde_of_windows_travels() -> None:
    serde = Serdes.time_windowed(STRING, windows=Periods())
    assert pickle.loads(pickle.dumps(serde)) == serde


class Liar(Periods):
    def window_at(self, start_ms: int) -> TimeWindow:
        return TimeWindow(start_ms + 1, start_ms + 5)


class Longer(Periods):
    @property
    def size_ms(self) -> int:
        return 10


class Broken(Periods):
    def windows_for(self, timestamp_ms: int) -> list[int]:
        message = "no calendar"
        raise LookupError(message)


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        (Liar(), r"Liar\.window_at\(10\) must return the window that starts then"),
        (Longer(), r"Longer\.size_ms must be the length of the longest window; it is 10, but there is TimeWindow"),
        (Broken(), "no calendar"),
    ],
)
def test_windows_that_fail_or_contradict_themselves_fail_the_record(windows: Any, message: str) -> None:
    with pytest.raises(ProcessingError, match=message):
        run(aggregate(windows), records(("a", 12)))


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        (object(), r"or windows of your own with the members of headrace\.Windows; found"),
        (Periods, "found type .*Periods"),
        (Months(size_ms=0), "size_ms of Months must be at least 1 ms, got int 0"),
        (Months(grace_ms=-1), "grace_ms of Months must be at least 0 ms, got int -1"),
    ],
)
def test_objects_that_are_no_windows_are_refused(windows: Any, message: str) -> None:
    grouped = StreamsBuilder().stream("in").group_by_key()
    with pytest.raises(TopologyError, match=message):
        grouped.windowed_by(windows)


def test_retention_must_cover_the_longest_window() -> None:
    with pytest.raises(TopologyError, match="at least the window size plus the grace period, 65 ms; found 30 ms"):
        table_of(StreamsBuilder(), Periods(), retention=ms(30))
