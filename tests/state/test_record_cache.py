"""Record cache: the updates that it holds back, and those that a flush forwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import SerializationError
from headrace.serdes import Serdes
from headrace.state import CacheBudget, MemoryEngine, StoreBuilder, Stores
from headrace.windows import SessionWindow, TimeWindow, Windowed
from tests.state.kit import SERDES, Task, build, ms, same_fixture
from tests.state.test_window_stores import Model

LARGE = 1_000_000
RETENTION = 90_000


def table(serdes: str = "objects") -> StoreBuilder:
    supplier = Stores.persistent_timestamped_key_value_store("store")
    return Stores.timestamped_key_value_store_builder(supplier, *SERDES[serdes])


def windows(*, time_index: bool = False) -> StoreBuilder:
    supplier = Stores.persistent_timestamped_window_store("store", ms(RETENTION), ms(10))
    return Stores.timestamped_window_store_builder(
        replace(supplier, time_index=time_index), Serdes.string(), Serdes.long()
    )


def sessions() -> StoreBuilder:
    return Stores.session_store_builder(
        Stores.persistent_session_store("store", ms(RETENTION)), Serdes.string(), Serdes.long()
    )


def listening(store: Any) -> list[tuple[Any, ...]]:
    flushed: list[tuple[Any, ...]] = []
    # The last argument says that it is the latest row of its key, as all are that come out of a cache.
    store.on_flush = lambda *change: flushed.append(change[:-1])
    return flushed


@pytest.mark.parametrize("serdes", SERDES)
def test_each_key_is_let_go_once_in_the_order_of_its_last_update(serdes: str) -> None:
    store = build(table(serdes), cache=LARGE)
    flushed = listening(store)
    for key, value in (("a", 1), ("b", 2), ("a", 3)):
        store.put_pair(key, value, value * 10, (("h", b"%d" % value),))
    assert flushed == []
    assert store.get_pair("a") == (3, 30)
    store.flush_cache()
    assert flushed == [("b", 2, None, 20, (("h", b"2"),)), ("a", 3, None, 30, (("h", b"3"),))]
    assert not store.dirty
    flushed.clear()
    store.put_pair("a", 4, 40)
    store.put_pair("b", None, 45)
    store.flush_cache()
    assert flushed == [("a", 4, 3, 40, ()), ("b", None, 2, 45, ())]
    assert store.get_pair("b") is None


def test_a_key_that_came_and_went_between_flushes_yields_nothing() -> None:
    store = build(table(), cache=LARGE)
    flushed = listening(store)
    store.put_pair("a", 1, 10)
    store.put_pair("a", None, 20)
    store.flush_cache()
    assert flushed == []


def test_old_values_are_looked_up_only_for_those_who_want_them() -> None:
    store = build(table(), cache=LARGE)
    flushed = listening(store)
    store.send_old = False
    for value in (1, 2, None):
        store.put_pair("a", value, 10)
        store.flush_cache()
    assert flushed == [("a", 1, None, 10, ()), ("a", 2, None, 10, ()), ("a", None, None, 10, ())]


def test_a_flush_runs_at_the_records_that_made_the_changes() -> None:
    store = build(table(), cache=LARGE)
    task: Task = store.task
    seen: list[Any] = []
    store.on_flush = lambda key, *change: seen.append((key, task.origin, task.offset))
    for offset, key in enumerate("aba"):
        task.offset = offset
        store.put_pair(key, 1, 10)
    task.origin, task.offset = None, -1
    store.flush_cache()
    assert seen == [("b", ("in", 0), 1), ("a", ("in", 0), 2)]
    assert (task.origin, task.offset) == (None, -1)


def test_a_listener_may_put_into_the_store_again() -> None:
    store = build(table(), cache=LARGE)
    seen: list[Any] = []

    def again(key: str, new: Any, old: Any, *_: Any) -> None:
        seen.append((key, new, store.get_pair("b")))
        if key == "a" and new == 1:
            store.put_pair("b", 9, 90)
            store.put_pair("a", 2, 20)

    store.on_flush = again
    store.put_pair("a", 1, 10)
    store.put_pair("b", 1, 10)
    store.flush_cache()
    # What was held back is let go as it was; what the listener puts waits for the next flush.
    assert seen == [("a", 1, (1, 10)), ("b", 1, (9, 90))]
    store.flush_cache()
    assert seen[2:] == [("b", 9, (9, 90)), ("a", 2, (9, 90))]


def test_the_store_whose_new_entry_passes_the_budget_is_flushed() -> None:
    budget, task = CacheBudget(250), Task()
    first, second = (
        table().with_caching_enabled().build(MemoryEngine(), cache_budget=budget, task=task) for _ in range(2)
    )
    of_first, of_second = listening(first), listening(second)
    first.put_pair("a", 1, 1)
    second.put_pair("a", 1, 1)
    second.put_pair("a", 2, 2)
    first.put_pair("b", 1, 1)
    assert of_first == of_second == []
    second.put_pair("c", 1, 1)
    assert [change[:2] for change in of_second] == [("a", 2), ("c", 1)]
    assert of_first == []
    first.flush_cache()
    assert budget.used_bytes == 0


def test_without_a_budget_or_a_switch_nothing_is_cached() -> None:
    assert not build(table(), cache=0).cached
    assert not table().build(MemoryEngine(), cache_budget=CacheBudget(LARGE)).cached
    assert build(table(), cache=LARGE).cached
    duplicates = Stores.window_store_builder(
        Stores.in_memory_window_store("join", ms(10), ms(5), retain_duplicates=True)
    )
    assert not build(duplicates, cache=LARGE).cached


def test_scans_see_what_the_cache_holds_back() -> None:
    store = build(table(), cache=LARGE)
    store.put_pair("a", 1, 10)
    store.put_pair("c", 1, 10)
    store.flush_cache()
    flushed = listening(store)
    store.put_pair("b", 2, 20)
    store.put_pair("a", None, 20)
    assert list(store.all()) == [("b", (2, 20)), ("c", (1, 10))]
    assert list(store.reverse_range("b", None)) == [("c", (1, 10)), ("b", (2, 20))]
    assert flushed == []


changes = st.lists(
    st.one_of(st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 9)), st.just("flush")), max_size=30
)


@same_fixture
@given(serdes=st.sampled_from(list(SERDES)), changes=changes)
def test_flushes_let_go_what_changed_since_the_last_one(serdes: str, changes: list[Any]) -> None:
    store = build(table(serdes), cache=LARGE)
    flushed = listening(store)
    below: dict[str, int] = {}
    held: dict[str, tuple[int | None, int]] = {}
    for time, change in enumerate([*changes, "flush"]):
        if change != "flush":
            key, value = change
            store.put_pair(key, value, time)
            held.pop(key, None)
            held[key] = (value, time)
            continue
        expected = [
            (key, value, below.get(key), at, ())
            for key, (value, at) in held.items()
            if value is not None or key in below
        ]
        for key, (new, _) in held.items():
            below.pop(key, None)
            if new is not None:
                below[key] = new
        held.clear()
        store.flush_cache()
        assert flushed == expected
        flushed.clear()
        assert {key: value for key, (value, _) in store.all()} == below


def test_windows_are_let_go_with_their_window() -> None:
    store = build(windows(), cache=LARGE)
    flushed = listening(store)
    store.put_pair("a", 10, 1, 15)
    store.put_pair("a", 0, 1, 5)
    store.put_pair("a", 10, 2, 16, (("h", None),))
    assert store.fetch_pairs("a", 0, 10) == [(0, 1, 5), (10, 2, 16)]
    store.flush_cache()
    zero, ten = Windowed("a", TimeWindow(0, 10)), Windowed("a", TimeWindow(10, 20))
    assert flushed == [(zero, 1, None, 5, ()), (ten, 2, None, 16, (("h", None),))]
    flushed.clear()
    store.put_pair("a", 10, 3, 17)
    store.put_pair("a", 0, None, 30)
    store.put_pair("a", 5, None, 30)
    assert list(store.all()) == [(ten, (3, 17))]
    assert list(store.backward_fetch_keys("a", "a", 0, 20)) == [(ten, (3, 17))]
    store.flush_cache()
    assert flushed == [(ten, 3, 2, 17, ()), (zero, None, 1, 30, ())]
    store.reload()
    assert not store.dirty


@pytest.mark.parametrize("order", ["by-key", "by-time"])
def test_the_cache_still_shows_windows_that_have_expired_below(order: str) -> None:
    store = build(windows(time_index=order == "by-time"), cache=LARGE)
    flushed = listening(store)
    store.put_pair("a", 0, 1, 0)
    store.flush_cache()
    store.put_pair("b", 1_000_000, 1, 0)
    store.flush_cache()
    assert store.get_pair("a", 0) == (1, 0)
    assert store.fetch_closed(0, 10) == [(0, "a", 1, 0)]
    store.put_pair("a", 0, 2, 0)
    assert store.task.dropped == 0
    flushed.clear()
    store.flush_cache()
    # Too old for the store, but sent on all the same.
    assert store.task.dropped == 1
    assert flushed == [(Windowed("a", TimeWindow(0, 10)), 2, None, 0, ())]
    store.flush_writes()
    store.reload()
    assert store.get_pair("a", 0) is None


def test_sessions_are_let_go_with_their_end_as_time() -> None:
    store = build(sessions(), cache=LARGE)
    flushed = listening(store)
    store.put_session("a", 0, 5, 1)
    store.remove_session("a", 0, 5)
    store.put_session("a", 0, 8, 2, (("h", b"1"),))
    assert store.find("a", 0, 10) == [(0, 8, 2)]
    store.flush_cache()
    wide = Windowed("a", SessionWindow(0, 8))
    assert flushed == [(wide, 2, None, 8, (("h", b"1"),))]
    flushed.clear()
    store.remove_session("a", 0, 8)
    store.put_session("a", 0, 9, 3)
    store.flush_cache()
    assert flushed == [(wide, None, 2, 8, ()), (Windowed("a", SessionWindow(0, 9)), 3, None, 9, ())]
    assert list(store.fetch_keys(None, None)) == [(Windowed("a", SessionWindow(0, 9)), 3)]


def test_the_cache_still_shows_sessions_that_have_expired_below() -> None:
    store = build(sessions(), cache=LARGE)
    store.put_session("a", 0, 5, 1)
    store.flush_cache()
    store.put_session("b", 0, 1_000_000, 1)
    store.flush_cache()
    assert store.find("a", 0, 10) == [(0, 5, 1)]
    assert store.get_session("a", 0, 5) == 1
    store.remove_session("a", 0, 5)
    assert store.find("a", 0, 10) == []
    store.flush_cache()
    assert store.task.dropped == 1
    store.reload()
    assert store.find("a", 0, 10) == []


@pytest.mark.parametrize("builder", [windows(), sessions()], ids=["windows", "sessions"])
def test_a_cache_without_listener_just_writes(builder: StoreBuilder) -> None:
    store = build(builder, cache=LARGE)
    if builder.kind == "session":
        store.put_session("a", 0, 5, 1)
    else:
        store.put_pair("a", 0, 1, 5)
    store.flush_cache()
    store.flush_writes()
    assert store.engine.count() > 1


@pytest.mark.parametrize("builder", [windows(), sessions()], ids=["windows", "sessions"])
def test_a_small_cache_forgets_what_it_let_go(builder: StoreBuilder) -> None:
    store = build(builder, cache=200)
    flushed = listening(store)
    for number in range(10):
        if builder.kind == "session":
            store.put_session(f"k{number}", 0, 5, number)
        else:
            store.put_pair(f"k{number}", 0, number, 5)
    store.flush_cache()
    assert len(flushed) == 10
    rows = store.fetch_keys(None, None) if builder.kind == "session" else store.all()
    assert len(list(rows)) == 10


starts = st.one_of(st.integers(0, 400_000), st.sampled_from([0, 59_999, 60_000, 150_000, 210_000]))
window_changes = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("ab"), starts, st.none() | st.integers(0, 9)),
        st.sampled_from(["flush", "write"]),
    ),
    max_size=25,
)


@pytest.mark.parametrize("send_old", [True, False])
@pytest.mark.parametrize("order", ["by-key", "by-time"])
@same_fixture
@given(changes=window_changes, low=starts, high=starts)
def test_a_cached_window_store_is_a_cache_above_a_store(
    order: str,
    send_old: bool,  # noqa: FBT001 - a parameter of the test
    changes: list[Any],
    low: int,
    high: int,
) -> None:
    store = build(windows(time_index=order == "by-time"), cache=LARGE)
    store.send_old = send_old
    flushed = listening(store)
    below = Model(time_index=order == "by-time", duplicates=False)
    cache: dict[tuple[str, int], tuple[int | None, int]] = {}
    dirty: dict[tuple[str, int], None] = {}
    for time, change in enumerate(changes):
        if change == "write":
            store.flush_writes()
        elif change != "flush":
            key, start, value = change
            store.put_pair(key, start, value, time)
            cache[key, start] = (value, time)
            dirty.pop((key, start), None)
            dirty[key, start] = None
            assert store.get_pair(key, start) == (None if value is None else (value, time))
        else:
            expected: list[Any] = []
            for slot in dirty:
                new, at = cache[slot]
                found = below.fetch(slot[0], slot[1], slot[1])
                if new is None:
                    del cache[slot]
                if new is not None or found:
                    below.put(*slot, new, at)
                    window = Windowed(slot[0], TimeWindow(slot[1], slot[1] + 10))
                    expected.append((window, new, found[0][2] if found and send_old else None, at, ()))
            dirty.clear()
            store.flush_cache()
            assert flushed == expected
            assert store.task.dropped == below.dropped
            flushed.clear()
    rows = {row[:2]: row[2:] for row in below.fetch(None, low, high)}
    for slot, (held, at) in cache.items():
        if low <= slot[1] <= high:
            rows.pop(slot, None)
            if held is not None:
                rows[slot] = (held, at)
    by_time = sorted(rows, key=lambda slot: (slot[1], slot[0]))
    for key in "ab":
        assert store.fetch_pairs(key, low, high) == [(slot[1], *rows[slot]) for slot in by_time if slot[0] == key]
    if order == "by-time":
        assert store.fetch_closed(low, high) == [(slot[1], slot[0], *rows[slot]) for slot in by_time]
    assert {(key.key, key.window.start_ms): pair for key, pair in store.fetch_all(low, high)} == rows


@pytest.mark.parametrize("serdes", ["objects", "bytes-keys"])
def test_a_value_of_a_wrong_type_is_found_when_it_is_put(serdes: str) -> None:
    store = build(table(serdes), cache=LARGE)
    with pytest.raises(SerializationError, match="the long serde needs int"):
        store.put_pair("a", "text", 10)
    assert not store.dirty


@pytest.mark.parametrize("cached", [table, windows, sessions])
def test_who_is_told_of_a_change_may_put_into_the_store(cached: Any) -> None:
    """As in Kafka Streams: all changes of the flush are told first, and what was put meanwhile at the next flush."""
    store = build(cached(), cache=LARGE)
    put: Any = {
        table: lambda key, value: store.put_pair(key, value, 10),
        windows: lambda key, value: store.put_pair(key, 10, value, 10),
        sessions: lambda key, value: store.put_session(key, 10, 10, value),
    }[cached]
    told: list[Any] = []

    def listen(key: Any, new: Any, old: Any, *_: Any) -> None:
        told.append((getattr(key, "key", key), new, old))
        if told == [("a", 1, None)]:
            put("b", 3)

    store.on_flush = listen
    put("a", 1)
    put("b", 2)
    store.flush_cache()
    assert told == [("a", 1, None), ("b", 2, None)]
    store.flush_cache()
    assert told[2:] == [("b", 3, 2)]
