"""Kafka and its writers, killed and restarted."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")

from headrace.kafka_broker import start_broker, stop_broker
from headrace.topics.kafka import KafkaLog
from tests.topics.kit import commit, everything, keyed, record

pytestmark = pytest.mark.kafka

# Writes its records, commits them if it is told to, and waits to be killed.
WRITER = """
import sys
from headrace.topics.kafka import KafkaLog
servers, batch, value, commits = sys.argv[1:]
stage = KafkaLog(servers).stage("app", int(batch), "0_0", 0)
stage.write("out", [(None, 1, b"k", value.encode(), ())] * 3)
stage.flush()
if commits == "yes":
    stage.finish({})
print("ready", flush=True)
sys.stdin.read()
"""


def killed_writer(log: KafkaLog, batch: int, value: str, *, commits: bool) -> None:
    arguments = [log.bootstrap_servers, str(batch), value, "yes" if commits else "no"]
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.kill()


@pytest.mark.parametrize("commits", [False, True])
def test_batch_of_a_killed_writer_is_written_once(kafka: KafkaLog, *, commits: bool) -> None:
    kafka.create_topic("out")
    for batch in range(3):
        killed_writer(kafka, batch, f"killed-{batch}", commits=commits)
        commit(kafka, batch, {"out": [record("k", f"replayed-{batch}")] * 3})
    winner = "killed" if commits else "replayed"
    expected = [f"{winner}-{batch}" for batch in range(3) for _ in range(3)]
    assert [value for _, _, value in keyed(everything(kafka, "out"))] == expected


def test_what_a_killed_writer_has_left_open_is_ended_at_the_next_start(kafka: KafkaLog) -> None:
    kafka.create_topic("out")
    commit(kafka, 0, {"out": [record("k", "committed")]})
    killed_writer(kafka, 1, "open", commits=False)
    kafka.append("out", [record("k", "behind")])
    target = ("out", 0)
    assert kafka.end_offsets([target])[target] < kafka.end_offsets([target], stable=False)[target]
    assert kafka.discard_staged("app") == 1
    assert kafka.wait_for_data({target: kafka.end_offsets([target], stable=False)[target] - 1}, timedelta(seconds=5))
    assert [value for _, _, value in keyed(everything(kafka, "out"))] == ["committed", "behind"]


def test_log_goes_on_when_its_broker_was_restarted(tmp_path: Path) -> None:
    broker = start_broker(tmp_path)
    try:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        with KafkaLog(broker.bootstrap_servers) as log:
            log.create_topic("out")
            commit(log, 0, {"out": [record("k", "before")]})
            stop_broker(tmp_path)
            start_broker(tmp_path, port=port)
            commit(log, 1, {"out": [record("k", "after")]})
            assert [value for _, _, value in keyed(everything(log, "out"))] == ["before", "after"]
            last = log.last_batch("app")
            assert last is not None
            assert last.batch_id == 1
    finally:
        stop_broker(tmp_path)
