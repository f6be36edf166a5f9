"""How fast is a backfill, next to the live engine on the same records, and to a native batch job of Spark?

Purchases, and payments for the join, lie in Parquet files and in an embedded log. The backfill and the native job read
the files, the engine reads the log. Each measurement has a process of its own; a backfill and a native job are
measured from the first read to the last result, the engine after its warm-up. The answers are compared. The largest
private memory of the backfill's processes is shown: ``--keys 10000000`` makes a state that no worker has in memory.

    python -m benchmarks.backfill [--records 20000000] [--keys 100000] [--only bdf] [--sides backfill,live,native]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.engine import run_headrace
from benchmarks.engine_load import (
    PAYMENTS,
    PURCHASES,
    Load,
    comparison_options,
    payments,
    slices,
    write_file,
    written_load,
)
from benchmarks.engine_measure import Answer, check_answers, read_load
from benchmarks.engine_native import FILES, SETTINGS, count_by_key, windowed_count
from benchmarks.engine_programs import JOIN_MS, PROGRAMS
from benchmarks.process_tree import usage

SIDES = ("backfill", "live", "native")
TARGET = 1.5
"""How many times the rate of the live engine is asked for."""
OUT = "out"


@dataclass(frozen=True)
class Done:
    """One measurement."""

    records: int
    seconds: float
    answer: Answer
    memory: int = 0
    """The largest private memory of all processes together, in bytes."""

    @property
    def rate(self) -> float:
        return self.records / self.seconds


def write_payments(directory: Path, load: Load) -> None:
    """Writes the payments to Parquet, unless they are there already."""
    place = directory / "payments-files"
    note = place / "load.json"
    if note.exists() and note.read_text() == json.dumps(asdict(load)):
        return
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for number, part in enumerate(slices(payments(load), max(1, load.batch))):
        write_file(place / f"{number:05}.parquet", part)
    note.write_text(json.dumps(asdict(load)))


def session(work: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.local.dir", str(work))
    for key, value in SETTINGS.items():
        if "streaming" not in key:
            builder = builder.config(key, value)
    spark = builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def frames(spark: SparkSession, directory: Path, name: str) -> dict[str, DataFrame]:
    places = {PURCHASES: directory / "files", PAYMENTS: directory / "payments-files"}
    return {
        topic: spark.read.schema(FILES).option("pathGlobFilter", "*.parquet").parquet(str(places[topic]))
        for topic in PROGRAMS[name].inputs
    }


def run_backfill(spark: SparkSession, inputs: dict[str, DataFrame], name: str) -> Answer:
    from headrace.spark import backfill

    # Texts hold JSON: as bytes they are what a topic has.
    rows = {
        topic: frame.select(F.col("key").cast("binary"), F.col("value").cast("binary"), "timestamp")
        for topic, frame in inputs.items()
    }
    program = PROGRAMS[name]
    with backfill(program.build(OUT), rows, {"statestore.cache.max.bytes": 1 << 30}, tasks=2) as done:
        if not program.counts:
            return Answer(done.counts[OUT], 0)
        # Counts only grow, so the largest is the last one.
        last = done.output(OUT, "key binary, value long").groupBy("key").agg(F.max("value").alias("count"))
        count, total = last.agg(F.count("*"), F.sum("count")).collect()[0]
        return Answer(count, total)


def run_native(_spark: SparkSession, inputs: dict[str, DataFrame], name: str) -> Answer:
    if name != "f":
        result = {"b": count_by_key, "d": windowed_count}[name](inputs[PURCHASES])
        count, total = result.agg(F.count("*"), F.sum("count")).collect()[0]
        return Answer(count, total)
    left = inputs[PURCHASES].select("key", F.unix_millis("timestamp").alias("bought"))
    right = inputs[PAYMENTS].select("key", F.unix_millis("timestamp").alias("paid"))
    near = F.abs(F.col("bought") - F.col("paid")) <= JOIN_MS
    return Answer(left.join(right, "key").where(near).count(), 0)


def measure_here(directory: Path, side: str, name: str) -> Done:
    """Runs one side in this process."""
    load = read_load(directory)
    work = Path(tempfile.mkdtemp(prefix="backfill-", dir=directory))
    spark = session(work)
    most, is_over = [0], threading.Event()

    def watch() -> None:
        while not is_over.wait(0.5):
            most[0] = max(most[0], sum(part.private for part in usage(os.getpid()).values()))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        inputs = frames(spark, directory, name)
        began = time.perf_counter()
        answer = {"backfill": run_backfill, "native": run_native}[side](spark, inputs, name)
        seconds = time.perf_counter() - began
    finally:
        is_over.set()
        watcher.join()
        spark.stop()
        shutil.rmtree(work, ignore_errors=True)
    return Done(records_of(load, name), seconds, answer, most[0])


def records_of(load: Load, name: str) -> int:
    share = {PURCHASES: load.total, PAYMENTS: (load.total + 1) // 2}
    return sum(share[topic] for topic in PROGRAMS[name].inputs)


def measure(directory: Path, side: str, name: str) -> Done:
    load = read_load(directory)
    if side == "live":
        found = run_headrace(directory, PROGRAMS[name], load)
        return Done(records_of(load, name), records_of(load, name) / found.rate, found.answer)
    command = [sys.executable, "-m", "benchmarks.backfill", "--here", side, "--only", name]
    done = subprocess.run([*command, "--directory", str(directory)], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        message = f"{side} of ({name}) failed; see above"
        raise SystemExit(message)
    found_json: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return Done(**{**found_json, "answer": Answer(**found_json["answer"])})


def compare(directory: Path, load: Load, names: str, sides: list[str]) -> bool:
    """Prints the table; returns whether all targets are met."""
    print(f"{load.total:,} purchases, {load.keys:,} keys; records/s")
    print(
        f"{'':<28}" + "".join(f"{side:>12}" for side in SIDES) + f"{'/live':>8}{'/native':>9}{'memory':>12}", flush=True
    )
    all_met = True
    for name in names:
        found = {side: measure(directory, side, name) for side in sides}
        check_answers(name, {side: each.answer for side, each in found.items()})
        print(_line(name, found), flush=True)
        if "backfill" in found and "live" in found:
            all_met &= found["backfill"].rate >= TARGET * found["live"].rate
    return all_met


def _line(name: str, found: dict[str, Done]) -> str:
    ours = found.get("backfill")
    rates = "".join(f"{found[side].rate:>12,.0f}" if side in found else f"{'–':>12}" for side in SIDES)
    ratios = "".join(
        f"{ours.rate / found[side].rate:>{width}.2f}" if ours is not None and side in found else f"{'–':>{width}}"
        for side, width in (("live", 8), ("native", 9))
    )
    memory = f"{ours.memory / 2**20:>9,.0f} MB" if ours is not None else ""
    return f"({name}) {PROGRAMS[name].title:<24}{rates}{ratios}{memory}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    comparison_options(parser, records=19_000_000, only="bdf", sides=SIDES)
    parser.add_argument("--here", choices=("backfill", "native"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(asdict(measure_here(options.directory, options.here, options.only))))
        return
    with written_load(options) as (directory, load):
        write_payments(directory, load)
        met = compare(directory, load, options.only, options.sides.split(","))
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
