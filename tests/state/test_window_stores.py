"""Window stores: segments and retention as in Kafka Streams' RocksDB stores, on every engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import InvalidStateStoreError, SerializationError, TopologyError, UnsupportedOperationError
from headrace.record import ValueAndTimestamp
from headrace.serdes import Serdes
from headrace.state import Engine, MemoryEngine, OverlayEngine, StoreBuilder, Stores, values_only
from headrace.windows import TimeWindow, Windowed
from tests.state.conftest import MakeEngine
from tests.state.kit import SERDES, Replica, build, ms, same_fixture

MINUTE = 60_000
RETENTION = 90_000
SIZE = 10


def windows(serdes: str = "objects", *, time_index: bool = False, retention_ms: int = RETENTION) -> StoreBuilder:
    supplier = Stores.persistent_timestamped_window_store("store", ms(retention_ms), ms(SIZE))
    return Stores.timestamped_window_store_builder(replace(supplier, time_index=time_index), *SERDES[serdes])


def joins(serdes: str = "objects") -> StoreBuilder:
    supplier = Stores.persistent_window_store("store", ms(RETENTION), ms(SIZE), retain_duplicates=True)
    return Stores.window_store_builder(supplier, *SERDES[serdes])


def window(key: str, start: int) -> Windowed[str]:
    return Windowed(key, TimeWindow(start, start + SIZE))


def test_rows_are_found_by_key_and_start(engine: Engine) -> None:
    store = build(windows(), engine)
    for key, start, value in (("a", 0, 1), ("a", 20, 2), ("b", 20, 3), ("a", 10, 4)):
        store.put_pair(key, start, value, start + 5)
    assert store.fetch("a", 20) == ValueAndTimestamp(2, 25)
    assert store.fetch("a", 30) is None
    assert store.fetch_pairs("a", 0, 15) == [(0, 1, 5), (10, 4, 15)]
    assert [key for key, _ in store.fetch_range("a", 0, 20)] == [0, 10, 20]
    assert [key for key, _ in store.backward_fetch_range("a", 10, 20)] == [20, 10]
    assert [key for key, _ in store.fetch_keys("a", "b", 10, 20)] == [window("a", 10), window("a", 20), window("b", 20)]
    assert [key for key, _ in store.backward_fetch_keys("b", None, 0, 20)] == [window("b", 20)]
    assert [key for key, _ in store.fetch_all(10, 10)] == [window("a", 10)]
    everything = [window("a", 0), window("a", 10), window("a", 20), window("b", 20)]
    assert [key for key, _ in store.all()] == everything
    assert [key for key, _ in store.backward_all()] == everything[::-1]
    assert [key for key, _ in store.backward_fetch_all(0, 10)] == everything[1::-1]
    moment = datetime(1970, 1, 1, 0, 0, 0, 20_000, tzinfo=UTC)
    assert store.fetch("b", moment) == ValueAndTimestamp(3, 25)


def test_a_row_is_taken_by_segment_but_shown_by_time(engine: Engine) -> None:
    store = build(windows(), engine)
    store.put_pair("a", 200_000, 1, 0)
    # The horizon is 110,000, in the segment that starts at 60,000.
    store.put_pair("a", 60_000, 2, 0)
    store.put_pair("a", 59_999, 3, 0)
    assert store.task.dropped == 1
    store.put_pair("a", 110_000, 4, 0)
    store.put_pair("a", 110_001, 5, 0)
    assert [start for start, _, _ in store.fetch_pairs("a", 0, 300_000)] == [110_001, 200_000]
    assert store.get_pair("a", 110_000) is None
    assert [key.window.start_ms for key, _ in store.all()] == [110_001, 200_000]
    assert store.observed_stream_time_ms == 200_000


def test_a_store_in_the_order_of_time_shows_the_horizon_too(engine: Engine) -> None:
    store = build(windows(time_index=True), engine)
    store.put_pair("b", 200_000, 1, 0)
    store.put_pair("a", 200_000, 1, 0)
    store.put_pair("c", 110_000, 2, 0)
    store.put_pair("c", 109_999, 3, 0)
    assert store.fetch_closed(0, 200_000) == [(110_000, "c", 2, 0), (200_000, "a", 1, 0), (200_000, "b", 1, 0)]
    assert [key.key for key, _ in store.fetch_keys("a", "b", 0, 300_000)] == ["a", "b"]
    assert store.fetch_pairs("c", 0, 300_000) == [(110_000, 2, 0)]


def test_expired_segments_are_deleted(engine: Engine) -> None:
    store = build(windows(time_index=True), engine)
    store.put_pair("a", 0, 1, 0)
    store.flush_writes()
    rows = engine.count()
    store.put_pair("a", 10 * MINUTE, 2, 0)
    store.flush_writes()
    assert engine.count() == rows


def test_a_deleted_row_is_gone_and_duplicates_ignore_deletion(engine: Engine) -> None:
    store = build(windows(), engine)
    store.put_pair("a", 10, 1, 0)
    store.put_pair("a", 10, None, 0)
    assert store.fetch("a", 10) is None
    assert list(store.all()) == []
    both = build(joins(), engine=MemoryEngine())
    both.put("a", 1, 10)
    both.put("a", None, 10)
    assert both.fetch_pairs("a", 0, 20) == [(10, 1, -1)]


def test_duplicates_keep_their_order_of_arrival(engine: Engine) -> None:
    store = build(joins(), engine)
    for value, start in ((1, 10), (2, 5), (3, 10), (1, 10)):
        store.put("a", value, start)
    expected = [(5, 2, -1), (10, 1, -1), (10, 3, -1), (10, 1, -1)]
    assert store.fetch_pairs("a", 0, 20) == expected
    store.flush_writes()
    store.reload()
    store.put("a", 9, 10)
    assert store.fetch_pairs("a", 0, 20) == [*expected, (10, 9, -1)]
    assert store.fetch_pairs("a", 0, 20, reverse=True) == [*expected, (10, 9, -1)][::-1]
    assert store.fetch("a", 10) == 9
    assert [value for _, value in store.all()] == [2, 1, 3, 1, 9]


def test_the_clock_of_a_store_survives(engine: Engine) -> None:
    store = build(windows(), engine)
    store.put_pair("a", 200_000, 1, 0)
    store.flush_writes()
    store.reload()
    assert store.observed_stream_time_ms == 200_000
    store.put_pair("a", 0, 1, 0)
    assert store.task.dropped == 1


def test_wrong_use_is_refused() -> None:
    store = build(windows())
    with pytest.raises(TypeError, match="ValueAndTimestamp"):
        store.put("a", 1, 10)
    with pytest.raises(TypeError, match="must not be None"):
        store.fetch(None, 10)
    with pytest.raises(ValueError, match="cannot start before 0"):
        store.put("a", ValueAndTimestamp(1, 1), -1)
    with pytest.raises(SerializationError):
        store.put("a", ValueAndTimestamp("x", 1), 1)
    with pytest.raises(SerializationError):
        store.fetch(5, 1)
    with pytest.raises(ValueError, match="time zone"):
        store.fetch_all(datetime(2020, 1, 1), 0)  # that is the point
    with pytest.raises(TopologyError, match="must not be shorter than a window"):
        Stores.in_memory_window_store("s", ms(5), ms(6))
    face = store.read_only()
    with pytest.raises(UnsupportedOperationError, match=r"put\(\) is not allowed"):
        face.put("a", 1, 1)
    store.close()
    with pytest.raises(InvalidStateStoreError, match="is closed"):
        store.all()


def test_faces_read_what_the_store_has() -> None:
    store = build(windows())
    store.put("a", ValueAndTimestamp(1, 15), 10)
    store.put("b", ValueAndTimestamp(2, 25), 20)
    face, plain = store.read_only(), values_only(store)
    plain.put("b", 3, 20)
    assert face.fetch("a", 10) == ValueAndTimestamp(1, 15)
    assert plain.fetch("a", 10) == 1
    both = [(window("a", 10), 1), (window("b", 20), 3)]
    assert [*plain.all()] == [*plain.fetch_all(0, 30)] == [*plain.fetch_keys(None, None, 0, 30)] == both
    assert [*plain.backward_all()] == [*plain.backward_fetch_all(0, 30)] == both[::-1]
    assert [*plain.backward_fetch_keys(None, None, 0, 30)] == both[::-1]
    assert [*plain.fetch_range("a", 0, 30)] == [*plain.backward_fetch_range("a", 0, 30)] == [(10, 1)]
    assert [key for key, _ in face.fetch_range("a", 0, 30)] == [key for key, _ in face.backward_fetch_range("a", 0, 30)]
    for forward, backward in (
        (face.all(), face.backward_all()),
        (face.fetch_all(0, 30), face.backward_fetch_all(0, 30)),
        (face.fetch_keys("a", "b", 0, 30), face.backward_fetch_keys("a", "b", 0, 30)),
    ):
        assert [*forward] == [*backward][::-1] != []


class Model:
    """Rows by key and start; expiry by the rules, each time from scratch."""

    def __init__(self, *, time_index: bool, duplicates: bool) -> None:
        self.rows: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self.observed = -1
        self.dropped = 0
        self.time_index = time_index
        self.duplicates = duplicates

    def put(self, key: str, start: int, value: int | None, time: int) -> None:
        if self.duplicates and value is None:
            return
        self.observed = max(self.observed, start)
        if start // MINUTE < (self.observed - RETENTION) // MINUTE:
            self.dropped += 1
        elif value is None:
            self.rows.pop((key, start), None)
        elif self.duplicates:
            self.rows.setdefault((key, start), []).append((value, -1))
        else:
            self.rows[key, start] = [(value, time)]

    def fetch(self, key: str | None, low: int, high: int) -> list[tuple[str, int, int, int]]:
        horizon = self.observed - RETENTION + (0 if self.time_index else 1)
        found = [
            (name, start, *pair)
            for (name, start), pairs in self.rows.items()
            for pair in pairs
            if (key is None or name == key) and max(low, horizon) <= start <= high
        ]
        if self.time_index and key is None:
            return sorted(found, key=lambda row: (row[1], row[0]))
        return sorted(found, key=lambda row: (row[1] // MINUTE, row[0], row[1]))


starts = st.one_of(st.integers(0, 400_000), st.sampled_from([0, 59_999, 60_000, 90_000, 150_000, 210_000]))
operations = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("ab"), starts, st.none() | st.integers(0, 9)),
        st.sampled_from(["flush", "reload", "fetch"]),
    ),
    max_size=25,
)


@pytest.mark.parametrize("kind", ["windows", "time-index", "duplicates"])
@same_fixture
@given(serdes=st.sampled_from(list(SERDES)), operations=operations, low=starts, high=starts)
def test_a_window_store_does_what_the_rules_say(
    engines: MakeEngine, serdes: str, kind: str, operations: list[Any], low: int, high: int
) -> None:
    model = Model(time_index=kind == "time-index", duplicates=kind == "duplicates")
    builder = joins(serdes) if model.duplicates else windows(serdes, time_index=model.time_index)
    store = build(builder, engines())
    for time, operation in enumerate(operations):
        if operation == "flush":
            store.flush_writes()
        elif operation == "reload":
            store.flush_writes()
            store.reload()
        elif operation == "fetch":
            assert store.fetch_pairs("a", low, high) == [row[1:] for row in model.fetch("a", low, high)]
        else:
            key, start, value = operation
            store.put_pair(key, start, value, time)
            model.put(key, start, value, time)
            if not model.duplicates:
                found = model.fetch(key, start, start)
                assert store.get_pair(key, start) == (found[0][2:] if found else None)
    assert store.task.dropped == model.dropped
    for key in "ab":
        rows = [row[1:] for row in model.fetch(key, low, high)]
        assert store.fetch_pairs(key, low, high) == rows
        assert store.fetch_pairs(key, low, high, reverse=True) == rows[::-1]
    expected = [(start, key, value, time) for key, start, value, time in model.fetch(None, low, high)]
    assert store.fetch_closed(low, high) == expected
    everything = [(window(key, start), value) for key, start, value, _ in model.fetch(None, 0, 500_000)]
    plain = values_only(store)
    assert list(plain.all()) == everything
    assert list(plain.backward_all()) == everything[::-1]


@same_fixture
@given(serdes=st.sampled_from(list(SERDES)), seed=st.integers(0, 1_000), low=starts, high=starts)
def test_many_duplicates_of_a_key_lie_by_start_and_go_by_retention(serdes: str, seed: int, low: int, high: int) -> None:
    random = Random(seed)
    model, store = Model(time_index=False, duplicates=True), build(joins(serdes))
    for number in range(400):
        # Time goes on for twice the retention; some rows are late, a few of them too late.
        key, start = random.choice("aab"), max(0, number * 450 - random.choice([0, 0, 1, 5_000, 100_000]))
        store.put_pair(key, start, number, number)
        model.put(key, start, number, number)
        if random.random() < 0.02:
            store.flush_writes()
        if number % 20 == 0:
            for each in "ab":
                assert store.fetch_pairs(each, low, high) == [row[1:] for row in model.fetch(each, low, high)]
                everything = [row[1:] for row in model.fetch(each, 0, 500_000)]
                assert store.fetch_pairs(each, 0, 500_000) == everything
    assert store.task.dropped == model.dropped
    assert list(values_only(store).all()) == [
        (window(key, start), value) for key, start, value, _ in model.fetch(None, 0, 500_000)
    ]


@pytest.mark.parametrize("kind", ["windows", "time-index", "duplicates"])
@same_fixture
@given(operations=operations)
def test_a_restored_window_store_equals_the_original(kind: str, operations: list[Any]) -> None:
    replica = Replica(joins() if kind == "duplicates" else windows(time_index=kind == "time-index"))
    store, twin = replica.store, replica.twin
    for time, operation in enumerate([*operations, "fetch"]):
        if isinstance(operation, tuple):
            key, start, value = operation
            store.put_pair(key, start, value, time)
        else:
            replica.commit()
            assert list(twin.all()) == list(store.all())
            assert twin.fetch_closed(0, 500_000) == store.fetch_closed(0, 500_000)
            for name in "ab":
                assert twin.fetch_pairs(name, 0, 500_000) == store.fetch_pairs(name, 0, 500_000)


def test_the_changelog_has_kafkas_bytes() -> None:
    engine = OverlayEngine(MemoryEngine())
    store = build(windows(), engine)
    store.put_pair("a", 10, 1, 15)
    store.put_pair("b", 10, None, 15)
    store.flush_writes()
    start = (10).to_bytes(8, "big") + bytes(4)
    assert store.changelog_records(engine.changes()) == [
        (b"a" + start, bytes(7) + b"\1", 15),
        (b"b" + start, None, None),
    ]


def test_serdes_that_keep_objects_write_nothing_before_the_flush() -> None:
    written = []

    def write(value: int) -> bytes:
        written.append(value)
        return str(value).encode()

    serde = Serdes.of(write, int, immutable=True)
    supplier = Stores.persistent_timestamped_window_store("store", ms(RETENTION), ms(SIZE))
    store = build(Stores.timestamped_window_store_builder(supplier, Serdes.string(), serde))
    for value in range(5):
        store.put_pair("a", 10, value, 0)
        assert store.get_pair("a", 10) == (value, 0)
    # The first value of a type is written as a test.
    assert written == [0]
    store.flush_writes()
    assert written == [0, 4]
