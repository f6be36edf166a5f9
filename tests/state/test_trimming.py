"""Stores with a retention keep few rows in memory: what they forget there, they find in the engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.serdes import Serdes
from headrace.state import MemoryEngine, StoreBuilder, Stores
from headrace.state.rows import segmented_rows
from tests.state.kit import SERDES, build, ms, same_fixture

RETENTION = 90_000


def windows(serdes: str = "objects", *, retain_duplicates: bool = False, time_index: bool = False) -> StoreBuilder:
    supplier = Stores.persistent_timestamped_window_store(
        "store", ms(RETENTION), ms(10), retain_duplicates=retain_duplicates
    )
    return Stores.timestamped_window_store_builder(replace(supplier, time_index=time_index), *SERDES[serdes])


def sessions(serdes: str = "objects", *, time_index: bool = False) -> StoreBuilder:
    supplier = Stores.persistent_session_store("store", ms(RETENTION))
    return Stores.session_store_builder(replace(supplier, time_index=time_index), *SERDES[serdes])


def put(store: Any, key: str, time: int, value: int | None) -> None:
    if store.kind == "session":
        store.put_session(key, time, time + 5, value)
    else:
        store.put_pair(key, time, value, time)


def fetch(store: Any, key: str, low: int, high: int) -> Any:
    return store.find(key, low, high) if store.kind == "session" else store.fetch_pairs(key, low, high)


KINDS: dict[str, Any] = {
    "windows": windows,
    "windows-by-time": lambda serdes: windows(serdes, time_index=True),
    "duplicates": lambda serdes: windows(serdes, retain_duplicates=True),
    "sessions": sessions,
    "sessions-by-time": lambda serdes: sessions(serdes, time_index=True),
}
times = st.one_of(st.integers(0, 400_000), st.sampled_from([0, 59_999, 60_000, 90_000, 150_000, 210_000]))
operations = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abc"), times, st.none() | st.integers(0, 9)),
        st.tuples(st.just("fetch"), st.sampled_from("abcd"), times, times),
        st.just("flush"),
    ),
    max_size=40,
)


@pytest.mark.parametrize("kind", KINDS)
@same_fixture
@given(serdes=st.sampled_from(list(SERDES)), operations=operations, max_rows=st.integers(0, 4))
def test_a_store_that_forgets_early_finds_the_same(
    kind: str, serdes: str, operations: list[Any], max_rows: int
) -> None:
    store, forgetful = build(KINDS[kind](serdes)), build(KINDS[kind](serdes))
    for operation in [*operations, "flush"]:
        if operation == "flush":
            store.flush_writes()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(segmented_rows, "MAX_ROWS", max_rows)
                forgetful.flush_writes()
        elif operation[0] == "put":
            put(store, *operation[1:])
            put(forgetful, *operation[1:])
        else:
            assert fetch(forgetful, *operation[1:]) == fetch(store, *operation[1:])
    for key in "abcd":
        assert fetch(forgetful, key, 0, 500_000) == fetch(store, key, 0, 500_000)


@pytest.mark.parametrize("kind", KINDS)
def test_looking_for_keys_that_are_not_there_does_not_fill_the_memory(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = MemoryEngine()
    first = build(KINDS[kind]("objects"), engine)
    put(first, "there", 10, 1)
    first.flush_writes()
    store = build(KINDS[kind]("objects"), engine)
    monkeypatch.setattr(segmented_rows, "MAX_ROWS", 100)
    for number in range(101):
        assert fetch(store, f"missing-{number}", 0, 100) == []
    put(store, "there", 11, 2)
    store.flush_writes()
    # Only the inside knows what is in memory.
    rows: Any = store._rows
    kept = {"sessions": "_sessions", "windows": "_windows", "duplicates": "_complete"}[kind.partition("-")[0]]
    assert len(getattr(rows, kept)) <= 1
    assert [row[0] for row in fetch(store, "there", 0, 100)] == [10, 11]


def test_looking_for_keys_of_a_new_store_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segmented_rows, "MAX_ROWS", 100)
    supplier = Stores.in_memory_window_store("store", ms(RETENTION), ms(10))
    store = build(Stores.window_store_builder(supplier, Serdes.string(), Serdes.long()))
    for number in range(101):
        assert not list(store.fetch_range(f"missing-{number}", 0, 100))
    store.flush_writes()
    assert not store._rows._complete
