"""What is particular to Kafka: transactions of tasks, the offsets they take, and who is let in."""

from __future__ import annotations

import pickle
from secrets import token_hex

import pytest

pytest.importorskip("confluent_kafka")

from headrace.config import StreamsConfig
from headrace.errors import BatchError, ConfigError, RetriableError, TaskMigratedError, TopicError
from headrace.topics.kafka import KafkaLog, administration, batches, times
from headrace.topics.kafka.clients import Clients, Writer
from headrace.topics.kafka.settings import ClientSettings
from headrace.topics.log import Output, TopicLog
from tests.topics.kit import commit, everything, keyed, record

pytestmark = pytest.mark.kafka


def values(log: TopicLog, topic: str, partition: int = 0) -> list[str | None]:
    return [value for _, _, value in keyed(everything(log, topic, partition))]


def other_process(log: KafkaLog) -> KafkaLog:
    """Returns a handle that shares no clients with another one, as if it were in another process."""
    return KafkaLog(log.bootstrap_servers, admin={"client.id": "other"})


def test_records_come_back_as_they_were_but_for_time_zero(kafka: KafkaLog) -> None:
    kafka.create_topic("t")
    outputs: list[Output] = [
        (None, 5, b"k", b"v", ()),
        (None, -1, b"", b"", (("h", b"1"), ("h", None), ("ü", b""))),
        (None, 1, None, None, ()),
        (None, 7, b"\x00\xff", b"x" * 300_000, ()),
    ]
    assert kafka.append("t", outputs) == {0: (0, 4)}
    assert [(None, *rest) for _, *rest in kafka.read("t", 0, 0)] == outputs
    kafka.append("t", [record("a", "1", 0)])
    assert kafka.read("t", 0, 4)[0][1] == 1


def test_time_in_the_far_future_is_refused_by_the_broker(kafka: KafkaLog) -> None:
    kafka.create_topic("t")
    with pytest.raises(TopicError, match=r"message\.timestamp\.after\.max\.ms"):
        kafka.append("t", [record("a", "1", 1 << 60)])


def test_outputs_are_read_when_their_task_has_finished(kafka: KafkaLog) -> None:
    kafka.create_topic("in")
    kafka.create_topic("out", partitions=2)
    with kafka.stage("app", 0, "0_0", 0) as stage:
        stage.write("out", [record("a", "1", partition=0), record("b", "2", partition=1)])
        receipt = pickle.loads(pickle.dumps(stage.finish({("in", 0): 7})))
    assert kafka.last_batch("app") is None
    done = kafka.commit_batch("app", 0, [receipt])
    assert done.written == {("out", 0): (0, 1), ("out", 1): (0, 1)}
    assert keyed(everything(kafka, "out", 1)) == [(0, "b", "2")]
    assert kafka.positions("app") == {("in", 0): 7}
    with other_process(kafka) as other:
        assert other.last_batch("app") == done


def test_end_of_a_transaction_takes_an_offset_and_ranges_stay_exact(kafka: KafkaLog) -> None:
    kafka.create_topic("out")
    for batch in range(3):
        commit(kafka, batch, {"out": [record("k", f"{batch}-{n}") for n in range(2)]})
    assert kafka.end_offsets([("out", 0)]) == {("out", 0): 9}
    assert [raw[0] for raw in everything(kafka, "out")] == [0, 1, 3, 4, 6, 7]
    for start in range(9):
        for stop in range(start, 10):
            expected = [offset for offset in (0, 1, 3, 4, 6, 7) if start <= offset < stop]
            assert [raw[0] for raw in kafka.read("out", 0, start, stop)] == expected


def test_aborted_records_are_never_seen(kafka: KafkaLog) -> None:
    kafka.create_topic("out")
    with kafka.stage("app", 0, "0_0", 0) as stage:
        stage.write("out", [record("k", "aborted")] * 10)
        # Only a full buffer or a commit sends them.
        stage.flush()
    assert kafka.read("out", 0, 0) == []
    commit(kafka, 0, {"out": [record("k", "committed")]})
    assert values(kafka, "out") == ["committed"]
    assert kafka.read("out", 0, 0, 5) == []


