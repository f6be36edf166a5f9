"""Upkeep of views: from their files and new records, whatever happened to the topics meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import Materialized, Processor, Record, StateStore, Stores, StreamsBuilder
from headrace.app.directories import application_directory
from headrace.errors import RetriableError, StreamsRebalancingError, UnknownStateStoreError
from headrace.views import (
    FailureReason,
    KeyQuery,
    PositionBound,
    QueryableStoreTypes,
    RangeQuery,
    StateQueryRequest,
    StoreQueryParameters,
)
from headrace.views.store_changes import Subscription
from headrace.views.views import Views
from tests.views.kit import SOON, Place, topology_of

PAIRS = QueryableStoreTypes.timestamped_key_value_store()


def counting(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by_key().count(materialized=Materialized("counts"))


class Log:
    """Counts the records that are read from changelogs."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.read_records = 0

    def read(self, topic: str, *arguments: Any, **options: Any) -> Any:
        found = self._log.read(topic, *arguments, **options)
        if topic.endswith("-changelog"):
            self.read_records += len(found)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


def process(place: Place, records: list[tuple[str, Any, int]], build: Any = counting, **settings: Any) -> PositionBound:
    """Runs the application over records, and lets it end."""
    bound = place.write("in", records)
    with place.streams(build, **settings) as streams:
        views = streams._own_views.views()
        assert views.wait_for(bound.position, SOON)
    return bound


def rows(views: Views, store: str = "counts") -> dict[str, Any]:
    views.catch_up()
    face = views.store(StoreQueryParameters.from_name_and_type(store, QueryableStoreTypes.key_value_store()))
    return {row.key: row.value for row in face.all()}


@pytest.fixture
def make(place: Place, tmp_path: Path) -> Iterator[Callable[..., Views]]:
    made: list[Views] = []

    def views(build: Any = counting, log: Any = None, **options: Any) -> Views:
        config = place.config()
        found = Views(topology_of(build), config, log or place.log, tmp_path / "views", **options)
        made.append(found)
        return found

    yield views
    for each in made:
        each.close()


def test_view_goes_on_from_its_files(place: Place, make: Callable[..., Views]) -> None:
    process(place, [(f"k{number % 7}", 1, number) for number in range(500)])
    first = Log(place.log)
    views = make(log=first)
    assert rows(views)["k3"] == 71
    assert first.read_records == 7
    views.close()
    place.log.append("app-counts-changelog", [(0, 900, b"new", (5).to_bytes(8, "big"), ())])
    second = Log(place.log)
    views = make(log=second)
    assert rows(views)["new"] == 5
    # One new record, and the last one of each partition, by which the topic is recognised.
    assert second.read_records <= 1 + 3


def test_view_starts_over_when_the_application_was_reset(place: Place, make: Callable[..., Views]) -> None:
    process(place, [("a", 1, 1), ("b", 1, 2)])
    views = make()
    assert rows(views) == {"a": 1, "b": 1}
    place.streams(counting).clean_up()
    assert not (application_directory(place.config()) / "views").exists()
    place.log.delete_topic("in")
    place.log.create_topic("in", partitions=3)
    process(place, [("c", 1, 1)])
    assert rows(views) == {"c": 1}


def test_view_starts_over_when_its_topic_is_another_one(place: Place, make: Callable[..., Views]) -> None:
    process(place, [("a", 1, 1)])
    views = make()
    assert rows(views) == {"a": 1}
    views.close()
    configs = place.log.describe_topic("app-counts-changelog").configs
    place.log.delete_topic("app-counts-changelog")
    place.log.create_topic("app-counts-changelog", partitions=3, configs=configs)
    for partition in range(3):
        place.log.append("app-counts-changelog", [(partition, 5, b"x", (7).to_bytes(8, "big"), ())] * 3)
    assert rows(make()) == {"x": 7}


