"""The stores that the DSL needs for itself: buffers, unmatched records, subscriptions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import SerializationError
from headrace.serdes import Serdes
from headrace.state import (
    Engine,
    StoreBuilder,
    subscription_store_builder,
    suppress_buffer_builder,
    time_ordered_buffer_builder,
    unmatched_store_builder,
)
from tests.state.conftest import MakeEngine
from tests.state.kit import SERDES, Replica, Task, build, same_fixture

END_OF_TIME = 2**63 - 1


def suppress(serdes: str = "objects") -> StoreBuilder:
    return suppress_buffer_builder("store", *SERDES[serdes])


def waiting(serdes: str = "objects", grace_ms: int = 10) -> StoreBuilder:
    return time_ordered_buffer_builder("store", *SERDES[serdes], grace_ms=grace_ms)


def unmatched(serdes: str = "objects") -> StoreBuilder:
    key, value = SERDES[serdes]
    return unmatched_store_builder("store", key, value, value)


def subscriptions(serdes: str = "objects") -> StoreBuilder:
    key, value = SERDES[serdes]
    return subscription_store_builder("store", key, key, value)


def evicted(buffer: Any, until: int = END_OF_TIME) -> list[Any]:
    out: list[Any] = []
    buffer.evict_while(lambda: buffer.min_time_ms <= until, lambda *change: out.append(change))
    return out


@pytest.mark.parametrize("serdes", SERDES)
def test_suppress_keeps_the_first_place_and_the_last_value(engine: Engine, serdes: str) -> None:
    buffer = build(suppress(serdes), engine)
    buffer.put(20, "b", 1, None, 20, ())
    buffer.put(10, "a", 1, 7, 10, ())
    buffer.put(10, "0", 5, None, 10, (("h", b"1"),))
    buffer.put(30, "a", 2, 1, 30, ())
    assert (buffer.num_records, buffer.min_time_ms) == (3, 10)
    assert evicted(buffer, 10) == [("0", 5, None, 10, (("h", b"1"),)), ("a", 2, 1, 30, ())]
    assert buffer.min_time_ms == 20
    assert evicted(buffer) == [("b", 1, None, 20, ())]
    assert (buffer.num_records, buffer.size_bytes, buffer.min_time_ms) == (0, 0, END_OF_TIME)


def test_suppress_knows_the_value_from_before(engine: Engine) -> None:
    buffer = build(suppress(), engine)
    buffer.put(10, "a", 2, 1, 10, ())
    buffer.put(20, "a", 3, 2, 20, ())
    buffer.put(20, "b", 3, None, 20, ())
    assert buffer.prior_pair("a") == (True, (1, -1))
    assert buffer.prior_pair("b") == (True, None)
    assert buffer.prior_pair("c") == (False, None)


def test_suppress_counts_bytes_as_kafka_streams_does() -> None:
    buffer = build(suppress_buffer_builder("store", Serdes.string(), Serdes.string()))
    buffer.put(10, "key", "value", None, 10, ())
    # time, key, value; timestamp, offset, topic "in" and partition of the record
    assert buffer.size_bytes == 8 + 3 + 5 + 8 + 8 + 2 + 4
    buffer.put(10, "key", None, "value", 10, (("h", b"12"),))
    # There was no value before the first change; the old value counts apart from it.
    assert buffer.size_bytes == 8 + 3 + 5 + 8 + 8 + 2 + 4 + 3
    buffer.put(10, "other", "x", "value", 10, ())
    assert buffer.size_bytes == 41 + 8 + 5 + 1 + 5 + 22


def test_suppress_emits_at_the_record_of_the_change_and_keeps_what_failed() -> None:
    buffer = build(suppress())
    task: Task = buffer.task
    task.offset = 5
    buffer.put(10, "a", 1, None, 10, ())
    task.origin, task.offset = None, -1
    seen: list[Any] = []

    def fail(*change: Any) -> None:
        seen.append((task.origin, task.offset))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        buffer.evict_while(lambda: True, fail)
    assert seen == [(("in", 0), 5)]
    assert (task.origin, task.offset) == (None, -1)
    assert buffer.num_records == 1


def test_a_record_waits_until_the_stream_is_a_grace_period_further(engine: Engine) -> None:
    buffer = build(waiting(), engine)
    task: Task = buffer.task
    for offset, (key, value, time) in enumerate([("b", 1, 5), ("a", 2, 5), ("a", 3, 5), ("a", 4, 3)]):
        task.offset = offset
        assert buffer.put(key, value, time, (("h", b"%d" % value),))
    assert list(buffer.evict()) == []
    assert buffer.put("c", 5, 15, ())
    out = list(buffer.evict())
    assert [(row.key, row.value, row.timestamp_ms) for row in out] == [
        ("a", 4, 3),
        ("a", 2, 5),
        ("a", 3, 5),
        ("b", 1, 5),
    ]
    assert out[0].headers == (("h", b"4"),)
    assert (out[0].origin, out[0].offset) == (("in", 0), 3)
    assert not buffer.put("c", 6, 4, ())
    assert buffer.put("c", 7, 5, ())
    assert [row.value for row in buffer.evict()] == [7]
    assert list(buffer.evict()) == []
    assert buffer.observed_stream_time_ms == 15


def test_a_waiting_record_stays_until_it_is_dealt_with() -> None:
    buffer = build(waiting(grace_ms=0))
    buffer.put("a", 1, 5, ())
    for row in buffer.evict():
        assert row.value == 1
        break
    assert [row.value for row in buffer.evict()] == [1]


@pytest.mark.parametrize("serdes", SERDES)
def test_unmatched_records_are_in_the_order_of_time_side_and_key(engine: Engine, serdes: str) -> None:
    store = build(unmatched(serdes), engine)
    for time, left, key, value in (
        (10, True, "a", 1),
        (10, False, "b", 2),
        (5, True, "c", 3),
        (10, True, "a", 4),
        (10, False, "a", 5),
    ):
        store.put(time, left, key, value)
    expected = [(5, True, "c", [3]), (10, False, "a", [5]), (10, False, "b", [2]), (10, True, "a", [1, 4])]
    assert list(store.entries()) == expected
    store.put(*(10, True, "a", 6))
    store.remove(*(10, False, "b"))
    store.remove(*(99, False, "b"))
    remaining = [(5, True, "c", [3]), (10, False, "a", [5]), (10, True, "a", [1, 4, 6])]
    assert list(store.entries()) == remaining
    for time, side, key, _ in store.entries():
        store.remove(time, side, key)
    assert list(store.entries()) == []
    assert engine.count() == 0


def test_a_record_that_finds_its_partner_at_once_is_never_written(engine: Engine) -> None:
    store = build(unmatched(), engine)
    store.put(10, True, "a", 1)  # noqa: FBT003
    store.remove(10, True, "a")
    assert not store.dirty
    store.put(10, True, "a", 1)  # noqa: FBT003
    store.flush_writes()
    store.remove(10, True, "a")
    store.put(10, True, "a", 2)  # noqa: FBT003
    assert [values for _, _, _, values in store.entries()] == [[2]]


@pytest.mark.parametrize("serdes", SERDES)
def test_subscriptions_are_found_by_foreign_key(engine: Engine, serdes: str) -> None:
    store = build(subscriptions(serdes), engine)
    for foreign, primary, value in (("x", "2", 1), ("x", "1", 2), ("xx", "1", 3), ("", "1", 4)):
        store.put(foreign, primary, value, value * 10)
    assert store.prefix_scan("x") == [("1", 2, 20), ("2", 1, 10)]
    assert store.prefix_scan("") == [("1", 4, 40)]
    assert store.get("xx", "1") == (3, 30)
    store.delete("x", "1")
    assert store.get("x", "1") is None
    assert store.prefix_scan("x") == [("2", 1, 10)]
    assert store.prefix_scan("y") == []


names, values, times = st.sampled_from(["", "a", "ab"]), st.integers(0, 9), st.integers(0, 30)
COMMIT = st.just("commit")


@same_fixture
@given(serdes=st.sampled_from(list(SERDES)), changes=st.lists(COMMIT | st.tuples(times, names, values), max_size=25))
def test_a_suppress_buffer_is_a_queue_and_its_twin_too(serdes: str, changes: list[Any]) -> None:
    replica = Replica(suppress(serdes))
    model: dict[str, tuple[int, Any, Any]] = {}
    for change in [*changes, "commit"]:
        if change != "commit":
            time, key, value = change
            first, old = (model[key][0], model[key][1]) if key in model else (time, None)
            replica.store.put(time, key, value, old, time, ())
            model[key] = (first, value, old)
            continue
        replica.commit()
        assert replica.twin.size_bytes == replica.store.size_bytes
        encode = SERDES[serdes][0].serializer("", is_key=True)
        queue = sorted((time, encode(key), key) for key, (time, _, _) in model.items())
        out = evicted(replica.store, 15)
        assert [row[:3] for row in out] == [(key, *model[key][1:]) for time, _, key in queue if time <= 15]
        assert evicted(replica.twin, 15) == out
        model = {key: entry for key, entry in model.items() if entry[0] > 15}


@same_fixture
@given(
    serdes=st.sampled_from(list(SERDES)),
    grace_ms=st.integers(0, 10),
    records=st.lists(COMMIT | st.tuples(names, values, times), max_size=25),
)
def test_a_time_ordered_buffer_lets_go_in_order(
    engines: MakeEngine, serdes: str, grace_ms: int, records: list[Any]
) -> None:
    store, observed = build(waiting(serdes, grace_ms), engines()), -1
    encode = SERDES[serdes][0].serializer("", is_key=True)
    held: list[Any] = []
    for number, record in enumerate(records):
        if record == "commit":
            store.flush_writes()
            store.reload()
            continue
        key, value, time = record
        if time < observed - grace_ms:
            assert not store.put(key, value, time, ())
            continue
        assert store.put(key, value, time, ())
        observed = max(observed, time)
        held.append((time, encode(key), number, value))
        held.sort()
        due = [row for row in held if row[0] <= observed - grace_ms]
        held = [row for row in held if row[0] > observed - grace_ms]
        assert [(row.timestamp_ms, row.value) for row in store.evict()] == [(row[0], row[3]) for row in due]


@same_fixture
@given(records=st.lists(COMMIT | st.tuples(names, values, times), max_size=25))
def test_a_restored_time_ordered_buffer_equals_the_original(records: list[Any]) -> None:
    replica = Replica(waiting())
    for record in [*records, "commit"]:
        if record == "commit":
            replica.commit()
            assert replica.twin.observed_stream_time_ms == replica.store.observed_stream_time_ms
            assert list(replica.twin.evict()) == list(replica.store.evict())
        else:
            replica.store.put(*record, ())


@same_fixture
@given(
    serdes=st.sampled_from(list(SERDES)),
    records=st.lists(COMMIT | st.tuples(st.booleans(), times, st.booleans(), names, values), max_size=25),
)
def test_unmatched_records_are_a_sorted_dict_and_its_twin_too(serdes: str, records: list[Any]) -> None:
    replica, encode = Replica(unmatched(serdes)), SERDES[serdes][0].serializer("", is_key=True)
    model: dict[tuple[int, bool, bytes], tuple[str, list[int]]] = {}
    for record in [*records, "commit"]:
        if record == "commit":
            expected = [(slot[0], slot[1], *model[slot]) for slot in sorted(model)]
            assert list(replica.store.entries()) == expected
            replica.commit()
            assert list(replica.twin.entries()) == expected
            continue
        add, time, left, key, value = record
        slot = (time, left, encode(key))
        if add:
            replica.store.put(time, left, key, value)
            model.setdefault(slot, (key, []))[1].append(value)
        else:
            replica.store.remove(time, left, key)
            model.pop(slot, None)


@same_fixture
@given(
    serdes=st.sampled_from(list(SERDES)),
    changes=st.lists(COMMIT | st.tuples(names, names, st.none() | values), max_size=25),
)
def test_subscriptions_are_a_dict_and_its_twin_too(serdes: str, changes: list[Any]) -> None:
    replica, encode = Replica(subscriptions(serdes)), SERDES[serdes][0].serializer("", is_key=True)
    model: dict[tuple[str, str], tuple[int, int]] = {}
    for time, change in enumerate([*changes, "commit"]):
        if change == "commit":
            replica.commit()
            for foreign in ("", "a", "ab"):
                rows = sorted((encode(key[1]), key[1], *row) for key, row in model.items() if key[0] == foreign)
                expected = [row[1:] for row in rows]
                assert replica.store.prefix_scan(foreign) == expected
                assert replica.twin.prefix_scan(foreign) == expected
            continue
        foreign, primary, value = change
        if value is None:
            replica.store.delete(foreign, primary)
            model.pop((foreign, primary), None)
        else:
            replica.store.put(foreign, primary, value, time)
            model[foreign, primary] = (value, time)
        assert replica.store.get(foreign, primary) == model.get((foreign, primary))


def test_a_change_that_suppress_cannot_write_leaves_the_buffer_as_it_was() -> None:
    buffer = build(suppress_buffer_builder("wait", Serdes.string(), Serdes.long()))
    buffer.put(10, "a", 1, None, 10, ())
    size = buffer.size_bytes
    for key in "ab":
        with pytest.raises(SerializationError, match="the long serde needs int"):
            buffer.put(20, key, "text", None, 20, ())
    assert (buffer.num_records, buffer.min_time_ms, buffer.size_bytes) == (1, 10, size)
    assert buffer.evict_while(lambda: True, lambda *_: None) == 1
