"""The benchmark of backfills at a tiny size: both sides that read files give the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.backfill import frames, run_backfill, run_native, write_payments
from benchmarks.engine_load import Load, write

pytestmark = pytest.mark.spark
LOAD = Load(records=2_000, warm_up=1_000, keys=100, batch=1_000)


@pytest.mark.parametrize("name", ["b", "d", "f"])
def test_backfill_and_native_job_agree(spark_context: None, tmp_path: Path, name: str) -> None:
    from pyspark.sql import SparkSession

    write(tmp_path, LOAD)
    write_payments(tmp_path, LOAD)
    spark = SparkSession.builder.getOrCreate()
    inputs = frames(spark, tmp_path, name)
    answer = run_backfill(spark, inputs, name)
    assert answer.rows > 50
    assert answer.agrees_with(run_native(spark, inputs, name))
