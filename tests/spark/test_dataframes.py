"""Topics and stores as data frames, on both logs: known contents are read and written through Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headrace import KTable, Materialized, StreamsBuilder, TimeWindows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from tests.spark.stand import Stand

pytestmark = [pytest.mark.spark, pytest.mark.both_logs]

ORDERS = [
    (0, 1_000, b"alice", b'{"amount": 5, "tags": ["new"]}', (("trace", b"x"), ("none", None))),
    (0, 3_000, b"bob", None, ()),
    (0, 2_000, None, b'{"amount": 7}', ()),
    (1, 4_000, b"carol", b'{"amount": 9}', ()),
]
ORDER = "key string, value struct<amount: int, tags: array<string>>, timestamp timestamp"


@pytest.fixture
def spark(spark_context: None) -> SparkSession:
    from pyspark.sql import SparkSession

    from headrace.spark import register

    session = SparkSession.builder.getOrCreate()
    register(session)
    return session


def place(stand: Stand) -> dict[str, str]:
    """Returns the options that name the log."""
    if stand.servers is None:
        return {"log_dir": str(stand.directory / "log")}
    return {"bootstrap_servers": stand.servers}


def reading(spark: SparkSession, stand: Stand, **options: Any) -> DataFrameReader:
    return spark.read.format("headrace").options(**place(stand), **options)


def at(milliseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC).astimezone().replace(tzinfo=None) + timedelta(milliseconds=milliseconds)


def rows(frame: DataFrame, *by: str) -> list[tuple[Any, ...]]:
    """Returns rows, sorted here: a shuffle of Spark would take longer than all the rest."""
    return [tuple(row) for row in sorted(frame.collect(), key=lambda row: [row[name] for name in by])]


def test_topic_is_read_record_by_record(spark: SparkSession, stand: Stand) -> None:
    stand.topic("orders", 2)
    stand.log.append("orders", ORDERS)
    found = rows(reading(spark, stand, topic="orders").load(), "partition", "offset")
    assert found == [
        ("alice", '{"amount": 5, "tags": ["new"]}', 0, 0, at(1_000), [("trace", b"x"), ("none", None)]),
        ("bob", None, 0, 1, at(3_000), []),
        (None, '{"amount": 7}', 0, 2, at(2_000), []),
        ("carol", '{"amount": 9}', 1, 0, at(4_000), []),
    ]
    typed = reading(spark, stand).schema(ORDER).load("orders").where("timestamp < timestamp_millis(3500)")
    assert rows(typed.select("timestamp", "key", "value.amount", "value.tags"), "timestamp") == [
        (at(1_000), "alice", 5, ["new"]),
        (at(2_000), None, 7, None),
        (at(3_000), "bob", None, None),
    ]


def test_offsets_and_times_choose_what_is_read(spark: SparkSession, stand: Stand) -> None:
    stand.topic("orders", 2)
    stand.log.append("orders", ORDERS)
    by_offset = reading(spark, stand, topic="orders", starting_offsets='{"0": 1}', ending_offsets='{"0": 2, "1": 1}')
    assert rows(by_offset.load().select("partition", "key"), "partition") == [(0, "bob"), (1, "carol")]
    by_time = reading(spark, stand, topic="orders", starting_time=2_000, ending_time="1970-01-01T00:00:04Z")
    assert rows(by_time.load().select("offset", "key"), "offset") == [(1, "bob"), (2, None)]


def test_workers_log_what_they_have_read(spark: SparkSession, stand: Stand) -> None:
    # The session keeps what it was told before.
    topic = "visits-embedded" if stand.servers is None else "visits-kafka"
    stand.topic(topic, 2)
    for second in range(6):
        stand.log.append(topic, [(each, second * 1000, b"k", b"{}", ()) for each in range(2)])
    spark.conf.set("spark.sql.pyspark.worker.logging.enabled", "true")
    wanted = "partition = 1 AND timestamp >= timestamp_millis(2000) AND timestamp < timestamp_millis(4000)"
    found = rows(reading(spark, stand, topic=topic).load().where(wanted).select("partition", "offset"), "offset")
    [message] = rows(spark.tvf.python_worker_logs().where(f"contains(msg, '{topic}')").select("msg"))
    spark.conf.set("spark.sql.pyspark.worker.logging.enabled", "false")
    assert found == [(1, 2), (1, 3)]
    # The embedded log skips what is later by the headers of blobs; Kafka cannot.
    blobs, records = ((2, 2), 2) if stand.servers is None else ((0, 0), 4)
    assert message[0] == (
        f"read {{'topic': '{topic}', 'partition': 1, 'blobs': {blobs[0]}, 'skipped_blobs': {blobs[1]}, "
        f"'records': {records}, 'rows': 2}}"
    )


def test_store_is_read_as_its_current_rows(spark: SparkSession, stand: Stand) -> None:
    def build(builder: StreamsBuilder) -> None:
        orders = builder.stream("orders").filter(lambda key, value: value is not None)
        spent: KTable[str, int | None] = orders.group_by_key().aggregate(
            lambda: 0, lambda key, order, total: total + order["amount"] or None, materialized=Materialized("spent")
        )
        spent.to_stream().to("out")
        windows = TimeWindows.of_size_and_grace(timedelta(seconds=10), timedelta(hours=1))
        orders.group_by_key().windowed_by(windows).count(materialized=Materialized("visits"))

    stand.topic("orders", 2)
    stand.topic("out", 2)
    stand.write(
        "orders",
        ("alice", {"amount": 5}, 1_000),
        ("bob", {"amount": 2}, 2_000),
        ("alice", {"amount": 6}, 12_000),
        ("bob", {"amount": -2}, 13_000),
    )
    stand.run(build)
    spent = reading(spark, stand, application="app", store="spent").schema("key string, value int, timestamp timestamp")
    assert rows(spent.load()) == [("alice", 11, at(12_000))]
    assert rows(spent.load().where("key = 'bob'")) == []
    visits = reading(spark, stand, application="app", store="visits").load()
    assert rows(visits.select("key", "window_start", "window_end", "value"), "key", "window_start") == [
        ("alice", at(0), at(10_000), 1),
        ("alice", at(10_000), at(20_000), 1),
        ("bob", at(0), at(10_000), 1),
        ("bob", at(10_000), at(20_000), 1),
    ]


def test_rows_are_written_as_records(spark: SparkSession, stand: Stand) -> None:
    stand.topic("out", 2)
    written = spark.sql(
        "SELECT key, value, partition, timestamp_millis(time) AS timestamp, headers FROM VALUES "
        "('alice', named_struct('amount', 5, 'at', map('x', 1)), 1, 1000, "
        "array(named_struct('key', 'h', 'value', X'01'))), "
        "(NULL, named_struct('amount', 7, 'at', NULL), 0, 2000, NULL), "
        "('bob', NULL, 1, 3000, array()) AS (key, value, partition, time, headers)"
    ).coalesce(1)
    written.write.format("headrace").options(**place(stand), topic="out").mode("append").save()
    # Kafka's brokers show what is committed a little later.
    for target in (("out", 0), ("out", 1)):
        assert stand.log.wait_for_data({target: target[1]}, timedelta(minutes=1))
    found = {each: [record[1:] for record in stand.log.read("out", each, 0)] for each in range(2)}
    assert found == {
        0: [(2_000, None, b'{"amount":7,"at":null}', ())],
        1: [(1_000, b"alice", b'{"amount":5,"at":{"x":1}}', (("h", b"\x01"),)), (3_000, b"bob", None, ())],
    }


def test_header_without_a_name_is_refused_before_it_is_in_the_topic(spark: SparkSession, stand: Stand) -> None:
    from pyspark.errors import PySparkException

    stand.topic("out", 1)
    frame = spark.sql(
        "SELECT 'v' AS value, array(named_struct('key', CAST(NULL AS STRING), 'value', X'01')) AS headers"
    )
    writer = frame.write.format("headrace").options(**place(stand), topic="out", value="string").mode("append")
    with pytest.raises(PySparkException, match="a record for topic 'out' has a header without a name"):
        writer.save()
    assert stand.log.read("out", 0, 0) == []


def test_failed_write_leaves_nothing_of_the_tasks_that_failed(spark: SparkSession, stand: Stand) -> None:
    from pyspark.errors import PySparkException

    stand.topic("out", 2)
    # Two tasks; the second fails at its last row, when most of it has been handed over.
    frame = spark.range(0, 20_000, 1, 2).selectExpr(
        "CAST(id AS STRING) AS key", "IF(id = 19999, raise_error('no'), repeat('x', 20)) AS value"
    )
    writer = frame.write.format("headrace").options(**place(stand), topic="out", value="string").mode("append")
    with pytest.raises(PySparkException, match="no"):
        writer.save()
    keys = {int(record[2] or b"") for each in range(2) for record in stand.log.read("out", each, 0)}
    if stand.servers is None:
        assert keys == set()
        assert list(Path(place(stand)["log_dir"]).glob("staging/*")) == []
    else:
        assert keys in (set(), set(range(10_000)))
