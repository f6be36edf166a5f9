"""Reports of micro-batches as metrics, under Kafka Streams' names."""

from __future__ import annotations

from headrace.metrics.names import CACHE, CLIENT, NODE, STATE, TASK, THREAD, TOPIC, MetricName, Metrics
from headrace.metrics.prometheus import prometheus_text
from headrace.metrics.recording import Recording, rates_by
from headrace.runtime.measures import Measure
from tests.console.kit import Batch, TaskFigures


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


def test_stores_on_disk_have_metrics_of_their_own() -> None:
    recording = Recording("app", clock=Clock())
    recording.add_state("0_1", "rocksdb", {"estimate-num-keys/counts": 7, "block-cache-usage": 100})
    recording.add_state("0_1", "rocksdb", {"estimate-num-keys/counts": 8, "block-cache-usage": 90})
    values = recording.values()
    assert values[MetricName("estimate-num-keys", STATE, (*TASK_TAGS, ("rocksdb-state-id", "counts")))] == 8
    assert values[MetricName("block-cache-usage", STATE, TASK_TAGS)] == 90


def test_tasks_have_metrics_of_their_own() -> None:
    recording = Recording("app", clock=Clock())
    figures = TaskFigures(
        "0_1",
        rows=7,
        seconds=0.5,
        counters={"dropped-records-total": 2},
        consumed={"words": 100},
        produced={"out": 40, "letters": 1},
        nodes={"process/count": 100, "errors/count": 1, "dropped/count": 2, "late/count": 1, "dead-letters/letters": 1},
    )
    recording.add(Batch(records_in=100), [figures])
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
    assert values[MetricName("late-records-total", NODE, node)] == 1
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


def test_measures_are_weighed_by_how_often_they_were_taken() -> None:
    recording = Recording("app", clock=Clock())
    first = {"record-lateness": Measure(9, 90.0, 0.0, 60.0), "hit-ratio/counts": Measure(4, 3.0, 0.75, 0.75)}
    second = {"record-lateness": Measure(1, 110.0, 110.0, 110.0), "hit-ratio/counts": Measure(4, 1.0, 0.25, 0.25)}
    for measures in (first, second):
        recording.add(Batch(), [TaskFigures("0_1", measures=measures)])
    values = recording.values()
    assert values[MetricName("record-lateness-avg", TASK, TASK_TAGS)] == 20.0
    assert values[MetricName("record-lateness-max", TASK, TASK_TAGS)] == 110.0
    cache = (*TASK_TAGS, ("record-cache-id", "counts"))
    found = [values[MetricName(f"hit-ratio-{what}", CACHE, cache)] for what in ("avg", "min", "max")]
    assert found == [0.5, 0.25, 0.75]


def test_punctuations_count_for_the_task_and_for_the_thread() -> None:
    recording = Recording("app", clock=Clock())
    recording.add(Batch(), [TaskFigures("0_1", measures={"punctuate-latency": Measure(2, 6.0, 2.0, 4.0)})])
    values = recording.values()
    for group, tags in ((TASK, TASK_TAGS), (THREAD, THREAD_TAGS)):
        found = [
            values[MetricName(f"punctuate-{what}", group, tags)] for what in ("total", "latency-avg", "latency-max")
        ]
        assert found == [2, 3.0, 4.0]


def test_what_remains_is_no_counter() -> None:
    assert not MetricName("restore-remaining-records-total", TASK).is_counter
    assert MetricName("restore-total", TASK).is_counter


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
