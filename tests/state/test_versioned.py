"""Versioned stores, against a plain rendering of how Kafka Streams keeps versions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.errors import SerializationError, TopologyError, UnsupportedOperationError
from headrace.record import VersionedRecord
from headrace.serdes import Serdes
from headrace.state import (
    PUT_RETURN_CODE_NOT_PUT,
    VALID_TO_UNDEFINED,
    Engine,
    MemoryEngine,
    StoreBuilder,
    Stores,
)
from tests.state.conftest import MakeEngine
from tests.state.kit import SERDES, Replica, build, ms, same_fixture

RETENTION_MS = 10


def versioned(serdes: str = "objects", retention_ms: int = RETENTION_MS) -> StoreBuilder:
    supplier = Stores.persistent_versioned_key_value_store("store", ms(retention_ms))
    return Stores.versioned_key_value_store_builder(supplier, *SERDES[serdes])


class Segment:
    """A key's versions but the latest: starts and values, each valid until the next start, the last until ``end``."""

    def __init__(self, start: int, end: int, value: int | None) -> None:
        self.rows: list[tuple[int, int | None]] = [(start, value)]
        self.end = end

    def append(self, start: int, end: int, value: int | None) -> None:
        if self.rows == [(self.end, None)]:
            # A deletion that nothing came before spans no time.
            self.rows = []
        if self.end < start:
            self.rows.append((self.end, None))
        self.rows.append((start, value))
        self.end = end


class Model:
    """What one key's history is in Kafka Streams: the latest value apart from a segment of what was before."""

    def __init__(self) -> None:
        self.latest: tuple[int, int] | None = None
        self.segment: Segment | None = None

    def put(self, value: int | None, time: int) -> int:
        found = VALID_TO_UNDEFINED
        if self.latest is not None:
            latest_time, latest_value = self.latest
            if time >= latest_time:
                if time > latest_time:
                    self._move(latest_time, time, latest_value)
                self.latest = None if value is None else (time, value)
                return VALID_TO_UNDEFINED
            found = latest_time
        segment = self.segment
        if segment is not None and segment.end > time:
            if segment.rows[0][0] <= time:
                return self._insert(segment, value, time)
            found = segment.rows[0][0]
        if found == VALID_TO_UNDEFINED:
            if value is not None:
                self.latest = (time, value)
            elif segment is None:
                self.segment = Segment(time, time, None)
            elif segment.end != time:
                segment.append(segment.end, time, None)
        elif segment is None:
            self.segment = Segment(time, found, value)
        elif segment.end <= time:
            segment.append(time, found, value)
        else:
            if segment.rows == [(segment.end, None)]:
                segment.rows = []
            segment.rows.insert(0, (time, value))
        return found

    def _move(self, start: int, end: int, value: int | None) -> None:
        if self.segment is None:
            self.segment = Segment(start, end, value)
        else:
            self.segment.append(start, end, value)

    def _insert(self, segment: Segment, value: int | None, time: int) -> int:
        ends = [start for start, _ in segment.rows[1:]] + [segment.end]
        for place, ((start, _), end) in enumerate(zip(segment.rows, ends, strict=True)):
            if start <= time < end:
                if start == time:
                    segment.rows[place] = (time, value)
                else:
                    segment.rows.insert(place + 1, (time, value))
                return end
        raise AssertionError

    def get(self, as_of: int) -> VersionedRecord[int] | None:
        if self.latest is not None and self.latest[0] <= as_of:
            return VersionedRecord(self.latest[1], self.latest[0])
        if self.segment is None or as_of >= self.segment.end:
            return None
        found = None
        ends = [start for start, _ in self.segment.rows[1:]] + [self.segment.end]
        for (start, value), end in zip(self.segment.rows, ends, strict=True):
            if start <= as_of < end:
                found = None if value is None else VersionedRecord(value, start, end)
        return found


puts = st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 9), st.integers(0, 40)), max_size=25)


@same_fixture
@given(serdes=st.sampled_from(list(SERDES)), puts=puts, flushes=st.sets(st.integers(0, 25)))
def test_versions_are_kept_as_kafka_streams_keeps_them(
    engines: MakeEngine, serdes: str, puts: list[tuple[str, int | None, int]], flushes: set[int]
) -> None:
    store, models, observed = build(versioned(serdes), engines()), {"a": Model(), "b": Model()}, -1
    dropped = 0
    for step, (key, value, time) in enumerate(puts):
        if time < observed - RETENTION_MS:
            dropped += 1
            expected = PUT_RETURN_CODE_NOT_PUT
        else:
            observed = max(observed, time)
            expected = models[key].put(value, time)
        assert store.put(key, value, time) == expected
        if step in flushes:
            store.flush_writes()
            store.reload()
        for name, model in models.items():
            latest = None if model.latest is None else VersionedRecord(model.latest[1], model.latest[0])
            assert store.get(name) == latest
            assert store.get_pair(name) == (None if latest is None else (latest.value, latest.timestamp_ms))
            for as_of in range(0, 41, 3):
                version = model.get(as_of)
                if as_of < observed - RETENTION_MS and (latest is None or latest.timestamp_ms > as_of):
                    version = None
                assert store.get(name, as_of) == version
    assert store.task.dropped == dropped


