"""Backfills of data frames on Spark."""

from __future__ import annotations

import sys
from datetime import timedelta
from itertools import count
from pathlib import Path
from random import Random
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from headrace import (
    BufferConfig,
    Consumed,
    EmbeddedLog,
    Produced,
    Serdes,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
)
from headrace.batches.bounded_rows import RowKind, unpack_headers
from headrace.errors import ConfigError, StreamsError, TopologyError
from tests.batches.test_bounded import ALL_AT_ONCE, ByKey, history, on_driver
from tests.change.test_seeding import CLICKS, CUT_MS, OUTPUTS, USERS, Shop, outputs, read_everything
from tests.spark.random_programs import make_program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TEXT = Serdes.string()


@pytest.fixture
def spark(spark_context: None) -> SparkSession:
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def counting() -> Topology:
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


def test_a_random_program_gives_what_the_driver_gives(spark: SparkSession) -> None:
    from headrace.spark import backfill

    for seed in count():
        program = make_program(Random(seed), 2)
        inputs = history(program)
        wanted = on_driver(program.topology, program.config, inputs, 2)
        if len(wanted) > 5:
            break
    frames = {
        topic: spark.createDataFrame(
            [
                (key, value, time_ms, [{"key": name, "value": data} for name, data in headers] or None, partition)
                for partition, time_ms, key, value, headers in records
            ],
            "key binary, value binary, timestamp long, headers array<struct<key:string,value:binary>>, partition int",
        )
        for topic, records in inputs.items()
    }
    found: ByKey = {}
    with backfill(program.topology, frames, program.config, tasks=2, chunk_records=ALL_AT_ONCE) as done:
        for row in done.run.rows(RowKind.OUTPUT):
            record = (row.timestamp, row.value, unpack_headers(row.headers))
            found.setdefault((row.topic, row.key), []).append(record)
    assert found == wanted


def test_only_columns_that_are_given_go_to_python(spark: SparkSession) -> None:
    """Spark walks through the whole batch with every row of a list that is null."""
    from headrace.spark import InputRows
    from headrace.spark.bounded.input_rows import record_columns

    plain = spark.createDataFrame([(b"v", 1)], "value binary, timestamp long")
    assert record_columns("words", InputRows(rows=plain))[0].columns == ["time", "order", "column0"]
    headers = "array<struct<key:string,value:binary>>"
    given = spark.createDataFrame([(b"v", 1, None)], f"value binary, timestamp long, headers {headers}")
    assert [row.headers for row in record_columns("words", InputRows(rows=given))[0].collect()] == [[]]


def test_rows_may_lack_an_offset_and_come_in_large_arrays(spark: SparkSession) -> None:
    from headrace.spark import backfill

    frame = spark.createDataFrame(
        [(b"2", 5, 7), (b"1", 5, None), (b"3", 5, 8)], "value binary, timestamp long, offset long"
    )
    rates = spark.createDataFrame([(b"20", 1, 3), (b"10", 1, None)], "value binary, timestamp long, offset long")
    builder = StreamsBuilder()
    consumed: Consumed[Any, Any] = Consumed(key_serde=TEXT)
    table = builder.global_table("rates", consumed)
    joined = builder.stream("in").join(table, lambda value, rate: value * rate, key_selector=lambda *_: "key")
    joined.to("out")
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        inputs = {"in": frame, "rates": rates.selectExpr("'key' AS key", "*")}
        with backfill(builder.build(), inputs, tasks=1) as done:
            found = done.output("out").orderBy("sequence").collect()
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    assert [row.value for row in found] == ["20", "40", "60"]


def test_headers_that_are_none_are_told(spark: SparkSession) -> None:
    from headrace.spark import backfill

    def run(headers: Any, kind: str) -> None:
        frame = spark.createDataFrame([("a", 1, headers)], f"value string, timestamp long, headers {kind}")
        backfill(counting(), {"words": frame})

    wanted = "the headers of 'words' must be an array of structs of a text and bytes"
    for kind in ("string", "array<string>", "array<struct<key:string,value:string>>", "array<struct<name:string>>"):
        with pytest.raises(ConfigError, match=wanted):
            run(None, kind)
    for headers in ([None], [(None, b"value")]):
        with pytest.raises(StreamsError, match=r"for topic 'words' has a header without a name"):
            run(headers, "array<struct<key:string,value:binary>>")


def test_seeded_application_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """Of years in Parquet only what was after the cut is in the topics."""
    from headrace.spark import InputRows, backfill

    for topic, records in {"clicks": CLICKS, "users": USERS}.items():
        rows = [((key or b"").decode(), (value or b"").decode(), time_ms) for _, time_ms, key, value, _ in records]
        frame = spark.createDataFrame(rows, "user string, what string, at long").selectExpr(
            "user", "what", "timestamp_millis(at) AS at"
        )
        frame.repartition(2).write.parquet(str(tmp_path / topic))
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        shop = Shop(log, tmp_path)
        shop.fill(shop.after)
        inputs = {
            topic: InputRows(rows=spark.read.parquet(str(tmp_path / topic)), key="user", value="what", timestamp="at")
            for topic in ("clicks", "users")
        }
        with backfill(shop.topology, inputs, shop.config, seed=True, cut=CUT_MS, to_topics=True, log=log) as done:
            assert done.counts["counts"] == len(shop.before["clicks"])
        shop.run()
        assert outputs(log, OUTPUTS) == read_everything(tmp_path / "everything")


