"""The contract of journals: what every log does for the driver of an application and for its tasks."""

from __future__ import annotations

import pickle

import pytest

from headrace.errors import BatchError, FencedError, TopicError, UnknownTopicError
from headrace.topics.journal import DurableLog, TaskStatus
from tests.topics.journals import outputs, run_batch, run_task, task_record, values
from tests.topics.kit import everything, record

TASKS = ("0_0", "0_1")


def test_journal_of_a_new_application_is_empty(log: DurableLog) -> None:
    journal = log.open_journal("app", TASKS)
    assert (journal.state.batch_id, journal.state.positions, journal.state.tasks) == (-1, {}, {})
    assert journal.state.begun is None
    assert log.last_batch("app") is None
    journal.close()


def test_each_opening_has_a_larger_number(log: DurableLog) -> None:
    numbers = [log.open_journal("app", TASKS).incarnation for _ in range(3)]
    assert numbers == sorted(set(numbers))


def test_committed_batch_is_there_when_the_journal_is_opened_again(log: DurableLog) -> None:
    log.create_topic("in", partitions=2)
    log.create_topic("out")
    journal = log.open_journal("app", TASKS)
    journal.begin(0, b"plan")
    first = task_record(0, positions={("in", 0): 5}, next_clock_ms=70)
    second = task_record(0, positions={("in", 1): 6})
    receipts = [
        pickle.loads(pickle.dumps(run_task(log, journal, "0_0", first, {"out": outputs("a")}))),
        pickle.loads(pickle.dumps(run_task(log, journal, "0_1", second, {"out": outputs("b", "c")}))),
    ]
    done = journal.commit(0, receipts)
    assert done.batch_id == 0
    assert values(log, "out") == ["a", "b", "c"]
    again = log.open_journal("app", TASKS).state
    assert again.batch_id == 0
    assert again.positions == {("in", 0): 5, ("in", 1): 6} == log.positions("app")
    assert again.tasks == {"0_0": TaskStatus(first.stamp, 70), "0_1": TaskStatus(second.stamp, None)}
    assert again.begun is None
    assert log.last_batch("app") == done


def test_written_bounds_are_those_of_the_records(log: DurableLog) -> None:
    log.create_topic("one")
    log.create_topic("two", partitions=3)
    log.append("one", outputs("before"))
    journal = log.open_journal("app", TASKS)
    journal.begin(0, b"plan")
    written = {"one": outputs("a", "b"), "two": [record("k", "x", partition=2)]}
    done = journal.commit(0, [run_task(log, journal, "0_0", task_record(0), written)])
    assert done.written == {("one", 0): (1, 3), ("two", 2): (0, 1)}
    assert done.records == 3


def test_task_finds_what_it_has_committed(log: DurableLog) -> None:
    log.create_topic("store-changelog", partitions=2)
    journal = log.open_journal("app", TASKS)
    part = log.task_journal("app", journal.incarnation, "0_1", [("store-changelog", 1)])
    head = part.open()
    assert (head.record, head.ends) == (None, {("store-changelog", 1): 0})
    for batch_id in range(3):
        journal.begin(batch_id, b"plan")
        done = task_record(batch_id, positions={("in", 1): batch_id}, next_clock_ms=batch_id, memory=b"m" * batch_id)
        rows = [record("k", str(batch_id), partition=1)]
        journal.commit(batch_id, [part.commit(done, [("store-changelog", rows)], [])])
    for again in (part, log.task_journal("app", journal.incarnation, "0_1", [("store-changelog", 1)])):
        head = again.open()
        assert head.record == done
        # All rows lie before, and nothing behind.
        assert head.ends == log.end_offsets([("store-changelog", 1)])
        assert again.read_edges(done) == []
    assert values(log, "store-changelog", 1) == ["0", "1", "2"]
    assert log.task_journal("app", journal.incarnation, "0_0", []).open() == (None, {})


def test_large_record_comes_back(log: DurableLog) -> None:
    journal = log.open_journal("app", TASKS)
    journal.begin(0, b"plan")
    done = task_record(0, memory=bytes(range(256)) * 12_000)
    journal.commit(0, [run_task(log, journal, "0_0", done)])
    assert log.task_journal("app", journal.incarnation, "0_0", []).open().record == done


def test_large_outputs_are_committed_too(log: DurableLog) -> None:
    log.create_topic("out")
    journal = log.open_journal("app", TASKS)
    big = [record(f"k{n}", "x" * 1000) for n in range(1500)]
    run_batch(log, journal, 0, {"out": big}, tasks=TASKS)
    found = [raw[2:4] for raw in everything(log, "out")]
    assert found == [each[2:4] for each in big] * 2


