"""Changelogs of stores with a retention: their front is cut when it has expired, and never what a restore needs."""

from __future__ import annotations

import random
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import (
    BufferConfig,
    EmitStrategy,
    JoinWindows,
    Materialized,
    Produced,
    Serdes,
    SessionWindows,
    SlidingWindows,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
)
from headrace.batches.reports import BatchReport
from tests.batches.kit import Bench, Build

SECOND = timedelta(seconds=1)
MINUTE_MS = 60_000
AS_JSON = Produced(Serdes.string(), Serdes.json())


def windows(builder: StreamsBuilder) -> None:
    hops = TimeWindows.of_size_and_grace(10 * SECOND, 5 * SECOND).advance_by(5 * SECOND)
    counts = builder.stream("in").group_by_key().windowed_by(hops).count(materialized=Materialized("counts"))
    counts.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}").to("out", AS_JSON)


def closing(builder: StreamsBuilder) -> None:
    tumbling = TimeWindows.of_size_and_grace(10 * SECOND, 5 * SECOND)
    emitted = builder.stream("in").group_by_key().windowed_by(tumbling).emit_strategy(EmitStrategy.on_window_close())
    emitted.count(materialized=Materialized("counts")).to_stream(lambda key, _: key.key).to("out", AS_JSON)


def sliding(builder: StreamsBuilder) -> None:
    apart = SlidingWindows.of_time_difference_and_grace(3 * SECOND, 5 * SECOND)
    counts = builder.stream("in").group_by_key().windowed_by(apart).count(materialized=Materialized("counts"))
    counts.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}").to("out", AS_JSON)


def sessions(builder: StreamsBuilder) -> None:
    gap = SessionWindows.of_inactivity_gap_and_grace(4 * SECOND, 5 * SECOND)
    counts = builder.stream("in").group_by_key().windowed_by(gap).count(materialized=Materialized("counts"))
    counts.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}").to("out", AS_JSON)


def join(builder: StreamsBuilder) -> None:
    within = JoinWindows.of_time_difference_and_grace(5 * SECOND, 5 * SECOND)
    names: StreamJoined[Any, Any, Any] = StreamJoined(name="pair", store_name="pair")
    left, right = builder.stream("in"), builder.stream("right")
    left.outer_join(right, lambda a, b: [a, b], windows=within, joined=names).to("out")


def suppressed(builder: StreamsBuilder) -> None:
    tumbling = TimeWindows.of_size_and_grace(10 * SECOND, 5 * SECOND)
    counts = builder.stream("in").group_by_key().windowed_by(tumbling).count(materialized=Materialized("counts"))
    final = counts.suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
    final.to_stream(lambda key, _: key.key).to("out", AS_JSON)


PROGRAMS: dict[str, Build] = {each.__name__: each for each in (windows, closing, sliding, sessions, join, suppressed)}


class Clock:
    """The time of the machine, by which it is decided when records are deleted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


Records = list[tuple[str, int, int]]


def histories() -> st.SearchStrategy[list[tuple[Records, Records, str]]]:
    """Batches of records whose times go on in steps of very different lengths, some of them far behind."""
    record = st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(-40_000, 3_000))
    fate = st.sampled_from(["goes on", "goes on", "moves", "is killed"])
    batch = st.tuples(st.integers(0, 90_000), st.lists(record, max_size=5), st.lists(record, max_size=5), fate)

    def timed(steps: list[tuple[int, Records, Records, str]]) -> list[tuple[Records, Records, str]]:
        now_ms, found = 1_000_000, []
        for step_ms, left, right, what in steps:
            now_ms += step_ms
            found.append(
                (
                    [(key, value, now_ms + late_ms) for key, value, late_ms in left],
                    [(key, value, now_ms + late_ms) for key, value, late_ms in right],
                    what,
                )
            )
        return found

    return st.lists(batch, min_size=5, max_size=25).map(timed)


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=15, deadline=None)
@given(history=histories())
def test_what_is_cut_is_never_missed(
    tmp_path_factory: pytest.TempPathFactory, name: str, history: list[tuple[Records, Records, str]]
) -> None:
    """The same history with cuts after every batch and restores in between, and without either."""
    found = []
    for disturbed in (False, True):
        with pytest.MonkeyPatch.context() as patched:
            clock = Clock(patched)
            bench = Bench(
                tmp_path_factory.mktemp("cuts"),
                PROGRAMS[name],
                {"in": 1, "right": 1, "out": 1},
                statestore_cache_max_bytes=0,
            )
            reports: list[BatchReport] = []
            driver = bench.driver("0")
            for number, (left, right, what) in enumerate(history):
                bench.write("in", *left)
                bench.write("right", *right)
                bench.clock_ms += 5_000
                clock.now += 60.0 if disturbed else 0.0
                reports += driver.run()
                if disturbed and what == "moves":
                    driver.close()
                    driver = bench.driver(str(number))
                elif disturbed and what == "is killed":
                    driver.kill()
                    driver = bench.driver("0")
            driver.close()
            found.append((bench.read("out"), sum(report.late + report.dropped for report in reports)))
            bench.close()
    assert found[0] == found[1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_has_expired_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    clock = Clock(monkeypatch)
    bench = Bench(tmp_path, PROGRAMS[name], {"in": 1, "right": 1, "out": 1}, statestore_cache_max_bytes=0)
    driver = bench.driver()
    chance = random.Random(7)
    for now_ms in range(0, 60 * MINUTE_MS, 10_000):
        records = [(chance.choice("abc"), 1, now_ms + chance.randrange(1_000)) for _ in range(3)]
        bench.write("in", *records)
        bench.write("right", *records)
        bench.clock_ms += 10_000
        clock.now += 10
        driver.run()
    retained = [
        topic
        for topic in bench.log.topics()
        if topic.endswith("-changelog") and "delete" in bench.log.describe_topic(topic).configs["cleanup.policy"]
    ]
    assert retained
    for topic in retained:
        target = (topic, 0)
        begin, end = bench.log.begin_offsets([target])[target], bench.log.end_offsets([target])[target]
        # Two or three minutes of an hour are kept: the retention, at least one minute, and a segment.
        assert end - begin < end / 6, topic


def test_a_long_retention_is_cut_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However slowly stream time goes by: what is remembered of the past is bounded, and covers the retention."""

    def build(builder: StreamsBuilder) -> None:
        tumbling = TimeWindows.of_size_with_no_grace(timedelta(minutes=1))
        store: Materialized[Any, Any] = Materialized("counts", retention=timedelta(hours=6))
        builder.stream("in").group_by_key().windowed_by(tumbling).count(materialized=store)

    clock = Clock(monkeypatch)
    bench = Bench(tmp_path, build, {"in": 1})
    driver = bench.driver()
    target = (bench.changelog("counts"), 0)
    for minute in range(24 * 60):
        bench.write("in", ("a", 1, minute * MINUTE_MS))
        clock.now += 60
        driver.run()
        assert all(len(samples) < 30 for samples in driver.live("0_0")._samples.values())
        if minute % 120 == 119:
            # Nobody runs for as long as the retention.
            driver.close()
            driver = bench.driver(f"{minute}")
    kept = bench.log.end_offsets([target])[target] - bench.log.begin_offsets([target])[target]
    # Three hours more are a segment of the store, which goes as a whole.
    assert 6 * 60 <= kept < 10 * 60
    bench.write("in", ("a", 1, 24 * 60 * MINUTE_MS))
    driver.run()
    assert len(driver.rows("counts")) == 6 * 60