def test_values_are_dicts_of_columns_and_results_have_a_schema(spark: SparkSession) -> None:
    from headrace.spark import InputRows, backfill

    builder = StreamsBuilder()
    purchases = builder.stream("purchases", Consumed(key_serde=TEXT, value_serde=Serdes.json()))
    windows = TimeWindows.of_size_with_no_grace(timedelta(seconds=10))
    windowed = purchases.group_by_key().windowed_by(windows)
    spent = windowed.aggregate(
        lambda: {"total": 0.0}, lambda key, value, total: {"total": total["total"] + value["price"]}
    )
    keys: Any = Serdes.time_windowed(TEXT, 10_000)
    spent.suppress(Suppressed.until_window_closes(BufferConfig.unbounded())).to_stream().to(
        "spent", Produced(key_serde=keys, value_serde=Serdes.json())
    )
    frame = spark.createDataFrame(
        [("ann", 1.5, 12_000), ("bob", 4.0, 4_000), ("ann", 2.0, 1_000), ("ann", 3.0, 2_000)],
        "who string, price double, at long",
    )
    inputs = {"purchases": InputRows(rows=frame, key="who", timestamp="at")}
    schema = "key struct<key:string,start_ms:long,end_ms:long>, value struct<total:double>"
    found = {}
    for close in (False, True):
        with backfill(builder.build(), inputs, tasks=1, close_windows=close) as done:
            rows = done.output("spent", schema).collect()
        found[close] = {(row.key.key, row.key.start_ms): row.value.total for row in rows}
    assert found[False] == {("ann", 0): 5.0, ("bob", 0): 4.0}
    assert found[True] == {("ann", 0): 5.0, ("bob", 0): 4.0, ("ann", 10_000): 1.5}


def test_an_error_of_a_function_is_told(spark: SparkSession) -> None:
    from headrace.spark import backfill

    builder = StreamsBuilder()
    builder.stream("in", Consumed(value_serde=TEXT)).map_values(int).to("out")
    frame = spark.createDataFrame([("seven", 1)], "value string, timestamp long")
    with pytest.raises(
        StreamsError, match=r"backfill failed: .*ProcessingError: task 0_0: node 'KSTREAM-MAPVALUES-0000000001'"
    ):
        backfill(builder.build(), {"in": frame})
    without_time = spark.createDataFrame([("7", None)], "value string, timestamp long")
    with pytest.raises(StreamsError, match=r"backfill failed: .*timestamp"):
        backfill(builder.build(), {"in": without_time})


def test_a_package_that_workers_lack_is_told_with_the_remedy(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.spark import backfill

    module = ModuleType("only_here")
    exec("def shout(value): return value.upper()", vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    builder = StreamsBuilder()
    builder.stream("in", Consumed(value_serde=TEXT)).map_values(vars(module)["shout"]).to("out")
    frame = spark.createDataFrame([("seven", 1)], "value string, timestamp long")
    with pytest.raises(
        StreamsError, match=r"No module named 'only_here'; Spark's workers run '.*', .*PYSPARK_PYTHON to .* before"
    ):
        backfill(builder.build(), {"in": frame})


def test_what_is_wrong_with_inputs_is_told(spark: SparkSession) -> None:
    from headrace.spark import InputRows, backfill

    topology, frame = counting(), spark.createDataFrame([("a", 1)], "value string, at long")
    with pytest.raises(TopologyError, match=r"does not read the topic 'word' .* did you mean 'words'"):
        backfill(topology, {"word": frame})
    with pytest.raises(TopologyError, match="reads 'words', which inputs do not have"):
        backfill(topology, {})
    with pytest.raises(ConfigError, match="need a time; there is no column 'timestamp' among value, at"):
        backfill(topology, {"words": frame})
    with pytest.raises(ConfigError, match="have no column 'keys'"):
        backfill(topology, {"words": InputRows(rows=frame, key="keys", timestamp="at")})
    with pytest.raises(ConfigError, match="column 'value' is of type string; cast it"):
        backfill(topology, {"words": InputRows(rows=frame, timestamp="value")})
    with pytest.raises(ConfigError, match="must be a data frame of Spark, or InputRows"):
        backfill(topology, {"words": [("a", 1)]})
    with pytest.raises(ConfigError, match="seed=True needs a cut"):
        backfill(topology, {"words": InputRows(rows=frame, timestamp="at")}, seed=True)
