"""A cluster whose machines share no directory: everything that is needed for exact results is in Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.faults.disturbed import Disturbed
from tests.spark.faults.machines import why_there_are_none
from tests.spark.faults.soak import lose_machines

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_machines_that_share_no_directory_come_and_go(tmp_path: Path) -> None:
    reason = why_there_are_none()
    if reason is not None:
        pytest.skip(reason)
    with Disturbed(tmp_path, orders=600, seed=4, kafka=True) as run:
        lose_machines(run, 1.0)
        run.check()
