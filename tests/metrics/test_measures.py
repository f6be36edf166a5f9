"""Lateness, punctuations, restored rows and cache hits of applications that run."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import Materialized, Processor, PunctuationType, Record, StreamsBuilder, TimeWindows
from headrace.batches import restore
from headrace.batches.working_copy import restoring
from headrace.metrics import Metrics
from tests.views.kit import SOON, Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path, **{"in": 1})
    yield found
    found.close()


def run(place: Place, build: Callable[[StreamsBuilder], Any], **settings: Any) -> Metrics:
    streams = place.streams(build, **settings)
    streams.start(until_end=True)
    assert streams.wait(SOON)
    return streams.metrics()


def only(metrics: Metrics, name: str, **tags: str) -> float:
    (value,) = metrics.find(name, **tags).values()
    return float(value)


def counting(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by_key().count(materialized=Materialized("counts"))


def test_lateness_is_how_far_records_are_behind_the_stream_time(place: Place) -> None:
    place.write("in", [("a", 1, 1000), ("a", 1, 5000), ("a", 1, 4000), ("a", 1, 2000)])
    metrics = run(place, counting, metrics_recording_level="DEBUG")
    assert only(metrics, "record-lateness-avg", task_id="0_0") == (0 + 0 + 1000 + 3000) / 4
    assert only(metrics, "record-lateness-max", task_id="0_0") == 3000


def test_lateness_and_cache_hits_are_not_measured_by_default(place: Place) -> None:
    place.write("in", [("a", 1, 1000), ("a", 1, 500)])
    metrics = run(place, counting)
    assert metrics.find("record-lateness-max") == {}
    assert metrics.find("hit-ratio-avg") == {}


class Ticking(Processor[str, Any, str, Any]):
    def init(self, context: Any) -> None:
        super().init(context)
        context.schedule(timedelta(seconds=1), PunctuationType.STREAM_TIME, self.tick)

    def tick(self, now_ms: int) -> None:
        self.context.forward(Record("tick", now_ms, now_ms))

    def process(self, record: Record[str, Any]) -> None:
        return


def ticking(builder: StreamsBuilder) -> None:
    builder.stream("in").process(Ticking).to("out")


def test_punctuations_are_counted_and_timed(place: Place) -> None:
    place.log.create_topic("out")
    place.write("in", [("a", 1, 0), ("a", 1, 500), ("a", 1, 1000), ("a", 1, 2500)])
    metrics = run(place, ticking)
    calls = place.log.end_offsets([("out", 0)])["out", 0]
    assert calls == 3
    for group in ("stream-task-metrics", "stream-thread-metrics"):
        (total,) = metrics.find("punctuate-total", group).values()
        assert total == calls
        (mean,) = metrics.find("punctuate-latency-avg", group).values()
        (most,) = metrics.find("punctuate-latency-max", group).values()
        assert 0 < mean <= most


def test_a_cache_hits_what_it_has_and_reads_the_rest(place: Place) -> None:
    # Three keys, of which each is read once.
    place.write("in", [(key, 1, 1000) for key in "abcaabbccaaa"])
    metrics = run(place, counting, metrics_recording_level="DEBUG")
    for what in ("avg", "min", "max"):
        assert only(metrics, f"hit-ratio-{what}", record_cache_id="counts") == pytest.approx(9 / 12)


def test_rows_of_windows_that_operators_find_by_themselves_count_as_hits(place: Place) -> None:
    def windowed(builder: StreamsBuilder) -> None:
        windows = TimeWindows.of_size_with_no_grace(timedelta(seconds=2))
        builder.stream("in").group_by_key().windowed_by(windows).count(materialized=Materialized("windows"))

    place.write("in", [("a", 1, 1000), ("a", 1, 1500)])
    # All of a window that is new is in memory.
    assert only(run(place, windowed, metrics_recording_level="DEBUG"), "hit-ratio-avg") == 1
    place.write("in", [("a", 1, 1000), ("b", 1, 1500), ("c", 1, 1900), ("c", 1, 1000)])
    # A task that starts anew has to read each of three rows once.
    assert only(run(place, windowed, metrics_recording_level="DEBUG"), "hit-ratio-avg") == 1 / 4


def test_results_are_the_same_at_all_levels(place: Place) -> None:
    def windowed(builder: StreamsBuilder) -> None:
        grouped = builder.stream("in").group_by_key()
        hours = TimeWindows.of_size_with_no_grace(timedelta(seconds=2))
        grouped.windowed_by(hours).count(materialized=Materialized("windows")).to_stream(lambda key, _: f"{key}").to(
            "out"
        )
        grouped.aggregate(lambda: 0, lambda _, value, total: total + value).to_stream().to("out")

    place.log.create_topic("out")
    place.write("in", [("abc"[each % 3], each, each * 300) for each in range(40)])
    written: list[list[Any]] = []
    for level in ("INFO", "DEBUG"):
        run(place, windowed, application_id=level.lower(), metrics_recording_level=level)
        end = place.log.end_offsets([("out", 0)])["out", 0]
        start = sum(len(each) for each in written)
        written.append([raw[1:4] for raw in place.log.read("out", 0, start, end)])
    assert written[0] == written[1]
    assert written[0]


def test_rows_that_are_restored_are_counted(place: Place, tmp_path: Path) -> None:
    place.write("in", [(f"key-{each}", 1, 1000) for each in range(30)])
    assert metrics_of_restore(run(place, counting)) == (0, 0)
    copy = tmp_path / "app" / "0_0"
    assert (copy / "lmdb" / "data.mdb").exists()
    shutil.rmtree(copy)
    place.write("in", [("key-1", 1, 2000)])
    assert metrics_of_restore(run(place, counting)) == (30, 0)


def metrics_of_restore(metrics: Metrics) -> tuple[float, float]:
    return only(metrics, "restore-total", task_id="0_0"), only(
        metrics, "restore-remaining-records-total", task_id="0_0"
    )


def test_what_is_still_to_be_restored_is_known_meanwhile(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("in", [(f"key-{each}", 1, 1000) for each in range(30)])
    run(place, counting)
    shutil.rmtree(tmp_path / "app" / "0_0")
    monkeypatch.setattr(restore, "_AT_ONCE", 10)
    remaining: list[dict[str, int]] = []
    read = restore._pages

    def watched(*arguments: Any) -> Iterator[Any]:
        for page in read(*arguments):
            remaining.append(restoring(tmp_path / "app"))
            yield page

    monkeypatch.setattr(restore, "_pages", watched)
    place.write("in", [("key-1", 1, 2000)])
    run(place, counting)
    # Pages of ten; before the first one nobody has said anything.
    assert remaining == [{}, {"0_0": 20}, {"0_0": 10}]
    assert restoring(tmp_path / "app") == {}
