"""Journals on Kafka: a transaction for each task, and the rules that make them exact together.

The numbers of rules are those of ``docs/architecture.md``.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from secrets import token_hex
from typing import Any

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition

from headrace.errors import BatchError, FencedError, LogError, RetriableError, TopicError
from headrace.topics.journal import EdgeBlob, TaskRecord, TaskStatus
from headrace.topics.kafka import KafkaLog, administration, journal_maintenance, task_transaction
from headrace.topics.kafka.administration import Administration
from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.history import BATCH, PLAN, RESET, Batch, Plan, entry_key
from headrace.topics.kafka.journal import KafkaJournal, _encode
from headrace.topics.kafka.task_transaction import KafkaTaskJournal
from headrace.topics.log import TopicPartition
from tests.topics.journals import group_offsets, open_transaction, outputs, run_batch, run_task, task_record, values
from tests.topics.kit import everything, record

pytestmark = pytest.mark.kafka

TASKS = ("0_0", "0_1")
BATCHES = ("app-headrace-batches", 0)
OWN = ("app-headrace-0-tasks", 0)


@pytest.fixture
def other(kafka: KafkaLog) -> Iterator[KafkaLog]:
    """A handle that shares no clients with the first one, as if it were in another process."""
    with KafkaLog(kafka.bootstrap_servers, admin={"client.id": "other"}) as log:
        yield log


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def begin(log: KafkaLog, target: TopicPartition) -> int:
    return log.begin_offsets([target])[target]


def test_outputs_are_read_when_their_task_has_committed(kafka: KafkaLog, other: KafkaLog) -> None:
    kafka.create_topic("out", partitions=2)
    journal = kafka.open_journal("app", TASKS)
    journal.begin(0, b"plan")
    written = {"out": [record("a", "1", partition=0), record("b", "2", partition=1)]}
    receipt = pickle.loads(pickle.dumps(run_task(kafka, journal, "0_0", task_record(0), written)))
    until(lambda: values(kafka, "out", 0) == ["1"] and values(kafka, "out", 1) == ["2"])
    assert kafka.last_batch("app") is None
    done = journal.commit(0, [receipt])
    assert done.written == {("out", 0): (0, 1), ("out", 1): (0, 1)}
    assert other.last_batch("app") == done


def test_end_of_a_transaction_takes_an_offset_and_ranges_stay_exact(kafka: KafkaLog) -> None:
    kafka.create_topic("out")
    journal = kafka.open_journal("app", TASKS)
    for batch in range(3):
        run_batch(kafka, journal, batch, {"out": outputs(f"{batch}-0", f"{batch}-1")})
    assert kafka.end_offsets([("out", 0)], stable=False) == {("out", 0): 9}
    assert [raw[0] for raw in everything(kafka, "out")] == [0, 1, 3, 4, 6, 7]
    for start in range(9):
        for stop in range(start, 10):
            expected = [offset for offset in (0, 1, 3, 4, 6, 7) if start <= offset < stop]
            assert [raw[0] for raw in kafka.read("out", 0, start, stop)] == expected


def test_aborted_records_are_never_seen(kafka: KafkaLog) -> None:
    kafka.create_topic("out")
    journal = kafka.open_journal("app", TASKS)
    open_transaction(kafka, "0_0", "out", outputs("aborted") * 10).abort_transaction(10)
    assert kafka.read("out", 0, 0) == []
    run_batch(kafka, journal, 0, {"out": outputs("committed")})
    assert values(kafka, "out") == ["committed"]
    assert kafka.read("out", 0, 0, 5) == []


def test_open_transaction_hides_what_follows_it(kafka: KafkaLog) -> None:
    kafka.create_topic("out")
    kafka.open_journal("app", TASKS)
    writer = open_transaction(kafka, "0_0", "out", outputs("open"))
    kafka.append("out", outputs("later"))
    assert kafka.end_offsets([("out", 0)]) == {("out", 0): 0}
    assert kafka.end_offsets([("out", 0)], stable=False) == {("out", 0): 2}
    assert kafka.read("out", 0, 0) == []
    writer.commit_transaction(10)
    until(lambda: values(kafka, "out") == ["open", "later"])


def test_what_was_committed_is_seen_at_once_by_the_process_of_the_driver(kafka: KafkaLog) -> None:
    kafka.create_topic("out")
    journal = kafka.open_journal("app", TASKS)
    for batch in range(8):
        run_batch(kafka, journal, batch, {"out": outputs(str(batch))})
        # Brokers end a transaction some time after they say so; the next plan waits for back edges.
        assert kafka.end_offsets([("out", 0)])["out", 0] > 2 * batch
        assert values(kafka, "out") == [str(each) for each in range(batch + 1)]


def test_open_transaction_of_others_does_not_hold_up_who_asks_for_ends_for_long(
    kafka: KafkaLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(administration, "COMMITTED_S", 0.1)
    kafka.create_topic("out")
    journal = kafka.open_journal("app", TASKS)
    writer = open_transaction(kafka, "0_1", "out", outputs("open"))
    run_batch(kafka, journal, 0, {"out": outputs("committed")})
    for _ in range(2):
        assert kafka.end_offsets([("out", 0)]) == {("out", 0): 0}
    assert caplog.text.count("wait behind a transaction that is still open") == 1
    writer.abort_transaction(10)


def test_task_finds_its_record_beside_open_and_aborted_transactions(kafka: KafkaLog) -> None:
    """Rule 1: a partition for each task."""
    journal = kafka.open_journal("app", TASKS)
    journal.begin(0, b"plan")
    left_open = open_transaction(kafka, "0_0", OWN[0], outputs("open"))
    done = task_record(0)
    run_task(kafka, journal, "0_1", done)
    for _ in range(3):
        aborted = [record("record", "aborted", partition=1)] * 40
        open_transaction(kafka, "0_1", OWN[0], aborted).abort_transaction(10)
    assert kafka.task_journal("app", journal.incarnation, "0_1", []).open().record == done
    left_open.abort_transaction(10)
    assert kafka.task_journal("app", journal.incarnation, "0_0", []).open().record is None


def test_task_reads_what_is_committed_whatever_the_settings_of_consumers_say(kafka: KafkaLog) -> None:
    kafka.create_topic("out")
    with KafkaLog(kafka.bootstrap_servers, consumer={"isolation.level": "read_uncommitted"}) as log:
        journal = log.open_journal("app", TASKS)
        journal.begin(0, b"plan")
        aborted = (None, 1, b"record", task_record(0).pack(), ())
        open_transaction(log, "0_0", OWN[0], [aborted]).abort_transaction(10)
        open_transaction(log, "0_0", "out", outputs("aborted")).abort_transaction(10)
        assert log.task_journal("app", journal.incarnation, "0_0", []).open().record is None
        assert values(log, "out") == []


def test_opening_ends_what_a_predecessor_has_open_before_it_looks(kafka: KafkaLog, other: KafkaLog) -> None:
    """Rule 2: first the predecessor is fenced, then its record is looked for."""
    kafka.create_topic("store-changelog")
    journal = kafka.open_journal("app", TASKS)
    journal.begin(0, b"plan")
    zombie = open_transaction(other, "0_0", "store-changelog", outputs("zombie"))
    zombie.produce(*OWN[:1], task_record(0).pack(), b"record", OWN[1])
    zombie.flush(10)
    part = kafka.task_journal("app", journal.incarnation, "0_0", [("store-changelog", 0)])
    head = part.open()
    assert head.record is None
    # The aborted row and the end of its transaction lie before; a restore need not wait for anything.
    assert head.ends == {("store-changelog", 0): 2}
    with pytest.raises(KafkaException, match="fenced"):
        zombie.commit_transaction(10)
    done = task_record(0)
    part.commit(done, [("store-changelog", outputs("row"))], [])
    assert part.open().record == done
    assert values(kafka, "store-changelog") == ["row"]


def test_attempt_that_was_believed_dead_commits_nothing(kafka: KafkaLog, other: KafkaLog) -> None:
    kafka.create_topic("out")
    journal = kafka.open_journal("app", TASKS)
    journal.begin(0, b"plan")
    zombie = other.task_journal("app", journal.incarnation, "0_0", [])
    zombie.open()
    receipt = run_task(kafka, journal, "0_0", task_record(0), {"out": outputs("successor")})
    with pytest.raises(RetriableError, match="another attempt at the task has taken over while committing task 0_0"):
        zombie.commit(task_record(0), [("out", outputs("zombie") * 5)], [])
    journal.commit(0, [receipt])
    # It looks again before it does anything else.
    with pytest.raises(LogError, match="task 0_0 of application 'app' is not open"):
        zombie.commit(task_record(0), [], [])
    head = zombie.open()
    assert head.record is not None
    assert head.record.stamp == receipt.stamp
    assert values(kafka, "out") == ["successor"]


def test_task_that_goes_back_and_forth_between_processes_is_written_once(kafka: KafkaLog, other: KafkaLog) -> None:
    kafka.create_topic("out")
    journal = kafka.open_journal("app", TASKS)
    for batch in range(6):
        run_task(other if batch % 2 else kafka, journal, "0_0", task_record(batch), {"out": outputs(str(batch))})
    until(lambda: values(kafka, "out") == [str(batch) for batch in range(6)])


def test_answer_that_was_lost_is_looked_up(kafka: KafkaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 3: a commit whose end is not known is a failure, and the next opening tells."""
    kafka.create_topic("out")
    journal = kafka.open_journal("app", TASKS)
    journal.begin(0, b"plan")
    part = kafka.task_journal("app", journal.incarnation, "0_0", [])
    part.open()
    end = KafkaTaskJournal._end

    def lose(*arguments: object) -> None:
        end(*arguments)  # type: ignore[arg-type]
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    monkeypatch.setattr(KafkaTaskJournal, "_end", lose)
    done = task_record(0)
    with pytest.raises(RetriableError, match="did not answer in time while committing task 0_0"):
        part.commit(done, [("out", outputs("once"))], [])
    monkeypatch.setattr(KafkaTaskJournal, "_end", end)
    assert part.open().record == done
    assert values(kafka, "out") == ["once"]


