"""Queries to the stores of an application, and their refusals."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from headrace import Materialized, Serdes, Streams, StreamsBuilder
from headrace.errors import (
    IllegalStateError,
    InvalidStateStoreError,
    InvalidStateStorePartitionError,
    SerializationError,
    StreamsNotStartedError,
    StreamsStoppedError,
    UnknownStateStoreError,
    UnsupportedOperationError,
)
from headrace.topics.partitioner import partition_for
from headrace.views import (
    FailureReason,
    HostInfo,
    KeyQuery,
    Position,
    PositionBound,
    QueryableStoreTypes,
    QueryResult,
    RangeQuery,
    StateQueryRequest,
    StoreQueryParameters,
    TimestampedKeyQuery,
    VersionedKeyQuery,
    WindowRangeQuery,
)
from tests.views.kit import SOON, Place

NOW = timedelta(0)


def counting(builder: StreamsBuilder) -> None:
    stream = builder.stream("in")
    stream.group_by_key().count(materialized=Materialized("counts"))
    stream.group_by_key().count()


@pytest.fixture
def running(place: Place) -> Iterator[Streams]:
    with place.streams(counting, **{"application.server": "here:7070"}) as streams:
        bound = place.write("in", [(f"k{number % 10}", number, number) for number in range(100)])
        ask(streams, "k0", bound)
        yield streams


def ask(streams: Streams, key: str, bound: PositionBound | None = None) -> Any:
    request: StateQueryRequest[Any] = StateQueryRequest.in_store("counts").with_query(KeyQuery.with_key(key))
    if bound is not None:
        request = request.with_position_bound(bound).waiting(SOON)
    answer = streams.query(request).only_partition_result
    return None if answer is None else answer.result


def test_key_is_found_in_the_one_partition_that_has_it(running: Streams) -> None:
    request = StateQueryRequest.in_store("counts").with_query(KeyQuery.with_key("k3"))
    results = running.query(request).partition_results
    owner = partition_for(b"k3", 3)
    assert {each: result.result for each, result in results.items()} == {
        each: 10 if each == owner else None for each in range(3)
    }


def test_missing_key_has_no_only_result(running: Streams) -> None:
    assert ask(running, "nobody") is None


def test_several_answers_are_not_the_only_one(running: Streams) -> None:
    request = StateQueryRequest.in_store("counts").with_query(RangeQuery.with_no_bounds())
    with pytest.raises(IllegalStateError, match=r"partitions \[0, 1, 2\] have an answer"):
        _ = running.query(request).only_partition_result


def test_store_reads_across_partitions(running: Streams) -> None:
    counts = running.store("counts", QueryableStoreTypes.key_value_store())
    assert counts.get("k7") == 10
    assert {row.key: row.value for row in counts.all()} == {f"k{number}": 10 for number in range(10)}
    assert counts.approximate_num_entries() == 10
    assert counts.position == {("in", each): end - 1 for each, end in enumerate([20, 40, 40])}


def test_store_can_be_one_partition(running: Streams) -> None:
    kind = QueryableStoreTypes.timestamped_key_value_store()
    parameters = StoreQueryParameters.from_name_and_type("counts", kind)
    sizes = [len(list(running.store(parameters.with_partition(each)).all())) for each in range(3)]
    assert sum(sizes) == 10
    assert 0 not in sizes
    with pytest.raises(InvalidStateStorePartitionError, match="partitions 0 to 2; partition 3"):
        running.store(parameters.with_partition(3))


def test_store_cannot_be_written(running: Streams) -> None:
    counts: Any = running.store("counts", QueryableStoreTypes.key_value_store())
    with pytest.raises(UnsupportedOperationError, match=r"put\(\) is not allowed"):
        counts.put("k1", 5)


def test_store_of_another_kind_is_refused(running: Streams) -> None:
    with pytest.raises(InvalidStateStoreError, match=r"timestamped key value store, which window_store\(\) does not"):
        running.store("counts", QueryableStoreTypes.window_store())


def test_unknown_store_gets_a_hint(running: Streams) -> None:
    with pytest.raises(UnknownStateStoreError, match="did you mean 'counts'"):
        running.store("count", QueryableStoreTypes.key_value_store())
    with pytest.raises(UnknownStateStoreError, match="did you mean 'counts'"):
        running.query(StateQueryRequest.in_store("cuonts").with_query(KeyQuery.with_key("a")))


def test_store_without_a_name_of_its_own_says_how_to_get_one(running: Streams) -> None:
    (generated,) = set(running.topology.state_stores) - {"counts"}
    with pytest.raises(UnknownStateStoreError, match="give it a name of its own by Materialized"):
        running.store(generated, QueryableStoreTypes.key_value_store())


def test_query_that_a_store_cannot_answer_fails_in_each_partition(running: Streams) -> None:
    for query in (VersionedKeyQuery.with_key("a"), WindowRangeQuery.with_key("a")):
        results = running.query(StateQueryRequest.in_store("counts").with_query(query)).partition_results
        assert [each.failure_reason for each in results.values()] == [FailureReason.UNKNOWN_QUERY_TYPE] * 3


def test_partitions_that_do_not_exist_fail(running: Streams) -> None:
    request = StateQueryRequest.in_store("counts").with_query(KeyQuery.with_key("k3")).with_partitions([1, 7])
    results = running.query(request).partition_results
    assert results[1].is_success
    assert results[7].failure_reason is FailureReason.DOES_NOT_EXIST


def test_bound_that_is_not_reached_fails_at_once_without_waiting(running: Streams) -> None:
    bound = PositionBound.at(Position.from_map({"in": {1: 10_000}}))
    request = StateQueryRequest.in_store("counts").with_query(KeyQuery.with_key("k3")).with_position_bound(bound)
    results = running.query(request).partition_results
    assert {each.failure_reason for each in results.values()} == {FailureReason.NOT_UP_TO_BOUND}
    with pytest.raises(IllegalStateError, match="NOT_UP_TO_BOUND"):
        _ = results[0].result


def test_bound_is_ignored_by_who_requires_the_active_one(running: Streams) -> None:
    bound = PositionBound.at(Position.from_map({"in": {1: 10_000}}))
    request = StateQueryRequest.in_store("counts").with_query(KeyQuery.with_key("k3"))
    answer = running.query(request.with_position_bound(bound).require_active()).only_partition_result
    assert answer is not None
    assert answer.result == 10


def test_position_of_an_answer_is_a_bound_for_the_next(running: Streams) -> None:
    request = StateQueryRequest.in_store("counts").with_query(TimestampedKeyQuery.with_key("k3"))
    position = running.query(request).position
    assert position.topics == {"in"}
    again = running.query(request.with_position_bound(PositionBound.at(position)))
    assert all(result.is_success for result in again.partition_results.values())


def test_execution_info_is_given_to_who_asks(running: Streams) -> None:
    request = StateQueryRequest.in_store("counts").with_query(KeyQuery.with_key("k3")).with_partitions([0])
    assert running.query(request).partition_results[0].execution_info == []
    (line,) = running.query(request.enable_execution_info()).partition_results[0].execution_info
    assert "KeyQuery on partition 0 of 'counts'" in line


def test_key_of_a_wrong_type_is_the_mistake_of_who_asks(running: Streams) -> None:
    with pytest.raises(SerializationError):
        running.query(StateQueryRequest.in_store("counts").with_query(KeyQuery.with_key(5)))


def test_who_has_a_key(running: Streams) -> None:
    found = running.query_metadata_for_key("counts", "k3")
    assert (found.active_host, found.partition) == (HostInfo("here", 7070), partition_for(b"k3", 3))
    assert found.standby_hosts == frozenset()
    chosen = running.query_metadata_for_key("counts", "k3", partitioner=lambda topic, key, value, count: count - 1)
    assert chosen.partition == 2


def test_who_there_is(running: Streams) -> None:
    (own,) = running.metadata_for_all_streams_clients()
    assert (own.host, own.port, own.state_store_names) == ("here", 7070, frozenset({"counts"}))
    assert own.topic_partitions == {("app-counts-changelog", each) for each in range(3)}
    assert running.streams_metadata_for_store("counts") == [own]


def test_lags_are_zero_when_everything_was_read(running: Streams) -> None:
    lags = running.all_local_store_partition_lags()
    assert {each: lag.offset_lag for each, lag in lags["counts"].items()} == {0: 0, 1: 0, 2: 0}


def test_iterator_sees_one_moment_while_the_application_goes_on(running: Streams, place: Place) -> None:
    counts = running.store("counts", QueryableStoreTypes.key_value_store())
    rows = counts.all()
    first = next(rows)
    bound = place.write("in", [(f"k{number}", 0, 1000) for number in range(10)])
    assert ask(running, first.key, bound) == 11
    assert {first.value, *(row.value for row in rows)} == {10}
    assert {row.value for row in counts.all()} == {11}


def test_forgotten_iterators_do_no_harm(running: Streams, place: Place) -> None:
    counts = running.store("counts", QueryableStoreTypes.key_value_store())
    for _ in range(3000):
        next(counts.all())
    rows = counts.all()
    rows.close()
    with pytest.raises(InvalidStateStoreError, match="closed"):
        next(rows)


def test_stores_cannot_be_asked_before_the_start(place: Place) -> None:
    streams = place.streams(counting)
    with pytest.raises(StreamsNotStartedError):
        streams.store("counts", QueryableStoreTypes.key_value_store())
    with pytest.raises(StreamsNotStartedError):
        ask(streams, "a")


def test_stores_cannot_be_asked_after_the_end(place: Place) -> None:
    with place.streams(counting) as streams:
        counts = streams.store("counts", QueryableStoreTypes.key_value_store())
        rows = counts.all()
        assert counts.open
    with pytest.raises(StreamsStoppedError):
        ask(streams, "a")
    with pytest.raises(IllegalStateError):
        streams.store("counts", QueryableStoreTypes.key_value_store())
    assert not counts.open
    with pytest.raises(InvalidStateStoreError, match="the view is closed"):
        counts.get("a")
    rows.close()


def test_application_without_named_stores_says_so(place: Place) -> None:
    with (
        place.streams(lambda builder: builder.stream("in").group_by_key().count()) as streams,
        pytest.raises(UnknownStateStoreError, match="stores that can be queried: none"),
    ):
        streams.store("counts", QueryableStoreTypes.key_value_store())


def test_failure_in_a_store_is_told_with_the_partition(place: Place) -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.table("in", materialized=Materialized("rows", value_serde=Serdes.json()))

    with place.streams(build) as streams:
        bound = place.write("in", [("a", 1, 1)])
        ready = StateQueryRequest.in_store("rows").with_query(KeyQuery.with_key("a")).with_position_bound(bound)
        assert streams.query(ready.waiting(SOON)).only_partition_result is not None
        views = streams._own_views.views()
        part = ("rows", partition_for(b"a", 3))
        views._tail.replica.engine(part).put(b"a", b"12345678{")
        answer = streams.query(ready).only_partition_result
        assert answer is not None
        assert answer.failure_reason is FailureReason.STORE_EXCEPTION
        assert "store 'rows', partition" in answer.failure_message


def test_result_of_a_success_has_no_reason() -> None:
    with pytest.raises(IllegalStateError, match="did not fail"):
        _ = QueryResult.for_result(1).failure_reason