def test_outputs_lie_in_the_order_in_which_tasks_have_committed(log: DurableLog) -> None:
    log.create_topic("out")
    journal = log.open_journal("app", ["10_0", "2_0", "0_0"])
    journal.begin(0, b"plan")
    receipts = [run_task(log, journal, task, task_record(0), {"out": outputs(task)}) for task in ("10_0", "2_0", "0_0")]
    journal.commit(0, receipts)
    assert values(log, "out") == ["10_0", "2_0", "0_0"]


def test_task_that_had_nothing_to_do_keeps_its_status(log: DurableLog) -> None:
    log.create_topic("in", partitions=2)
    journal = log.open_journal("app", TASKS)
    first = task_record(0, positions={("in", 0): 5}, next_clock_ms=7)
    journal.begin(0, b"plan")
    journal.commit(0, [run_task(log, journal, "0_0", first)])
    second = task_record(1, positions={("in", 1): 6})
    journal.begin(1, b"plan")
    journal.commit(1, [run_task(log, journal, "0_1", second)], {("in", 2): 3})
    journal.begin(2, b"plan")
    journal.commit(2, [])
    state = log.open_journal("app", TASKS).state
    assert state.batch_id == 2
    assert state.positions == {("in", 0): 5, ("in", 1): 6, ("in", 2): 3}
    assert state.tasks == {"0_0": TaskStatus(first.stamp, 7), "0_1": TaskStatus(second.stamp, None)}


def test_driver_that_another_one_has_deposed_commits_nothing(log: DurableLog) -> None:
    log.create_topic("out")
    old = log.open_journal("app", TASKS)
    run_batch(log, old, 0, {"out": outputs("old")})
    new = log.open_journal("app", TASKS)
    assert new.state.batch_id == 0
    with pytest.raises(FencedError, match="another instance has taken over"):
        old.commit(1, [])
    run_batch(log, new, 1, {"out": outputs("new")})
    with pytest.raises(FencedError):
        old.commit(1, [])
    assert values(log, "out") == ["old", "new"]
    last = log.last_batch("app")
    assert last is not None
    assert last.batch_id == 1


def test_task_of_a_deposed_driver_cannot_be_opened(log: DurableLog) -> None:
    old = log.open_journal("app", TASKS)
    part = log.task_journal("app", old.incarnation, "0_0", [])
    part.open()
    log.open_journal("app", TASKS)
    with pytest.raises(FencedError, match="another instance has taken over"):
        part.open()


def test_results_of_a_deposed_driver_are_never_seen(log: DurableLog) -> None:
    log.create_topic("out")
    old = log.open_journal("app", TASKS)
    old.begin(0, b"plan")
    zombie = log.task_journal("app", old.incarnation, "0_0", [])
    zombie.open()
    new = log.open_journal("app", TASKS)
    # The task notices, or else its driver does.
    with pytest.raises(FencedError):  # noqa: PT012 - whichever of the two
        receipt = zombie.commit(task_record(0), [("out", outputs("zombie"))], [])
        old.commit(0, [receipt])
    run_batch(log, new, 0, {"out": outputs("new")})
    assert values(log, "out") == ["new"]


def test_receipt_of_a_former_driver_is_refused(log: DurableLog) -> None:
    old = log.open_journal("app", TASKS)
    old.begin(0, b"plan")
    receipt = run_task(log, old, "0_0", task_record(0))
    new = log.open_journal("app", TASKS)
    with pytest.raises(BatchError, match="has a receipt of batch 0 of instance"):
        new.commit(0, [receipt])
    assert log.last_batch("app") is None


def test_receipts_of_another_batch_or_two_of_a_task_are_refused(log: DurableLog) -> None:
    journal = log.open_journal("app", TASKS)
    journal.begin(0, b"plan")
    receipt = run_task(log, journal, "0_0", task_record(0))
    with pytest.raises(BatchError, match="two receipts of task 0_0"):
        journal.commit(0, [receipt, receipt])
    journal.commit(0, [receipt])
    journal.begin(1, b"plan")
    with pytest.raises(BatchError, match="has a receipt of batch 0"):
        journal.commit(1, [receipt])


def test_batches_follow_each_other(log: DurableLog) -> None:
    journal = log.open_journal("app", TASKS)
    with pytest.raises(
        BatchError, match="batch 1 of application 'app' cannot be committed: the last one in the log is"
    ):
        journal.commit(1, [])
    run_batch(log, journal, 0)
    with pytest.raises(BatchError, match="batch 0 of application 'app' cannot be committed"):
        journal.commit(0, [])
    assert log.open_journal("app", TASKS).state.batch_id == 0


