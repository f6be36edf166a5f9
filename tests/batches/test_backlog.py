"""A backlog of topics that were written over the same time, one of them with far more records than the other."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import Consumed, EmbeddedLog, JoinWindows, Produced, Serdes, StreamsBuilder, TimeWindows
from headrace.batches.plan import Plan, Range
from headrace.topics.log import Output, TopicLog
from tests.batches.kit import Bench

DENSE, SPARSE = 20_000, 50
SPAN_MS = 600_000
USERS = 20
JITTER_MS = 300
"""Records are a little out of order, by less than the grace period."""
WINDOW_MS = 10_000
WITHIN_MS = 2_000
GRACE = timedelta(seconds=1)
FOR_EVER = 1 << 40


def build(builder: StreamsBuilder) -> None:
    """Joins two streams behind repartition edges, and counts them together in windows; hardly anything may be late."""
    texts = Consumed(key_serde=Serdes.string(), value_serde=Serdes.json())
    written = Produced(key_serde=Serdes.string(), value_serde=Serdes.json())
    dense, sparse = (
        builder.stream(topic, texts).select_key(lambda key, value: value["user"]) for topic in ("dense", "sparse")
    )
    within = JoinWindows.of_time_difference_and_grace(timedelta(milliseconds=WITHIN_MS), GRACE)
    dense.join(sparse, lambda left, right: [left["n"], right["n"]], windows=within).to("joined", written)
    windows = TimeWindows.of_size_and_grace(timedelta(milliseconds=WINDOW_MS), GRACE)
    counts = dense.merge(sparse).group_by_key().windowed_by(windows).count()
    counts.to_stream().map(lambda key, n: (f"{key.key}@{key.window.start_ms}", n)).to("counts", written)


def records(count: int, seed: int) -> list[Output]:
    """Returns records over the same ten minutes, however many they are."""
    chance = random.Random(seed)
    return [
        (
            None,
            JITTER_MS + number * SPAN_MS // count - chance.randrange(JITTER_MS),
            f"s{chance.randrange(1000)}".encode(),
            json.dumps({"user": f"u{chance.randrange(USERS)}", "n": number}).encode(),
            (),
        )
        for number in range(count)
    ]


def fill(log: TopicLog) -> None:
    for topic, count, seed in ("dense", DENSE, 1), ("sparse", SPARSE, 2):
        log.create_topic(topic, partitions=2)
        log.append(topic, records(count, seed))
    for topic in ("joined", "counts"):
        log.create_topic(topic, partitions=2)


def results(log: TopicLog) -> dict[str, Any]:
    """Returns the pairs that were joined, and all counts by user and window, in their order."""
    joined: Counter[tuple[int, int]] = Counter()
    counts: dict[str, list[int]] = {}
    for partition in range(2):
        joined.update(tuple(json.loads(value or b"")) for _, _, _, value, _ in log.read("joined", partition, 0))
        for _, _, key, value, _ in log.read("counts", partition, 0):
            counts.setdefault((key or b"").decode(), []).append(json.loads(value or b""))
    return {"joined": joined, "counts": counts}


def expected() -> dict[str, Any]:
    """Returns what Python finds in the input."""
    dense, sparse = (
        [(json.loads(value or b""), time_ms) for _, time_ms, _, value, _ in records(count, seed)]
        for count, seed in ((DENSE, 1), (SPARSE, 2))
    )
    joined = Counter(
        (left["n"], right["n"])
        for right, right_ms in sparse
        for left, left_ms in dense
        if left["user"] == right["user"] and abs(left_ms - right_ms) <= WITHIN_MS
    )
    counts = Counter(f"{value['user']}@{time_ms - time_ms % WINDOW_MS}" for value, time_ms in dense + sparse)
    return {"joined": joined, "counts": {key: list(range(1, count + 1)) for key, count in counts.items()}}


def settings(max_batch_records: int) -> dict[str, Any]:
    return {"statestore_cache_max_bytes": 0, "max_batch_records": max_batch_records}


@pytest.mark.parametrize("max_batch_records", [200, 1_000, 15_000])
def test_backfill_in_small_batches_drops_nothing_as_late(tmp_path: Path, max_batch_records: int) -> None:
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        fill(log)
        bench = Bench(tmp_path, build, {}, log=log, **settings(max_batch_records))
        driver = bench.driver(until_end=True)
        reports = driver.run()
        driver.close()
        assert len({task.task for report in reports for task in report.tasks}) > 2
        assert len(reports) > (DENSE + SPARSE) // max_batch_records
        assert sum(report.late + report.dropped for report in reports) == 0
        assert results(log) == expected()


def test_one_batch_gives_the_same(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        fill(log)
        bench = Bench(tmp_path, build, {}, log=log, **settings(FOR_EVER))
        driver, layout = bench.driver(), bench.layout
        ranges = {
            place.name: tuple(Range(*target, 0, log.end_offsets([target])[target], None) for target in targets)
            for place in layout.tasks
            if (targets := list(layout.log_inputs(place)))
        }
        plan = Plan(0, 0, ranges)
        driver.application_run.commit(plan, driver.execute(plan))
        driver.close()
        assert results(log) == expected()
