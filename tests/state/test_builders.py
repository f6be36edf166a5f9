"""Suppliers and builders: values that say everything about a store."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import TopologyError
from headrace.serdes import Serdes
from headrace.state import (
    KeyValueSupplier,
    MemoryEngine,
    StoreBuilder,
    Stores,
    suppress_buffer_builder,
    time_ordered_buffer_builder,
    unmatched_store_builder,
)
from tests.state.kit import SERDES, Replica, build, ms, same_fixture

HOUR = timedelta(hours=1)
# Wrong arguments are what the tests are about.
ANY: Any = Stores


def test_builders_are_values() -> None:
    builder = Stores.key_value_store_builder(Stores.persistent_key_value_store("s"), Serdes.string(), Serdes.long())
    same = Stores.key_value_store_builder(Stores.persistent_key_value_store("s"), Serdes.string(), Serdes.long())
    assert builder == same
    assert hash(builder) == hash(same)
    assert pickle.loads(pickle.dumps(builder)) == builder
    assert builder.with_caching_enabled().with_caching_disabled() == builder
    logged = builder.with_logging_enabled({"retention.ms": "5"})
    assert logged.logging
    assert logged.log_config == {"retention.ms": "5"}
    assert not logged.with_logging_disabled().log_config


def test_the_settings_of_changelog_topics() -> None:
    window = Stores.window_store_builder(Stores.persistent_window_store("w", HOUR, HOUR))
    cut_by_hand = {"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "-1"}
    assert window.changelog_topic_config() == cut_by_hand
    assert window.with_logging_enabled({"retention.ms": "7"}).changelog_topic_config()["retention.ms"] == "7"
    versioned = Stores.versioned_key_value_store_builder(Stores.persistent_versioned_key_value_store("v", HOUR))
    lag = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(25 * 3_600_000)}
    assert versioned.changelog_topic_config() == lag
    assert versioned.retention_ms is None
    session = Stores.session_store_builder(Stores.persistent_session_store("s", HOUR))
    assert session.retention_ms == 3_600_000
    assert suppress_buffer_builder("b", None, None).changelog_topic_config() == {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    ("retention", "interval"),
    [(ms(3_000), 2_000), (ms(60_000), 20_000), (ms(300_000), 60_000), (HOUR, 300_000), (24 * HOUR, 3_600_000)],
)
def test_versioned_stores_have_kafkas_segment_intervals(retention: timedelta, interval: int) -> None:
    assert Stores.persistent_versioned_key_value_store("s", retention).segment_interval_ms == interval


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ANY.in_memory_key_value_store(None), "needs a name"),
        (lambda: ANY.in_memory_key_value_store(""), "needs a name"),
        (lambda: ANY.lru_map("s", -1), "max_entries must be"),
        (lambda: ANY.lru_map("s", "many"), "max_entries must be"),
        (lambda: ANY.persistent_window_store("s", 5, HOUR), "retention must be a timedelta"),
        (lambda: ANY.persistent_window_store("s", HOUR, ms(-1)), "window_size must not be negative"),
        (lambda: ANY.persistent_session_store("s", ms(-1)), "retention must not be negative"),
        (lambda: ANY.persistent_versioned_key_value_store("s", ms(-1)), "history_retention must not be negative"),
        (lambda: ANY.persistent_versioned_key_value_store("s", HOUR, ms(0)), "segment_interval must be at least 1"),
        (
            lambda: ANY.key_value_store_builder(ANY.persistent_session_store("s", HOUR)),
            "needs a KeyValueSupplier",
        ),
        (lambda: ANY.window_store_builder("s"), "needs a WindowSupplier"),
        (lambda: ANY.key_value_store_builder(KeyValueSupplier("s"), "string"), "key_serde must be a serde"),
        (lambda: StoreBuilder("session", KeyValueSupplier("s")).build(MemoryEngine()), "cannot be built from"),
    ],
)
def test_wrong_arguments_are_refused_with_an_explanation(make: Any, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        make()


def test_missing_serdes_are_the_applications() -> None:
    store = Stores.key_value_store_builder(Stores.in_memory_key_value_store("s")).build(
        MemoryEngine(), default_key_serde=Serdes.long(), default_value_serde=Serdes.bytes()
    )
    store.put(5, b"five")
    assert list(store.all()) == [(5, b"five")]


def test_a_serde_around_a_missing_one_gets_the_applications() -> None:
    class Around:
        identity = immutable = False
        inner_is_key = True

        def resolve(self, default: Any) -> Any:
            return default

        def serializer(self, topic: str, *, is_key: bool) -> Any: ...

        def deserializer(self, topic: str, *, is_key: bool) -> Any: ...

    builder = StoreBuilder("key_value", KeyValueSupplier("s"), None, Around())
    store = builder.build(MemoryEngine(), default_key_serde=Serdes.string(), default_value_serde=Serdes.long())
    store.put("a", "b")
    assert store.get("a") == "b"


def test_internal_builders_know_their_kind() -> None:
    assert not suppress_buffer_builder("b", None, None).persistent
    assert time_ordered_buffer_builder("b", None, None, grace_ms=5).persistent
    assert not unmatched_store_builder("b", None, None, None, persistent=False).persistent


def test_stores_tell_what_they_are() -> None:
    store = build(Stores.key_value_store_builder(Stores.persistent_key_value_store("s")))
    assert (store.name, store.kind, store.persistent, store.open, store.cached) == ("s", "key_value", True, True, False)
    store.position["in", 0] = 5
    assert store.read_only().position == {("in", 0): 5}
    assert store.read_only().persistent
    assert repr(store) == "KeyValueStore('s')"


keys = st.text(alphabet="ab", max_size=2)
changes = st.lists(st.just("commit") | st.tuples(keys, st.none() | st.integers(0, 9)), max_size=30)


@pytest.mark.parametrize("cache", [None, 300])
@same_fixture
@given(serdes=st.sampled_from(list(SERDES)), changes=changes)
def test_a_restored_table_equals_the_original(cache: int | None, serdes: str, changes: list[Any]) -> None:
    supplier = Stores.persistent_timestamped_key_value_store("s")
    replica = Replica(Stores.timestamped_key_value_store_builder(supplier, *SERDES[serdes]), cache=cache)
    for time, change in enumerate([*changes, "commit"]):
        if change == "commit":
            replica.commit()
            assert list(replica.twin.all()) == list(replica.store.all())
        else:
            replica.store.put_pair(*change, time)


@same_fixture
@given(changes=changes, entries=st.integers(0, 3))
def test_a_restored_lru_store_equals_the_original(changes: list[Any], entries: int) -> None:
    supplier = Stores.lru_map("s", entries)
    replica = Replica(Stores.key_value_store_builder(supplier, Serdes.string(), Serdes.long()))
    for change in [*changes, "commit"]:
        if change == "commit":
            replica.commit()
            assert list(replica.twin.all()) == list(replica.store.all())
            assert len(list(replica.store.all())) <= entries
        else:
            replica.store.put(*change)