def test_failed_commit_of_a_task_leaves_nothing(log: DurableLog) -> None:
    log.create_topic("out")
    journal = log.open_journal("app", TASKS)
    run_batch(log, journal, 0, {"out": outputs("first")})
    part = log.task_journal("app", journal.incarnation, "0_0", [])
    before = part.open()
    journal.begin(1, b"plan")
    with pytest.raises(UnknownTopicError, match="'outt' in the log; did you mean 'out'"):
        part.commit(task_record(1), [("out", outputs("lost")), ("outt", outputs("lost"))], [])
    assert part.open() == before
    with pytest.raises(TopicError, match="written to partition 1"):
        part.commit(task_record(1), [("out", [record("k", "lost"), record("k", "lost", partition=1)])], [])
    assert part.open() == before
    journal.commit(1, [part.commit(task_record(1), [("out", outputs("second"))], [])])
    assert values(log, "out") == ["first", "second"]


def test_unfinished_task_is_run_again_by_the_next_driver(log: DurableLog) -> None:
    log.create_topic("out")
    old = log.open_journal("app", TASKS)
    old.begin(0, b"the plan")
    first = task_record(0)
    run_task(log, old, "0_0", first, {"out": outputs("first")})
    new = log.open_journal("app", TASKS)
    # A log that has kept the task's commit has kept the plan, too.
    record_now = log.task_journal("app", new.incarnation, "0_0", []).open().record
    assert (new.state.begun, record_now) in ((b"the plan", first), (None, None))


def test_applications_do_not_meet(log: DurableLog) -> None:
    log.create_topic("out")
    one, two = log.open_journal("one", TASKS), log.open_journal("two", TASKS)
    for batch_id in range(2):
        run_batch(log, one, batch_id, {"out": outputs(f"one-{batch_id}")}, application="one")
    run_batch(log, two, 0, {"out": outputs("two-0")}, application="two")
    log.reset_application("one")
    assert log.last_batch("one") is None
    last = log.last_batch("two")
    assert last is not None
    assert last.batch_id == 0
    run_batch(log, two, 1, {"out": outputs("two-1")}, application="two")
    assert values(log, "out") == ["one-0", "one-1", "two-0", "two-1"]


def test_reset_forgets_batches_positions_and_tasks_and_deposes_the_driver(log: DurableLog) -> None:
    log.create_topic("in")
    log.create_topic("out")
    old = log.open_journal("app", TASKS)
    part = log.task_journal("app", old.incarnation, "0_0", [])
    run_batch(log, old, 0, {"out": outputs("before")}, positions={("in", 0): 5})
    log.reset_application("app")
    assert log.last_batch("app") is None
    assert log.positions("app") == {}
    with pytest.raises(FencedError):
        old.commit(1, [])
    with pytest.raises(FencedError):
        old.delete_records({("out", 0): 1})
    with pytest.raises(FencedError):
        part.open()
    new = log.open_journal("app", TASKS)
    assert new.incarnation > old.incarnation
    assert (new.state.batch_id, new.state.positions, new.state.tasks) == (-1, {}, {})
    assert log.task_journal("app", new.incarnation, "0_0", []).open().record is None
    run_batch(log, new, 0, {"out": outputs("after")})
    assert log.topics() == ["in", "out"]
    assert values(log, "out") == ["before", "after"]


def test_reset_of_an_application_that_has_lost_an_internal_topic(log: DurableLog) -> None:
    """It is what the error says that somebody gets who starts such an application."""
    log.create_topic("app-one-changelog")
    run_batch(log, log.open_journal("app", TASKS), 0, {"app-one-changelog": outputs("1")})
    log.reset_application("app", ["app-lost-changelog", "app-one-changelog"])
    assert log.open_journal("app", TASKS).state.batch_id == -1
    assert "app-one-changelog" not in log.topics() or values(log, "app-one-changelog") == []


def test_driver_deletes_what_is_needed_no_more(log: DurableLog) -> None:
    log.create_topic("out")
    journal = log.open_journal("app", TASKS)
    run_batch(log, journal, 0, {"out": outputs("one", "two")})
    journal.delete_records({("out", 0): 1})
    assert log.begin_offsets([("out", 0)]) == {("out", 0): 1}
    journal.close()


def test_application_begins_where_it_is_told_to(log: DurableLog) -> None:
    log.create_topic("in")
    log.begin_at("app", {("in", 0): 5})
    assert log.last_batch("app") is None
    assert log.positions("app") == {("in", 0): 5}
    journal = log.open_journal("app", TASKS)
    assert (journal.state.batch_id, journal.state.positions) == (-1, {("in", 0): 5})
    run_batch(log, journal, 0, positions={("in", 0): 7})
    with pytest.raises(BatchError, match="has committed batch 0"):
        log.begin_at("app", {("in", 0): 5})
    log.reset_application("app")
    log.begin_at("app", {("in", 0): 2})
    assert log.open_journal("app", TASKS).state.positions == {("in", 0): 2}
