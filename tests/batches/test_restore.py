"""State restore: what a task knows after it was opened anew, from changelogs, working copies and its record."""

from __future__ import annotations

import random
import shutil
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import (
    BufferConfig,
    Consumed,
    EmbeddedLog,
    EmitStrategy,
    JoinWindows,
    Materialized,
    Produced,
    Serdes,
    SessionWindows,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
)
from headrace.batches import restore as restoring
from headrace.batches import working_copy
from headrace.batches.layout import TaskPlace
from headrace.batches.reports import BatchReport
from headrace.batches.working_copy import Applied, WorkingCopy
from headrace.errors import LogError
from headrace.state import SessionStore, Stores
from headrace.state.engines.changes import Changes
from headrace.topics.log import Raw
from tests.batches.kit import Bench, Build

SECOND = timedelta(seconds=1)
AS_JSON = Produced(Serdes.string(), Serdes.json())


def totals(builder: StreamsBuilder) -> None:
    """Sums by key; a value of null takes the key out."""
    table = (
        builder.stream("in")
        .group_by_key()
        .aggregate(
            lambda: 0,
            lambda _key, value, total: None if value < 0 else total + value,
            materialized=Materialized("totals", key_serde=Serdes.string(), value_serde=Serdes.json()),
        )
    )
    table.to_stream().to("out")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, totals, {"in": 1, "out": 1}, statestore_cache_max_bytes=0)


def restored(report: BatchReport) -> int:
    """Returns how many records of changelogs were read before a batch."""
    return sum(task.restored for task in report.tasks)


def values(rows: dict[Any, Any]) -> dict[Any, Any]:
    return {key: value.value for key, value in rows.items()}


def run_batches(bench: Bench, host: str, *batches: list[tuple[str, int, int]]) -> None:
    """Runs a batch after the other on one machine, and closes it well.

    What the last one changed is not in the working copy: only the next plan says that it was committed.
    """
    driver = bench.driver(host)
    for records in batches:
        bench.write("in", *records)
        driver.run()
    driver.close()


def test_a_new_machine_restores_from_the_beginning(bench: Bench) -> None:
    run_batches(bench, "one", [("a", 1, 10), ("b", 2, 20), ("a", 3, 30)])
    bench.write("in", ("a", 10, 40))
    second = bench.driver("two")
    (report,) = second.run()
    # A row for each key that the batch has changed.
    assert restored(report) == 2
    assert values(second.rows("totals")) == {"a": 14, "b": 2}
    assert bench.read("out")[-1] == ("a", 14)


def test_a_copy_is_brought_up_to_date_by_what_it_misses(bench: Bench) -> None:
    run_batches(bench, "one", [("a", 1, 10), ("b", 2, 20)], [("c", 3, 30)])
    run_batches(bench, "two", [("a", 4, 40)])
    bench.write("in", ("d", 5, 50))
    again = bench.driver("one")
    (report,) = again.run()
    assert restored(report) == 2
    assert values(again.rows("totals")) == {"a": 5, "b": 2, "c": 3, "d": 5}


def test_a_restart_restores_only_the_last_batch(bench: Bench) -> None:
    run_batches(bench, "one", [("a", 1, 10), ("b", 2, 20)], [("a", 3, 30)])
    again = bench.driver("one")
    (report,) = again.run()
    assert restored(report) == 1
    assert values(again.rows("totals")) == {"a": 4, "b": 2}


def test_rows_that_were_never_written_to_the_copy_are_restored(bench: Bench) -> None:
    driver = bench.driver()
    for number in range(5):
        bench.write("in", ("a", 1, number), (f"k{number}", number, number))
        driver.run()
    driver.kill()
    again = bench.driver()
    again.run()
    assert values(again.rows("totals")) == {"a": 5, **{f"k{number}": number for number in range(5)}}


def test_what_was_not_committed_is_not_restored(bench: Bench) -> None:
    driver = bench.driver()
    bench.write("in", ("a", 1, 10))
    driver.run()
    bench.write("in", ("a", 10, 20))
    plan = driver.plan_work()
    assert plan is not None
    driver.execute(plan)
    driver.kill()
    again = bench.driver()
    again.run()
    assert values(again.rows("totals")) == {"a": 11}
    assert bench.read("out") == [("a", 1), ("a", 11)]