def test_open_transaction_hides_what_follows_it(kafka: KafkaLog) -> None:
    kafka.create_topic("out")
    with kafka.stage("app", 0, "0_0", 0) as stage:
        stage.write("out", [record("k", "open")])
        stage.flush()
        kafka.append("out", [record("k", "later")])
        assert kafka.end_offsets([("out", 0)]) == {("out", 0): 0}
        assert kafka.end_offsets([("out", 0)], stable=False) == {("out", 0): 2}
        assert kafka.read("out", 0, 0) == []
        receipt = stage.finish({})
    kafka.commit_batch("app", 0, [receipt])
    assert values(kafka, "out") == ["open", "later"]


def test_replay_that_finds_its_marker_writes_nothing(kafka: KafkaLog) -> None:
    kafka.create_topic("in")
    kafka.create_topic("out")
    with kafka.stage("app", 4, "1_9", 0) as stage:
        stage.write("out", [record("k", "first")])
        stage.finish({("in", 0): 3})
    # The driver has died before it recorded the batch.
    with other_process(kafka) as other, other.stage("app", 4, "1_9", 1) as again:
        again.write("out", [record("k", "second")])
        receipt = again.finish({("in", 0): 3})
        assert other.commit_batch("app", 4, [receipt]).written == {("out", 0): (0, 1)}
    assert values(kafka, "out") == ["first"]
    assert kafka.positions("app") == {("in", 0): 3}


def test_zombie_is_fenced(kafka: KafkaLog) -> None:
    kafka.create_topic("out")
    with other_process(kafka) as other, kafka.stage("app", 0, "0_0", 0) as zombie:
        zombie.write("out", [record("k", "zombie")] * 5)
        with other.stage("app", 0, "0_0", 1) as successor:
            successor.write("out", [record("k", "successor")])
            receipt = successor.finish({})
        other.commit_batch("app", 0, [receipt])
        with pytest.raises(TaskMigratedError, match="another process has taken over"):
            zombie.finish({})
    assert values(kafka, "out") == ["successor"]
    # The next batch finds out that its producer is fenced before it writes, and makes a new one.
    commit(kafka, 1, {"out": [record("k", "next")]})
    assert values(kafka, "out") == ["successor", "next"]


