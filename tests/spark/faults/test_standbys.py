"""A cluster of machines that share no directory: one joins and gets slots when it is warm, one is lost to a standby."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.topics.kafka import KafkaLog
from tests.spark.faults.counting_run import Counting
from tests.spark.faults.machines import why_there_are_none
from tests.spark.faults.standalone import Standalone

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

KEYS = 4_000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Standalone]:
    reason = why_there_are_none()
    if reason is not None:
        pytest.skip(reason)
    with Standalone(tmp_path / "standalone") as made:
        yield made


def test_a_machine_joins_when_it_is_warm_and_takes_over_when_another_is_lost(
    cluster: Standalone, kafka: KafkaLog, tmp_path: Path
) -> None:
    directory = tmp_path / "machine"
    first = cluster.add_machine(directory)
    counting = Counting(kafka, cluster, directory, partitions=2, num_standby_replicas=1, acceptable_recovery_lag=0)
    try:
        counting.feed(range(KEYS))
        counting.wait_for_counts()
        assert not counting.said()
        counting.wait_until(lambda: counting.states()[-1:] == ["RUNNING"], "it runs")
        states = len(counting.states())
        # A second machine joins. One of the slots goes there, when its copy has all of the state.
        cluster.add_machine(directory)
        counting.wait_until(lambda: any("moves from" in said for said in counting.said()), "a slot moves")
        said = counting.said()
        (moved,) = [each for each in said if "moves from" in each]
        slot = int(moved.split()[1])
        assert moved == f"slot {slot} moves from executor_127.0.0.2_0 to executor_127.0.0.3_1"
        assert said.index(f"the copy of slot {slot} on 127.0.0.3 is caught up") < said.index(moved)
        before = len(counting.restored())
        counting.feed(range(100))
        counting.wait_for_counts()
        restored = counting.restored()[before:]
        assert {task for batch in restored for task in batch} == {"0_0", "0_1"}
        assert sum(sum(batch.values()) for batch in restored) == 0
        # Nothing had to be restored, and the move was told.
        counting.wait_until(lambda: counting.states()[states:][:2] == ["REBALANCING", "RUNNING"], "the move is told")
        # The one that has moved leaves a standby behind. The other one has had one for long.
        counting.wait_for_copy(slot, "127.0.0.2")
        # The first machine is lost while it works.
        before = len(counting.restored())
        counting.feed(range(200))
        first.kill()
        counting.feed(range(300))
        counting.wait_for_counts()
        # At most what was fed since its standby was last seen without anything missing, of thousands.
        restored = counting.restored()[before:]
        assert sum(sum(batch.values()) for batch in restored) <= 100 + 200 + 300
    finally:
        counting.kill()
