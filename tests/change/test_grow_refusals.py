"""Refusals of growth: with the reason, by name, before anything is changed."""

from __future__ import annotations

import re
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import Grouped, Materialized, Processor, Record, Stores, Streams, StreamsBuilder, TimeWindows
from headrace.app.description import Description
from headrace.app.engine import local_engine
from headrace.app.startup import ApplicationResources
from headrace.batches import planner
from headrace.batches.change_plan import ChangePlan
from headrace.change.grow import grow_application
from headrace.change.stopped_application import stopped_application
from headrace.errors import BatchError, ChangeRefusedError, IncompatibleTopologyError, LockError
from headrace.topics.journal import DurableLog
from headrace.topics.partitioner import partition_for
from tests.change.kit import Build, Program, read_by_key, write


def counting(builder: StreamsBuilder) -> Any:
    return builder.stream("in").group_by_key().count(materialized=Materialized("counts")).to_stream().to("out")


def joining(builder: StreamsBuilder) -> Any:
    return builder.stream("in").join(builder.table("users"), lambda a, b: [a, b]).to("out")


def started(log: DurableLog, directory: Path, build: Build, *topics: str, **settings: Any) -> Program:
    """Returns an application that has read ten keys from each topic."""
    program = Program(log, directory, build, **settings)
    for topic in topics:
        log.create_topic(topic, partitions=2)
        write(log, topic, [(f"k{number}", 1, 1_000 + number) for number in range(10)])
    program.run()
    return program


def refuses(program: Program, match: str, **topics: int) -> None:
    """Asserts that a growth is refused, and that nothing has happened."""
    log = program.log
    before = (log.partition_counts(), log.last_batch("app"), log.application_description("app"))
    with pytest.raises(ChangeRefusedError, match=match):
        grow_application(program.topology, program.config, log, {**topics})
    assert (log.partition_counts(), log.last_batch("app"), log.application_description("app")) == before


def grown(program: Program, **topics: int) -> list[str]:
    """Grows an application; returns what was told."""
    told: list[str] = []
    command = "headrace grow app shop:build"
    grow_application(program.topology, program.config, program.log, topics, command=command, tell=told.append)
    return told


def test_other_than_a_whole_multiple(log: DurableLog, tmp_path: Path) -> None:
    program = started(log, tmp_path, counting, "in")
    refuses(program, r"'in' has 2 partitions and cannot get 3: only with a whole multiple, such as 4 or 6", **{"in": 3})


def test_fewer_partitions(log: DurableLog, tmp_path: Path) -> None:
    refuses(started(log, tmp_path, counting, "in"), r"'in' has 2 partitions, and can never have fewer", **{"in": 1})


def test_topic_that_is_no_input(log: DurableLog, tmp_path: Path) -> None:
    refuses(started(log, tmp_path, counting, "in"), r"'inn' is no topic that the application reads; did", inn=4)


def test_nothing_to_do(log: DurableLog, tmp_path: Path) -> None:
    program = started(log, tmp_path, counting, "in")
    refuses(program, "no input gets more partitions; name some: --topic")
    assert "all inputs have as many partitions" in grown(program, **{"in": 2})[0]


def test_application_that_has_never_run(log: DurableLog, tmp_path: Path) -> None:
    log.create_topic("in", partitions=2)
    refuses(Program(log, tmp_path, counting), "it has never run here", **{"in": 4})


def test_input_of_a_join_that_is_left_behind(log: DurableLog, tmp_path: Path) -> None:
    program = started(log, tmp_path, joining, "in", "users")
    refuses(program, "'users' must have as many partitions as 'in', .* add --topic users=4", **{"in": 4})
    refuses(program, "'in' must have as many partitions as 'users', .* add --topic in=4", users=4, **{"in": 2})


def test_input_of_a_merge_with_state_that_is_left_behind(log: DurableLog, tmp_path: Path) -> None:
    def merging(builder: StreamsBuilder) -> Any:
        return builder.stream("in").merge(builder.stream("users")).group_by_key().count().to_stream().to("out")

    refuses(started(log, tmp_path, merging, "in", "users"), "add --topic users=4", **{"in": 4})


def test_topic_of_a_global_table(log: DurableLog, tmp_path: Path) -> None:
    def looking_up(builder: StreamsBuilder) -> Any:
        table = builder.global_table("users")
        counting(builder)
        return builder.stream("in").join(table, lambda a, b: [a, b], key_selector=lambda key, _: key).to("found")

    refuses(started(log, tmp_path, looking_up, "in", "users"), "'users' is read by a global table", users=4)


