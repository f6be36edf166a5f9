"""Comparison of topologies: the matching of names, and the changes that are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace import (
    Materialized,
    Migration,
    Processor,
    PunctuationType,
    Record,
    Serdes,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
)
from headrace.change.topology_change import Evolution, apply_evolution, plan_evolution
from headrace.change.verdicts import Options
from headrace.errors import BatchError, IncompatibleTopologyError, ProcessorStateError, TopologyError
from headrace.runtime.task_memory import unpack_memory
from headrace.topics.journal import DurableLog
from headrace.topology.outline import Outline
from tests.change.cases import (
    MINUTE,
    MINUTES,
    counts,
    generated,
    largest,
    stream,
    sums,
    totals,
    write,
    write_windows,
    zero,
)
from tests.change.kit import Build, Program, read_by_key
from tests.change.kit import write as write_rows
from tests.change.test_changes import last_values


@pytest.fixture(autouse=True)
def topics(log: DurableLog) -> None:
    for topic in ("in", "other"):
        log.create_topic(topic, partitions=2)


def plan(log: DurableLog, directory: Path, before: Build, after: Build, **options: Any) -> Evolution:
    """Runs a topology, and plans its change to another one."""
    Program(log, directory, before).run()
    new = Program(log, directory, after)
    return plan_evolution(new.topology, new.config, log, Options(**options))


def two_alike(builder: StreamsBuilder) -> None:
    grouped = stream(builder).group_by_key()
    write(grouped.aggregate(zero, lambda key, value, total: total + 1), "one")
    write(grouped.aggregate(zero, lambda key, value, total: total + 2), "two")


def two_alike_rewritten(builder: StreamsBuilder) -> None:
    grouped = stream(builder).filter(lambda key, value: True).group_by_key()
    write(grouped.aggregate(zero, lambda key, value, total: total + 3), "one")
    write(grouped.aggregate(zero, lambda key, value, total: total + 4), "two")


def test_what_cannot_be_told_apart_is_refused_until_it_is_said(log: DurableLog, tmp_path: Path) -> None:
    evolution = plan(log, tmp_path, two_alike, two_alike_rewritten)
    (problem,) = evolution.comparison.problems
    assert f"which of the stores '{generated(1)}', '{generated(5)}'" in problem
    assert f"say it, for example --rename {generated(1)}={generated(2)}" in problem
    # Of two, one is enough.
    said = plan(log, tmp_path, two_alike, two_alike_rewritten, renames={generated(5): generated(6)})
    assert not said.comparison.is_refused
    assert said.comparison.store_names == {generated(1): generated(2), generated(5): generated(6)}


def counting_by(step: int) -> Callable[[Any, Any, Any], Any]:
    return lambda key, value, total: total + step


def test_functions_that_differ_only_in_what_they_capture_are_told_apart(log: DurableLog, tmp_path: Path) -> None:
    def adding(*steps: int) -> Build:
        def build(builder: StreamsBuilder) -> None:
            for step in steps:
                write(stream(builder).group_by_key().aggregate(zero, counting_by(step)), f"by-{step}")

        return build

    names = plan(log, tmp_path, adding(1, 2), adding(2, 1)).comparison.store_names
    assert all(before != now for before, now in names.items())
    assert len(names) == 2


def test_another_input_of_a_store_without_a_name_makes_it_another_store(log: DurableLog, tmp_path: Path) -> None:
    def most_of(topic: str) -> Build:
        return lambda builder: write(stream(builder, topic).group_by_key().aggregate(zero, largest))

    write_rows(log, "in", [("a", 9, 0)])
    evolution = plan(log, tmp_path, most_of("in"), most_of("other"))
    assert [(each.store, each.verdict.value) for each in evolution.comparison.stores] == [
        (generated(1), "new"),
        (generated(1), "dropped"),
    ]
    apply_evolution(evolution, log)
    write_rows(log, "other", [("a", 1, 0)])
    Program(log, tmp_path, most_of("other")).run()
    # Its changelog has the former store's name, and none of its rows.
    assert last_values(log, "out") == {"a": 1}


def test_other_partitions_are_a_case_for_grow(log: DurableLog, tmp_path: Path) -> None:
    Program(log, tmp_path, counts).run()
    log.grow_topic("in", 4)
    evolution = plan_evolution(
        Program(log, tmp_path, totals).topology,
        Program(log, tmp_path, totals).config,
        log,
        Options({"counts": "totals"}),
    )
    (change,) = evolution.comparison.stores
    assert change.verdict.value == "refused"
    assert "it had 2 partitions and now has 4" in change.note
    assert "headrace grow app" in change.note


def test_a_name_that_a_store_of_another_kind_has_left_is_refused(log: DurableLog, tmp_path: Path) -> None:
    def with_windows(builder: StreamsBuilder) -> None:
        write_windows(stream(builder).group_by_key().windowed_by(MINUTES).count(materialized=Materialized("counts")))
        write(stream(builder, "other").group_by_key().count(materialized=Materialized("totals")), "others")

    def renamed(builder: StreamsBuilder) -> None:
        write(stream(builder, "other").group_by_key().count(materialized=Materialized("counts")), "others")

    evolution = plan(log, tmp_path, with_windows, renamed, renames={"totals": "counts"})
    refused, dropped = evolution.comparison.stores
    assert (refused.verdict.value, dropped.verdict.value) == ("refused", "dropped")
    assert "has rows of a timestamped window store" in refused.note


def test_a_topic_that_somebody_else_has_filled_is_left_alone(log: DurableLog, tmp_path: Path) -> None:
    log.create_topic("app-totals-changelog", partitions=2, configs={"cleanup.policy": "compact"})
    log.append("app-totals-changelog", [(0, 0, b"x", b"y", ())])
    evolution = plan(log, tmp_path, counts, totals, renames={"counts": "totals"})
    with pytest.raises(IncompatibleTopologyError, match="needs a topic 'app-totals-changelog', which is there and has"):
        apply_evolution(evolution, log)
    assert read_by_key(log, "app-totals-changelog") == {b"x": [(0, b"y")]}


def test_a_change_of_what_has_run_since_it_was_planned_is_refused(log: DurableLog, tmp_path: Path) -> None:
    first = plan(log, tmp_path, counts, totals, renames={"counts": "totals"})
    second = plan_evolution(first.topology, first.config, log, Options())
    apply_evolution(first, log)
    with pytest.raises(BatchError, match="was run or changed while its change was planned"):
        apply_evolution(second, log)


def test_an_unfinished_change_is_finished_only_as_it_was_begun(
    log: DurableLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = plan(log, tmp_path, counts, totals, renames={"counts": "totals"})

    def die(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("headrace.change.topology_change._commit", die)
        with pytest.raises(KeyboardInterrupt):
            apply_evolution(begun, log, "headrace plan-change shop:build --apply")
    other = plan_evolution(begun.topology, begun.config, log, Options())
    assert other.unfinished is not None
    with pytest.raises(BatchError, match="finish it by the same command: `headrace plan-change shop:build --apply`"):
        apply_evolution(other, log)
    again = plan_evolution(begun.topology, begun.config, log, Options({"counts": "totals"}))
    apply_evolution(again, log)
    Program(log, tmp_path, totals).run()


def punctuations(log: DurableLog) -> dict[str, dict[str, Any]]:
    """Returns the deadlines of every task."""
    journal = log.open_journal("app", [])
    tasks = {task: log.task_journal("app", journal.incarnation, task, []).open() for task in journal.state.tasks}
    journal.close()
    return {
        task: unpack_memory(head.record.memory)["punctuations"]
        for task, head in tasks.items()
        if head.record is not None
    }


def test_late_records_stay_late_when_an_operator_is_added_above_a_named_store(log: DurableLog, tmp_path: Path) -> None:
    def minutes(*, filtered: bool) -> Build:
        def build(builder: StreamsBuilder) -> None:
            records = stream(builder).filter(lambda key, value: True) if filtered else stream(builder)
            windows = TimeWindows.of_size_with_no_grace(MINUTE)
            write_windows(records.group_by_key().windowed_by(windows).count(materialized=Materialized("minutes")))

        return build

    write_rows(log, "in", [("a", 1, 0), ("a", 1, 60_000)])
    Program(log, tmp_path, minutes(filtered=False)).run()
    write_rows(log, "in", [("a", 1, 1), ("a", 1, 60_001)])
    # Other nodes have other names now, and it needs no change.
    Program(log, tmp_path, minutes(filtered=True)).run()
    assert last_values(log, "out") == {"a@0": 1, "a@60000": 2}


class Ticking(Processor[Any, Any, Any, Any]):
    """Forwards something every minute of stream time."""

    def init(self, context: Any) -> None:
        super().init(context)
        context.schedule(MINUTE, PunctuationType.STREAM_TIME, self.tick)

    def tick(self, now_ms: int) -> None:
        self.context.forward(Record("tick", now_ms, now_ms))

    def process(self, record: Record[Any, Any]) -> None:
        """Does nothing."""


def test_deadlines_of_punctuations_follow_their_processors(log: DurableLog, tmp_path: Path) -> None:
    def ticking(*, shifted: bool) -> Build:
        def build(builder: StreamsBuilder) -> None:
            if shifted:
                write(stream(builder, "other").group_by_key().count(materialized=Materialized("others")), "others")
            stream(builder).process(Ticking).to("out")

        return build

    write_rows(log, "in", [("a", 1, 90_000)])
    evolution = plan(log, tmp_path, ticking(shifted=False), ticking(shifted=True))
    before = punctuations(log)
    apply_evolution(evolution, log)
    after = punctuations(log)
    for partition in (0, 1):
        (deadline,) = before[f"0_{partition}"].values()
        assert list(after[f"1_{partition}"].values()) == [deadline]
        assert not after[f"0_{partition}"]


def test_values_that_a_migration_cannot_rewrite_are_found_before_anything_is_changed(
    log: DurableLog, tmp_path: Path
) -> None:
    write_rows(log, "in", [("a", 1, 0), ("b", 0, 1)])
    migration = Migration(Serdes.long(), lambda total: 1 // total)
    evolution = plan(log, tmp_path, sums(Serdes.long()), sums(Serdes.json(), migrate=migration))
    with pytest.raises(ProcessorStateError, match=r"store 'sums': its migration cannot rewrite .*ZeroDivisionError"):
        apply_evolution(evolution, log)
    Program(log, tmp_path, sums(Serdes.long())).run()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Migration("long"), "value_serde must be the serde that values were written with; found str 'long'"),  # type: ignore[arg-type]
        (lambda: Migration(Serdes.long(), lambda: 1), r"convert must be a function \(value\)"),  # type: ignore[arg-type, misc]
        (lambda: Materialized("sums", migrate=Serdes.long()), "migrate must be a Migration"),  # type: ignore[arg-type]
    ],
)
def test_a_migration_says_what_it_needs(make: Any, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        make()


def test_the_outline_of_a_topology_is_the_same_in_every_process() -> None:
    def outline() -> Outline:
        builder = StreamsBuilder()
        stream(builder).filter(lambda key, value: key in {"x", "y", "z"}).group_by_key().count()
        return Outline.of(builder.build(), StreamsConfig(application_id="app"), {"in": 2})

    assert outline() == outline()
    assert Outline.from_json(outline().to_json()) == outline()