def edge(receiver: str, sequence: int, blob: bytes) -> EdgeBlob:
    return EdgeBlob(receiver, "app-by-city-repartition", "0_0", sequence, blob)


def test_edges_are_handed_on_from_the_topic(kafka: KafkaLog, other: KafkaLog) -> None:
    """Rule 4: a driver that comes later finds plan, record and edges of a batch that was begun."""
    old = kafka.open_journal("app", (*TASKS, "1_0"))
    run_batch(kafka, old, 0)
    old.begin(1, b"the plan")
    edges = [
        edge("1_0", 0, b"small"),
        # More than a record can hold.
        edge("1_0", 1, b"".join(str(number).encode() for number in range(500_000))),
        edge("1_1", 0, b""),
    ]
    done = task_record(1)
    run_task(other, old, "0_0", done, edges=edges)
    new = kafka.open_journal("app", (*TASKS, "1_0"))
    assert (new.state.batch_id, new.state.begun) == (0, b"the plan")
    part = kafka.task_journal("app", new.incarnation, "0_0", [])
    found = part.open().record
    assert found is not None
    assert (found.stamp, found.batch_id) == (done.stamp, 1)
    assert part.read_edges(found) == edges
    # Begun is begun: another plan is refused, the same one need not be recorded again.
    with pytest.raises(BatchError, match="batch 1 of application 'app' was begun with another plan"):
        new.begin(1, b"another plan")
    new.begin(1, b"the plan")
    new.commit(1, [])
    assert kafka.open_journal("app", TASKS).state.begun is None