@same_fixture
@given(puts=puts, commits=st.sets(st.integers(0, 25)))
# A deletion at the time of its value leaves nothing; it expires, or is made twice, or is put over, before a commit.
@example(puts=[("b", 0, 1), ("b", None, 1), ("b", 0, 0), ("a", None, 11)], commits=set())
@example(puts=[("b", 0, 1), ("b", None, 1), ("b", 0, 0), ("a", None, 11)], commits={2})
@example(puts=[("b", 0, 1), ("b", None, 1), ("b", None, 1), ("b", 0, 0)], commits={0})
@example(puts=[("b", 0, 1), ("b", None, 1), ("b", None, 1), ("b", 7, 1), ("b", None, 1), ("b", 0, 0)], commits={0, 3})
def test_a_restored_store_has_the_same_versions(puts: list[tuple[str, int | None, int]], commits: set[int]) -> None:
    replica = Replica(versioned())
    store, twin = replica.store, replica.twin
    for step, (key, value, time) in enumerate(puts):
        store.put(key, value, time)
        if step in commits or step == len(puts) - 1:
            replica.commit()
            assert twin.observed_stream_time_ms == store.observed_stream_time_ms
            for name in "ab":
                assert twin.get(name) == store.get(name)
                for as_of in range(41):
                    assert twin.get(name, as_of) == store.get(name, as_of)


def test_delete_returns_the_version_it_ends(engine: Engine) -> None:
    store = build(versioned(), engine)
    store.put("a", 1, 5)
    assert store.delete("a", 8) == VersionedRecord(1, 5)
    assert store.delete("a", 9) is None
    assert store.get("a", 7) == VersionedRecord(1, 5, 8)
    store.put("b", 1, 100)
    assert store.delete("a", 50) is None
    assert store.task.dropped == 1


def test_history_is_the_versions_that_were_valid_between_two_times(engine: Engine) -> None:
    store = build(versioned(retention_ms=1000), engine)
    for value, time in ((1, 10), (2, 20), (None, 30), (4, 40)):
        store.put("a", value, time)
    versions = [VersionedRecord(1, 10, 20), VersionedRecord(2, 20, 30), VersionedRecord(4, 40)]
    with store.history("a") as found:
        assert list(found) == versions
    assert list(store.history("a", reverse=True)) == versions[::-1]
    assert list(store.history("a", 15, 25)) == versions[:2]
    assert list(store.history("a", 20, 39)) == versions[1:2]
    assert list(store.history("b")) == []
    assert list(store.read_only().history("a", 41)) == versions[2:]


def test_expired_history_is_deleted_a_few_keys_per_put() -> None:
    engine = MemoryEngine()
    store = build(versioned(), engine)
    for number in range(100):
        store.put(f"k{number}", 1, 0)
        store.put(f"k{number}", 2, 1)
        store.put(f"d{number}", None, 1)
    rows = engine.count()
    for time in range(100, 200):
        store.put("other", time, time)
    assert engine.count() < rows // 3
    assert all(store.get(f"k{number}") == VersionedRecord(2, 1) for number in range(100))


def test_versioned_stores_have_no_cache_and_refuse_wrong_types() -> None:
    with pytest.raises(TopologyError, match="cannot be cached"):
        versioned().with_caching_enabled()
    store = build(
        Stores.versioned_key_value_store_builder(versioned().supplier, Serdes.string(), Serdes.long())  # type: ignore[arg-type]
    )
    with pytest.raises(SerializationError):
        store.put("a", "x", 1)
    with pytest.raises(TypeError, match="must not be None"):
        store.get(None)
    with pytest.raises(UnsupportedOperationError, match=r"put\(\) is not allowed"):
        store.read_only().put("a", 1, 1)
    assert store.read_only().get("a") is None


def test_lookups_for_joins_give_pairs(engine: Engine) -> None:
    store: Any = build(versioned(), engine)
    store.put("a", 1, 5)
    store.put("a", 2, 8)
    assert store.get_pair_as_of("a", 6) == (1, 5)
    assert store.get_pair_as_of("a", 4) is None


def test_restoring_skips_what_kafka_streams_has_logged_and_refused() -> None:
    store, one = build(versioned()), (1).to_bytes(8)
    store.restore([(b"old", one, 100), (b"new", one, 200)])
    # The store had seen 200 when this was put, so it was refused; the changelog has it all the same.
    store.restore([(b"refused", one, 200 - RETENTION_MS - 1), (b"late", one, 200 - RETENTION_MS)])
    assert [store.get(key) is not None for key in ("old", "new", "refused", "late")] == [True, True, False, True]
