"""Copies of global tables: what becomes of them while the application does not look."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace import StreamsBuilder
from headrace.batches import global_tables
from tests.batches.kit import Bench

HOUR_MS = 3_600_000


def look_up(builder: StreamsBuilder) -> None:
    rates = builder.global_table("rates")
    builder.stream("in").left_join(rates, lambda value, rate: rate, key_selector=lambda key, value: key).to("out")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path, look_up, {"in": 1, "out": 1})
    bench.log.create_topic("rates", configs={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0})
    return bench


def run(bench: Bench, *keys: str) -> list[object]:
    """Starts the application anew; returns what it finds for keys."""
    before = len(bench.read("out"))
    bench.write("in", *((key, 0, 10) for key in keys))
    driver = bench.driver()
    driver.run()
    driver.close()
    return [value for _, value in bench.read("out")[before:]]


def test_table_is_read_on_where_it_was(bench: Bench) -> None:
    bench.write("rates", ("a", 1, 1))
    assert run(bench, "a", "b") == [1, None]
    bench.write("rates", ("b", 2, 2))
    assert run(bench, "a", "b") == [1, 2]


def test_table_whose_topic_was_cut_off_behind_it_is_read_again(bench: Bench) -> None:
    bench.write("rates", ("a", 1, 1))
    assert run(bench, "a") == [1]
    bench.write("rates", ("b", 2, 2), ("c", 3, 3))
    bench.log.delete_records({("rates", 0): 2})
    assert run(bench, "a", "b", "c") == [None, None, 3]


def test_table_whose_topic_has_nothing_any_more_is_empty(bench: Bench) -> None:
    bench.write("rates", ("a", 1, 1))
    bench.log.delete_records({("rates", 0): 1})
    assert run(bench, "a") == [None]


def test_table_whose_topic_was_made_anew_is_read_again(bench: Bench) -> None:
    bench.write("rates", ("a", 1, 1), ("b", 2, 2))
    assert run(bench, "a") == [1]
    bench.log.delete_topic("rates")
    bench.log.create_topic("rates")
    bench.write("rates", ("b", 3, 1))
    assert run(bench, "a", "b") == [None, 3]


@pytest.mark.parametrize(("hours", "found"), [(23, 1), (25, None)])
def test_table_that_has_missed_tombstones_is_read_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, hours: int, found: int | None
) -> None:
    bench.write("rates", ("a", 1, 1))
    assert run(bench, "a") == [1]
    # Stands for a tombstone that compaction has dropped: the log has nothing of the key any more.
    bench.log.delete_records({("rates", 0): 1})
    bench.write("rates", ("b", 2, 2))
    now_ms = global_tables._now_ms()
    monkeypatch.setattr(global_tables, "_now_ms", lambda: now_ms + hours * HOUR_MS)
    assert run(bench, "a", "b") == [found, 2]
