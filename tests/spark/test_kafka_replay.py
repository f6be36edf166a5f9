"""A batch that is run again after its results were written to Kafka, by functions that do something else each time.

The tasks run in this process: what Spark does is not the point.
"""

from __future__ import annotations

import logging
from pathlib import Path
from uuid import uuid4

import pytest

pytest.importorskip("confluent_kafka")

from headrace import Produced, Serdes, StreamsBuilder, StreamsConfig
from headrace.errors import BatchError
from headrace.spark.plan import Plan, Range
from headrace.topics.kafka import KafkaLog
from tests.spark.faults.undisturbed import Undisturbed
from tests.topics.kit import everything, record

pytestmark = pytest.mark.kafka


def run_a_batch(kafka: KafkaLog, directory: Path, on_replay_difference: str) -> None:
    """Runs the first batch on state that is empty: as often as it is called, it is the first batch again."""
    builder = StreamsBuilder()
    latest = builder.stream("in").group_by_key().aggregate(lambda: "", lambda key, value, before: uuid4().hex)
    latest.to_stream().to("out", Produced(value_serde=Serdes.string()))
    config = StreamsConfig(
        application_id="app", bootstrap_servers=kafka.bootstrap_servers, on_replay_difference=on_replay_difference
    )
    with KafkaLog.of(config) as log:
        run = Undisturbed(builder.build(), config, log, directory=directory)
        (place,) = run.application.layout.tasks
        try:
            run.run(Plan(0, {"": 0}, {place.key: (Range("in", 0, 0, 1, None),)}))
        finally:
            run.close()


@pytest.mark.parametrize("choice", ["warn", "fail"])
def test_replay_that_does_something_else_is_told_or_stops(
    kafka: KafkaLog, tmp_path: Path, caplog: pytest.LogCaptureFixture, choice: str
) -> None:
    kafka.create_topic("in")
    kafka.create_topic("out")
    kafka.append("in", [record("k", "1")])
    run_a_batch(kafka, tmp_path / "first", choice)
    written = everything(kafka, "out")
    assert len(written) == 1
    told = "task 0_0 of application 'app': batch 0 was run again and has changed its state in another way"
    if choice == "fail":
        with pytest.raises(BatchError, match=rf"{told}.* on_replay_difference='warn'.* `headrace reset app`"):
            run_a_batch(kafka, tmp_path / "second", choice)
    else:
        with caplog.at_level(logging.WARNING):
            run_a_batch(kafka, tmp_path / "second", choice)
        assert told in caplog.text
    assert everything(kafka, "out") == written
