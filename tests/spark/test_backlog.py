"""A backlog on Spark; see ``tests/batches/test_backlog.py``."""

from __future__ import annotations

import pytest

from tests.batches.test_backlog import build, expected, fill, results
from tests.spark.stand import Stand


@pytest.mark.spark
@pytest.mark.both_logs
def test_backfill_on_spark(stand: Stand) -> None:
    fill(stand.log)
    stand.run(build, statestore_cache_max_bytes=0, max_batch_records=4_000)
    assert len(stand.batches) > 5
    assert sum(batch.late + batch.dropped for batch in stand.batches) == 0
    assert results(stand.log) == expected()
