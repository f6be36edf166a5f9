"""How long is a task away whose machine is lost, with and without a standby copy on another one?

Count by key in one task, on Kafka, on a standalone cluster of two machines that share no directory: namespaces on this
one, so Linux and root are needed. When the task has all keys, its machine is killed with everything that runs on it.
The time is from there to the end of the next micro-batch; Spark notices the loss at once.

    python -m benchmarks.executor_loss [--keys 1000000]
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path

from headrace.devtools.kafka_broker import start_broker, stop_broker
from headrace.topics.kafka import KafkaLog
from tests.spark.faults.counting_run import Counting
from tests.spark.faults.machines import why_there_are_none
from tests.spark.faults.processes import MARK, marked
from tests.spark.faults.standalone import Standalone

_SECOND = "127.0.0.3"
_FEED = 100_000
_FEW = 1_000
_PATIENCE_S = 1_800.0


def measure(directory: Path, keys: int, standbys: int) -> tuple[float, int]:
    """Returns the seconds without a result, and how many records were restored."""
    broker = start_broker(directory / "kafka", port=0)
    mark = os.environ[MARK] = f"loss-{os.getpid()}-{standbys}"
    try:
        with KafkaLog(broker.address) as log, Standalone(directory / "standalone") as cluster:
            first = cluster.add_machine(directory / "machine")
            counting = Counting(
                log,
                cluster,
                directory / "machine",
                partitions=1,
                patience_s=_PATIENCE_S,
                num_standby_replicas=standbys,
            )
            try:
                for start in range(0, keys, _FEED):
                    counting.feed(range(start, min(start + _FEED, keys)))
                counting.wait_for_batches()
                cluster.add_machine(directory / "machine")
                if standbys:
                    counting.wait_for_copy(0, _SECOND)
                else:
                    counting.wait_until(lambda: _has_executor(mark), "there is a second executor")
                before = len(counting.restored())
                first.kill()
                begun = time.perf_counter()
                counting.feed(range(_FEW))
                counting.wait_for_batches()
                seconds = time.perf_counter() - begun
                return seconds, sum(sum(batch.values()) for batch in counting.restored()[before:])
            finally:
                counting.kill()
    finally:
        stop_broker(directory / "kafka")


def _has_executor(mark: str) -> bool:
    """Returns whether the second machine runs an executor, long enough to be known to the driver."""
    found = any(process.is_executor and _SECOND in process.command for process in marked(mark))
    if found:
        time.sleep(5)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000)
    options = parser.parse_args()
    reason = why_there_are_none()
    if reason is not None:
        raise SystemExit(reason)
    print(f"loss of the machine of a task with {options.keys:,} keys")
    print(f"{'standbys':>10}{'away, s':>10}{'restored records':>18}")
    for standbys in (0, 1):
        directory = Path(tempfile.mkdtemp(prefix="headrace-loss-"))
        try:
            seconds, restored = measure(directory, options.keys, standbys)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        print(f"{standbys:>10}{seconds:>10.1f}{restored:>18,}", flush=True)


if __name__ == "__main__":
    main()
