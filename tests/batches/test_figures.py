"""Figures that people see: rows of stores, records read and written, lag."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import (
    JoinWindows,
    Materialized,
    Producer,
    SessionWindows,
    Stores,
    Streams,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
    Topology,
)
from headrace.app.directories import open_log
from headrace.app.engine import local_engine
from headrace.batches.reports import BatchReport
from headrace.state import MemoryEngine
from headrace.state.engines.overlay import OverlayEngine

if TYPE_CHECKING:
    from headrace.topics.kafka import KafkaLog

MINUTE = timedelta(minutes=1)


def topology() -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    grouped = stream.group_by_key()
    grouped.count(Materialized("keys"))
    grouped.count(Materialized("in-memory", store_type="in_memory"))
    grouped.windowed_by(TimeWindows.of_size_with_no_grace(MINUTE)).count(Materialized("minutes")).to_stream().to("out")
    grouped.windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(MINUTE)).count(Materialized("visits"))
    builder.table("rows", materialized=Materialized("rows"))
    versions: Any = Stores.persistent_versioned_key_value_store("versions", timedelta(hours=1))
    builder.table("versioned", materialized=Materialized(versions))
    window = JoinWindows.of_time_difference_with_no_grace(MINUTE)
    stream.join(builder.stream("other"), lambda left, right: [left, right], windows=window, name="joined").to("pairs")
    return builder.build()


def run(config: StreamsConfig) -> BatchReport:
    """Runs to the end of the input; returns the last batch's report, with the sums of all."""
    reports: list[BatchReport] = []
    streams = Streams(topology(), config, engine=local_engine)
    streams.add_batch_listener(reports.append)
    streams.run(until_end=True)
    return reports[-1]


def rows(config: StreamsConfig) -> Mapping[str, int]:
    log = open_log(config)
    try:
        cut = log.cut_application(config.application_id, {})
        assert cut is not None
        found: dict[str, int] = {}
        for record in cut.records.values():
            for store, count in record.rows.items():
                found[store] = found.get(store, 0) + count
        return found
    finally:
        log.close()


def send(config: StreamsConfig, topic: str, *records: tuple[str, Any, int]) -> None:
    with Producer(config, topic, partitions=2) as producer:
        for key, value, timestamp_ms in records:
            producer.send(key, value, timestamp_ms=timestamp_ms)


@pytest.mark.parametrize("engine", ["lmdb", "rocksdb"])
def test_rows_are_keys_windows_sessions_and_versions(tmp_path: Path, engine: str) -> None:
    config = StreamsConfig(application_id="app", state_dir=tmp_path, default_dsl_store=engine, log_sync="none")
    send(config, "in", ("a", 1, 0), ("b", 1, 1_000), ("a", 1, 2_000), ("a", 1, 70_000))
    send(config, "other", ("a", 1, 500))
    send(config, "rows", ("a", 1, 0), ("b", 1, 0), ("c", 1, 0), ("b", None, 1))
    send(config, "versioned", ("a", 1, 0), ("a", 2, 10))
    report = run(config)
    first = {"keys": 2, "in-memory": 2, "minutes": 3, "visits": 3, "rows": 2, "versions": 2}
    assert {store: count for store, count in rows(config).items() if store in first} == first
    # The join keeps four records of one side and one of the other; a store whose rows have expired may keep them.
    assert report.state_rows == sum(rows(config).values())
    assert report.records_in == 4 + 1 + 4 + 2
    assert report.lag == 0

    # The next process starts from what is committed; a session that is extended is still one.
    send(config, "in", ("a", 1, 71_000), ("c", 1, 71_000))
    send(config, "rows", ("a", None, 5), ("d", 1, 5))
    report = run(config)
    second = {"keys": 3, "in-memory": 3, "minutes": 4, "visits": 4, "rows": 2, "versions": 2}
    assert {store: count for store, count in rows(config).items() if store in second} == second
    assert report.records_in == 4


def test_changelogs_are_counted_apart(tmp_path: Path) -> None:
    config = StreamsConfig(application_id="app", state_dir=tmp_path, log_sync="none")
    for topic in ("other", "rows", "versioned"):
        send(config, topic)
    send(config, "in", ("a", 1, 0), ("b", 1, 1_000))
    report = run(config)
    assert report.records_out == 2
    # Four stores and one side of the join, two keys each.
    assert report.changelogged == 10


KEYS = st.sampled_from([bytes((n,)) for n in range(8)])
WRITES = st.lists(st.tuples(KEYS, st.sampled_from([b"x", None])))


@given(before=WRITES, deleted=st.lists(st.tuples(KEYS, KEYS)), after=WRITES, bounds=st.none() | st.tuples(KEYS, KEYS))
def test_growth_is_the_difference_of_what_is_there(
    before: list[tuple[bytes, bytes | None]],
    deleted: list[tuple[bytes, bytes]],
    after: list[tuple[bytes, bytes | None]],
    bounds: tuple[bytes, bytes] | None,
) -> None:
    overlay = OverlayEngine(MemoryEngine())

    def write(writes: list[tuple[bytes, bytes | None]]) -> None:
        for key, value in writes:
            if value is None:
                overlay.delete(key)
            else:
                overlay.put(key, value)

    def present() -> int:
        low, high = bounds or (b"", b"\xff")
        return sum(low <= key < high for key, _ in overlay.scan())

    write(before)
    overlay.commit()
    at_first = present()
    for start, stop in deleted:
        overlay.delete_range(start, stop)
    write(after)
    if bounds is None or bounds[0] < bounds[1]:
        assert overlay.growth(bounds) == present() - at_first
    assert overlay.count() == sum(1 for _ in overlay.scan())


def test_growth_of_many_rows_is_extrapolated() -> None:
    overlay = OverlayEngine(MemoryEngine())
    for number in range(0, 10_000, 2):
        overlay.put(b"%05d" % number, b"x")
    overlay.commit()
    for number in range(10_000):
        overlay.put(b"%05d" % number, b"y")
    assert overlay.growth() == 5_000
    # Old and new rows alternate: whoever took every tenth would see one kind alone.
    assert 4_500 < overlay.growth(at_most=1_000) < 5_500


@pytest.mark.kafka
def test_ends_of_transactions_are_no_records(kafka: KafkaLog, tmp_path: Path) -> None:
    def copy(application: str, source: str, target: str) -> int:
        config = StreamsConfig(
            application_id=application, state_dir=tmp_path, bootstrap_servers=kafka.bootstrap_servers
        )
        builder = StreamsBuilder()
        builder.stream(source).to(target)
        reports: list[BatchReport] = []
        streams = Streams(builder.build(), config, engine=local_engine)
        streams.add_batch_listener(reports.append)
        streams.run(until_end=True)
        assert reports[-1].lag == 0
        return sum(report.records_in for report in reports)

    config = StreamsConfig(bootstrap_servers=kafka.bootstrap_servers)
    with Producer(config, "in", partitions=1) as producer:
        producer.send("a", 1)
        producer.send("b", 2)
    assert copy("one", "in", "middle") == 2
    assert kafka.end_offsets([("middle", 0)])[("middle", 0)] == 3
    assert copy("two", "middle", "out") == 2