def test_table_that_is_restored_from_its_input(log: DurableLog, tmp_path: Path) -> None:
    program = started(log, tmp_path, joining, "in", "users", topology_optimization="reuse.ktable.source.topics")
    match = r"store '.*STATE-STORE.*' is restored from 'users', the topic that it reads"
    refuses(program, match, users=4, **{"in": 4})


class ByValue(Processor[str, Any, str, Any]):
    """Counts by something that is not the key."""

    stores = (Stores.key_value_store_builder(Stores.persistent_key_value_store("by-value")),)

    def process(self, record: Record[str, Any]) -> None:
        store = self.context.get_state_store("by-value")
        for name in ("x", "y", "z"):
            store.put(f"{name}-{record.value}", record.timestamp_ms)


def test_store_whose_rows_are_keyed_by_something_else(log: DurableLog, tmp_path: Path) -> None:
    program = started(log, tmp_path, lambda builder: builder.stream("in").process(ByValue), "in")
    refuses(program, r"store 'by-value' has rows that are not where their keys go, such as b'.-1' in", **{"in": 4})


def test_input_that_a_partitioner_has_placed(log: DurableLog, tmp_path: Path) -> None:
    program = started(log, tmp_path, counting, "in")
    log.append("in", [(1 - partition_for(b"odd", 2), 2_000, b"odd", b"1", ())])
    program.run()
    refuses(program, r"store 'counts' has rows .* such as b'odd'", **{"in": 4})


def test_topology_that_is_another_one(log: DurableLog, tmp_path: Path) -> None:
    program = started(log, tmp_path, counting, "in")
    program.build = lambda builder: builder.stream("in").group_by_key().reduce(max)
    refuses(program, "the topology is another one than it has run with", **{"in": 4})


def test_application_that_runs(log: DurableLog, tmp_path: Path) -> None:
    program = started(log, tmp_path, counting, "in")
    with stopped_application(program.config, log), pytest.raises(LockError, match="in use by"):
        grown(program, **{"in": 4})


def test_growth_while_another_change_is_unfinished(log: DurableLog, tmp_path: Path) -> None:
    program = started(log, tmp_path, counting, "in")
    with stopped_application(program.config, log) as app:
        app.begin(ChangePlan("renew", "headrace renew app", app.next_batch_id))
    with pytest.raises(BatchError, match="`headrace renew app`"):
        grown(program, **{"in": 4})


def test_other_numbers_than_those_that_were_begun(log: DurableLog, tmp_path: Path) -> None:
    program = started(log, tmp_path, counting, "in")
    with stopped_application(program.config, log) as app:
        details = {"external": {"in": 2}, "grown": {"in": 4}, "cuts": []}
        app.begin(ChangePlan("grow", "headrace grow app shop:build --topic in=4", app.next_batch_id, details))
    with pytest.raises(
        ChangeRefusedError, match=r"being grown to in=4, .*: `headrace grow app shop:build --topic in=4`"
    ):
        grown(program, **{"in": 6})


def test_records_that_nobody_can_read(log: DurableLog, tmp_path: Path) -> None:
    program = started(log, tmp_path, counting, "in")
    log.grow_topic("in", 6)
    wrong = (partition_for(b"odd", 6) + 1) % 4 + 2
    log.append("in", [(wrong, 2_000, b"odd", b"1", ())])
    with pytest.raises(ChangeRefusedError, match=rf"'in' has records in partition {wrong} that were placed by another"):
        grown(program, **{"in": 6})


def test_start_on_inputs_that_have_grown_names_the_command(log: DurableLog, tmp_path: Path) -> None:
    program = started(log, tmp_path, joining, "in", "users")
    log.grow_topic("in", 4)
    with pytest.raises(
        IncompatibleTopologyError,
        match=r"'in' had 2 partitions and now has 4; .* `headrace grow app MODULE:BUILD --topic in=4 --topic users=4`",
    ):
        program.run()
    log.grow_topic("users", 5)
    with pytest.raises(IncompatibleTopologyError, match="only a whole multiple of the former number can be reached"):
        program.run()


def test_application_whose_input_grows_while_it_runs_names_the_command(
    log: DurableLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "_LOOK_AROUND", 0.01)
    program = started(log, tmp_path, joining, "in", "users")
    streams, running = Streams(program.topology, program.config, log=log, engine=local_engine), threading.Event()
    streams.add_batch_listener(lambda _batch: running.set())
    write(log, "in", [("more", 1, 2_000)])
    streams.start()
    assert running.wait(30)
    log.grow_topic("in", 4)
    with pytest.raises(IncompatibleTopologyError, match=r"'in' .* now has 4; .* `headrace grow app MODULE:BUILD"):
        streams.wait(timedelta(seconds=30))


