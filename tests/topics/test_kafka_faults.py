"""Kafka and its writers, killed and restarted."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")

from headrace import Produced, Serdes, Streams, StreamsBuilder, StreamsConfig
from headrace.app.engine import local_engine
from headrace.devtools.kafka_broker import start_broker, stop_broker
from headrace.handlers import StreamThreadExceptionResponse
from headrace.topics.journal import Receipt
from headrace.topics.kafka import KafkaLog
from tests.batches.failed_batch import expected, results, write
from tests.topics.journals import outputs, run_batch, task_record, values

pytestmark = pytest.mark.kafka

TASKS = ("0_0", "1_0")
AWAY_S = 12.0

# Runs a task of batch 0 up to some point, and waits there to be killed, or to be told to go on.
TASK = """
import sys
from headrace.errors import FencedError, RetriableError
from headrace.topics.journal import EdgeBlob, TaskRecord
from headrace.topics.kafka import KafkaLog
from headrace.topics.kafka.task_transaction import KafkaTaskJournal

servers, incarnation, point = sys.argv[1:]

def wait(at):
    if at == point:
        print("ready", flush=True)
        sys.stdin.readline()

end, write_record = KafkaTaskJournal._end, KafkaTaskJournal._write_record

def slow_record(self, producer, record, delivery):
    producer.flush()
    wait("records")
    return write_record(self, producer, record, delivery)

def slow_end(self, producer, delivery):
    producer.flush()
    wait("commit")
    end(self, producer, delivery)
    wait("answer")

KafkaTaskJournal._write_record, KafkaTaskJournal._end = slow_record, slow_end
part = KafkaLog(servers).task_journal("app", int(incarnation), "0_0", [])
part.open()
wait("open")
try:
    edges = [EdgeBlob("1_0", "repartition", "0_0", 0, b"blob")]
    part.commit(TaskRecord(0, "killed", [], None, b""), [("out", [(None, 1, b"k", b"killed", ())] * 3)], edges)
except (FencedError, RetriableError) as error:
    print(f"{type(error).__name__}: {error}", flush=True)
"""


class Task:
    """A process that runs a task up to a point."""

    def __init__(self, log: KafkaLog, incarnation: int, point: str) -> None:
        command = [sys.executable, "-c", TASK, log.bootstrap_servers, str(incarnation), point]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def go_on(self) -> str:
        """Returns what it says at its end."""
        return self._process.communicate("on\n")[0]


def finish(log: KafkaLog, incarnation: int) -> tuple[str, Receipt | None]:
    """Does what an attempt does: it hands on what is committed, and runs what is not."""
    part = log.task_journal("app", incarnation, "0_0", [])
    record = part.open().record
    if record is not None:
        assert [edge.blob for edge in part.read_edges(record)] == [b"blob"]
        return record.stamp, None
    done = task_record(0)
    return "run again", part.commit(done, [("out", outputs("again") * 3)], [])


@pytest.mark.parametrize("point", ["open", "records", "commit", "answer"])
@pytest.mark.parametrize("driver_dies_too", [False, True])
def test_batch_of_a_killed_task_is_written_once(kafka: KafkaLog, point: str, *, driver_dies_too: bool) -> None:
    kafka.create_topic("out")
    journal = kafka.open_journal("app", TASKS)
    journal.begin(0, b"the plan")
    Task(kafka, journal.incarnation, point).kill()
    if driver_dies_too:
        journal = kafka.open_journal("app", TASKS)
        assert journal.state.begun == b"the plan"
    how, receipt = finish(kafka, journal.incarnation)
    assert how == ("killed" if point == "answer" else "run again")
    journal.commit(0, [] if receipt is None else [receipt])
    assert values(kafka, "out") == (["killed"] * 3 if point == "answer" else ["again"] * 3)


@pytest.mark.parametrize("point", ["open", "records", "commit"])
@pytest.mark.parametrize("new_driver", [False, True])
def test_task_that_wakes_up_late_commits_nothing(kafka: KafkaLog, point: str, *, new_driver: bool) -> None:
    kafka.create_topic("out")
    journal = kafka.open_journal("app", TASKS)
    journal.begin(0, b"the plan")
    zombie = Task(kafka, journal.incarnation, point)
    if new_driver:
        journal = kafka.open_journal("app", TASKS)
    _, receipt = finish(kafka, journal.incarnation)
    assert receipt is not None
    journal.commit(0, [receipt])
    said = zombie.go_on()
    if new_driver:
        assert said.startswith("FencedError: application 'app': another instance has taken over")
    else:
        assert said.startswith("RetriableError: another attempt at the task has taken over while committing task 0_0")
    assert values(kafka, "out") == ["again"] * 3
    assert kafka.task_journal("app", journal.incarnation, "0_0", []).open().record is not None


# Opens the journal, and goes on when it is told to.
DRIVER = """
import sys
from headrace.errors import FencedError
from headrace.topics.kafka import KafkaLog
journal = KafkaLog(sys.argv[1]).open_journal("app", ["0_0", "1_0"])
journal.begin(0, b"the plan")
print("ready", flush=True)
sys.stdin.readline()
for step in (lambda: journal.commit(0, []), lambda: journal.begin(1, b"late")):
    try:
        step()
    except FencedError as error:
        print(error, flush=True)
