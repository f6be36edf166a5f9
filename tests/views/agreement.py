"""The driver and a running application that have processed the same, and every question put to both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from hypothesis import strategies as st

from headrace import Streams, TopologyTestDriver
from headrace.state import values_only
from headrace.views import (
    KeyQuery,
    MultiVersionedKeyQuery,
    Position,
    RangeQuery,
    StateQueryRequest,
    StoreQueryParameters,
    TimestampedKeyQuery,
    TimestampedRangeQuery,
    VersionedKeyQuery,
    WindowKeyQuery,
    WindowRangeQuery,
)
from tests.views.kit import SOON, Place, topology_of
from tests.views.programs import KEYS, LATEST_MS, TOPICS, build, read_everything, v1_types

Sent = tuple[str, str, Any, int]
"""Topic, key, value and timestamp of a record."""

PARTITIONS = 2
# A cache of the driver shows rows that have expired below it; views have none.
UNCACHED = {"statestore.cache.max.bytes": 0}
STORES = {
    "plain": "key_value",
    "counts": "timestamped_key_value",
    "by-value": "timestamped_key_value",
    "rows": "timestamped_key_value",
    "history": "versioned",
    "plain-windows": "window",
    "doubles": "window",
    "windows": "timestamped_window",
    "sessions": "session",
}

RECORDS = st.lists(
    st.tuples(
        st.sampled_from(TOPICS),
        st.sampled_from(KEYS),
        st.none() | st.integers(0, 5),
        st.integers(0, LATEST_MS).map(lambda time_ms: time_ms // 1000 * 1000),
    ),
    max_size=60,
)


class Pair:
    """The driver and a running application."""

    def __init__(self, place: Place, driver: TopologyTestDriver, streams: Streams) -> None:
        self._place = place
        self.driver = driver
        self.streams = streams
        self._inputs = {topic: driver.create_input_topic(topic) for topic in TOPICS}

    def feed(self, records: list[Sent], base_ms: int = 0) -> None:
        """Gives both the same records, at times from ``base_ms`` on, and waits until the views have seen them."""
        written = Position()
        for topic, several in groupby(records, key=lambda record: record[0]):
            part = [(key, value, base_ms + time_ms) for _, key, value, time_ms in several]
            for key, value, time_ms in part:
                self._inputs[topic].pipe_input(key, value, timestamp_ms=time_ms)
            written = written.merge(self._place.write(topic, part).position)
        own = Position({target: at for target, at in written if target[0] != "global"})
        others = Position({target: at for target, at in written if target[0] == "global"})
        views = self.streams._own_views.views()
        assert views.wait_for(own, SOON)
        assert views.wait_until(lambda: views.global_position.covers(others), SOON)

    def compare_faces(self, base_ms: int = 0) -> None:
        """Puts every question of the stores' own interfaces to both."""
        for name, kind in STORES.items():
            for store_type in v1_types(kind):
                for partition in range(PARTITIONS):
                    own = store_type.seen(self.driver.get_state_store(name, partition=partition))
                    parameters = StoreQueryParameters.from_name_and_type(name, store_type).with_partition(partition)
                    expected = read_everything(own, kind, base_ms)
                    found = read_everything(self.streams.store(parameters), kind, base_ms)
                    assert found == expected, (name, store_type.name, partition)
        everywhere = self.streams.store("everywhere", v1_types("timestamped_key_value")[1])
        own = self.driver.get_state_store("everywhere")
        assert read_everything(everywhere, "key_value") == read_everything(own, "key_value")

    def compare_queries(self, base_ms: int = 0) -> None:
        """Asks by every type of query, and the driver's stores the same."""
        for name, kind in STORES.items():
            for query, ask in questions(kind, base_ms):
                answers = self.streams.query(StateQueryRequest.in_store(name).with_query(query)).partition_results
                found = {each: listed(result.result) for each, result in answers.items()}
                expected = {
                    each: listed(ask(self.driver.get_state_store(name, partition=each))) for each in range(PARTITIONS)
                }
                assert found == expected, (name, query)
        for query, ask in questions("timestamped_key_value"):
            answer = self.streams.query(StateQueryRequest.in_store("everywhere").with_query(query)).global_result
            assert answer is not None
            assert listed(answer.result) == listed(ask(self.driver.get_state_store("everywhere"))), query


@contextmanager
def running(place: Place) -> Iterator[Pair]:
    """Both of them, with nothing processed yet."""
    with (
        TopologyTestDriver(topology_of(build), UNCACHED, partitions=PARTITIONS) as driver,
        place.streams(build) as streams,
    ):
        yield Pair(place, driver, streams)


def questions(kind: str, base_ms: int = 0) -> Iterator[tuple[Any, Any]]:
    """Queries, each with how the driver's store is asked the same."""
    early_ms, middle_ms, late_ms, last_ms = (base_ms + each for each in (50_000, 200_000, 300_000, LATEST_MS))
    if kind in ("key_value", "timestamped_key_value"):
        for key in KEYS:
            yield KeyQuery.with_key(key), lambda store, key=key: values_only(store).get(key)
            if kind == "timestamped_key_value":
                yield TimestampedKeyQuery.with_key(key), lambda store, key=key: store.get(key)
        for low, high in ((None, None), ("a", None), (None, "b"), ("a", "bb")):
            ranges: list[tuple[Any, Any]] = [(RangeQuery, values_only)]
            if kind == "timestamped_key_value":
                ranges.append((TimestampedRangeQuery, lambda store: store))
            for query, seen in ranges:
                asked = query.with_range(low, high)
                yield asked.with_ascending_keys(), lambda store, b=(low, high), s=seen: s(store).range(*b)
                yield asked.with_descending_keys(), lambda store, b=(low, high), s=seen: s(store).reverse_range(*b)
    elif kind == "versioned":
        for key in KEYS:
            yield VersionedKeyQuery.with_key(key), lambda store, key=key: store.get(key)
            yield VersionedKeyQuery.with_key(key).as_of(middle_ms), lambda store, key=key: store.get(key, middle_ms)
            several: MultiVersionedKeyQuery[str, Any] = MultiVersionedKeyQuery.with_key(key)
            yield several, lambda store, key=key: store.history(key, reverse=True)
            limited = several.from_time(early_ms).to_time(late_ms).with_ascending_timestamps()
            yield limited, lambda store, key=key: store.history(key, early_ms, late_ms)
    elif kind == "session":
        for key in KEYS:
            yield WindowRangeQuery.with_key(key), lambda store, key=key: store.fetch(key)
    else:
        for key in KEYS:
            asked = WindowKeyQuery.with_key_and_window_start_range(key, early_ms, late_ms)
            yield asked, lambda store, key=key: store.fetch_range(key, early_ms, late_ms)
        yield (
            WindowRangeQuery.with_window_start_range(early_ms, last_ms),
            lambda store: store.fetch_all(early_ms, last_ms),
        )


def listed(answer: Any) -> Any:
    return list(answer) if hasattr(answer, "has_next") else answer
