"""Key-value stores, plain and timestamped, on every engine and with every sort of serde."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import InvalidStateStoreError, SerializationError, UnsupportedOperationError
from headrace.record import KeyValue, ValueAndTimestamp
from headrace.serdes import Serdes
from headrace.state import Engine, MemoryEngine, OverlayEngine, StoreBuilder, Stores, values_only
from tests.state.conftest import MakeEngine
from tests.state.kit import SERDES, build, same_fixture


def plain(serdes: str = "objects", name: str = "store") -> StoreBuilder:
    return Stores.key_value_store_builder(Stores.in_memory_key_value_store(name), *SERDES[serdes])


def timestamped(serdes: str = "objects", name: str = "store") -> StoreBuilder:
    supplier = Stores.persistent_timestamped_key_value_store(name)
    return Stores.timestamped_key_value_store_builder(supplier, *SERDES[serdes])


def test_put_if_absent_and_delete_return_the_old_value(engine: Engine) -> None:
    store = build(plain(), engine)
    assert store.put_if_absent("a", 1) is None
    assert store.put_if_absent("a", 2) == 1
    assert store.delete("a") == 1
    assert store.delete("a") is None
    assert store.get("a") is None


def test_ranges_include_both_ends_and_follow_the_bytes(engine: Engine) -> None:
    store = build(plain(), engine)
    store.put_all([("b", 2), ("a", 1), ("c", 3), ("ab", 4)])
    assert list(store.range("ab", "b")) == [("ab", 4), ("b", 2)]
    assert list(store.reverse_range(None, "b")) == [("b", 2), ("ab", 4), ("a", 1)]
    assert [key for key, _ in store.all()] == ["a", "ab", "b", "c"]
    assert [key for key, _ in store.reverse_all()] == ["c", "b", "ab", "a"]
    assert list(store.prefix_scan("a", Serdes.string())) == [("a", 1), ("ab", 4)]
    assert list(store.prefix_scan("a", str.encode)) == [("a", 1), ("ab", 4)]
    assert store.approximate_num_entries() == 4


def test_a_range_from_above_to_below_is_empty_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    store = build(plain())
    store.put("a", 1)
    assert list(store.range("b", "a")) == []
    assert "are they swapped" in caplog.text


def test_an_iteration_goes_on_while_rows_are_written(engine: Engine) -> None:
    store = build(plain(), engine)
    store.put_all((f"{number:03}", number) for number in range(50))
    seen = []
    for key, value in store.all():
        seen.append(value)
        store.delete(key)
    assert seen == list(range(50))
    assert list(store.all()) == []


def test_an_iterator_closes_and_peeks() -> None:
    store = build(plain())
    store.put_all([("a", 1), ("b", 2)])
    with store.all() as rows:
        assert rows.peek_next_key() == "a"
        assert rows.has_next()
        assert next(rows) == KeyValue("a", 1)
        assert rows.peek_next_key() == "b"
    rows.close()
    with pytest.raises(InvalidStateStoreError, match="iterator of store 'store' is closed"):
        next(rows)
    with pytest.raises(InvalidStateStoreError, match="is closed"):
        rows.has_next()
    empty = store.range("x")
    with pytest.raises(StopIteration):
        empty.peek_next_key()


def test_a_closed_store_refuses_everything() -> None:
    store = build(plain())
    rows = store.all()
    store.close()
    for use in (lambda: store.get("a"), lambda: store.put("a", 1), store.all, lambda: next(rows)):
        with pytest.raises(InvalidStateStoreError, match="store 'store' is closed"):
            use()


def test_values_that_can_change_are_not_shared_with_the_store(engine: Engine) -> None:
    store = build(plain("bytes-values"), engine)
    value = {"n": 1}
    store.put("a", value)
    value["n"] = 2
    store.get("a")["n"] = 3
    assert store.get("a") == {"n": 1}


@pytest.mark.parametrize("serdes", SERDES)
def test_wrong_types_are_found_at_once(serdes: str) -> None:
    store = build(Stores.key_value_store_builder(Stores.in_memory_key_value_store("s"), Serdes.string(), Serdes.long()))
    with pytest.raises(SerializationError, match="str"):
        store.get(5)
    with pytest.raises(SerializationError, match="str"):
        store.put(["a"], 1)
    with pytest.raises(SerializationError, match="int"):
        store.put("a", "x")
    with pytest.raises(TypeError, match="must not be None"):
        store.put(None, 1)
    with pytest.raises(TypeError, match="must not be None"):
        store.get(None)
    assert list(store.all()) == []
    pairs = build(timestamped(serdes))
    with pytest.raises(TypeError, match="ValueAndTimestamp"):
        pairs.put("a", 1)


def test_a_read_only_face_refuses_writes() -> None:
    store = build(plain())
    store.put("a", 1)
    face = store.read_only()
    assert face.get("a") == 1
    assert [*face.range("a", "b")] == [*face.all()] == [*face.reverse_all()] == [*face.reverse_range()] == [("a", 1)]
    assert face.name == "store"
    for write in ("put", "put_if_absent", "put_all", "delete", "close", "init", "flush_writes"):
        with pytest.raises(UnsupportedOperationError, match=rf"{write}\(\) is not allowed"):
            getattr(face, write)
    with pytest.raises(AttributeError):
        face.no_such_method  # noqa: B018  # reading it is the test


def test_a_timestamped_store_can_be_seen_as_a_plain_one() -> None:
    store = build(timestamped())
    face = values_only(store)
    face.put("a", 1)
    store.put("b", ValueAndTimestamp(2, 20))
    assert store.get("a") == ValueAndTimestamp(1, -1)
    assert [*face.all()] == [*face.range()] == [*face.prefix_scan("", Serdes.string())] == [("a", 1), ("b", 2)]
    assert [*face.reverse_all()] == [*face.reverse_range()] == [("b", 2), ("a", 1)]
    assert face.put_if_absent("b", 3) == 2
    assert face.delete("b") == 2
    face.put_all([("c", 3)])
    assert face.get("b") is None
    assert face.get("c") == 3
    assert values_only(build(plain())).kind == "key_value"


def test_a_plain_store_on_disk_below_a_table_loses_timestamps() -> None:
    builder = Stores.timestamped_key_value_store_builder(
        Stores.persistent_key_value_store("s"), Serdes.string(), Serdes.long()
    )
    store = build(builder)
    store.put_pair("a", 1, 10)
    assert store.get_pair("a") == (1, -1)
    store.flush_writes()
    store.reload()
    assert store.get_pair("a") == (1, -1)


def test_an_lru_store_keeps_what_was_used_last(engine: Engine) -> None:
    builder = Stores.key_value_store_builder(Stores.lru_map("recent", 2), Serdes.string(), Serdes.long())
    store = build(builder, engine)
    store.put_all([("a", 1), ("b", 2)])
    assert store.get("a") == 1
    store.put("c", 3)
    assert list(store.all()) == [("a", 1), ("c", 3)]
    store.delete("a")
    store.put("d", 4)
    assert [key for key, _ in store.all()] == ["c", "d"]
    assert store.approximate_num_entries() == 2
    nothing = build(Stores.key_value_store_builder(Stores.lru_map("none", 0), Serdes.string(), Serdes.long()))
    nothing.put("a", 1)
    assert nothing.get("a") is None


def test_evictions_of_an_lru_store_are_changes() -> None:
    engine = OverlayEngine(MemoryEngine())
    builder = Stores.timestamped_key_value_store_builder(Stores.lru_map("recent", 1), Serdes.string(), Serdes.long())
    store = build(builder, engine)
    store.put_pair("a", 1, 10)
    store.put_pair("b", 2, 20)
    store.flush_writes()
    assert store.changelog_records(engine.changes()) == [(b"a", None, None), (b"b", bytes(7) + b"\2", 20)]
    assert not store.inline


def test_writes_reach_the_engine_when_they_are_flushed() -> None:
    engine = MemoryEngine()
    store = build(timestamped(), engine)
    store.put_pair("a", 1, 10)
    assert engine.count() == 0
    assert store.dirty
    store.flush_writes()
    assert engine.get(b"a") == bytes(7) + b"\x0a" + bytes(7) + b"\1"
    assert not store.dirty


def test_reload_goes_back_to_the_engine() -> None:
    engine = OverlayEngine(MemoryEngine())
    store = build(timestamped(), engine)
    store.put_pair("a", 1, 10)
    store.flush_writes()
    engine.commit()
    store.put_pair("a", 2, 20)
    store.flush_writes()
    engine.rollback()
    store.reload()
    assert store.get_pair("a") == (1, 10)


keys = st.text(alphabet="ab", max_size=2)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("put"), keys, st.integers(0, 9)),
        st.tuples(st.just("delete"), keys, st.none()),
        st.tuples(st.sampled_from(["flush_writes", "flush_cache", "reload_if_flushed"]), st.none(), st.none()),
    ),
    max_size=30,
)


@pytest.mark.parametrize("cache", [None, 1_000_000, 200])
@same_fixture
@given(serdes=st.sampled_from(list(SERDES)), operations=operations, low=st.none() | keys, high=st.none() | keys)
def test_a_timestamped_store_is_a_sorted_dict(
    engines: MakeEngine,
    serdes: str,
    cache: int | None,
    operations: list[tuple[str, Any, Any]],
    low: str | None,
    high: str | None,
) -> None:
    store, model = build(timestamped(serdes), engines(), cache=cache), dict[str, tuple[int, int]]()
    for time, (operation, key, value) in enumerate(operations):
        if operation == "put":
            store.put_pair(key, value, time, ())
            model[key] = (value, time)
        elif operation == "delete":
            assert store.delete(key) == model.pop(key, None)
        elif operation == "reload_if_flushed":
            store.flush_cache()
            store.flush_writes()
            store.reload()
        else:
            getattr(store, operation)()
        assert store.get_pair(key or "a") == model.get(key or "a")
    encode = SERDES[serdes][0].serializer("", is_key=True)
    first, last = None if low is None else encode(low), None if high is None else encode(high)
    expected = sorted(
        (
            (key, pair)
            for key, pair in model.items()
            if (first is None or encode(key) >= first) and (last is None or encode(key) <= last)
        ),
        key=lambda row: encode(row[0]),
    )
    assert list(store.range(low, high)) == expected
    assert list(store.reverse_range(low, high)) == expected[::-1]
