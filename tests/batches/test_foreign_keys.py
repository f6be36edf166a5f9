"""Foreign-key joins in micro-batches: the last results are the join of the last rows, however changes met."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import StreamsBuilder
from headrace.serdes import Serdes
from tests.batches.kit import Bench

LEFT_KEYS, RIGHT_KEYS = ("a", "b"), ("x", "y")
LEFT = st.tuples(st.just("left"), st.sampled_from(LEFT_KEYS), st.none() | st.sampled_from((*RIGHT_KEYS, "-")))
RIGHT = st.tuples(st.just("right"), st.sampled_from(RIGHT_KEYS), st.just("row"))
RIGHT_GONE = st.tuples(st.just("right"), st.sampled_from(RIGHT_KEYS), st.none())
Change = tuple[str, str, str | None]
CACHES = (0, 200, 10 << 20)
"""None, one that lets go in the middle of a batch, and the default."""
SETTINGS: dict[str, Any] = {"default_key_serde": Serdes.string(), "default_value_serde": Serdes.json()}


def _joins(builder: StreamsBuilder) -> None:
    left, right = builder.table("left"), builder.table("right")
    for method in ("join", "left_join"):
        joined = getattr(left, method)(right, lambda one, other: [one, other], foreign_key=_foreign_key)
        joined.to_stream().to(method)


def _foreign_key(value: dict[str, Any]) -> str | None:
    named = value["names"]
    return None if named == "-" else str(named)


def _run(directory: Path, batches: list[list[Change]], **settings: Any) -> None:
    topics = {"left": 2, "right": 3, "join": 2, "left_join": 2}
    bench = Bench(directory, _joins, topics, **SETTINGS, **settings)
    driver = bench.driver()
    lefts: dict[str, Any] = {}
    rights: dict[str, Any] = {}
    number = 0
    for batch in batches:
        for side, key, content in batch:
            number += 1
            value = None if content is None else {"names": content, "n": number}
            (lefts if side == "left" else rights)[key] = value
            bench.write(side, (key, value, number))
        driver.step()
    driver.run()
    expected = {key: [row, rights.get(_foreign_key(row) or "")] for key, row in lefts.items() if row is not None}
    for method in ("join", "left_join"):
        found = {key: row for key, row in dict(bench.read(method)).items() if row is not None}
        assert found == {key: row for key, row in expected.items() if method == "left_join" or row[1] is not None}, (
            method
        )
    driver.close()
    bench.close()


def _batches(changes: st.SearchStrategy[Change]) -> st.SearchStrategy[list[list[Change]]]:
    return st.lists(st.lists(changes, min_size=1, max_size=6), min_size=1, max_size=8)


@pytest.mark.parametrize("cache_bytes", CACHES)
@given(batches=_batches(LEFT | RIGHT | RIGHT_GONE))
def test_last_results_are_the_join_of_the_last_rows(cache_bytes: int, batches: list[list[Change]]) -> None:
    with TemporaryDirectory() as directory:
        _run(Path(directory), batches, statestore_cache_max_bytes=cache_bytes)


@pytest.mark.parametrize("cache_bytes", CACHES)
@pytest.mark.parametrize(
    "batches",
    [
        # The row comes back with a key that has no row, before it is known that its result was taken back.
        [[("right", "x", "row"), ("left", "a", "x")], [("left", "a", None), ("left", "a", "y")]],
        # It changes while its right row goes.
        [[("right", "x", "row"), ("left", "a", "x")], [("right", "x", None), ("left", "a", "x")]],
        # It names nothing any more, and goes.
        [[("right", "x", "row"), ("left", "a", "x")], [("left", "a", "-"), ("left", "a", None)]],
        [[("right", "x", "row"), ("left", "a", "x")], [("left", "a", "-"), ("left", "a", "y"), ("left", "a", "-")]],
        # The right row goes before a cache has told of it.
        [[("right", "x", "row"), ("left", "a", "x"), ("right", "x", None)]],
        [[("left", "b", "x")], [("right", "x", "row"), ("left", "a", "x"), ("right", "x", None)]],
    ],
)
def test_no_result_outlives_its_rows(tmp_path: Path, cache_bytes: int, batches: list[list[Change]]) -> None:
    _run(tmp_path, batches, statestore_cache_max_bytes=cache_bytes)
