"""Keys and values that the serdes of a store do not take: the error names the store, not a topic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from headrace import Materialized, StreamsBuilder, StreamsConfig, TopologyTestDriver
from headrace.errors import ProcessingError, SerializationError
from headrace.serdes import Serdes
from headrace.state import StoreBuilder, Stores
from headrace.windows import SessionWindow, Windowed
from tests.state.kit import build

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Total:
    cents: int


def key_value(**serdes: Any) -> StoreBuilder:
    return Stores.key_value_store_builder(Stores.in_memory_key_value_store("st"), **serdes)


@pytest.mark.parametrize("logging", [True, False])
def test_a_wrong_value_names_the_store_and_the_option(logging: bool) -> None:  # noqa: FBT001 - a table
    builder = key_value(value_serde=Serdes.long())
    store = build(builder if logging else builder.with_logging_disabled())
    message = (
        "^value of store 'st': the long serde needs int, got str 'x'; convert it, or name another serde "
        r"in Materialized\(value_serde=…\), StreamJoined or the store's builder$"
    )
    with pytest.raises(SerializationError, match=message):
        store.put("a", "x")


def test_a_wrong_key_names_the_store_and_the_option() -> None:
    store = build(key_value())
    message = r"^key of store 'st': .*in Materialized\(key_serde=…\)"
    with pytest.raises(SerializationError, match=message):
        store.put(1, 1)
    with pytest.raises(SerializationError, match=message):
        store.range(1, 2)


def test_an_object_in_a_store_of_untyped_json_is_told_its_serde() -> None:
    message = r"^value of store 'st': .*Total at \$ .*or name Serdes.json\(Total\) in Materialized\(value_serde=…\)"
    with pytest.raises(SerializationError, match=message):
        build(key_value()).put("a", Total(5))


def test_windows_and_sessions_speak_of_the_store_too() -> None:
    windows = Stores.window_store_builder(Stores.in_memory_window_store("st", HOUR, HOUR), value_serde=Serdes.long())
    with pytest.raises(SerializationError, match=r"^value of store 'st': the long serde"):
        build(windows).put("a", "x", 0)
    sessions = Stores.session_store_builder(Stores.in_memory_session_store("st", HOUR), value_serde=Serdes.long())
    with pytest.raises(SerializationError, match=r"^value of store 'st': the long serde"):
        build(sessions).put(Windowed("a", SessionWindow(0, 1)), "x")


def test_a_serde_of_ones_own_is_still_told_the_changelog_topic() -> None:
    topics: list[str] = []

    class Spy:
        identity = immutable = False

        def serializer(self, topic: str, *, is_key: bool) -> Any:
            topics.append(topic)
            return str.encode

        def deserializer(self, topic: str, *, is_key: bool) -> Any:
            return bytes.decode

    builder = StreamsBuilder()
    builder.stream("in").to_table(Materialized("st", value_serde=Spy()))
    with TopologyTestDriver(builder.build()):
        assert topics == ["headrace-st-changelog"]


@pytest.mark.parametrize("cache", [0, 1 << 20])
@pytest.mark.parametrize("total", [Total(1), (1, 2), {"total": Total(1)}, {"total": (1, 2)}], ids=str)
def test_untyped_json_never_gives_an_aggregation_another_type_back(total: Any, cache: int) -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().aggregate(
        lambda: None, lambda _key, _value, _old: total, materialized=Materialized("st")
    )
    config = StreamsConfig(statestore_cache_max_bytes=cache)
    with TopologyTestDriver(builder.build(), config) as driver:
        topic = driver.create_input_topic("in")
        with pytest.raises(ProcessingError, match=r"value of store 'st': .* would not come back as it was"):
            topic.pipe_input("a", 1)
