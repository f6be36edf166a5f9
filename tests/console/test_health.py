"""Health routes: liveness, readiness, metrics, topology."""

from __future__ import annotations

from headrace.console.monitored_application import Failed
from tests.console.kit import Batch, Site, TaskFigures


def test_a_running_application_is_healthy_and_ready(site: Site) -> None:
    site.recorder.on_batch(Batch(records_in=1))
    assert site.get("/healthz").json() == {"status": "ok", "state": "RUNNING"}
    assert site.get("/readyz").status_code == 200


def test_it_is_not_ready_while_it_starts(site: Site) -> None:
    site.observed.state_name, site.observed.state_since_ms = "REBALANCING", site.clock.now_ms
    found = site.get("/readyz")
    assert found.status_code == 503
    assert found.headers["Retry-After"] == "5"
    assert found.json()["reasons"][0]["reason"] == "starting"
    assert site.get("/healthz").status_code == 200


def test_it_is_not_ready_while_it_fails(site: Site) -> None:
    site.observed.failures = (Failed(site.clock.now_ms, "no such column"),)
    found = site.get("/readyz")
    assert found.status_code == 503
    assert "no such column" in found.json()["reasons"][0]["message"]


def test_it_is_ready_when_there_is_nothing_to_do(site: Site) -> None:
    site.clock.now_ms += 1_000_000
    found = site.get("/readyz")
    assert found.status_code == 200
    assert found.json()["reasons"][0]["reason"] == "no-input"


def test_an_application_that_has_failed_is_not_healthy(site: Site) -> None:
    site.observed.state_name = "ERROR"
    assert site.get("/healthz").status_code == 503
    assert site.get("/readyz").json()["reasons"][0]["reason"] == "stopped"


def test_topology_has_nodes_and_tasks(site: Site) -> None:
    part = site.get("/topology").json()["subtopologies"][0]
    assert part["tasks"] == 2
    assert part["nodes"][0]["name"] == "words-source"


def test_metrics_are_text_for_prometheus(site: Site) -> None:
    site.observed.recording.add(Batch(records_in=5, lag=3), [TaskFigures(consumed={"words": 5})])
    site.recorder.sample()
    found = site.get("/metrics")
    assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = found.text.splitlines()
    assert 'kafka_streams_stream_thread_metrics_process_total{thread_id="app-StreamThread-1"} 5' in lines
    assert any(line.startswith("kafka_streams_stream_metrics_stalled{") and line.endswith(" 0") for line in lines)
    assert (
        'kafka_streams_stream_topic_metrics_partition_records_lag{client_id="app",topic_name="words",partition="0"} 0'
        in lines
    )


def test_the_description_names_all_addresses(site: Site) -> None:
    paths = site.get("/openapi.json").json()["paths"]
    assert {"/healthz", "/metrics", "/topology", "/console/api/topics/{topic}/records"} <= paths.keys()
    assert "/stores" not in paths
