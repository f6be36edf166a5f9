"""Session stores: segments and retention as in Kafka Streams' RocksDB stores, on every engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import InvalidStateStoreError, SerializationError, UnsupportedOperationError
from headrace.state import Engine, MemoryEngine, OverlayEngine, StoreBuilder, Stores
from headrace.windows import SessionWindow, Windowed
from tests.state.conftest import MakeEngine
from tests.state.kit import SERDES, Replica, build, ms, same_fixture

MINUTE = 60_000
RETENTION = 90_000


def sessions(serdes: str = "objects", *, time_index: bool = False) -> StoreBuilder:
    supplier = Stores.persistent_session_store("store", ms(RETENTION))
    return Stores.session_store_builder(replace(supplier, time_index=time_index), *SERDES[serdes])


def session(key: str, start: int, end: int) -> Windowed[str]:
    return Windowed(key, SessionWindow(start, end))


def test_sessions_are_found_by_overlap_in_the_order_of_their_ends(engine: Engine) -> None:
    store = build(sessions(), engine)
    for start, end in ((30, 40), (0, 10), (5, 40), (50, 60)):
        store.put(session("a", start, end), end)
    store.put(session("b", 0, 40), 1)
    assert store.find("a", 10, 35) == [(0, 10, 10), (5, 40, 40), (30, 40, 40)]
    assert [key for key, _ in store.find_sessions("a", 11, 30)] == [session("a", 5, 40), session("a", 30, 40)]
    assert [key for key, _ in store.backward_find_sessions("a", 11, 30)] == [session("a", 30, 40), session("a", 5, 40)]
    assert [key.window.end_ms for key, _ in store.fetch("a")] == [10, 40, 40, 60]
    assert [key.window.end_ms for key, _ in store.backward_fetch("a")] == [60, 40, 40, 10]
    assert [key.key for key, _ in store.fetch_keys("b", None)] == ["b"]
    assert [key.key for key, _ in store.backward_fetch_keys(None, None)] == ["b", "a", "a", "a", "a"]
    assert [key for key, _ in store.find_sessions_keys(None, "b", 0, 4)] == [session("a", 0, 10), session("b", 0, 40)]
    assert [key for key, _ in store.backward_find_sessions_keys("b", "b", 0, 4)] == [session("b", 0, 40)]
    in_time = [session("a", 0, 10), session("b", 0, 40), session("a", 5, 40), session("a", 30, 40)]
    assert [key for key, _ in store.find_sessions_in(0, 40)] == in_time
    assert store.fetch_session("a", 5, 40) == 40
    assert store.fetch_session("a", 5, 41) is None


def test_a_removed_session_is_gone(engine: Engine) -> None:
    store = build(sessions(), engine)
    store.put(session("a", 0, 10), 1)
    store.put(session("a", 20, 30), 2)
    store.remove(session("a", 0, 10))
    store.put(session("a", 20, 30), None)
    assert list(store.fetch("a")) == []


def test_wrong_use_is_refused() -> None:
    store = build(sessions())
    with pytest.raises(TypeError, match="must not be None"):
        store.put(Windowed(None, SessionWindow(0, 1)), 1)
    with pytest.raises(SerializationError):
        store.put(session("a", 0, 1), "x")
    with pytest.raises(SerializationError):
        store.fetch(5)
    face = store.read_only()
    for write in ("put", "remove"):
        with pytest.raises(UnsupportedOperationError, match=rf"{write}\(\) is not allowed"):
            getattr(face, write)
    store.put(session("a", 0, 1), 1)
    for read in (
        face.fetch("a"),
        face.backward_fetch("a"),
        face.find_sessions("a", 0, 1),
        face.backward_find_sessions("a", 0, 1),
        face.fetch_keys("a", "a"),
        face.backward_fetch_keys("a", "a"),
        face.find_sessions_keys("a", "a", 0, 1),
        face.backward_find_sessions_keys("a", "a", 0, 1),
        face.find_sessions_in(0, 1),
    ):
        assert list(read) == [(session("a", 0, 1), 1)]
    assert face.fetch_session("a", 0, 1) == 1
    store.close()
    with pytest.raises(InvalidStateStoreError, match="is closed"):
        store.fetch("a")


Row = tuple[str, int, int, int]


class Model:
    """Sessions by key, end and start; expiry by the rules, each time from scratch."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int, int], int] = {}
        self.observed = -1
        self.live_from = -MINUTE
        self.dropped = 0

    def put(self, key: str, start: int, end: int, value: int) -> None:
        self.observed = max(self.observed, end)
        segment = (self.observed - RETENTION) // MINUTE
        self.live_from = segment * MINUTE
        self.rows = {slot: row for slot, row in self.rows.items() if slot[1] >= self.live_from}
        if end // MINUTE < segment:
            self.dropped += 1
        else:
            self.rows[key, end, start] = value

    def remove(self, key: str, start: int, end: int) -> None:
        self.observed = max(self.observed, end)
        self.rows.pop((key, end, start), None)

    def find(self, key: str | None, earliest_end: int, latest_start: int) -> list[Row]:
        low = max(earliest_end, self.observed - RETENTION + 1)
        found = [
            (name, start, end, value)
            for (name, end, start), value in self.rows.items()
            if (key is None or name == key) and end >= low and start <= latest_start
        ]
        return sorted(found, key=lambda row: (row[2] // MINUTE, row[0], row[2], row[1]))


times = st.one_of(st.integers(0, 400_000), st.sampled_from([0, 59_999, 60_000, 90_000, 150_000, 210_000]))
operations = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["put", "put", "remove"]), st.sampled_from("ab"), times, st.integers(0, 1000)),
        st.sampled_from(["flush", "reload"]),
    ),
    max_size=25,
)


