"""Planner of micro-batches: admission, a common time when it is behind, clocks, backfill, positions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from headrace import Consumed, JoinWindows, StreamsBuilder, StreamsConfig, Topology
from headrace.batches.layout import Layout
from headrace.batches.plan import Plan, Range
from headrace.batches.planner import Planner
from headrace.batches.reports import TaskReport
from headrace.errors import OffsetOutOfRangeError
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.journal import JournalState, TaskRecord
from headrace.topics.log import Output

SECOND = timedelta(seconds=1)


class Planned:
    """A topology on a log, and what a planner says about it; batches consume all they are given."""

    def __init__(self, log: EmbeddedLog, topology: Topology, **settings: object) -> None:
        config = StreamsConfig.of({"application.id": "app", "commit.interval.ms": 0, **settings})
        self.log = log
        self.layout = Layout.on(log, topology, config)
        self.clock_ms = 1_000
        self.journal = log.open_journal("app", [place.name for place in self.layout.tasks])
        self.batch_id = self.journal.state.batch_id + 1
        self.planner = self.new_planner()

    def new_planner(self, *, until_end: bool = True) -> Planner:
        self.journal = self.log.open_journal("app", [])
        return Planner(self.layout, self.log, self.journal.state, until_end=until_end, clock=lambda: self.clock_ms)

    def next(self, *, duration_ms: float = 2_000, clock_ms: int | None = None) -> dict[str, tuple[int, int]] | None:
        """Returns what the next batch reads, by partition, and takes it for done."""
        plan = self.planner.next_plan(self.batch_id)
        if plan is None:
            return None
        tasks = sorted({*plan.ranges, *plan.due})
        clocks = dict.fromkeys(plan.ranges or tasks[:1], clock_ms)
        reports = [self._report(plan, task, plan.ranges.get(task, ()), clocks.get(task)) for task in tasks]
        receipts = [report.receipt for report in reports if report.receipt is not None]
        self.journal.commit(self.batch_id, receipts)
        self.planner.done(plan, reports, duration_ms)
        self.batch_id += 1
        return {
            f"{each.topic}-{each.partition}": (each.start, each.end)
            for ranges in plan.ranges.values()
            for each in ranges
        }

    def _report(self, plan: Plan, task: str, ranges: Sequence[Range], clock_ms: int | None) -> TaskReport:
        positions = [(each.topic, each.partition, each.end) for each in ranges]
        record = TaskRecord(plan.batch_id, f"{task}/{plan.batch_id}", positions, clock_ms, b"")
        receipt = self.log.task_journal("app", self.journal.incarnation, task, []).commit(record, [], [])
        return TaskReport(task, receipt, sum(each.end - each.start for each in ranges))


def copy(*topics: str) -> Topology:
    builder = StreamsBuilder()
    for topic in topics:
        builder.stream(topic).to("out")
    return builder.build()


def rejoined() -> Topology:
    builder = StreamsBuilder()
    left = builder.stream("dense").select_key(lambda key, value: value)
    right = builder.stream("sparse").select_key(lambda key, value: value)
    left.join(right, lambda a, b: a, windows=JoinWindows.of_time_difference_with_no_grace(SECOND)).to("out")
    return builder.build()


def records(times: Sequence[int], partition: int = 0) -> list[Output]:
    return [(partition, time_ms, b"k", b"1", ()) for time_ms in times]


@pytest.fixture
def log(tmp_path: Path) -> EmbeddedLog:
    made = EmbeddedLog(tmp_path / "log", sync="none")
    for topic in ("in", "dense", "sparse"):
        made.create_topic(topic, partitions=2)
    made.create_topic("out")
    return made


def test_the_first_batch_comes_at_once_and_wakes_every_task(log: EmbeddedLog) -> None:
    app = Planned(log, copy("in"))
    plan = app.planner.next_plan(0)
    assert plan is not None
    assert plan.due == {place.name for place in app.layout.tasks}
    assert plan.ranges == {}


def test_everything_is_read_if_there_is_little(log: EmbeddedLog) -> None:
    log.append("in", [*records(range(10)), *records(range(3), 1)])
    app = Planned(log, copy("in"))
    assert app.next() == {"in-0": (0, 10), "in-1": (0, 3)}
    assert app.next() is None


def test_a_backfill_ends_with_what_was_there_at_its_start(log: EmbeddedLog) -> None:
    log.append("in", records(range(10)))
    app = Planned(log, copy("in"))
    log.append("in", records(range(5)))
    assert app.next() == {"in-0": (0, 10)}
    assert app.next() is None
    app.planner = app.new_planner()
    assert app.next() == {"in-0": (10, 15)}


def test_batches_grow_and_shrink_with_their_duration(log: EmbeddedLog) -> None:
    log.append("in", records(range(300_000)))
    app = Planned(log, copy("in"), **{"max.batch.records": 100_000})
    sizes = []
    for duration_ms in (200, 2_000, 8_000, 2_000):
        batch = app.next(duration_ms=duration_ms)
        assert batch is not None
        sizes.append(batch["in-0"][1] - batch["in-0"][0])
    # As many as the first may have, four times as many, the same again, a quarter.
    assert sizes == [20_000, 80_000, 80_000, 20_000]


def test_large_records_make_small_batches(log: EmbeddedLog) -> None:
    log.append("in", [(0, time_ms, b"k", bytes(1 << 20), ()) for time_ms in range(300)])
    batch = Planned(log, copy("in")).next()
    assert batch is not None
    assert 200 < batch["in-0"][1] < 260


def test_inputs_that_meet_behind_an_edge_are_read_to_a_common_time(log: EmbeddedLog) -> None:
    log.append("dense", records(range(0, 10_000)))
    log.append("dense", records(range(0, 10_000, 2), 1))
    log.append("sparse", records(range(0, 10_000, 1_000)))
    app = Planned(log, rejoined(), **{"max.batch.records": 1_000})
    plan = app.planner.next_plan(0)
    assert plan is not None
    found = {(each.topic, each.partition): each for ranges in plan.ranges.values() for each in ranges}
    # dense-0 gets some 495 records, up to time 494; nobody else may read beyond that.
    end = found["dense", 0].end
    assert 400 < end < 600
    assert found["dense", 0].resumes_ms in (-1, end)
    assert found["dense", 1] == Range("dense", 1, 0, (end + 1) // 2, end)
    assert found["sparse", 0] == Range("sparse", 0, 0, 1, end)


def test_a_common_time_never_stops_a_batch_from_going_on(log: EmbeddedLog) -> None:
    # The times go back: the first record is the latest of all.
    log.append("dense", records([9_000, *range(100, 3_000)]))
    log.append("sparse", records([50, 60, 9_500]))
    app = Planned(log, rejoined(), **{"max.batch.records": 100})
    read = 0
    for _ in range(100):
        batch = app.next()
        if batch is None:
            break
        read += sum(end - start for start, end in batch.values())
    assert read == 2_904


def test_an_independent_input_is_not_held_back(log: EmbeddedLog) -> None:
    log.append("dense", records(range(10_000)))
    log.append("sparse", records(range(0, 10_000, 1_000)))
    app = Planned(log, copy("dense", "sparse"), **{"max.batch.records": 1_000})
    assert app.next() == {"dense-0": (0, 990), "sparse-0": (0, 10)}


def test_a_clock_that_is_due_makes_a_batch(log: EmbeddedLog) -> None:
    app = Planned(log, copy("in"))
    app.planner = app.new_planner(until_end=False)
    app.next(clock_ms=5_000)
    app.clock_ms = 5_000
    plan = app.planner.next_plan(1)
    assert plan is not None
    assert len(plan.due) == 1
    assert plan.now_ms == 5_000


def test_a_backfill_does_not_go_on_for_its_clocks(log: EmbeddedLog) -> None:
    app = Planned(log, copy("in"))
    app.next(clock_ms=1_000)
    assert app.planner.next_plan(1) is None


def test_a_batch_that_an_earlier_driver_has_begun_does_not_hide_the_clocks_of_others(log: EmbeddedLog) -> None:
    app = Planned(log, copy("in"))
    app.planner = app.new_planner(until_end=False)
    begun = Plan(0, 1_000, due=frozenset({"0_0"}))
    app.planner.done(begun, [app._report(begun, "0_0", (), None)], 100.0)
    plan = app.planner.next_plan(1)
    assert plan is not None
    assert plan.due == {"0_1"}


def test_a_commit_interval_does_not_slow_down_what_is_behind(log: EmbeddedLog) -> None:
    log.append("in", records(range(10_000)))
    hour = 3_600_000
    app = Planned(log, copy("in"), **{"max.batch.records": 1_000, "commit.interval.ms": hour})
    assert [app.next() for _ in range(3)] == [{"in-0": (n * 1_000, n * 1_000 + 1_000)} for n in range(3)]


def test_a_topic_that_is_written_and_read_is_admitted_like_others(log: EmbeddedLog) -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("dense")
    builder.stream("dense").to("out")
    log.append("dense", records(range(5_000)))
    app = Planned(log, builder.build(), **{"max.batch.records": 1_000})
    assert app.next() == {"dense-0": (0, 1_000)}


def test_what_was_loaded_at_one_time_comes_before_what_else_is_of_that_time(log: EmbeddedLog) -> None:
    log.append("dense", records([7] * 3_000))
    log.append("sparse", records([5, 7, 9]))
    app = Planned(log, rejoined(), **{"max.batch.records": 1_003})
    assert app.next() == {"dense-0": (0, 1_000), "sparse-0": (0, 1)}
    while batch := app.next():
        if batch.get("dense-0", (0, 3_000))[1] < 3_000:
            assert batch["sparse-0"] == (1, 1)
    assert log.positions("app") == {("dense", 0): 3_000, ("sparse", 0): 3}


def test_the_clock_never_goes_back(log: EmbeddedLog) -> None:
    app = Planned(log, copy("in"))
    app.next()
    log.append("in", records([1]))
    app.planner = app.new_planner()
    app.clock_ms = 500
    plan = app.planner.next_plan(1)
    assert plan is not None
    assert plan.now_ms == 1_000


def test_a_restart_goes_on_where_the_log_says(log: EmbeddedLog) -> None:
    log.append("in", records(range(10)))
    first = Planned(log, copy("in"))
    first.next()
    log.append("in", records(range(4)))
    again = Planned(log, copy("in"))
    assert again.next() == {"in-0": (10, 14)}


@pytest.mark.parametrize(
    ("reset", "start"), [("earliest", 0), ("latest", None), (timedelta(milliseconds=400), 6), (None, 0)]
)
def test_a_source_says_where_it_starts(log: EmbeddedLog, reset: str | timedelta | None, start: int | None) -> None:
    log.append("in", records(range(0, 1_000, 100)))
    builder = StreamsBuilder()
    builder.stream("in", Consumed(offset_reset=reset)).to("out")
    app = Planned(log, builder.build())
    assert app.next() == ({} if start is None else {"in-0": (start, 10)})


@pytest.mark.parametrize("name", ["consumer.auto.offset.reset", "auto.offset.reset"])
def test_the_configuration_says_where_sources_start(log: EmbeddedLog, name: str) -> None:
    log.append("in", records(range(10)))
    app = Planned(log, copy("in"), **{name: "latest"})
    assert app.next() == {}


def test_offset_reset_none_wants_a_committed_position(log: EmbeddedLog) -> None:
    with pytest.raises(OffsetOutOfRangeError, match="no committed position"):
        Planned(log, copy("in"), **{"consumer.auto.offset.reset": "none"})


def test_records_that_were_removed_unread_are_never_skipped_silently(log: EmbeddedLog) -> None:
    log.append("in", records(range(10)))
    Planned(log, copy("in")).next()
    log.append("in", records(range(10)))
    log.delete_records({("in", 0): 15})
    with pytest.raises(OffsetOutOfRangeError, match="records 10 to 14 were removed before they were read"):
        Planned(log, copy("in"))
    # Where to begin is another question than what to do about a loss.
    with pytest.raises(OffsetOutOfRangeError, match="set on_offset_out_of_range to 'earliest' or 'latest'"):
        Planned(log, copy("in"), **{"consumer.auto.offset.reset": "earliest"})
    assert Planned(log, copy("in"), on_offset_out_of_range="earliest").next() == {"in-0": (15, 20)}


def test_unread_loss_can_be_left_behind(log: EmbeddedLog) -> None:
    log.append("in", records(range(10)))
    Planned(log, copy("in")).next()
    log.append("in", records(range(10)))
    log.delete_records({("in", 0): 15})
    assert Planned(log, copy("in"), on_offset_out_of_range="latest").next() == {}


def test_a_plan_survives() -> None:
    ranges = {"0_0": (Range("in", 0, 1, 9, -1), Range("in", 1, 0, 5, None))}
    plan = Plan(3, 5, ranges, frozenset({"0_1"}), {"0_0": "stamp"}, {"users/0": 4})
    assert Plan.unpack(plan.pack()) == plan
    assert plan.records == 13


def test_a_plan_names_the_last_commit_of_every_task(log: EmbeddedLog) -> None:
    log.append("in", [*records([1]), *records([1], 1)])
    app = Planned(log, copy("in"))
    app.planner = app.new_planner(until_end=False)
    app.next()
    log.append("in", records([2]))
    for batch_id, stamps in (1, {"0_0": "0_0/0", "0_1": "0_1/0"}), (2, {"0_0": "0_0/1", "0_1": "0_1/0"}):
        # A restart reads them from the journal.
        for planner in (app.planner, app.new_planner()):
            plan = planner.next_plan(batch_id)
            assert plan is not None
            assert plan.stamps == stamps
        app.next()
        log.append("in", records([3], 1))


def test_a_partition_that_a_topic_has_got_is_read_from_its_beginning(log: EmbeddedLog) -> None:
    state = JournalState(0, {("in", 0): 3})
    log.append("in", [*records(range(5)), *records(range(4), 1)])
    app = Planned(log, copy("in"), **{"consumer.auto.offset.reset": "latest"})
    app.planner = Planner(app.layout, log, state, until_end=True)
    assert app.next() == {"in-0": (3, 5), "in-1": (0, 4)}


def test_little_input_waits_for_the_interval(log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    app = Planned(log, copy("in"), **{"commit.interval.ms": 50})
    app.planner = app.new_planner(until_end=False)
    assert app.next() == {}
    log.append("in", records(range(3)))
    now += 0.02
    assert app.next() is None
    positions, within_s = app.planner.waits_for()
    assert (positions, round(within_s, 3)) == ({}, 0.03)
    now += 0.031
    assert app.next() == {"in-0": (0, 3)}


@pytest.mark.parametrize(("duration_ms", "pause_s"), [(10, 0.035), (60, 0.045), (500, 0.06)])
def test_little_input_waits_in_proportion_to_the_last_batch(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch, duration_ms: float, pause_s: float
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    app = Planned(log, copy("in"), **{"commit.interval.ms": None})
    app.planner = app.new_planner(until_end=False)
    log.append("in", records(range(3)))
    assert app.next(duration_ms=duration_ms) == {"in-0": (0, 3)}
    positions, within_s = app.planner.waits_for()
    assert (positions, round(within_s, 3)) == ({}, pause_s)


def test_whoever_has_nothing_to_do_waits_for_input_or_for_a_clock(log: EmbeddedLog) -> None:
    app = Planned(log, copy("in"))
    app.planner = app.new_planner(until_end=False)
    app.next(clock_ms=1_500)
    positions, within_s = app.planner.waits_for()
    assert (positions, within_s) == ({("in", 0): 0, ("in", 1): 0}, 0.5)


def test_tasks_wait_for_an_empty_input_as_long_as_they_are_told_to(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    builder = StreamsBuilder()
    builder.stream(["dense", "sparse"]).to("out")
    app = Planned(log, builder.build(), max_task_idle=SECOND)
    app.planner = app.new_planner(until_end=False)
    app.next()
    log.append("dense", records(range(3)))
    assert app.next() is None
    log.append("sparse", records([5]))
    assert app.next() == {"dense-0": (0, 3), "sparse-0": (0, 1)}
    log.append("dense", records(range(3)))
    assert app.next() is None
    now += 1.01
    assert app.next() == {"dense-0": (3, 6)}


def test_what_is_obsolete_is_told_now_and_then(log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    app = Planned(log, copy("in"))
    target, plan = ("sparse", 0), Plan(0, 0, due=frozenset({"0_0"}))
    for offset in (3, 5):
        app.planner.done(plan, [TaskReport("0_0", obsolete={target: offset})], 10.0)
    assert app.planner.take_obsolete() == {}
    now += 31
    assert app.planner.take_obsolete() == {target: 5}
    now += 31
    assert app.planner.take_obsolete() == {}