def test_view_that_was_away_while_deletions_were_forgotten_starts_over(
    place: Place, make: Callable[..., Views]
) -> None:
    process(place, [("a", 1, 1)])
    clock = [1_000_000]
    views = make(clock=lambda: clock[0])
    assert rows(views) == {"a": 1}
    views.close()
    clock[0] += timedelta(days=2) // timedelta(milliseconds=1)
    log = Log(place.log)
    views = make(log=log, clock=lambda: clock[0])
    assert rows(views) == {"a": 1}
    assert log.read_records == 1


def test_view_that_a_crash_of_the_machine_may_have_damaged_is_built_anew(
    place: Place, make: Callable[..., Views], tmp_path: Path
) -> None:
    process(place, [("a", 1, 1)])
    make().close()
    directory = tmp_path / "views"
    assert (directory / "clean").exists()
    (directory / "clean").unlink()
    (directory / "boot").write_bytes(b"another boot")
    (directory / "data.mdb").write_bytes(b"garbage")
    assert rows(make()) == {"a": 1}


def test_table_whose_changelog_is_its_source_shows_what_the_application_has_read(place: Place) -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.table("in", materialized=Materialized("rows")).to_stream().to("out")

    with place.streams(build, **{"topology.optimization": "all"}) as streams:
        assert "app-rows-changelog" not in place.log.topics()
        bound = place.write("in", [("a", 1, 1), ("b", 2, 2), ("a", None, 3)])
        request = StateQueryRequest.in_store("rows").with_query(RangeQuery.with_no_bounds())
        answers = streams.query(request.with_position_bound(bound).waiting(SOON)).partition_results
        assert [row for answer in answers.values() for row in answer.result] == [("b", 2)]
        streams.pause()
        # Not read yet, so not in the table.
        place.write("in", [("c", 3, 4)])
        assert streams.store("rows", QueryableStoreTypes.key_value_store()).get("c") is None
        streams.resume()


def test_position_waits_for_what_goes_over_a_back_edge(place: Place) -> None:
    place.log.create_topic("users", partitions=3)

    def build(builder: StreamsBuilder) -> None:
        orders, users = builder.table("in"), builder.table("users")
        orders.join(
            users,
            lambda order, user: [order["n"], user],
            foreign_key=lambda order: order["user"],
            materialized=Materialized("joined"),
        )

    with place.streams(build) as streams:
        place.write("users", [("u1", "ann", 1)])
        for number in range(20):
            bound = place.write("in", [(f"o{number}", {"user": "u1", "n": number}, 10 + number)])
            request = StateQueryRequest.in_store("joined").with_query(KeyQuery.with_key(f"o{number}"))
            answer = streams.query(request.with_position_bound(bound).waiting(SOON)).only_partition_result
            assert answer is not None
            assert answer.result == [number, "ann"]


class Recent(Processor[str, Any, str, Any]):
    stores = (Stores.key_value_store_builder(Stores.lru_map("recent", 3)),)

    def process(self, record: Record[str, Any]) -> None:
        self.context.get_state_store("recent").put(record.key, record.value)


def test_view_of_a_limited_store_has_what_the_store_has_kept(place: Place) -> None:
    place.log.delete_topic("in")
    place.log.create_topic("in")
    bound = place.write("in", [(f"k{number}", number, number) for number in range(5)])
    with place.streams(lambda builder: builder.stream("in").process(Recent)) as streams:
        request = StateQueryRequest.in_store("recent").with_query(RangeQuery.with_no_bounds())
        answers = streams.query(request.with_position_bound(bound).waiting(SOON)).partition_results
        assert [row.key for row in answers[0].result] == ["k2", "k3", "k4"]


