"""Applications that Kafka Streams has run, closed and killed, go on in Headrace, and back.

``python -m tests.takeover`` is the long version, with dozens of topologies.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")
pytest.importorskip("pyspark")

from headrace.topics.kafka import KafkaLog
from tests.takeover.cases import golden_cases
from tests.takeover.relay import Relay

pytestmark = pytest.mark.kafka

CASES = (
    "word-count",
    "window-tumbling-grace-3-on-window-close-count",
    "stream-stream-left_join-narrow",
)


def test_results_are_those_of_an_undisturbed_run(kafka: KafkaLog, tmp_path: Path) -> None:
    relay = Relay(kafka, tmp_path, golden_cases(*CASES), records=150, pieces=3, seed=1)
    names = [runner.name for runner in relay.runners]
    relay.feed(0)
    with relay.start_java(relay.runners, twins=True) as java:
        for runner in relay.runners:
            relay.wait_until_read(runner.twin)
        java.close(names)
        relay.feed(1)
        for runner in relay.runners:
            relay.run_headrace(runner)
        relay.feed(2)
        for runner in relay.runners:
            java.start(runner.name, runner.application.nodes, runner.settings)
        java.wait("RUNNING", names)
        java.kill()
    for runner in relay.runners:
        relay.run_headrace(runner, back=False)
    relay.compare()
    assert relay.figures.problems == []
    assert relay.figures.outputs > 0
    assert relay.figures.stores.keys() == {"timestamped_key_value", "timestamped_window", "window", "unmatched"}