def test_inputs_that_have_grown_already_need_not_be_named(log: DurableLog, tmp_path: Path) -> None:
    program = started(log, tmp_path, counting, "in")
    # Some that were written for two partitions, and some for six, none of them read.
    write(log, "in", [(f"k{number}", 1, 2_000) for number in range(10)])
    log.grow_topic("in", 6)
    write(log, "in", [(f"k{number}", 1, 3_000) for number in range(10)])
    told = grown(program)
    assert any("records that were written for the former partitions" in line for line in told)
    program.run()
    last = {key: int.from_bytes(found[-1][1] or b"", "big") for key, found in read_by_key(log, "out").items()}
    assert last == {f"k{number}".encode(): 3 for number in range(10)}


def test_application_that_has_committed_nothing(log: DurableLog, tmp_path: Path) -> None:
    log.create_topic("in", partitions=2)
    program = Program(log, tmp_path, counting)
    # It was started, and died before its first batch.
    ApplicationResources.by(program.topology, program.config, log).close()
    grown(program, **{"in": 4})
    write(log, "in", [(f"k{number}", 1, 1_000) for number in range(10)])
    program.run()
    assert len(read_by_key(log, "out")) == 10
    assert log.partitions_of("app-counts-changelog") == 4


def test_application_without_state_needs_no_growth_but_takes_it(log: DurableLog, tmp_path: Path) -> None:
    program = started(log, tmp_path, lambda builder: builder.stream("in").to("out"), "in")
    grown(program, **{"in": 4})
    found = Description.read(log, "app")
    assert found is not None
    assert found.topology.parts[0].tasks == 4
    write(log, "in", [("more", 1, 2_000)])
    program.run()
    assert len(read_by_key(log, "out")) == 11


def test_store_without_changelog_is_named(log: DurableLog, tmp_path: Path) -> None:
    def volatile(builder: StreamsBuilder) -> Any:
        table = builder.stream("in").group_by_key().count(materialized=Materialized("counts", logging=False))
        return table.to_stream().to("out")

    told = grown(started(log, tmp_path, volatile, "in"), **{"in": 4})
    assert any("store 'counts' has no changelog" in line for line in told)


def test_pattern_grows_with_all_that_it_matches(log: DurableLog, tmp_path: Path) -> None:
    def matching(builder: StreamsBuilder) -> Any:
        return builder.stream(re.compile("in.*")).group_by_key().count().to_stream().to("out")

    program = started(log, tmp_path, matching, "in1", "in2")
    refuses(program, "add --topic in2=4", in1=4)
    grown(program, in1=4, in2=4)
    write(log, "in1", [(f"k{number}", 1, 2_000) for number in range(10)])
    program.run()
    last = {found[-1][1] for found in read_by_key(log, "out").values()}
    assert last == {(3).to_bytes(8, "big")}


def test_regrouped_sub_topology_follows(log: DurableLog, tmp_path: Path) -> None:
    def regrouping(builder: StreamsBuilder) -> Any:
        grouped = builder.stream("in").group_by(lambda key, _: key[-1:], Grouped("last"))
        return grouped.count(materialized=Materialized("counts")).to_stream().to("out")

    program = started(log, tmp_path, regrouping, "in")
    told = grown(program, **{"in": 4})
    assert log.partitions_of("app-counts-changelog") == 4
    assert told[-1].startswith("done in ")
    assert "application 'app' had 4 tasks and has 8" in told


def test_row_of_a_window_is_moved_with_its_key(log: DurableLog, tmp_path: Path) -> None:
    def windowed(builder: StreamsBuilder) -> Any:
        windows = TimeWindows.of_size_with_no_grace(timedelta(seconds=1))
        counts = builder.stream("in").group_by_key().windowed_by(windows).count(materialized=Materialized("counts"))
        return counts.to_stream().to("out")

    grown(started(log, tmp_path, windowed, "in"), **{"in": 4})
    for partition in range(4):
        rows: dict[bytes, bytes | None] = {}
        for _, _, key, value, _ in log.read("app-counts-changelog", partition, 0):
            assert key is not None
            rows[key] = value
        assert all(partition_for(key[:-12], 4) == partition for key, value in rows.items() if value is not None)