def test_edges_are_waited_for_until_exactly_they_can_be_read(kafka: KafkaLog) -> None:
    """Rule 5."""
    kafka.open_journal("app", TASKS)
    part = kafka.task_journal("app", 1 << 40, "0_0", [])
    blobs = [record("edge", f"blob-{number}", partition=0) for number in range(4)]
    writer = open_transaction(kafka, "0_0", OWN[0], blobs)
    named = TaskRecord(0, "stamp", [], None, b"", edges=[("1_0", "t", 0, 1), ("1_0", "t", 1, 3)])
    timer = threading.Timer(0.3, lambda: writer.commit_transaction(10))
    timer.start()
    started = time.monotonic()
    assert [found.blob for found in part.read_edges(named)] == [b"blob-1", b"blob-3"]
    assert time.monotonic() - started > 0.2
    timer.join()


def test_edges_that_are_gone_are_told(kafka: KafkaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = kafka.open_journal("app", TASKS)
    run_batch(kafka, journal, 0)
    monkeypatch.setattr(Clients, "patience_s", 2.0)
    lost = TaskRecord(0, "stamp", [], None, b"", edges=[("1_0", "t", 0, 1)])
    with pytest.raises(LogError, match=r"edges of task 0_0 .* 0 of 1 were found"):
        kafka.task_journal("app", journal.incarnation, "0_0", []).read_edges(lost)


def test_two_drivers_at_once(kafka: KafkaLog, other: KafkaLog) -> None:
    """Rule 7: the one that came first finds out when it writes next, and what it has written does not count."""
    old = kafka.open_journal("app", TASKS)
    run_batch(kafka, old, 0)
    new = other.open_journal("app", TASKS)
    with pytest.raises(
        FencedError, match=r"another instance has taken over \(process \d+ on .*, since 20\d\d-.*; number"
    ):
        old.begin(1, b"late")
    # Every further try is the same error.
    with pytest.raises(FencedError):
        old.begin(1, b"late")
    assert new.state.begun is None
    # The late plan lies between the takeover and what the new driver writes: that is nobody's takeover.
    run_batch(other, new, 1)
    third = kafka.open_journal("app", TASKS)
    assert (third.state.batch_id, third.state.begun) == (1, None)


def test_records_of_deposed_drivers_are_ignored_wherever_they_lie(kafka: KafkaLog) -> None:
    old = kafka.open_journal("app", TASKS)
    run_batch(kafka, old, 0, positions={("in", 0): 1})
    new = kafka.open_journal("app", TASKS)
    late = Batch(1, [("in", 0, 99)])
    for key, value in ((BATCH, _encode(late)), (PLAN, _encode(Plan(2, b"late")))):
        kafka.append(BATCHES[0], [(0, 1, entry_key(key, old.incarnation), value, ())])
    assert kafka.positions("app") == {("in", 0): 1}
    run_batch(kafka, new, 1, positions={("in", 0): 2})
    # So they are for who has never seen the takeover, because it was cut off.
    kafka.delete_records({BATCHES: kafka.end_offsets([BATCHES])[BATCHES] - 1})
    kafka.append(BATCHES[0], [(0, 1, entry_key(BATCH, old.incarnation), _encode(late), ())])
    with KafkaLog(kafka.bootstrap_servers, admin={"client.id": "third"}) as third:
        assert third.positions("app") == {("in", 0): 2}
        state = third.open_journal("app", TASKS).state
        assert (state.batch_id, state.begun) == (1, None)


def test_start_ends_what_tasks_have_left_open(kafka: KafkaLog, other: KafkaLog) -> None:
    """Rule 8: also of tasks that have never committed anything, and that the next driver does not have."""
    kafka.create_topic("out")
    old = kafka.open_journal("app", ("0_0", "3_7"))
    run_batch(kafka, old, 0, {"out": outputs("committed")})
    zombies = [open_transaction(other, task, "out", outputs("open")) for task in ("0_0", "3_7")]
    kafka.append("out", outputs("behind"))
    assert kafka.end_offsets([("out", 0)])["out", 0] < kafka.end_offsets([("out", 0)], stable=False)["out", 0]
    kafka.open_journal("app", ("0_0",))
    until(lambda: values(kafka, "out") == ["committed", "behind"])
    for zombie in zombies:
        with pytest.raises(KafkaException, match="fenced"):
            zombie.commit_transaction(10)


def test_drivers_refuse_to_start_until_a_reset_is_finished(kafka: KafkaLog, other: KafkaLog) -> None:
    """Rule 10."""
    old = kafka.open_journal("app", TASKS)
    run_batch(kafka, old, 0, positions={("in", 0): 1})
    # A reset that was killed.
    kafka.append(BATCHES[0], [(0, 1, RESET, b"", ())])
    for log in (kafka, other):
        with pytest.raises(BatchError, match=r"a reset was begun .* and is not finished; .* `headrace reset app`"):
            log.open_journal("app", TASKS)
        assert log.positions("app") == {}
    with pytest.raises(FencedError, match="it was reset"):
        old.begin(1, b"plan")
    with pytest.raises(FencedError, match="it was reset"):
        kafka.task_journal("app", old.incarnation, "0_0", []).open()
    other.reset_application("app")
    assert kafka.open_journal("app", TASKS).state.batch_id == -1


def test_reset_that_ends_does_not_hide_one_that_was_announced_meanwhile(
    kafka: KafkaLog, other: KafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 10: that one may still be emptying topics, which no driver may use."""
    run_batch(kafka, kafka.open_journal("app", TASKS), 0)
    truncate = Administration.truncate

    def announce_and_truncate(self: Administration, topics: Iterable[str]) -> None:
        other.append(BATCHES[0], [(0, 1, RESET, b"", ())])
        truncate(self, topics)

    with monkeypatch.context() as patch:
        patch.setattr(Administration, "truncate", announce_and_truncate)
        kafka.reset_application("app")
    with pytest.raises(BatchError, match="a reset was begun"):
        kafka.open_journal("app", TASKS)
    other.reset_application("app")
    assert kafka.open_journal("app", TASKS).state.batch_id == -1


def test_takeover_that_comes_after_a_reset_was_begun_does_not_stop_it(kafka: KafkaLog, other: KafkaLog) -> None:
    run_batch(kafka, kafka.open_journal("app", TASKS), 0)
    begun = kafka.append(BATCHES[0], [(0, 1, RESET, b"", ())])[0][0]
    # Of a driver that had looked before that.
    kafka.append(BATCHES[0], [(0, 1, b"takeover", b"", ())])
    kafka.append(BATCHES[0], [(0, 1, entry_key(b"reset-done", begun), b"", ())])
    assert other.open_journal("app", TASKS).state.batch_id == -1


def test_driver_announces_itself_again_if_a_reset_has_ended_meanwhile(
    kafka: KafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_batch(kafka, kafka.open_journal("app", TASKS), 0)
    send, sent = KafkaJournal._send, list[int]()

    def amid_a_reset(journal: KafkaJournal, key: bytes, value: bytes) -> int:
        if not sent:
            begun = kafka.append(BATCHES[0], [(0, 1, RESET, b"", ())])[0][0]
        sent.append(send(journal, key, value))
        if len(sent) == 1:
            kafka.append(BATCHES[0], [(0, 1, entry_key(b"reset-done", begun), b"", ())])
        return sent[-1]

    monkeypatch.setattr(KafkaJournal, "_send", amid_a_reset)
    journal = kafka.open_journal("app", TASKS)
    assert len(sent) == 2
    assert journal.incarnation == sent[1]
    assert journal.state.batch_id == -1


def test_process_that_has_seen_a_reset_begin_finds_its_end_behind_a_cut(kafka: KafkaLog, other: KafkaLog) -> None:
    run_batch(kafka, kafka.open_journal("app", TASKS), 0)
    kafka.append(BATCHES[0], [(0, 1, RESET, b"", ())])
    with pytest.raises(BatchError, match="a reset was begun"):
        other.open_journal("app", TASKS)
    kafka.reset_application("app")
    run_batch(kafka, kafka.open_journal("app", TASKS), 0)
    kafka.delete_records({BATCHES: kafka.end_offsets([BATCHES])[BATCHES] - 1})
    assert other.open_journal("app", TASKS).state.batch_id == 0


def test_reset_empties_topics_and_keeps_them(kafka: KafkaLog) -> None:
    """Rule 10: what a process deletes that was believed dead is named by offsets, which are not given again."""
    kafka.create_topic("in")
    kafka.create_topic("out")
    changelogs = {"app-one-changelog": "compact", "app-two-changelog": "compact,delete"}
    for topic, policy in changelogs.items():
        kafka.create_topic(topic, configs={"cleanup.policy": policy})
    journal = kafka.open_journal("app", TASKS)
    topics = ["out", *changelogs]
    run_batch(kafka, journal, 0, dict.fromkeys(topics, outputs("1")), positions={("in", 0): 1})
    ids = {topic: kafka.topic_id(topic) for topic in (*changelogs, OWN[0], BATCHES[0])}
    emptied = [*((topic, 0) for topic in changelogs), OWN]
    ends = kafka.end_offsets(emptied, stable=False)
    kafka.reset_application("app", changelogs)
    assert {topic: kafka.topic_id(topic) for topic in ids} == ids
    # The end of the last transaction may have come to a partition since.
    begins = kafka.begin_offsets(emptied)
    assert begins == kafka.end_offsets(emptied, stable=False)
    assert all(begins[target] >= end for target, end in ends.items())
    assert values(kafka, "out") == ["1"]
    # It can be done again, and for who was never there.
    kafka.reset_application("app", changelogs)
    kafka.reset_application("nobody")
    new = kafka.open_journal("app", TASKS)
    run_batch(kafka, new, 0, dict.fromkeys(topics, outputs("2")))
    assert values(kafka, "app-one-changelog") == ["2"]


def test_records_of_compacted_topics_are_deleted_only_if_they_may_expire(kafka: KafkaLog) -> None:
    """Rule 11."""
    for policy in ("compact", "compact,delete"):
        kafka.create_topic(policy.replace(",", "-"), configs={"cleanup.policy": policy})
        kafka.append(policy.replace(",", "-"), [record("k", str(number)) for number in range(5)])
    kafka.delete_records({("compact-delete", 0): 3})
    assert begin(kafka, ("compact-delete", 0)) == 3
    with pytest.raises(TopicError, match=r"cannot do this while deleting records: .*[Pp]olicy"):
        kafka.delete_records({("compact", 0): 3})


def test_topics_of_progress_keep_everything_and_are_not_among_the_topics(kafka: KafkaLog) -> None:
    kafka.create_topic("out", partitions=3)
    run_batch(kafka, kafka.open_journal("app", ["0_0", "1_9"]), 0, {"out": outputs("1")})
    assert kafka.partition_counts() == {"out": 3}
    assert "app" in kafka.applications()
    for topic, partitions in ((BATCHES[0], 1), (OWN[0], 8), ("app-headrace-1-tasks", 16)):
        found = kafka.describe_topic(topic)
        assert found.partitions == partitions
        assert (found.configs["cleanup.policy"], found.configs["retention.ms"], found.configs["retention.bytes"]) == (
            "delete",
            "-1",
            "-1",
        )


def test_topic_of_tasks_grows_with_its_tasks(kafka: KafkaLog) -> None:
    journal = kafka.open_journal("app", ["0_0"])
    done = task_record(0)
    run_task(kafka, journal, "0_9", done)
    assert kafka.task_journal("app", journal.incarnation, "0_9", []).open().record == done
    assert kafka.partitions_of(OWN[0]) == 16


def test_what_nobody_needs_any_more_is_cut_off(kafka: KafkaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_maintenance, "CUT_EVERY_S", 0.0)
    monkeypatch.setattr(journal_maintenance, "GROUP_EVERY_S", 0.01)
    journal = kafka.open_journal("app", TASKS)
    for batch in range(5):
        journal.begin(batch, b"plan")
        receipts = [
            run_task(kafka, journal, task, task_record(batch), edges=[edge("1_0", 0, b"blob")])
            for task in (TASKS if batch == 0 else TASKS[:1])
        ]
        journal.commit(batch, receipts)
    # Edge, record and end of a transaction, for each batch.
    until(lambda: begin(kafka, OWN) == 13)
    assert begin(kafka, (OWN[0], 1)) == 1
    assert begin(kafka, BATCHES) == journal.incarnation + 10
    journal.close()
    state = kafka.open_journal("app", TASKS)
    assert state.state.batch_id == 4
    heads = [kafka.task_journal("app", state.incarnation, task, []).open().record for task in TASKS]
    assert [head.batch_id for head in heads if head is not None] == [4, 0]


def test_large_record_of_a_task_outlives_the_cut(kafka: KafkaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has several parts, and the driver knows where the last one is."""
    monkeypatch.setattr(journal_maintenance, "CUT_EVERY_S", 0.0)
    monkeypatch.setattr(journal_maintenance, "GROUP_EVERY_S", 0.01)
    journal = kafka.open_journal("app", TASKS)
    done = task_record(0, memory=token_hex(1_500_000).encode())
    journal.begin(0, b"plan")
    journal.commit(0, [run_task(kafka, journal, "0_0", done, edges=[edge("1_0", 0, b"blob")])])
    # The edge is gone, all four parts of the record are there.
    until(lambda: begin(kafka, OWN) == 1)
    assert kafka.task_journal("app", journal.incarnation, "0_0", []).open().record is not None


def test_offsets_of_the_group_follow_for_tools_and_decide_nothing(
    kafka: KafkaLog, other: KafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_maintenance, "GROUP_EVERY_S", 0.01)
    kafka.create_topic("in", partitions=2)
    journal = kafka.open_journal("app", TASKS)
    run_batch(kafka, journal, 0, positions={("in", 0): 5})
    run_batch(kafka, journal, 1, positions={("in", 1): 6})
    journal.close()
    committed = {("in", 0): 5, ("in", 1): 6}
    assert group_offsets(kafka, "app", committed) == committed
    # Brokers forget them after a week in which nobody has committed.
    kafka._clients.admin.delete_consumer_groups(["app"])["app"].result()
    assert other.positions("app") == committed


def test_positions_to_begin_at_outlive_the_group_although_no_batch_was_recorded(
    kafka: KafkaLog, other: KafkaLog
) -> None:
    kafka.create_topic("in")
    # What tools have committed for the group decides nothing either.
    with closing(Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "app"})) as consumer:
        consumer.commit(offsets=[KafkaTopicPartition("in", 0, 3)], asynchronous=False)
    kafka.begin_at("app", {("in", 0): 5})
    kafka._clients.admin.delete_consumer_groups(["app"])["app"].result()
    assert other.positions("app") == {("in", 0): 5}
    state = other.open_journal("app", TASKS).state
    assert (state.batch_id, state.positions) == (-1, {("in", 0): 5})


