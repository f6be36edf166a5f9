"""The metrics of an application that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace import Consumed, Grouped, KStream, Materialized, StreamsBuilder
from headrace.handlers import LogAndContinueExceptionHandler, LogAndContinueProcessingExceptionHandler
from headrace.metrics import MetricName
from tests.views.kit import SOON, Place


def refuse(key: str, value: Any) -> bool:
    if value == "bad":
        message = "this one is refused"
        raise ValueError(message)
    return True


def build(builder: StreamsBuilder) -> None:
    source: KStream[Any, Any] = builder.stream("in", Consumed(name="source"))
    stream = source.filter(refuse, name="check")
    grouped = stream.group_by(lambda key, value: value, Grouped("by-value"))
    grouped.count(materialized=Materialized("counts")).to_stream().to("out")


def run(place: Place, **settings: Any) -> dict[MetricName, Any]:
    streams = place.streams(
        build,
        errors_dead_letter_queue_topic_name="letters",
        deserialization_exception_handler=LogAndContinueExceptionHandler(),
        processing_exception_handler=LogAndContinueProcessingExceptionHandler(),
        **settings,
    )
    place.log.append("in", [(0, 5, b"k", b"{no json", ())])
    place.write("in", [("a", "x", 1000), ("b", "y", 2000), ("c", "x", 3000), ("d", "bad", 4000)])
    streams.start(until_end=True)
    assert streams.wait(SOON)
    metrics = streams.metrics()
    assert metrics["records-consumed-total"] == 5
    assert metrics["dead-letters-total"] == 2
    return {name: metrics[name] for name in metrics if isinstance(name, MetricName)}


def total(values: dict[MetricName, Any], name: str, **tags: str) -> int:
    wanted = {(key.replace("_", "-"), value) for key, value in tags.items()}
    return int(sum(value for metric, value in values.items() if metric.name == name and wanted <= set(metric.tags)))


@pytest.fixture
def place(tmp_path: Path) -> Any:
    found = Place(tmp_path, **{"in": 2})
    yield found
    found.close()


def test_topics_and_errors_are_counted_at_every_level(place: Place) -> None:
    values = run(place)
    assert total(values, "records-consumed-total", topic_name="in") == 5
    assert total(values, "records-consumed-total", topic_name="app-by-value-repartition") == 3
    assert total(values, "records-produced-total", topic_name="out") == 2
    assert total(values, "records-produced-total", topic_name="letters") == 2
    assert total(values, "skipped-records-total", processor_node_id="source") == 1
    assert total(values, "skipped-records-total", processor_node_id="check") == 1
    assert total(values, "process-total", processor_node_id="check") == 0


def test_all_nodes_count_at_the_level_debug(place: Place) -> None:
    values = run(place, metrics_recording_level="DEBUG")
    assert total(values, "process-total", processor_node_id="source") == 4
    assert total(values, "process-total", processor_node_id="check") == 4