def test_deleted_rows_stay_deleted(bench: Bench) -> None:
    run_batches(bench, "one", [("a", 1, 10), ("b", 2, 20)], [("a", 2, 20)])
    run_batches(bench, "two", [("a", -1, 30)])
    for host in ("one", "two", "three"):
        again = bench.driver(host)
        again.run()
        assert values(again.rows("totals")) == {"b": 2}
        again.close()


DAY_MS = 24 * 3_600_000


@pytest.mark.parametrize(("away_ms", "rows"), [(DAY_MS - 60_000, 3), (DAY_MS + 60_000, 2)])
def test_a_copy_that_was_away_for_longer_than_tombstones_are_kept_is_built_anew(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, away_ms: int, rows: int
) -> None:
    run_batches(bench, "one", [("a", 1, 10), ("b", 2, 20)], [("b", 0, 20)])
    run_batches(bench, "two", [("a", -1, 30), ("c", 3, 30)])
    now_ms = time.time_ns() // 1_000_000
    clean(bench, now_ms)
    # Compaction drops the row at once and the tombstone after a day: then nothing says that it was deleted.
    clean(bench, now_ms + away_ms)
    left = [key for _, _, key, _, _ in bench.log.read(bench.changelog("totals"), 0, 0)]
    assert left == [b"b", b"c"] if away_ms > DAY_MS else [b"b", b"a", b"c"]
    monkeypatch.setattr(time, "time_ns", lambda: (now_ms + away_ms) * 1_000_000)
    again = bench.driver("one")
    (report,) = again.run()
    assert values(again.rows("totals")) == {"b": 2, "c": 3}
    assert restored(report) == rows


def clean(bench: Bench, now_ms: int) -> None:
    assert isinstance(bench.log, EmbeddedLog)
    while bench.log.clean(now_ms=now_ms).more:
        """The rest."""


