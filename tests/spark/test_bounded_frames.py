"""Backfills of data frames on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from headrace import Consumed, Produced, Serdes, StreamsBuilder, TimeWindows, Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TEXT = Serdes.string()


@pytest.fixture
def spark(spark_context: None) -> SparkSession:
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def counting(*, windows: TimeWindows | None = None) -> Topology:
    builder = StreamsBuilder()
    grouped = builder.stream("words", Consumed(key_serde=TEXT, value_serde=TEXT)).group_by(lambda key, word: word)
    written: Produced[Any, Any] = Produced(key_serde=TEXT, value_serde=Serdes.long())
    grouped.count().to_stream().to("counts", written)
    return builder.build()


def test_counts_by_word_are_a_data_frame(spark: SparkSession) -> None:
    from headrace.spark import backfill

    words = spark.createDataFrame(
        [(word, place) for place, word in enumerate(["to", "be", "or", "not", "to", "be"])],
        "value string, timestamp long",
    )
    with backfill(counting(), {"words": words}, {"statestore.cache.max.bytes": 0}) as done:
        assert done.counts == {"counts": 6}
        rows = done.output("counts").orderBy("timestamp").collect()
    assert [(row.key, row.value) for row in rows] == [
        ("to", 1), ("be", 1), ("or", 1), ("not", 1), ("to", 2), ("be", 2)
    ]  # fmt: skip
    assert [row.timestamp.microsecond for row in rows] == [0, 1000, 2000, 3000, 4000, 5000]