def test_backlog_that_is_applied_in_pieces_is_not_shown_as_if_it_were_whole(
    place: Place, make: Callable[..., Views], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.views.changelog_follower._AT_ONCE", 10)
    bound = process(place, [(f"k{number}", 1, number) for number in range(100)])
    views = make()
    assert views.step()
    face = StoreQueryParameters.from_name_and_type("counts", QueryableStoreTypes.key_value_store())
    with pytest.raises(StreamsRebalancingError, match="still catching up"):
        views.store(face)
    assert len(list(views.store(face.enable_stale_stores()).all())) == 10
    request = StateQueryRequest.in_store("counts").with_query(RangeQuery.with_no_bounds()).with_position_bound(bound)
    reasons = {each.failure_reason for each in views.query(request).partition_results.values()}
    assert reasons == {FailureReason.NOT_UP_TO_BOUND}
    active = views.query(request.require_active()).partition_results
    assert {each.failure_reason for each in active.values()} == {FailureReason.NOT_ACTIVE}
    assert len(rows(views)) == 100
    assert all(each.is_success for each in views.query(request).partition_results.values())


class Total(StateStore):
    def add(self) -> None:
        self.engine.put(b"total", str(int(self.engine.get(b"total") or b"0") + 1).encode())


class Totals(Processor[str, Any, str, Any]):
    stores = (Stores.custom("total", Total),)

    def process(self, record: Record[str, Any]) -> None:
        self.context.get_state_store("total").add()


def test_stores_of_ones_own_class_cannot_be_asked(place: Place) -> None:
    with (
        place.streams(lambda builder: builder.stream("in").process(Totals)) as streams,
        pytest.raises(UnknownStateStoreError, match="class of your own"),
    ):
        streams.store("total", QueryableStoreTypes.key_value_store())


class Moody:
    """A log that cannot be reached now and then."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.failures = 2

    def last_batch(self, application: str) -> Any:
        if self.failures and threading.current_thread().name == "headrace-views":
            self.failures -= 1
            message = "the broker is not there"
            raise RetriableError(message)
        return self._log.last_batch(application)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


def test_views_try_again_when_the_log_cannot_be_reached(
    place: Place, make: Callable[..., Views], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.views.views._RETRY_S", 0.01)
    bound = process(place, [("a", 1, 1)])
    log = Moody(place.log)
    views = make(log=log)
    views.start()
    assert views.wait_for(bound.position, SOON)
    assert log.failures == 0
    assert not views.has_failed


def test_subscription_goes_on_where_another_one_has_ended(place: Place, make: Callable[..., Views]) -> None:
    process(place, [("a", 1, 1), ("b", 1, 2)])
    views = make()
    views.catch_up()
    changes = Subscription(views, place.log, "counts")
    assert changes.poll() == []
    place.log.append("app-counts-changelog", [(2, 9, b"c", (4).to_bytes(8, "big"), ()), (2, 10, b"a", None, ())])
    assert [(each.key, each.value, each.timestamp_ms) for each in changes.poll(SOON)] == [("c", 4, 9), ("a", None, 10)]
    later = Subscription(views, place.log, "counts", changes.offsets)
    assert later.poll() == []


def test_changes_of_windows_carry_their_window(place: Place, make: Callable[..., Views]) -> None:
    from headrace import SessionWindows, TimeWindows

    def build(builder: StreamsBuilder) -> None:
        grouped = builder.stream("in").group_by_key()
        ten = timedelta(seconds=10)
        grouped.windowed_by(TimeWindows.of_size_with_no_grace(ten)).count(materialized=Materialized("windows"))
        gap = SessionWindows.of_inactivity_gap_with_no_grace(ten)
        grouped.windowed_by(gap).count(materialized=Materialized("sessions"))

    process(place, [("a", 1, 12_000)], build)
    views = make(build)
    start = dict.fromkeys(range(3), 0)
    windows = Subscription(views, place.log, "windows", start).poll()
    sessions = Subscription(views, place.log, "sessions", start).poll()
    assert [str(each.key) for each in (*windows, *sessions)] == ["[a@10000/20000]", "[a@12000/12000]"]
    assert [each.value for each in (*windows, *sessions)] == [1, 1]


def test_state_of_a_view_is_json_for_people(place: Place, make: Callable[..., Views]) -> None:
    bound = process(place, [("a", 1, 1)])
    views = make()
    views.catch_up()
    packed = views._tail.replica.state.pack()
    assert json.loads(packed)[2] == [[topic, partition, at] for (topic, partition), at in bound.position]
