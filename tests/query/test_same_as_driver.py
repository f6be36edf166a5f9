"""Every question to a view gives what the store of the test driver gives for the same input."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headrace import Streams, TopologyTestDriver
from headrace.query import (
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
from headrace.state import values_only
from tests.query.kit import SOON, Place, topology_of
from tests.query.programs import KEYS, LATEST_MS, TOPICS, build, read_everything, v1_types

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


@contextmanager
def both(records: list[tuple[str, str, Any, int]]) -> Iterator[tuple[TopologyTestDriver, Streams]]:
    """The driver and a running application that have processed the same records."""
    with TemporaryDirectory() as directory:
        place = Place(Path(directory), **dict.fromkeys(TOPICS, PARTITIONS))
        try:
            with (
                TopologyTestDriver(topology_of(build), UNCACHED, partitions=PARTITIONS) as driver,
                place.streams(build) as streams,
            ):
                inputs = {topic: driver.create_input_topic(topic) for topic in TOPICS}
                written = Position()
                for topic, several in groupby(records, key=lambda record: record[0]):
                    part = [record[1:] for record in several]
                    for key, value, time_ms in part:
                        inputs[topic].pipe_input(key, value, timestamp_ms=time_ms)
                    written = written.merge(place.write(topic, part).position)
                own = Position({target: at for target, at in written if target[0] != "global"})
                others = Position({target: at for target, at in written if target[0] == "global"})
                views = streams._own_views.views()
                assert views.wait_for(own, SOON)
                assert views.wait_until(lambda: views.global_position.covers(others), SOON)
                yield driver, streams
        finally:
            place.close()


# Shrinking would start hundreds of applications.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
SLOWLY = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=PHASES)


@SLOWLY
@given(RECORDS)
def test_faces_of_stores_read_what_the_drivers_stores_have(records: list[tuple[str, str, Any, int]]) -> None:
    with both(records) as (driver, streams):
        for name, kind in STORES.items():
            for store_type in v1_types(kind):
                for partition in range(PARTITIONS):
                    own = store_type.seen(driver.get_state_store(name, partition=partition))
                    parameters = StoreQueryParameters.from_name_and_type(name, store_type).with_partition(partition)
                    expected, found = read_everything(own, kind), read_everything(streams.store(parameters), kind)
                    assert found == expected, (name, store_type.name, partition)
        everywhere = streams.store("everywhere", v1_types("timestamped_key_value")[1])
        own = driver.get_state_store("everywhere")
        assert read_everything(everywhere, "key_value") == read_everything(own, "key_value")


def questions(kind: str) -> Iterator[tuple[Any, Any]]:
    """Queries, each with how the driver's store is asked the same."""
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
            yield VersionedKeyQuery.with_key(key).as_of(200_000), lambda store, key=key: store.get(key, 200_000)
            several: MultiVersionedKeyQuery[str, Any] = MultiVersionedKeyQuery.with_key(key)
            yield several, lambda store, key=key: store.history(key, reverse=True)
            limited = several.from_time(100_000).to_time(300_000).with_ascending_timestamps()
            yield limited, lambda store, key=key: store.history(key, 100_000, 300_000)
    elif kind == "session":
        for key in KEYS:
            yield WindowRangeQuery.with_key(key), lambda store, key=key: store.fetch(key)
    else:
        for key in KEYS:
            asked = WindowKeyQuery.with_key_and_window_start_range(key, 50_000, 300_000)
            yield asked, lambda store, key=key: store.fetch_range(key, 50_000, 300_000)
        yield (
            WindowRangeQuery.with_window_start_range(100_000, LATEST_MS),
            lambda store: store.fetch_all(100_000, LATEST_MS),
        )


def listed(answer: Any) -> Any:
    return list(answer) if hasattr(answer, "has_next") else answer


@SLOWLY
@given(RECORDS)
def test_queries_give_what_the_drivers_stores_have(records: list[tuple[str, str, Any, int]]) -> None:
    with both(records) as (driver, streams):
        for name, kind in STORES.items():
            for query, ask in questions(kind):
                answers = streams.query(StateQueryRequest.in_store(name).with_query(query)).partition_results
                found = {each: listed(result.result) for each, result in answers.items()}
                expected = {
                    each: listed(ask(driver.get_state_store(name, partition=each))) for each in range(PARTITIONS)
                }
                assert found == expected, (name, query)
        for query, ask in questions("timestamped_key_value"):
            answer = streams.query(StateQueryRequest.in_store("everywhere").with_query(query)).global_result
            assert answer is not None
            assert listed(answer.result) == listed(ask(driver.get_state_store("everywhere"))), query


@SLOWLY
@given(RECORDS, RECORDS)
def test_views_that_start_from_their_files_have_the_same(
    before: list[tuple[str, str, Any, int]], after: list[tuple[str, str, Any, int]]
) -> None:
    with both(before) as (driver, streams):
        own = streams._own_views
        assert own._views is not None
        own._views.close()
        own._views = None
        assert own._place is not None
        log = own._place[0]
        for topic, key, value, time_ms in after:
            driver.create_input_topic(topic).pipe_input(key, value, timestamp_ms=time_ms)
            data = None if value is None else str(value).encode()
            log.append(topic, [(None, time_ms, key.encode(), data, ())])
        ends = log.end_offsets([(topic, each) for topic in TOPICS for each in range(PARTITIONS)])
        views = own.views()
        inputs = Position.consumed({target: at for target, at in ends.items() if target[0] != "global"})
        assert views.wait_for(inputs, SOON)
        for name, kind in STORES.items():
            for partition in range(PARTITIONS):
                store_type = v1_types(kind)[-1]
                face = streams.store(name, store_type, partition=partition)
                expected = read_everything(store_type.seen(driver.get_state_store(name, partition=partition)), kind)
                assert read_everything(face, kind) == expected, (name, partition)
