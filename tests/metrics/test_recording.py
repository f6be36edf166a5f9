"""What micro-batches report, under Kafka Streams' names."""

from __future__ import annotations

from headrace.metrics.names import CLIENT, NODE, STATE, TASK, THREAD, TOPIC, MetricName, Metrics
from headrace.metrics.prometheus import prometheus_text
from headrace.metrics.recording import Recording, rates_by
from tests.web.kit import Batch, TaskFigures


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


THREAD_TAGS = (("thread-id", "app-StreamThread-1"),)
TASK_TAGS = (*THREAD_TAGS, ("task-id", "0_1"))


def test_totals_add_up_and_gauges_are_the_last() -> None:
    recording = Recording("app", clock=Clock())
    recording.add(Batch(0, records_in=5, records_out=2, lag=9, dropped=1, late=1))
    recording.add(Batch(1, records_in=7, records_out=3, lag=4, dropped=1))
    values = recording.values()
    assert values[MetricName("process-total", THREAD, THREAD_TAGS)] == 12
    assert values[MetricName("commit-total", THREAD, THREAD_TAGS)] == 2
    assert values[MetricName("records-lag", CLIENT, (("client-id", "app"),))] == 4
    assert recording.summary()["dropped-records-total"] == 2
    assert recording.summary()["late-records-total"] == 1
    assert recording.summary()["batch-id"] == 1


def test_tasks_have_metrics_of_their_own() -> None:
    recording = Recording("app", clock=Clock())
    figures = TaskFigures(
        "0_1",
        rows=7,
        seconds=0.5,
        counters={"dropped-records-total": 2},
        consumed={"words": 100},
        produced={"out": 40, "letters": 1},
        nodes={"process/count": 100, "errors/count": 1, "dropped/count": 2},
    )
    recording.add(Batch(records_in=100), [figures], dead_letters="letters")
    values = recording.values()
    assert values[MetricName("process-total", TASK, TASK_TAGS)] == 100
    assert values[MetricName("process-latency-avg", TASK, TASK_TAGS)] == 5.0
    assert values[MetricName("dropped-records-total", TASK, TASK_TAGS)] == 2
    assert values[MetricName("num-rows", STATE, TASK_TAGS)] == 7
    assert values[MetricName("records-produced-total", TOPIC, (*TASK_TAGS, ("topic-name", "out")))] == 40
    node = (*TASK_TAGS, ("processor-node-id", "count"))
    assert values[MetricName("process-total", NODE, node)] == 100
    assert values[MetricName("skipped-records-total", NODE, node)] == 1
    assert values[MetricName("dropped-records-total", NODE, node)] == 2
    assert recording.summary()["dead-letters-total"] == 1


def test_rates_are_those_of_the_last_half_minute() -> None:
    clock = Clock()
    recording = Recording("app", clock=clock)
    name = MetricName("process-rate", THREAD, THREAD_TAGS)
    for _ in range(10):
        recording.add(Batch(records_in=50))
        clock.now += 1
    assert recording.values()[name] == 50.0
    clock.now += 60
    assert recording.values()[name] == 0.0
    recording.add(Batch(records_in=50))
    clock.now += 1
    assert recording.values()[name] == 50.0


def test_latencies_forget() -> None:
    clock = Clock()
    recording = Recording("app", clock=clock)
    recording.add(Batch(duration_ms=1000.0, phases={"run": 900.0}))
    clock.now += 31
    recording.add(Batch(duration_ms=10.0, phases={"run": 8.0}))
    values = recording.values()
    assert values[MetricName("process-latency-max", THREAD, THREAD_TAGS)] == 8.0


def test_a_metric_is_added_up_over_tasks() -> None:
    recording = Recording("app", clock=Clock())
    tasks = [TaskFigures("0_0", consumed={"words": 3}), TaskFigures("0_1", consumed={"words": 4})]
    recording.add(Batch(), tasks)
    assert rates_by(recording.values(), "records-consumed-total", TOPIC, "topic-name") == {"words": 7}


def test_prometheus_escapes_and_types() -> None:
    odd = MetricName("process-total", TASK, (("task-id", 'a"b\\c\nd'),))
    text = prometheus_text(Metrics({odd: 3, MetricName("state", CLIENT): "RUNNING", MetricName("x", CLIENT): True}, {}))
    assert '{task_id="a\\"b\\\\c\\nd"} 3' in text
    assert "# TYPE kafka_streams_stream_task_metrics_process_total counter" in text
    assert 'kafka_streams_stream_metrics_state{value="RUNNING"} 1' in text
    assert "kafka_streams_stream_metrics_x 1" in text
    assert text.endswith("\n")


def test_metrics_are_found_by_name_and_tags() -> None:
    recording = Recording("app", clock=Clock())
    recording.add(Batch(), [TaskFigures("0_0", consumed={"words": 3}), TaskFigures("0_1", consumed={"words": 4})])
    metrics = Metrics(recording.values(), {})
    assert sum(metrics.find("process-total", TASK).values()) == 7
    assert list(metrics.find("process-total", TASK, task_id="0_1").values()) == [4]