def test_task_that_goes_back_and_forth_between_processes_is_written_once(
    kafka: KafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_hand: list[bool] = []
    spare_writer = Clients.spare_writer

    def observed(clients: Clients, transactional_id: str) -> Writer | None:
        found = spare_writer(clients, transactional_id)
        at_hand.append(found is not None)
        return found

    monkeypatch.setattr(Clients, "spare_writer", observed)
    kafka.create_topic("out")
    with other_process(kafka) as other:
        for batch in range(6):
            log = kafka if batch % 2 else other
            stage = log.stage("app", batch, "0_0", 0)
            stage.write("out", [record("k", str(batch))])
            log.commit_batch("app", batch, [stage.finish({})])
    assert values(kafka, "out") == [str(batch) for batch in range(6)]
    # Who has got the task from another process has a writer at hand when it comes again.
    assert at_hand == [False, False, False, True, True, True]


def test_at_least_once_writes_a_replay_again_and_commits_positions_with_the_batch(kafka: KafkaLog) -> None:
    kafka.create_topic("in")
    kafka.create_topic("out")
    with KafkaLog(kafka.bootstrap_servers, exactly_once=False) as log:
        for attempt in (0, 1):
            with log.stage("app", 0, "0_0", attempt) as stage:
                stage.write("out", [record("k", str(attempt))])
                receipt = stage.finish({("in", 0): 3})
            assert values(log, "out")[-1] == str(attempt)
        assert log.positions("app") == {}
        assert log.commit_batch("app", 0, [receipt]).written == {("out", 0): (1, 2)}
        assert log.positions("app") == {("in", 0): 3}


def test_marker_of_another_plan_or_of_a_later_batch_is_refused(kafka: KafkaLog) -> None:
    kafka.create_topic("out")
    with kafka.stage("app", 3, "0_0", 0, plan="a", checkpoint="one") as stage:
        stage.write("out", [record("k", "1")])
        stage.finish({})
    for batch, plan, checkpoint, problem in (
        (3, "b", "one", "batch 3 of application 'app' is in the log with another plan"),
        (3, "a", "other", "batch 3 of application 'app' is in the log from another checkpoint"),
        (2, "a", "one", "batch 2 of application 'app' is older than the last one in the log, 3"),
    ):
        stage = kafka.stage("app", batch, "0_0", 1, plan=plan, checkpoint=checkpoint)
        with stage, pytest.raises(BatchError, match=problem):
            stage.write("out", [record("k", "2")])
    assert values(kafka, "out") == ["1"]


def test_lost_marker_is_told_before_a_batch_is_run_again(kafka: KafkaLog) -> None:
    kafka.create_topic("out")
    commit(kafka, 0, {"out": [record("k", "1")]})
    kafka.before_replay("app", 1)
    # Brokers forget them after a week in which nobody has committed.
    kafka._clients.admin.delete_consumer_groups(["app"])["app"].result()
    with pytest.raises(BatchError, match=r"whether task 0_0 wrote results of it is not known .* `headrace reset app`"):
        kafka.before_replay("app", 1)


def test_replay_that_changes_state_in_another_way_is_reported(
    kafka: KafkaLog, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.create_topic("out")
    for log in (kafka, other_process(kafka)):
        with log.stage("app", 0, "0_0", 0, changes=lambda log=log: str(id(log))) as stage:  # type: ignore[misc]
            stage.write("out", [record("k", "1")])
            stage.finish({})
    assert "batch 0 was run again and has changed its state in another way" in caplog.text


def test_task_without_input_and_output_leaves_no_trace(kafka: KafkaLog) -> None:
    with kafka.stage("app", 0, "0_0", 0) as stage:
        receipt = stage.finish({})
    assert kafka.commit_batch("app", 0, [receipt]).written == {}
    assert kafka._batches._group_offsets("app") == {}


def test_marker_of_an_idle_task_is_committed_again_before_brokers_forget_it(
    kafka: KafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.create_topic("out")
    commit(kafka, 0, {"out": [record("k", "1")]})
    kafka._clients.admin.delete_consumer_groups(["app"])["app"].result()
    monkeypatch.setattr(batches, "_OUTWORN_MS", -1)
    kafka.commit_batch("app", 1, [])
    kafka.before_replay("app", 2)


def test_progress_is_not_among_the_topics(kafka: KafkaLog) -> None:
    kafka.create_topic("out", partitions=3)
    commit(kafka, 0, {"out": [record("k", "1")]})
    assert kafka.partition_counts() == {"out": 3}
    assert kafka.partitions_of("out") == 3


def test_receipts_are_checked(kafka: KafkaLog) -> None:
    kafka.create_topic("out")
    with kafka.stage("app", 0, "0_0", 0) as stage:
        receipt = stage.finish({})
    with pytest.raises(BatchError, match="two receipts of task 0_0"):
        kafka.commit_batch("app", 0, [receipt, receipt])
    with pytest.raises(BatchError, match="has a receipt of batch 0"):
        kafka.commit_batch("app", 1, [receipt])


def test_positions_outlive_the_offsets_of_the_group(kafka: KafkaLog) -> None:
    kafka.create_topic("in", partitions=2)
    commit(kafka, 0, {}, positions={("in", 0): 5})
    commit(kafka, 1, {}, positions={("in", 1): 6})
    # Brokers forget them after a week in which nobody has committed.
    kafka._clients.admin.delete_consumer_groups(["app"])["app"].result()
    with other_process(kafka) as other:
        assert other.positions("app") == {("in", 0): 5, ("in", 1): 6}


def test_application_that_another_process_has_reset_has_no_batch(kafka: KafkaLog) -> None:
    commit(kafka, 0, {})
    with other_process(kafka) as other:
        other.reset_application("app")
    assert kafka.last_batch("app") is None


def test_reset_forgets_batches_positions_and_markers(kafka: KafkaLog) -> None:
    kafka.create_topic("in")
    kafka.create_topic("out")
    commit(kafka, 5, {"out": [record("k", "1")]}, positions={("in", 0): 5})
    kafka.reset_application("app")
    assert kafka.last_batch("app") is None
    assert kafka.positions("app") == {}
    assert kafka.topics() == ["in", "out"]
    commit(kafka, 0, {"out": [record("k", "2")]})
    assert values(kafka, "out") == ["1", "2"]


def test_latest_time_of_a_long_range_is_asked_for(kafka: KafkaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "READ", 1)
    kafka.create_topic("t")
    found = [100_000, 300_000, 200_000, 200_000, 500_000, 400_000, 600_000, 350_000]
    kafka.append("t", [record("k", "v", time_ms) for time_ms in found])
    for start in range(len(found)):
        for stop in range(start, len(found) + 1):
            latest = kafka.latest_time("t", 0, start, stop)
            if max(found[:start], default=0) <= max(found[start:stop], default=0):
                assert latest == max(found[start:stop], default=None)
            elif latest is not None:
                # A later record before the range hides which one in it is the latest.
                assert found[stop - 1] <= latest <= max(found[start:stop])


def test_compacted_records_leave_gaps(kafka: KafkaLog) -> None:
    configs = {"cleanup.policy": "compact", "segment.ms": 1, "min.cleanable.dirty.ratio": 0}
    kafka.create_topic("t", configs=configs)
    for number in range(6):
        # Every append closes the segment of the one before.
        kafka.append("t", [record("a", str(number), 1000 * number + 1), record(f"b{number}", "x", 1000 * number + 2)])
    # The open segment takes no part: of the others the last 'a' is kept, too.
    remaining = [1, 3, 5, 7, 8, 9, 10, 11]
    for _ in range(2000):
        offsets = [raw[0] for raw in everything(kafka, "t")]
        if offsets == remaining:
            break
    assert offsets == remaining
    for start in range(12):
        for stop in range(start, 13):
            assert [raw[0] for raw in kafka.read("t", 0, start, stop)] == [n for n in offsets if start <= n < stop]


def test_handle_pickles_and_opens_anew(kafka: KafkaLog) -> None:
    kafka.create_topic("t")
    with pickle.loads(pickle.dumps(kafka)) as copy:
        copy.append("t", [record("a", "1")])
    assert values(kafka, "t") == ["1"]


def test_record_that_the_broker_refuses_is_explained(kafka: KafkaLog) -> None:
    kafka.create_topic("t", configs={"max.message.bytes": 1000})
    with pytest.raises(TopicError, match="too large"):
        kafka.append("t", [record("a", token_hex(5000))])


def test_unknown_client_setting_is_named(kafka: KafkaLog) -> None:
    kafka.create_topic("t")
    with KafkaLog(kafka.bootstrap_servers, consumer={"fetch.wait.max.mss": 1}) as log:
        with pytest.raises(ConfigError, match=r"fetch\.wait\.max\.mss"):
            log.read("t", 0, 0)
        assert log.topics() == ["t"]


def test_absent_broker_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(administration, "FIRST_ANSWER_S", 0.3)
    with (
        KafkaLog("127.0.0.1:1") as log,
        pytest.raises(RetriableError, match=r"Kafka at '127\.0\.0\.1:1' did not answer"),
    ):
        log.topics()


def test_settings_come_from_the_configuration_with_kafka_streams_prefixes() -> None:
    config = StreamsConfig(
        bootstrap_servers="b:9092",
        replication_factor=3,
        extras={
            "security.protocol": "SASL_SSL",
            "sasl.username": "user",
            "consumer.fetch.max.wait.ms": 50,
            "main.consumer.fetch.max.wait.ms": 60,
            "consumer.auto.offset.reset": "latest",
            "producer.max.request.size": 5_000_000,
            "producer.transaction.timeout.ms": 90_000,
            "admin.client.id": "boss",
        },
    )
    settings = ClientSettings.of(config)
    consumer = settings.for_consumer("group")
    assert (consumer["fetch.wait.max.ms"], consumer["auto.offset.reset"]) == (60, "error")
    assert consumer["isolation.level"] == "read_committed"
    assert settings.for_producer()["message.max.bytes"] == 5_000_000
    assert "transaction.timeout.ms" not in settings.for_producer()
    assert settings.for_producer("id")["transaction.timeout.ms"] == 90_000
    assert settings.for_admin()["client.id"] == "boss"
    assert settings.for_admin()["sasl.username"] == consumer["sasl.username"] == "user"
    assert settings.replication_factor == 3