@pytest.mark.parametrize("order", ["by-key", "by-time"])
@same_fixture
@given(serdes=st.sampled_from(list(SERDES)), operations=operations, low=times, high=times)
def test_a_session_store_does_what_the_rules_say(
    engines: MakeEngine, serdes: str, order: str, operations: list[Any], low: int, high: int
) -> None:
    store, model = build(sessions(serdes, time_index=order == "by-time"), engines()), Model()
    for value, operation in enumerate(operations):
        if operation == "flush":
            store.flush_writes()
        elif operation == "reload":
            store.flush_writes()
            store.reload()
            model.live_from = (model.observed - RETENTION) // MINUTE * MINUTE
            model.rows = {slot: row for slot, row in model.rows.items() if slot[1] >= model.live_from}
        else:
            what, key, start, length = operation
            if what == "put":
                store.put_session(key, start, start + length, value)
                model.put(key, start, start + length, value)
            else:
                store.remove_session(key, start, start + length)
                model.remove(key, start, start + length)
            found = model.find(key, start + length, start)
            found = [row for row in found if row[1:3] == (start, start + length)]
            assert store.get_session(key, start, start + length) == (found[0][3] if found else None)
    assert store.task.dropped == model.dropped
    for key in "ab":
        rows = [row[1:] for row in model.find(key, low, high)]
        assert store.find(key, low, high) == rows
    everything = [(session(*row[:3]), row[3]) for row in model.find(None, low, high)]
    assert list(store.find_sessions_keys(None, None, low, high)) == everything
    assert list(store.backward_find_sessions_keys(None, None, low, high)) == everything[::-1]
    closed = [(start, end, key, row) for (key, end, start), row in model.rows.items() if low <= end <= high]
    assert store.find_closed(low, high) == sorted(closed, key=lambda row: (row[1], row[0], row[2]))


@pytest.mark.parametrize("order", ["by-key", "by-time"])
@same_fixture
@given(operations=operations)
def test_a_restored_session_store_equals_the_original(order: str, operations: list[Any]) -> None:
    replica = Replica(sessions(time_index=order == "by-time"))
    store, twin = replica.store, replica.twin
    for value, operation in enumerate([*operations, "flush"]):
        if isinstance(operation, tuple):
            what, key, start, length = operation
            if what == "put":
                store.put_session(key, start, start + length, value)
            else:
                store.remove_session(key, start, start + length)
        else:
            replica.commit()
            for name in "ab":
                assert twin.find(name, 0, 500_000) == store.find(name, 0, 500_000)
            assert list(twin.fetch_keys(None, None)) == list(store.fetch_keys(None, None))


def test_the_changelog_has_kafkas_bytes() -> None:
    engine = OverlayEngine(MemoryEngine())
    store = build(sessions(), engine)
    store.put_session("a", 10, 20, 1)
    store.flush_writes()
    key = b"a" + (20).to_bytes(8, "big") + (10).to_bytes(8, "big")
    assert store.changelog_records(engine.changes()) == [(key, bytes(7) + b"\1", None)]
