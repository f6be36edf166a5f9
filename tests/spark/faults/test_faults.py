"""Nothing lost, nothing twice, whatever happens; ``soak.py`` does the same for longer.

Input arrives while the application runs, and user functions fail now and then in all of these tests.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.spark.faults.disturbed import Disturbed
from tests.spark.faults.soak import kill_once

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found in /proc"),
]


KILLS = 8
"""``make soak`` has more."""


def test_killed_application_goes_on_where_it_was(tmp_path: Path) -> None:
    with Disturbed(tmp_path, orders=200 * KILLS, seed=1) as run:
        share = 1 / (KILLS + 1)
        run.feed(share)
        for number in range(KILLS):
            kill_once(run, number, share)
        run.feed_rest()
        run.start(until_end=True)
        run.wait_for_end()
        run.check()


def test_executor_is_killed(tmp_path: Path) -> None:
    with Disturbed(tmp_path, orders=600, seed=2) as run:
        run.feed(0.4)
        run.start("local-cluster[2,1,1024]")
        run.wait_for_batches(1)
        with run.feeding(0.4, 1.0):
            run.pick(lambda process: process.is_executor).kill()
            run.feed(0.01)
            run.wait_for_batches(1)
        run.feed_rest()
        run.wait_until_idle()
        run.wait_for_orphans(run.kill())
        run.check()


@pytest.mark.kafka
def test_results_on_kafka_are_there_once(tmp_path: Path) -> None:
    with Disturbed(tmp_path, orders=600, seed=3, kafka=True) as run:
        run.feed(0.2)
        run.start()
        with run.feeding(0.2, 2.0):
            run.wait_for_batches(2)
            # Writers that sleep, and wake up when others have done their work.
            zombies = [process for process in run.processes() if process.is_worker]
            for zombie in zombies:
                zombie.kill(signal.SIGSTOP)
        left = run.kill()
        run.damage_copies("delete", "garbage", "truncate")
        run.start("local-cluster[2,1,1024]")
        with run.feeding(0.2, 1.0):
            run.wait_for_batches(2)
            for zombie in zombies:
                zombie.kill(signal.SIGCONT)
        run.wait_for_orphans(left)
        run.stop_broker()
        run.start_broker()
        run.feed(0.1)
        run.wait_for_batches(1)
        # Longer than a batch waits for its results to be seen.
        with run.foreign_transaction(6), run.feeding(0.1, 1.0):
            run.pick(lambda process: process.is_executor).kill()
            run.feed(0.01)
            run.wait_for_batches(1)
        run.feed_rest()
        run.wait_until_idle()
        run.wait_for_orphans(run.kill())
        run.check()