"""


def test_driver_that_wakes_up_late_records_nothing(kafka: KafkaLog) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, kafka.bootstrap_servers],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as old:
        assert old.stdout is not None
        assert old.stdout.readline() == "ready\n"
        new = kafka.open_journal("app", TASKS)
        assert new.state.begun == b"the plan"
        said = old.communicate("on\n")[0].splitlines()
    assert len(said) == 2
    assert all("another instance has taken over (process" in line for line in said)
    new.commit(0, [])
    assert kafka.open_journal("app", TASKS).state.begun is None


def test_log_goes_on_when_its_broker_was_restarted(tmp_path: Path) -> None:
    broker = start_broker(tmp_path)
    try:
        port = int(broker.address.rpartition(":")[2])
        with KafkaLog(broker.address) as log:
            log.create_topic("out")
            journal = log.open_journal("app", TASKS)
            part = log.task_journal("app", journal.incarnation, "0_0", [])
            part.open()
            journal.begin(0, b"plan")
            journal.commit(0, [part.commit(task_record(0), [("out", outputs("before"))], [])])
            stop_broker(tmp_path)
            # Everybody asks while it is away, and waits until it is back.
            back = threading.Timer(2, start_broker, [tmp_path], {"port": port})
            back.start()
            asked = threading.Thread(target=log.end_offsets, args=([("out", 0)],))
            asked.start()
            journal.begin(1, b"plan")
            journal.commit(1, [part.commit(task_record(1), [("out", outputs("after"))], [])])
            assert values(log, "out") == ["before", "after"]
            last = log.last_batch("app")
            assert last is not None
            assert last.batch_id == 1
            back.join()
            asked.join()
            run_batch(log, journal, 2, {"out": outputs("later")})
            assert values(log, "out") == ["before", "after", "later"]
    finally:
        stop_broker(tmp_path)


def test_application_goes_on_when_its_broker_was_away_while_records_were_between_levels(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "kafka"
    broker = start_broker(directory)
    back = threading.Timer(AWAY_S, start_broker, [directory], {"port": int(broker.address.rpartition(":")[2])})
    failures: list[BaseException] = []
    stopped = threading.Event()

    def end_the_broker(_key: object, _value: object) -> None:
        if not stopped.is_set():
            stopped.set()
            stop_broker(directory)
            back.start()

    def fail(error: BaseException) -> StreamThreadExceptionResponse:
        failures.append(error)
        return StreamThreadExceptionResponse.SHUTDOWN_CLIENT

    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by(lambda _key, value: value["user"])
    # What is counted has come from the first level, which has committed.
    grouped.count().to_stream().peek(end_the_broker).to("out", Produced(value_serde=Serdes.json()))
    config = StreamsConfig(
        application_id="app",
        state_dir=tmp_path / "state",
        bootstrap_servers=broker.address,
        statestore_cache_max_bytes=0,
    )
    try:
        with KafkaLog(broker.address) as log:
            log.create_topic("in", partitions=2)
            log.create_topic("out", partitions=2)
            write(log, range(20))
            app = Streams(builder.build(), config, log=log, engine=local_engine)
            app.set_uncaught_exception_handler(fail)
            with caplog.at_level("WARNING", logger="headrace"):
                app.start(until_end=True)
                app.wait(timedelta(seconds=60))
            back.join()
            assert sorted(results(log)) == expected(20)
            assert failures == []
            # Only the client complains, which finds nobody.
            errors = [told for told in caplog.records if told.levelname == "ERROR"]
            assert [told for told in errors if told.name != "headrace.kafka"] == []
    finally:
        back.cancel()
        if back.is_alive():
            back.join()
        stop_broker(directory)
