"""Metrics as OpenTelemetry collects them."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.metrics.names import Metrics
from headrace.metrics.recording import Recording
from tests.console.kit import Batch, TaskFigures

sdk = pytest.importorskip("opentelemetry.sdk.metrics", reason="OpenTelemetry is not installed")


def collected(reader: Any) -> dict[str, list[tuple[dict[str, str], float]]]:
    data = reader.get_metrics_data()
    return {
        metric.name: [(dict(point.attributes), point.value) for point in metric.data.data_points]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def test_a_reader_collects_counters_and_gauges_with_their_tags() -> None:
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from headrace.metrics.opentelemetry import OpenTelemetryMetrics

    recording = Recording("app")
    recording.add(Batch(records_in=5, lag=3), [TaskFigures("0_1", consumed={"words": 5})])
    reader = InMemoryMetricReader()
    provider = sdk.MeterProvider(metric_readers=[reader])
    offered = OpenTelemetryMetrics(lambda: Metrics(recording.values(), {}), provider.get_meter("headrace"))
    found = collected(reader)
    assert found["stream-metrics.records-lag"] == [({"client-id": "app"}, 3)]
    tags = {"thread-id": "app-StreamThread-1", "task-id": "0_1"}
    assert found["stream-task-metrics.process-total"] == [(tags, 5)]
    # What comes later is collected, too.
    recording.add(Batch(records_in=1), [TaskFigures("0_1", consumed={"words": 1}, nodes={"dropped/parse": 1})])
    offered.observe()
    again = collected(reader)
    assert again["stream-task-metrics.process-total"] == [(tags, 6)]
    assert "stream-processor-node-metrics.dropped-records-total" in again
    provider.shutdown()
