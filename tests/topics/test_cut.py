"""The cut through an application: what it was after exactly one batch, whoever goes on meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from headrace.errors import BatchError
from headrace.topics.journal import ApplicationCut, DurableLog, Receipt
from headrace.topics.log import TopicPartition
from tests.topics.journals import outputs, run_batch, run_task, task_record

if TYPE_CHECKING:
    from headrace.topics.kafka import KafkaLog

TASKS = ("0_0", "0_1")
CHANGELOG = "app-rows-changelog"


def tail(cut: ApplicationCut | None, partition: int = 0) -> list[str]:
    assert cut is not None
    return [(value or b"").decode() for _, _, _, value, _ in cut.tails[CHANGELOG, partition]]


def make_log(log: DurableLog) -> None:
    log.create_topic("in")
    log.create_topic(CHANGELOG)


def all_of(*targets: TopicPartition) -> dict[TopicPartition, int | None]:
    return dict.fromkeys(targets, 0)


def test_an_application_that_has_committed_nothing_has_no_cut(log: DurableLog) -> None:
    make_log(log)
    assert log.cut_application("app", all_of((CHANGELOG, 0))) is None
    log.open_journal("app", TASKS).close()
    assert log.cut_application("app", all_of((CHANGELOG, 0))) is None


def test_an_application_at_rest_is_cut_behind_its_last_batch(log: DurableLog) -> None:
    make_log(log)
    journal = log.open_journal("app", TASKS)
    run_batch(log, journal, 0, {CHANGELOG: outputs("a", "b")}, tasks=["0_0"], positions={("in", 0): 5})
    record = task_record(1, positions={("in", 0): 7}, memory=b"what it knows")
    journal.begin(1, b"plan")
    journal.commit(1, [run_task(log, journal, "0_1", record, {CHANGELOG: outputs("c")})])
    cut = log.cut_application("app", all_of((CHANGELOG, 0)))
    assert cut is not None
    assert (cut.batch_id, cut.positions) == (1, {("in", 0): 7})
    assert (cut.records["0_1"], cut.records["0_0"].batch_id) == (record, 0)
    assert tail(cut) == ["a", "b", "c"]
    behind = log.cut_application("app", {(CHANGELOG, 0): cut.ends[CHANGELOG, 0]})
    assert tail(behind) == []
    # Who runs it was not disturbed.
    run_batch(log, journal, 2, {CHANGELOG: outputs("d")}, tasks=["0_0"])
    assert tail(log.cut_application("app", {(CHANGELOG, 0): cut.ends[CHANGELOG, 0]})) == ["d"]
    journal.close()


def test_what_the_application_reads_itself_is_returned_from_its_position(log: DurableLog) -> None:
    log.create_topic(CHANGELOG)
    journal = log.open_journal("app", TASKS)
    written = {CHANGELOG: outputs("a", "b", "c")}
    run_batch(log, journal, 0, written, tasks=["0_0"], positions={(CHANGELOG, 0): 1})
    assert tail(log.cut_application("app", {(CHANGELOG, 0): None})) == ["b", "c"]
    journal.close()


@pytest.mark.kafka
def test_a_batch_that_is_being_made_is_waited_for(kafka: KafkaLog) -> None:
    kafka.create_topic(CHANGELOG, partitions=2)
    journal = kafka.open_journal("app", TASKS)
    rows = [(part, 1, b"k", b"old", ()) for part in (0, 1)]
    run_batch(kafka, journal, 0, {CHANGELOG: rows}, tasks=["0_0"])
    journal.begin(1, b"plan")
    early = run_task(kafka, journal, "0_0", task_record(1), {CHANGELOG: [(0, 1, b"k", b"early", ())]})
    with ThreadPoolExecutor(1) as pool:
        cutting = pool.submit(kafka.cut_application, "app", all_of((CHANGELOG, 0), (CHANGELOG, 1)))
        with pytest.raises(TimeoutError):
            cutting.result(1.0)
        late = run_task(kafka, journal, "0_1", task_record(1), {CHANGELOG: [(1, 1, b"k", b"late", ())]})
        journal.commit(1, [early, late])
        # And on it goes.
        run_batch(kafka, journal, 2, {CHANGELOG: [(0, 1, b"k", b"beyond", ())]}, tasks=["0_0"])
        cut = cutting.result(30.0)
    assert cut is not None
    assert cut.batch_id == 1
    assert [tail(cut, part) for part in (0, 1)] == [["old", "early"], ["old", "late"]]
    assert {task: record.batch_id for task, record in cut.records.items()} == {"0_0": 1, "0_1": 1}
    journal.close()


@pytest.mark.kafka
def test_a_batch_that_nobody_finishes_is_told(kafka: KafkaLog) -> None:
    from headrace.topics.kafka import KafkaLog

    make_log(kafka)
    journal = kafka.open_journal("app", TASKS)
    run_batch(kafka, journal, 0, {CHANGELOG: outputs("a")}, tasks=["0_0"])
    journal.begin(1, b"plan")
    journal.close()
    with (
        KafkaLog(kafka.bootstrap_servers, task_timeout=timedelta(seconds=2)) as impatient,
        pytest.raises(BatchError, match="'app': a batch was begun and is not finished"),
    ):
        impatient.cut_application("app", all_of((CHANGELOG, 0)))


@pytest.mark.kafka
def test_a_commit_that_was_found_there_needs_another_batch(kafka: KafkaLog) -> None:
    """A receipt of a task that hands its work on names no offsets, so its batch is no place for a cut."""
    make_log(kafka)
    journal = kafka.open_journal("app", TASKS)
    run_batch(kafka, journal, 0, {CHANGELOG: outputs("a")}, tasks=["0_0"])
    journal.begin(1, b"plan")
    with ThreadPoolExecutor(1) as pool:
        cutting = pool.submit(kafka.cut_application, "app", all_of((CHANGELOG, 0)))
        with pytest.raises(TimeoutError):
            cutting.result(1.0)
        receipt = run_task(kafka, journal, "0_0", task_record(1), {CHANGELOG: outputs("b")})
        journal.commit(1, [_without_offsets(receipt)])
        cut = cutting.result(30.0)
    assert tail(cut) == ["a", "b"]
    journal.close()


def _without_offsets(receipt: Receipt) -> Receipt:
    return replace(receipt, written={})
