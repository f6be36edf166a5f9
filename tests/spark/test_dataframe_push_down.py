"""Filters that Spark pushes down: how many blobs and records are read for them. No JVM is needed to see that."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

import headrace.spark
from headrace import EmbeddedLog, Materialized, Streams, StreamsBuilder, StreamsConfig
from headrace.app.engine import local_engine
from headrace.errors import (
    ConfigError,
    DeserializationError,
    LogError,
    MissingDependencyError,
    OffsetOutOfRangeError,
    UnknownStateStoreError,
)
from headrace.spark.dataframes.scanning import ScanCounts
from headrace.spark.dataframes.source import HeadraceSource
from headrace.topics.log import Output

if TYPE_CHECKING:
    from headrace.topics.kafka import KafkaLog


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        yield log


def source(log: EmbeddedLog, **options: str) -> HeadraceSource:
    return HeadraceSource({"log_dir": log.directory, "log_sync": "none", **options})


def reader(log: EmbeddedLog, **options: str) -> Any:
    found = source(log, **options)
    return found.reader(found.schema())


def time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def read(reader: Any, *filters: Filter) -> tuple[list[dict[str, Any]], ScanCounts, list[Filter]]:
    """Does what Spark does: pushes filters, plans, reads. Returns rows, what was read for them, and filters left."""
    left = list(reader.pushFilters(list(filters)))
    total = ScanCounts("", -1)
    rows: list[dict[str, Any]] = []
    for part in reader.partitions():
        for batch in reader.read(part):
            rows += batch.to_pylist()
        counts = reader.counts
        assert counts.partition == part.partition
        total.blobs += counts.blobs
        total.skipped_blobs += counts.skipped_blobs
        total.records += counts.records
        total.rows += counts.rows
    assert total.rows == len(rows)
    return rows, total, left


def blobs(log: EmbeddedLog, topic: str, partition: int, *batches: list[tuple[int, str, str]]) -> None:
    """Writes a blob for each batch of (time, key, value)."""
    for batch in batches:
        outputs: list[Output] = [(partition, time, key.encode(), value.encode(), ()) for time, key, value in batch]
        log.append(topic, outputs)


def test_time_filter_unpacks_only_blobs_within_it(log: EmbeddedLog) -> None:
    log.create_topic("t")
    # Ten blobs of a hundred records, a second each; the last one has an old record at its end.
    batches = [[(second * 1000 + n, "k", "{}") for n in range(100)] for second in range(10)]
    blobs(log, "t", 0, *batches[:9], [*batches[9][:99], (4_050, "late", "{}")])
    rows, counts, left = read(
        reader(log, topic="t"),
        GreaterThanOrEqual(("timestamp",), time(4_000)),
        LessThan(("timestamp",), time(5_000)),
        IsNotNull(("timestamp",)),
    )
    # It starts at the first blob that reaches the time, and looks into the last one, which has a record of that time.
    assert (counts.blobs, counts.skipped_blobs, counts.records) == (2, 4, 101)
    assert [row["offset"] for row in rows] == [*range(400, 500), 999]
    assert left == [IsNotNull(("timestamp",))]


def test_times_between_milliseconds_are_exact(log: EmbeddedLog) -> None:
    log.create_topic("t")
    blobs(log, "t", 0, [(n, "k", "{}") for n in range(4)])
    half = datetime(1970, 1, 1, 0, 0, 0, 1_500, tzinfo=UTC)
    for filter, expected in [
        (GreaterThan(("timestamp",), half), [2, 3]),
        (GreaterThanOrEqual(("timestamp",), time(2)), [2, 3]),
        (GreaterThan(("timestamp",), time(2)), [3]),
        (LessThan(("timestamp",), half), [0, 1]),
        (LessThanOrEqual(("timestamp",), time(1)), [0, 1]),
        (LessThan(("timestamp",), time(1)), [0]),
        (EqualTo(("timestamp",), half), []),
        (EqualTo(("timestamp",), time(3)), [3]),
    ]:
        rows, _, left = read(reader(log, topic="t"), filter)
        assert [row["offset"] for row in rows] == expected, filter
        assert left == []


def test_partition_and_offset_filters_choose_what_is_planned(log: EmbeddedLog) -> None:
    log.create_topic("t", partitions=3)
    for partition in range(3):
        blobs(log, "t", partition, *([(0, "k", "{}")] * 10 for _ in range(5)))
    rows, counts, _ = read(reader(log, topic="t"), EqualTo(("partition",), 1))
    assert ({row["partition"] for row in rows}, counts.blobs, counts.records) == ({1}, 5, 50)
    _, counts, _ = read(reader(log, topic="t"), In(("partition",), (0, 2, 9)), GreaterThan(("partition",), 0))
    assert (counts.blobs, counts.records) == (5, 50)
    rows, counts, _ = read(
        reader(log, topic="t"), In(("partition",), (2,)), GreaterThan(("offset",), 24), LessThanOrEqual(("offset",), 35)
    )
    assert ([row["offset"] for row in rows], counts.blobs) == (list(range(25, 36)), 2)
    # Spark asks for one part all the same if there is none.
    empty = reader(log, topic="t")
    assert list(empty.pushFilters([EqualTo(("partition",), 7)])) == []
    assert empty.partitions() == []


def test_key_filter_reads_no_value_of_other_keys(log: EmbeddedLog) -> None:
    log.create_topic("t", partitions=2)
    log.append("t", [(None, 0, b"alice", b"1", ()), (None, 0, b"bob", b"not json", ()), (0, 0, b"carol", b"3", ())])
    rows, counts, left = read(reader(log, topic="t"), EqualTo(("key",), "alice"), EqualTo(("value",), "1"))
    assert [(row["key"], row["value"]) for row in rows] == [("alice", "1")]
    assert left == [EqualTo(("value",), "1")]
    assert counts.records == 3
    rows, _, _ = read(reader(log, topic="t"), In(("key",), ("carol", None, "nobody")))
    assert [row["key"] for row in rows] == ["carol"]
    # Who knows that keys lie where their hash says reads one partition.
    parts = reader(log, topic="t", partitioner="default")
    _, counts, _ = read(parts, EqualTo(("key",), "alice"))
    [home] = [each.partition for each in parts.partitions()]
    assert counts.records == log.end_offsets([("t", home)])["t", home] < 3


def test_keys_that_equal_ones_may_write_differently_are_left_to_spark(log: EmbeddedLog) -> None:
    log.create_topic("t")
    for format, value in (("json", "1"), ("double", 0.0), ("uuid", "A")):
        _, _, left = read(reader(log, topic="t", key=format), EqualTo(("key",), value))
        assert left == [EqualTo(("key",), value)], format
    _, _, left = read(reader(log, topic="t", key="long"), EqualTo(("key",), 1))
    assert left == []


def test_long_ranges_are_split_into_tasks(log: EmbeddedLog) -> None:
    log.create_topic("t")
    blobs(log, "t", 0, [(0, "k", "{}")] * 25)
    parts = reader(log, topic="t", records_per_task="10").partitions()
    assert [(part.start, part.stop) for part in parts] == [(0, 10), (10, 20), (20, 25)]


def run(log: EmbeddedLog, build: Callable[[StreamsBuilder], Any], **settings: Any) -> None:
    builder = StreamsBuilder()
    build(builder)
    config = StreamsConfig.of({"application_id": "app", "state_dir": str(Path(log.directory).parent), **settings})
    Streams(builder.build(config), config, log=log, engine=local_engine).run(until_end=True)


def test_filters_of_a_store_narrow_what_is_read_of_its_changelog(log: EmbeddedLog) -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").group_by_key().count(materialized=Materialized("counts"))

    log.create_topic("in", partitions=2)
    for second, key in enumerate([b"alice", b"bob", b"alice", b"carol"]):
        log.append("in", [(second % 2, second * 1000, key, b"1", ())])
        run(log, build)
    store = {"application": "app", "store": "counts"}
    rows, counts, left = read(reader(log, **store), EqualTo(("key",), "alice"), EqualTo(("partition",), 0))
    assert rows == [{"key": "alice", "value": 2, "partition": 0, "timestamp": time(2_000)}]
    assert (counts.records, left) == (2, [])
    # The changelog of partition 0 is read from the second record on: the first is older than the time.
    rows, counts, left = read(reader(log, **store), GreaterThan(("timestamp",), time(1_500)))
    assert sorted((row["key"], row["value"]) for row in rows) == [("alice", 2), ("carol", 1)]
    assert (counts.records, left) == (2, [])


def test_table_without_a_changelog_has_rows_as_far_as_the_application_has_read(log: EmbeddedLog) -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.table("users", materialized=Materialized("names"))
        builder.global_table("prices", materialized=Materialized("prices"))

    log.create_topic("users")
    log.create_topic("prices")
    blobs(log, "users", 0, [(1, "alice", '"A"'), (2, "bob", '"B"'), (3, "alice", '"A."')])
    blobs(log, "prices", 0, [(1, "tea", "2")])
    run(log, build, topology_optimization="all")
    blobs(log, "users", 0, [(4, "carol", '"C"')])
    blobs(log, "prices", 0, [(2, "tea", "3")])
    rows, counts, _ = read(reader(log, application="app", store="names"))
    assert sorted((row["key"], row["value"]) for row in rows) == [("alice", '"A."'), ("bob", '"B"')]
    assert counts.records == 3
    # Nobody commits how far a global table was read.
    rows, _, _ = read(reader(log, application="app", store="prices"))
    assert [(row["key"], row["value"]) for row in rows] == [("tea", "3")]
    with pytest.raises(UnknownStateStoreError, match=r"no store 'name' .*did you mean 'names'.*it has names, prices"):
        reader(log, application="app", store="name")


@pytest.mark.kafka
def test_kafka_is_read_from_the_first_record_of_the_time(kafka: KafkaLog) -> None:
    kafka.create_topic("t", partitions=2)
    kafka.append("t", [(partition, second * 1000, b"k", b"{}", ()) for second in range(10) for partition in range(2)])
    found = HeadraceSource({"bootstrap_servers": kafka.bootstrap_servers, "topic": "t"})
    times = GreaterThanOrEqual(("timestamp",), time(7_000)), LessThanOrEqual(("timestamp",), time(8_000))
    reader: DataSourceReader = found.reader(found.schema())
    rows, counts, left = read(reader, EqualTo(("partition",), 1), *times)
    assert [row["offset"] for row in rows] == [7, 8]
    assert (counts.records, left) == (3, [])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, ConfigError, "one of the options 'topic', 'store' .* found none of them"),
        ({"topic": "t", "store": "s"}, ConfigError, "found 'topic' and 'store'"),
        ({"store": "s"}, ConfigError, "option 'store' needs the option 'application'"),
        ({"topic": "t", "valeu": "json"}, ConfigError, "option 'valeu' is unknown; did you mean 'value'"),
        ({"topic": "t", "value": "jsno"}, ConfigError, "no format 'jsno'; did you mean 'json'"),
        ({"topic": "t", "starting_time": "noon"}, ConfigError, "option 'starting_time' must be a time .* 'noon'"),
        ({"topic": "t", "starting_offsets": "[1]"}, ConfigError, "option 'starting_offsets' must be 'earliest'"),
        ({"topic": "t", "records_per_task": "0"}, ConfigError, "'records_per_task' must be a whole number"),
        ({"topic": "t", "partitioner": "mine"}, ConfigError, "option 'partitioner' must be 'default'"),
        ({"application": "a", "store": "s"}, UnknownStateStoreError, "knows no application 'a'"),
        (
            {"application": "a", "store": "s", "starting_time": "1"},
            ConfigError,
            "option 'starting_time' is for topics and streams",
        ),
    ],
)
def test_options_that_cannot_be_meant_are_refused(
    log: EmbeddedLog, options: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        reader(log, **options)


def test_session_without_pyarrow_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    # Any: nothing is asked of the session before.
    session: Any = None
    with pytest.raises(MissingDependencyError, match=r"pip install 'headrace\[dataframes\]'"):
        headrace.spark.register(session)


def test_log_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    found = HeadraceSource({"log_dir": str(tmp_path / "nowhere"), "topic": "t"})
    with pytest.raises(LogError, match=r"there is no log in .*nowhere"):
        found.reader(found.schema()).partitions()
    assert not (tmp_path / "nowhere").exists()


def test_offset_that_was_removed_is_an_error(log: EmbeddedLog) -> None:
    log.create_topic("t")
    blobs(log, "t", 0, [(0, "k", "{}")] * 5)
    log.delete_records({("t", 0): 3})
    with pytest.raises(OffsetOutOfRangeError, match="begins at offset 3; starting_offsets has 1"):
        reader(log, topic="t", starting_offsets='{"0": 1}').partitions()


def test_record_that_cannot_be_read_is_named(log: EmbeddedLog) -> None:
    log.create_topic("t", partitions=2)
    blobs(log, "t", 1, [(0, "k", "{}"), (0, "k", "no")])
    with pytest.raises(DeserializationError, match="record at offset 1 of partition 1 of topic 't'; name another"):
        read(reader(log, topic="t"))
    rows, _, _ = read(reader(log, topic="t", value="bytes"))
    assert [row["value"] for row in rows] == [b"{}", b"no"]


def test_schema_must_fit_the_topic(log: EmbeddedLog) -> None:
    from pyspark.sql.types import StructType

    log.create_topic("t")
    for schema, message in [
        (StructType().add("valu", "string"), "no column 'valu'; did you mean 'value'"),
        (StructType().add("key", "integer"), "column 'key' is read as string, and the schema says int"),
    ]:
        with pytest.raises(ConfigError, match=message):
            source(log, topic="t").reader(schema)
    with pytest.raises(ConfigError, match="column 'key' is bigint, and must fit the format 'string'"):
        source(log, topic="t").writer(StructType().add("key", "long").add("value", "string"), overwrite=False)
    with pytest.raises(ConfigError, match="rows need a column 'value'"):
        source(log, topic="t").writer(StructType().add("key", "string"), overwrite=False)
    with pytest.raises(ConfigError, match="no column 'amount' that could be written"):
        source(log, topic="t").writer(StructType().add("value", "string").add("amount", "integer"), overwrite=False)
    with pytest.raises(ConfigError, match="JSON has no timestamp_ntz"):
        source(log, topic="t").writer(StructType().add("value", "timestamp_ntz"), overwrite=False)
    with pytest.raises(ConfigError, match="cannot be overwritten"):
        source(log, topic="t").writer(StructType().add("value", "string"), overwrite=True)