def test_application_with_a_batch_that_was_begun_cannot_begin_elsewhere(kafka: KafkaLog) -> None:
    kafka.create_topic("in")
    journal = kafka.open_journal("app", TASKS)
    journal.begin(0, b"plan")
    run_task(kafka, journal, "0_0", task_record(0, positions={("in", 0): 3}))
    with pytest.raises(BatchError, match="has begun batch 0, and tasks may have committed it"):
        kafka.begin_at("app", {("in", 0): 5})
    assert kafka.open_journal("app", TASKS).state.begun == b"plan"


def test_application_that_another_process_has_reset_has_no_batch(kafka: KafkaLog, other: KafkaLog) -> None:
    run_batch(kafka, kafka.open_journal("app", TASKS), 0)
    assert kafka.last_batch("app") is not None
    other.reset_application("app")
    assert kafka.last_batch("app") is None


def test_history_that_is_cut_off_while_it_is_read_is_read_to_its_new_end(
    kafka: KafkaLog, other: KafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.create_topic("in", partitions=2)
    journal = kafka.open_journal("app", TASKS)
    run_batch(kafka, journal, 0)
    other.reset_application("app", ["in"])
    begin_offsets = administration.Administration.begin_offsets

    def reset_again(self: administration.Administration, targets: Any) -> Any:
        monkeypatch.undo()
        other.reset_application("app", ["in"])
        return begin_offsets(self, targets)

    monkeypatch.setattr(administration.Administration, "begin_offsets", reset_again)
    with pytest.raises(FencedError, match="it was reset"):
        kafka.task_journal("app", journal.incarnation, "0_0", []).open()


def test_at_least_once_writes_what_is_run_again_again(kafka: KafkaLog) -> None:
    kafka.create_topic("out")
    with KafkaLog(kafka.bootstrap_servers, exactly_once=False) as log:
        journal = log.open_journal("app", TASKS)
        journal.begin(0, b"plan")
        for attempt in (0, 1):
            done = task_record(0, next_clock_ms=attempt)
            edges = [edge("1_0", 0, str(attempt).encode())]
            receipt = run_task(log, journal, "0_0", done, {"out": outputs(str(attempt))}, edges)
            assert values(log, "out")[-1] == str(attempt)
        assert journal.commit(0, [receipt]).written == {("out", 0): (1, 2)}
        part = log.task_journal("app", journal.incarnation, "0_0", [])
        found = part.open().record
        assert found is not None
        assert (found.stamp, part.read_edges(found)) == (done.stamp, edges)
        new = log.open_journal("app", TASKS)
        assert new.state.tasks == {"0_0": TaskStatus(done.stamp, 1)}
        with pytest.raises(FencedError):
            part.open()


def test_task_whose_records_the_client_has_purged_was_fenced(kafka: KafkaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka.create_topic("out")
    journal = kafka.open_journal("app", TASKS)
    part = kafka.task_journal("app", journal.incarnation, "0_0", [])
    part.open()

    def purged(*_: Any) -> None:
        raise KafkaException(KafkaError(KafkaError._PURGE_QUEUE))

    monkeypatch.setattr(task_transaction, "flush", purged)
    with pytest.raises(RetriableError, match="another attempt at the task has taken over"):
        part.commit(task_record(0), [("out", outputs("x"))], [edge("1_0", 0, b"blob")])


def test_transaction_that_took_too_long_names_the_setting(kafka: KafkaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka.create_topic("out")
    write_record = KafkaTaskJournal._write_record

    def slowly(*arguments: object) -> int:
        assert isinstance(arguments[1], Producer)
        arguments[1].flush(10)
        time.sleep(2.5)
        return write_record(*arguments)  # type: ignore[arg-type]

    def fenced(*_: object) -> None:
        raise KafkaException(KafkaError(KafkaError._FENCED))

    with KafkaLog(kafka.bootstrap_servers, producer={"transaction.timeout.ms": 1000}) as log:
        journal = log.open_journal("app", TASKS)
        journal.begin(0, b"plan")
        part = log.task_journal("app", journal.incarnation, "0_0", [])
        part.open()
        monkeypatch.setattr(KafkaTaskJournal, "_write_record", slowly)
        with pytest.raises(RetriableError, match=r"longer than 'producer\.transaction\.timeout\.ms', 1000 ms"):
            part.commit(task_record(0), [("out", outputs("slow"))], [])
        monkeypatch.setattr(KafkaTaskJournal, "_write_record", write_record)
        assert part.open().record is None
        journal.commit(0, [part.commit(task_record(0), [("out", outputs("quick"))], [])])
        assert values(log, "out") == ["quick"]
        # Who is fenced when it opens the task has no transaction that could have taken too long.
        time.sleep(1)
        monkeypatch.setattr(task_transaction, "init_producer", fenced)
        with pytest.raises(RetriableError, match="another attempt at the task has taken over while opening task 0_0"):
            part.open()


def test_record_that_the_broker_refuses_is_explained_and_nothing_stays_open(kafka: KafkaLog) -> None:
    kafka.create_topic("small", configs={"max.message.bytes": 1000})
    journal = kafka.open_journal("app", TASKS)
    journal.begin(0, b"plan")
    part = kafka.task_journal("app", journal.incarnation, "0_0", [])
    part.open()
    with pytest.raises(TopicError, match=r"too large .* while writing to topic 'small' in task 0_0"):
        part.commit(task_record(0), [("small", [record("k", token_hex(5000))] * 5)], [])
    kafka.append("small", outputs("behind"))
    until(lambda: values(kafka, "small") == ["behind"])
    assert part.open().record is None


def test_journal_that_fails_keeps_no_other_from_recording(kafka: KafkaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Journals of a process share a producer, which is replaced when one of them has failed."""
    one, two = (kafka.open_journal(application, TASKS) for application in ("one", "two"))
    monkeypatch.setattr(Clients, "patience_s", 5.0)
    with pytest.raises(TopicError, match="too large"):
        one.begin(0, b"plan" * 1_000_000)
    former = [thread for thread in threading.enumerate() if thread.name == "headrace-acknowledgements"]
    until(lambda: not any(thread.is_alive() for thread in former))
    two.begin(0, b"plan")
    assert kafka.open_journal("two", TASKS).state.begun == b"plan"


def test_closed_journal_says_so(kafka: KafkaLog) -> None:
    journal = kafka.open_journal("app", TASKS)
    journal.close()
    journal.close()
    with pytest.raises(LogError, match="journal of application 'app' is closed"):
        journal.begin(0, b"plan")


def test_task_needs_a_name_with_a_partition(kafka: KafkaLog) -> None:
    with pytest.raises(TopicError, match="a task's name is <sub-topology>_<partition>"):
        kafka.task_journal("app", 0, "first", [])
