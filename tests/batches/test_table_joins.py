"""Joins of tables in micro-batches with record caches: the last results are the join of the last rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import (
    BufferConfig,
    KTable,
    Materialized,
    SessionWindows,
    StreamsBuilder,
    StreamsError,
    Suppressed,
    TimeWindows,
    Windowed,
)
from headrace.serdes import Serdes
from tests.batches.kit import Bench

METHODS = ("join", "left_join", "outer_join")
HIDDEN = "hidden"
"""A row that a filter without a store keeps from the joins."""
# Side, key, value
Change = tuple[str, str, str | None]
CHANGES = st.tuples(
    st.sampled_from(("left", "right")), st.sampled_from("ab"), st.none() | st.sampled_from(("row", HIDDEN))
)
BATCHES = st.lists(st.lists(CHANGES, min_size=1, max_size=6), min_size=1, max_size=6)
CASES = [
    # A row of a cache is looked up by a side that has none, and goes before it was told of.
    [[("right", "a", "row"), ("left", "a", "row"), ("right", "a", None)]],
    # So does one that nobody was told of because of a filter.
    [[("right", "a", HIDDEN)], [("right", "a", "row"), ("left", "a", "row"), ("right", "a", HIDDEN)]],
]


def _visible(value: str | None) -> bool:
    return value is not None and not value.startswith(HIDDEN)


def _joins(builder: StreamsBuilder, *, both_cached: bool) -> None:
    left: KTable[str, str] = builder.table("left", materialized=Materialized("left", caching=both_cached))
    right: KTable[str, str] = builder.table("right", materialized=Materialized("right", caching=True))
    shown = right.filter(lambda key, value: _visible(value))
    for method in METHODS:
        getattr(left, method)(shown, lambda one, other: [one, other]).to_stream().to(method)


def _run(directory: Path, batches: list[list[Change]], cache_bytes: int, *, both_cached: bool) -> None:
    topics = dict.fromkeys(("left", "right", *METHODS), 1)
    serdes: dict[str, Any] = {"default_key_serde": Serdes.string(), "default_value_serde": Serdes.json()}
    bench = Bench(
        directory, partial(_joins, both_cached=both_cached), topics, **serdes, statestore_cache_max_bytes=cache_bytes
    )
    driver = bench.driver()
    rows: dict[str, dict[str, str | None]] = {"left": {}, "right": {}}
    number = 0
    for batch in batches:
        for side, key, content in batch:
            number += 1
            rows[side][key] = None if content is None else f"{content}{number}"
            bench.write(side, (key, rows[side][key], number))
        driver.step()
    driver.run()
    for method in METHODS:
        found = {key: row for key, row in dict(bench.read(method)).items() if row is not None}
        assert found == _expected(method, rows["left"], rows["right"]), method
    driver.close()
    bench.close()


def _expected(method: str, left: dict[str, str | None], right: dict[str, str | None]) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for key in "ab":
        one, other = left.get(key), right.get(key)
        other = other if _visible(other) else None
        needed = {"join": one and other, "left_join": one, "outer_join": one or other}
        if needed[method]:
            results[key] = [one, other]
    return results


@pytest.mark.parametrize("both_cached", [False, True])
@pytest.mark.parametrize("cache_bytes", [200, 10 << 20])
@given(batches=BATCHES)
def test_last_results_are_the_join_of_the_last_rows(
    cache_bytes: int, batches: list[list[Change]], *, both_cached: bool
) -> None:
    with TemporaryDirectory() as directory:
        _run(Path(directory), batches, cache_bytes, both_cached=both_cached)


@pytest.mark.parametrize("batches", CASES)
def test_no_result_outlives_a_row_that_nobody_was_told_of(tmp_path: Path, batches: list[list[Change]]) -> None:
    _run(tmp_path, batches, 10 << 20, both_cached=False)


def test_no_result_outlives_two_rows_that_go_together(tmp_path: Path) -> None:
    batches: list[list[Change]] = [
        [("left", "a", "row"), ("right", "a", "row")],
        [("left", "a", None), ("right", "a", None)],
    ]
    _run(tmp_path, batches, 10 << 20, both_cached=True)


def _table(builder: StreamsBuilder, side: str) -> KTable[Any, Any]:
    return builder.table(side, materialized=Materialized(side, caching=side != "left"))


def _chain(builder: StreamsBuilder) -> None:
    right = _table(builder, "right").join(_table(builder, "third"), lambda one, other: [one, other])
    _table(builder, "left").join(right, lambda one, other: [one, *other]).to_stream().to("join")


def _windows(builder: StreamsBuilder) -> None:
    windows = TimeWindows.of_size_with_no_grace(timedelta(minutes=1))
    left, right = (
        builder.stream(side)
        .group_by_key()
        .windowed_by(windows)
        .aggregate(
            lambda: None,
            lambda key, value, before: None if value == "gone" else value,
            Materialized(side, caching=side == "right"),
        )
        for side in ("left", "right")
    )
    _unwindowed(left.join(right, lambda one, other: [one, other]))


def _sessions(builder: StreamsBuilder) -> None:
    windows = SessionWindows.of_inactivity_gap_with_no_grace(timedelta(minutes=1))
    left, right = (
        builder.stream(side).group_by_key().windowed_by(windows).count(Materialized(side, caching=side == "right"))
        for side in ("left", "right")
    )
    _unwindowed(left.join(right, lambda one, other: [one, other]))


def _suppressed(builder: StreamsBuilder) -> None:
    later = Suppressed.until_time_limit(timedelta(hours=1), BufferConfig.unbounded())
    right = _table(builder, "right").suppress(later)
    _table(builder, "left").join(right, lambda one, other: [one, other]).to_stream().to("join")


def _unwindowed(joined: KTable[Windowed[Any], Any]) -> None:
    joined.to_stream().map(lambda key, value: (f"{key.key}@{key.window.start_ms}-{key.window.end_ms}", value)).to(
        "join"
    )


@pytest.mark.parametrize(
    ("build", "records", "results"),
    [
        # What is looked up is computed from rows of two caches.
        (_chain, [("third", "t", 1), ("right", "r", 2), ("left", "l", 3), ("right", None, 4)], {}),
        (_chain, [("third", "t", 1), ("right", "r", 2), ("left", "l", 3)], {"a": ["l", "r", "t"]}),
        (_windows, [("right", "r", 1), ("left", "l", 2), ("right", "gone", 3)], {}),
        (_windows, [("right", "r", 1), ("left", "l", 2)], {"a@0-60000": ["l", "r"]}),
        # The session that was looked up becomes part of a longer one.
        (_sessions, [("right", "r", 0), ("left", "l", 0), ("right", "r", 5)], {}),
        (_sessions, [("right", "r", 0), ("left", "l", 0)], {"a@0-0": [1, 1]}),
        # A row that a suppression has not let go yet is not there.
        (_suppressed, [("right", "r", 1), ("left", "l", 2), ("right", None, 3)], {}),
        (_suppressed, [("right", "r", 1), ("left", "l", 2)], {}),
    ],
)
def test_rows_of_every_kind_of_table_are_told_of_before_a_join_sees_them(
    tmp_path: Path,
    build: Callable[[StreamsBuilder], None],
    records: list[tuple[str, str | None, int]],
    results: dict[str, Any],
) -> None:
    topics = dict.fromkeys(("left", "right", "third", "join"), 1)
    serdes: dict[str, Any] = {"default_key_serde": Serdes.string(), "default_value_serde": Serdes.json()}
    bench = Bench(tmp_path, build, topics, **serdes)
    driver = bench.driver()
    for topic, value, timestamp_ms in records:
        bench.write(topic, ("a", value, timestamp_ms))
    driver.step()
    driver.run()
    assert {key: row for key, row in dict(bench.read("join")).items() if row is not None} == results
    driver.close()
    bench.close()


def test_a_join_is_not_to_blame_for_what_fails_when_it_is_told_of_a_row(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        right = _table(builder, "right")
        right.to_stream().map_values(lambda value: value["missing"], name="broken").to("broken")
        _table(builder, "left").join(right, lambda one, other: [one, other], name="joined").to_stream().to("join")

    serdes: dict[str, Any] = {"default_key_serde": Serdes.string(), "default_value_serde": Serdes.json()}
    bench = Bench(tmp_path, build, dict.fromkeys(("left", "right", "join", "broken"), 1), **serdes)
    driver = bench.driver()
    bench.write("right", ("a", "row", 1))
    bench.write("left", ("a", "row", 2))
    with pytest.raises(StreamsError) as failure:
        driver.step()
    assert "broken" in str(failure.value)
    assert "joined" not in str(failure.value)
    driver.close()
    bench.close()
