"""The plain PySpark Structured Streaming queries that the engine is compared with, each in a process of its own.

Written as somebody would who knows Spark: a schema for the JSON, so that only the fields in use are taken out of it;
the RocksDB state store with changelog checkpoints; as many shuffle partitions as there are cores; a watermark. Spark's
own settings are those that our engine uses, but the JVM keeps its defaults: these queries do their work in it, and its
optimising compiler helps them. Results go to the ``noop`` sink, which takes every row and stores nothing.

Two variants are there to show what the comparison depends on: with Spark's default state store, which keeps everything
on the JVM's heap, and without parsing, because a count by the record's key alone needs no value.

    python -m benchmarks.engine_native DIRECTORY PROGRAM [--master local[2]]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.engine_load import Load
from benchmarks.engine_measure import Answer, Batch, Measured, read_load, steady
from benchmarks.engine_programs import GRACE_MS, WINDOW_MS

FILES = "key string, value string, timestamp timestamp"
PURCHASE = "id long, amount double, item string, card string, quantity int, at long"

CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.sql.streaming.checkpointFileManagerClass": f"{CHECKPOINTING}.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}


def _parsed(purchases: DataFrame) -> DataFrame:
    return purchases.withColumn("purchase", F.from_json("value", PURCHASE))


def parse_filter_map(purchases: DataFrame) -> DataFrame:
    masked = F.concat(F.lit("xxxx-"), F.substring("purchase.card", -4, 4))
    return (
        _parsed(purchases)
        .where("purchase.amount > 50")
        .select("key", "timestamp", F.to_json(F.col("purchase").withField("card", masked)).alias("value"))
    )


def count_by_key(purchases: DataFrame) -> DataFrame:
    return _parsed(purchases).where("purchase.amount > 5").groupBy("key").count()


def count_without_parsing(purchases: DataFrame) -> DataFrame:
    return purchases.groupBy("key").count()


def windowed_count(purchases: DataFrame) -> DataFrame:
    return (
        _parsed(purchases.withWatermark("timestamp", f"{GRACE_MS} milliseconds"))
        .where("purchase.amount > 5")
        .groupBy("key", F.window("timestamp", f"{WINDOW_MS} milliseconds"))
        .count()
    )


QUERIES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "a": parse_filter_map,
    "b": count_by_key,
    "d": windowed_count,
    "b, not parsed": count_without_parsing,
    "b, state on the heap": count_by_key,
    "d, state on the heap": windowed_count,
}


def answer(spark: SparkSession, name: str, files: str) -> Answer:
    """Returns what the query must have given: the same transformation of all files at once."""
    result = QUERIES[name](spark.read.schema(FILES).parquet(files))
    if name == "a":
        return Answer(result.count(), 0)
    rows, total = result.agg(F.count("*"), F.sum("count")).collect()[0]
    return Answer(rows, total)


def run(directory: Path, name: str, load: Load, master: str) -> Measured:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    work = Path(tempfile.mkdtemp(prefix="native-", dir=directory))
    builder = SparkSession.builder.master(master).config("spark.sql.shuffle.partitions", 2)
    builder = builder.config("spark.local.dir", str(work))
    for key, value in SETTINGS.items():
        if "stateStore" not in key or not name.endswith("on the heap"):
            builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        files = str(directory / "files")
        purchases = spark.readStream.schema(FILES).option("maxFilesPerTrigger", load.files_per_batch).parquet(files)
        query = (
            QUERIES[name](purchases)
            .writeStream.format("noop")
            .outputMode("append" if name == "a" else "update")
            .option("checkpointLocation", str(work / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        batches = []
        for progress in query.recentProgress:
            end = datetime.fromisoformat(progress.timestamp).timestamp() + progress.batchDuration / 1000
            batches.append(Batch(progress.numInputRows, end, progress.batchDuration))
        return steady(batches, load.warm_up, load.total, answer(spark, name, files))
    finally:
        spark.stop()
        shutil.rmtree(work, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("program", choices=sorted(QUERIES))
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    measured = run(options.directory, options.program, read_load(options.directory), options.master)
    print(json.dumps(measured.to_json()))


if __name__ == "__main__":
    main()