def test_a_process_that_kept_a_task_which_others_ran_does_not_make_its_copy_young(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = time.time_ns() // 1_000_000
    one = bench.driver("one")
    for records in [("a", 1, 10), ("b", 2, 20)], [("b", 0, 20)]:
        bench.write("in", *records)
        one.run()
    # It does not know yet that it was deposed, and is closed two days later.
    run_batches(bench, "two", [("a", -1, 30), ("c", 3, 30)])
    for days in (0, 2):
        monkeypatch.setattr(time, "time_ns", lambda: (now_ms + days * DAY_MS) * 1_000_000)  # noqa: B023
        clean(bench, now_ms + days * DAY_MS)
    one.close()
    again = bench.driver("one")
    again.run()
    assert values(again.rows("totals")) == {"b": 2, "c": 3}


def test_a_topic_that_was_deleted_and_made_anew_is_another_one(bench: Bench) -> None:
    run_batches(bench, "one", [("a", 1, 10), ("b", 2, 20)], [("b", 1, 20)])
    topic = bench.changelog("totals")
    rows = bench.log.read(topic, 0, 0)
    configs = bench.log.describe_topic(topic).configs
    bench.log.delete_topic(topic)
    bench.log.create_topic(topic, configs=configs)
    # As many records as before, with other rows.
    bench.log.append(topic, [(0, time_ms, b"x", value, ()) for _, time_ms, _, value, _ in rows])
    again = bench.driver("one")
    (report,) = again.run()
    assert restored(report) == 3
    assert values(again.rows("totals")) == {"x": 3}


def follow(bench: Bench, place: TaskPlace, copy: WorkingCopy) -> None:
    """Brings a copy to where its changelogs end."""
    journal = bench.log.task_journal("app", 0, place.name, [])
    for _ in restoring.follow_changelogs(bench.layout, place, journal, bench.log, copy):
        """Page by page."""


@pytest.mark.parametrize("others_have_gone_on", [False, True])
def test_a_standby_copy_from_before_a_reset_is_built_anew(bench: Bench, *, others_have_gone_on: bool) -> None:
    """On Kafka a reset empties changelogs and keeps them, so that offsets go on; machines have their copies still."""
    run_batches(bench, "one", [("a", 1, 10), ("b", 2, 20)])
    (place,) = bench.layout.tasks
    copy = bench.layout.copy_of(place, bench.directory / "two")
    follow(bench, place, copy)
    copy.close()
    target = (bench.changelog("totals"), 0)
    bench.log.reset_application("app")
    bench.log.delete_records(bench.log.end_offsets([target]))
    bench.log.begin_at("app", bench.log.end_offsets([("in", 0)]))
    if others_have_gone_on:
        run_batches(bench, "one", [("c", 4, 30)])
    bench.write("in", ("a", 5, 40))
    again = bench.driver("two")
    again.run()
    assert values(again.rows("totals")) == ({"a": 5, "c": 4} if others_have_gone_on else {"a": 5})


def test_a_standby_copy_that_follows_over_a_reset_keeps_nothing_from_before(bench: Bench) -> None:
    run_batches(bench, "one", [("a", 1, 10), ("b", 2, 20)])
    (place,) = bench.layout.tasks
    copy = bench.layout.copy_of(place, bench.directory / "two")
    follow(bench, place, copy)
    bench.log.reset_application("app")
    bench.log.delete_records(bench.log.end_offsets([(bench.changelog("totals"), 0)]))
    bench.log.begin_at("app", bench.log.end_offsets([("in", 0)]))
    run_batches(bench, "one", [("c", 4, 30)])
    follow(bench, place, copy)
    copy.close()
    bench.write("in", ("a", 5, 40))
    again = bench.driver("two")
    again.run()
    assert values(again.rows("totals")) == {"a": 5, "c": 4}


def test_offsets_of_a_changelog_are_not_taken_for_those_of_one_that_is_made_anew(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_batches(bench, "one", [("a", 1, 10), ("b", 2, 20)])
    (place,) = bench.layout.tasks
    changelog, topic_id = bench.changelog("totals"), bench.log.topic_id

    def make_anew(topic: str) -> str:
        monkeypatch.undo()
        configs = bench.log.describe_topic(topic).configs
        bench.log.delete_topic(topic)
        bench.log.create_topic(topic, partitions=1, configs=configs)
        return topic_id(topic)

    monkeypatch.setattr(bench.log, "topic_id", make_anew)
    copy = bench.layout.copy_of(place, bench.directory / "two")
    follow(bench, place, copy)
    copy.close()
    run_batches(bench, "one", [("x", 3, 30), ("y", 4, 40)])
    assert bench.log.end_offsets([(changelog, 0)]) == {(changelog, 0): 2}
    bench.write("in", ("x", 1, 50))
    again = bench.driver("two")
    again.run()
    assert values(again.rows("totals")) == {"x": 4, "y": 4}


def test_a_copy_that_is_behind_the_beginning_of_its_topic_is_built_anew(bench: Bench) -> None:
    run_batches(bench, "one", [("a", 1, 10), ("b", 2, 20)], [("c", 1, 20)])
    run_batches(bench, "two", [("d", 4, 30)], [("e", 5, 30)])
    topic = bench.changelog("totals")
    bench.log.delete_records({(topic, 0): 4})
    again = bench.driver("one")
    (report,) = again.run()
    # Whoever cuts the front says that nothing there is needed any more.
    assert restored(report) == 1
    assert values(again.rows("totals")) == {"e": 5}


def test_a_copy_that_is_ahead_of_the_log_is_built_anew(bench: Bench) -> None:
    run_batches(bench, "one", [("a", 1, 10)], [("b", 2, 20)])
    (place,) = bench.layout.tasks
    copy = bench.layout.copy_of(place, bench.directory / "one")
    applied = copy.applied("totals")
    assert applied is not None
    copy.settle({"totals": Changes(rows={b"never": b"was"})}, {"totals": Applied(applied.topic_id, 99)})
    copy.write()
    copy.close()
    again = bench.driver("one")
    (report,) = again.run()
    assert restored(report) == 2
    assert values(again.rows("totals")) == {"a": 1, "b": 2}


def test_restore_goes_in_steps_and_says_how_much_is_left(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    run_batches(bench, "one", [(f"k{number}", 1, number) for number in range(25)])
    monkeypatch.setattr(restoring, "_AT_ONCE", 10)
    left: list[dict[str, int]] = []
    read = bench.log.read

    def watched(*args: Any, **options: Any) -> list[Raw]:
        left.append(working_copy.restoring(bench.directory / "two"))
        return read(*args, **options)

    monkeypatch.setattr(bench.log, "read", watched)
    again = bench.driver("two")
    (report,) = again.run()
    assert restored(report) == 25
    assert left[:3] == [{}, {"0_0": 15}, {"0_0": 5}]
    assert working_copy.restoring(bench.directory / "two") == {}


def test_a_restore_that_was_interrupted_goes_on_where_it_was(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    run_batches(bench, "one", [(f"k{number}", 1, number) for number in range(25)])
    monkeypatch.setattr(restoring, "_AT_ONCE", 10)
    read = bench.log.read
    reads = 0

    def failing(*args: Any, **options: Any) -> list[Raw]:
        nonlocal reads
        reads += 1
        if reads == 3:
            message = "the disk is gone"
            raise LogError(message)
        return read(*args, **options)

    monkeypatch.setattr(bench.log, "read", failing)
    interrupted = bench.driver("two")
    with pytest.raises(LogError):
        interrupted.step()
    assert working_copy.restoring(bench.directory / "two") == {}
    interrupted.close()
    again = bench.driver("two")
    (report,) = again.run()
    assert restored(report) == 5
    assert len(again.rows("totals")) == 25


def as_table(builder: StreamsBuilder) -> None:
    strings = Consumed(Serdes.string(), Serdes.json())
    table = builder.table("in", strings, materialized=Materialized("rows"))
    table.to_stream().to("out")


def test_a_table_is_restored_from_its_own_topic_up_to_where_it_was_read(tmp_path: Path) -> None:
    bench = Bench(tmp_path, as_table, {"in": 1, "out": 1}, topology_optimization="all", statestore_cache_max_bytes=0)
    assert bench.layout.changelogs == {}
    (place,) = bench.layout.tasks
    assert place.changelogs == {"rows": "in"}
    bench.write("in", ("a", 1, 10), ("b", 2, 20), ("a", 3, 30), ("b", None, 40))
    one = bench.driver("one")
    one.run()
    one.close()
    # What was not read is not in the table, or its changes would not be seen as such.
    bench.write("in", ("c", 5, 50), ("a", None, 60))
    end = bench.log.end_offsets([("in", 0)])["in", 0]
    for host in ("one", "two"):
        driver = bench.driver(host)
        plan = driver.plan_work()
        assert plan is not None
        assert [(each.start, each.end) for each in plan.ranges["0_0"]] == [(4, end)]
        driver.execute(plan)
        assert driver.live("0_0").take_restores() == []
        assert values(driver.rows("rows")) == {"c": 5}
        driver.kill()
    assert bench.read("out") == [("a", 1), ("b", 2), ("a", 3), ("b", None)]
    last = bench.driver("three")
    last.run()
    assert bench.read("out")[4:] == [("c", 5), ("a", None)]


def test_a_table_that_begins_at_the_end_of_its_topic_does_not_restore_what_lies_before(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        latest = Consumed(Serdes.string(), Serdes.json(), offset_reset="latest")
        builder.table("in", latest, materialized=Materialized("rows")).to_stream().to("out")

    bench = Bench(tmp_path, build, {"in": 1, "out": 1}, topology_optimization="all")
    bench.write("in", ("a", 1, 10))
    one = bench.driver("one")
    one.run()
    bench.write("in", ("b", 2, 20))
    one.run()
    assert values(one.rows("rows")) == {"b": 2}
    one.close()
    two = bench.driver("two")
    bench.write("in", ("c", 3, 30))
    two.run()
    # Kafka Streams restores such a table from the beginning of its topic.
    assert values(two.rows("rows")) == {"a": 1, "b": 2, "c": 3}


def windowed(builder: StreamsBuilder) -> None:
    windows = TimeWindows.of_size_and_grace(SECOND, SECOND)
    counts = builder.stream("in").group_by_key().windowed_by(windows)
    counts.count(materialized=Materialized("counts", retention=timedelta(minutes=3)))


def sessions(builder: StreamsBuilder) -> None:
    windows = SessionWindows.of_inactivity_gap_and_grace(SECOND, SECOND)
    builder.stream("in").group_by_key().windowed_by(windows).count(materialized=Materialized("counts"))


def joined(builder: StreamsBuilder) -> None:
    within = JoinWindows.of_time_difference_and_grace(SECOND, SECOND)
    names: StreamJoined[Any, Any, Any] = StreamJoined(name="pair", store_name="pair")
    builder.stream("in").outer_join(builder.stream("right"), lambda a, b: [a, b], windows=within, joined=names).to(
        "out"
    )


def suppressed(builder: StreamsBuilder) -> None:
    windows = TimeWindows.of_size_and_grace(SECOND, SECOND)
    counts = builder.stream("in").group_by_key().windowed_by(windows).count(materialized=Materialized("counts"))
    counts.suppress(Suppressed.until_window_closes(BufferConfig.unbounded())).to_stream(lambda key, _: key.key).to(
        "out", AS_JSON
    )


def versioned(builder: StreamsBuilder) -> None:
    history = Stores.persistent_versioned_key_value_store("history", timedelta(minutes=1))
    table = builder.table("right", materialized=Materialized(history))
    builder.stream("in").join(table, lambda left, right: [left, right]).to("out")


def emitted(builder: StreamsBuilder) -> None:
    windows = TimeWindows.of_size_and_grace(SECOND, SECOND)
    counts = builder.stream("in").group_by_key().windowed_by(windows).emit_strategy(EmitStrategy.on_window_close())
    counts.count(materialized=Materialized("counts")).to_stream(lambda key, _: key.key).to("out", AS_JSON)


PROGRAMS: dict[str, Build] = {
    each.__name__: each for each in (windowed, sessions, joined, suppressed, versioned, emitted)
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_restored_task_goes_on_like_one_that_was_never_closed(tmp_path: Path, name: str) -> None:
    """Late records, windows that close, versions that expire: clocks of stores and of the task are as before."""
    chance = random.Random(name)
    batches = [
        (
            [(chance.choice("abc"), number, time_ms - chance.randrange(4_000)) for _ in range(chance.randrange(4))],
            [(chance.choice("abc"), number, time_ms - chance.randrange(4_000)) for _ in range(chance.randrange(4))],
        )
        for number, time_ms in enumerate(range(100_000, 400_000, 3_000))
    ]
    written: list[Any] = []
    dropped: list[int] = []
    for way in ("stays", "moves", "is killed"):
        bench = Bench(tmp_path / way, PROGRAMS[name], {"in": 1, "right": 1, "out": 1}, statestore_cache_max_bytes=0)
        driver = bench.driver()
        reports = []
        for number, (left, right) in enumerate(batches):
            bench.write("in", *left)
            bench.write("right", *right)
            bench.clock_ms += 3_000
            reports += driver.run()
            if way == "moves":
                driver.close()
                shutil.rmtree(driver.directory, ignore_errors=number % 2 == 0)
                driver = bench.driver(f"host-{number % 3}")
            elif way == "is killed" and number % 3 == 0:
                driver.kill()
                driver = bench.driver()
        dropped.append(sum(report.late + report.dropped for report in reports))
        written.append((bench.read("out"), rows_of(bench)))
        driver.close()
        bench.close()
    assert written[1] == written[0]
    assert written[2] == written[0]
    assert dropped == [dropped[0]] * 3
    assert any(written[0])


def rows_of(bench: Bench) -> dict[str, list[Any]]:
    """Returns the rows that a machine sees which has just restored them."""
    driver = bench.driver("witness")
    driver.run()
    stores = driver.live("0_0").task.stores
    found: dict[str, list[Any]] = {}
    for name, store in stores.items():
        if hasattr(store, "all"):
            found[name] = list(store.all())
        elif isinstance(store, SessionStore):
            found[name] = list(store.fetch_keys(None, None))
    driver.close()
    return {name: rows for name, rows in found.items() if rows}
