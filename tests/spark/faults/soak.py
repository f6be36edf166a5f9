"""The long version of the fault tests: ``python -m tests.spark.faults.soak --kills 20``.

The application is killed with -9 at random moments, from its first second on, and started again, at once or when its
last process has ended. Meanwhile its input grows, functions fail, workers and executors are killed or sleep and wake up
late, working copies are damaged, the disk is full for a while, and a standalone cluster loses a worker and gets another
one. In the end its output is compared with that of the same plans, run by Spark without any of this, and with what
Python finds itself. With ``--log kafka`` its broker is restarted, too, and others leave transactions open; which record
stands where is then not to be repeated, so the output is compared with what Python finds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from headrace.spark.layout import Program
from headrace.spark.plan import Plan
from headrace.spark.query import Query
from headrace.spark.receipts import TaskReport
from headrace.topics.embedded import EmbeddedLog
from tests.spark.faults import checks, shop
from tests.spark.faults.disturbed import Disturbed
from tests.spark.faults.processes import Process, no_room
from tests.spark.faults.standalone import Standalone

_ORDERS_PER_RUN = 250
_OTHER_RUNS = 4
_WAYS = ("delete", "garbage", "truncate")


class Recorded:
    """Plans batches as they were planned before."""

    lag = 0

    def __init__(self, plans: Sequence[Plan]) -> None:
        self._plans = plans

    def next_plan(self, batch_id: int) -> Plan | None:
        return self._plans[batch_id] if batch_id < len(self._plans) else None

    def done(self, plan: Plan, reports: Sequence[TaskReport], duration_ms: float) -> None:
        """The next plan is known already."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Disturbs an application, and checks that nobody can tell.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--log", choices=["embedded", "kafka"], default="embedded")
    parser.add_argument("--skip-clusters", action="store_true", help="leave out executors and standalone workers")
    options = parser.parse_args()
    say(f"seed {options.seed}, {options.kills} kills, {options.log} log")
    directory = Path(tempfile.mkdtemp(prefix="headrace-soak-"))
    orders = _ORDERS_PER_RUN * (options.kills + _OTHER_RUNS)
    with Disturbed(directory, orders=orders, seed=options.seed, kafka=options.log == "kafka") as run:
        share = 1 / (options.kills + _OTHER_RUNS)
        run.feed(share)
        for number in range(options.kills):
            kill_once(run, number, share)
        if not options.skip_clusters:
            lose_executors(run, share)
            exchange_workers(run, share)
        run.feed_rest()
        run.start(available_now=True)
        run.wait_for_end()
        say(run.check())
        if not run.has_broker:
            compare_with_spark(run)
        tell_times(run)
    shutil.rmtree(directory)


def kill_once(run: Disturbed, number: int, share: float) -> None:
    """Runs the application with some trouble until it is killed."""
    chance = run.chance
    lost = number % 4 == 1
    if lost:
        run.damage_copies(*["delete"] * 100)
    elif chance.random() < 0.5:
        run.damage_copies(*chance.sample(_WAYS, chance.randrange(1, 4)))
    run.start()
    with run.feeding(share, 3.0):
        if number % 7 == 5:
            # Before or while the first batch runs.
            time.sleep(chance.uniform(0, 15))
            what = "early"
        else:
            run.wait_for_batches(1, "without working copies" if lost else "with working copies")
            what = trouble(run, number)
            time.sleep(chance.uniform(0, 3))
    # Now and then writers sleep, and wake up when others have done their work.
    sleepers = [process for process in run.processes() if process.is_worker] if number % 3 == 2 else []
    for sleeper in sleepers:
        sleeper.kill(signal.SIGSTOP)
    left = run.kill()
    for sleeper in sleepers:
        threading.Timer(chance.uniform(0, 30), sleeper.kill, [signal.SIGCONT]).start()
    if not sleepers and chance.random() < 0.5:
        run.wait_for_orphans(left)
    last = run.log.last_batch(shop.APPLICATION)
    say(f"kill {number + 1}: {what}; {last.batch_id + 1 if last else 0} batches so far")


def trouble(run: Disturbed, number: int) -> str:
    kinds = ["nothing else", "a worker was killed", "working copies were damaged", "the disk was full", "the JVM died"]
    if run.has_broker:
        kinds += ["the broker was stopped for a while", "somebody left a transaction open"]
    kind = kinds[number % len(kinds)]
    if kind == "the broker was stopped for a while":
        run.stop_broker()
        time.sleep(run.chance.uniform(0, 10))
        run.start_broker()
    elif kind == "somebody left a transaction open":
        with run.foreign_transaction(15):
            time.sleep(run.chance.uniform(0, 5))
    elif kind == "a worker was killed":
        run.pick(lambda process: process.is_worker).kill()
    elif kind == "working copies were damaged":
        run.damage_copies(*_WAYS)
    elif kind == "the JVM died":
        run.pick(lambda process: process.is_driver).kill()
        say(f"  {run.wait_for_failure()[:300]}")
    elif kind == "the disk was full":
        # Spark's state, the working copies, or plans and the log.
        parts: list[Callable[[Process], bool]] = [
            lambda process: True,
            lambda process: process.is_python,
            lambda process: process.pid == run.pid,
        ]
        if run.has_broker:
            # Plans are small enough for this disk, and the log is elsewhere.
            del parts[2]
        part = parts[number // 5 % len(parts)]
        with no_room([process for process in run.processes() if part(process)], 4096):
            run.feed(0.002)
            say(f"  {run.wait_for_failure()[:300]}")
    if kind != "nothing else":
        run.feed(0.002)
        run.wait_for_batches(1)
    return kind


def lose_executors(run: Disturbed, share: float) -> None:
    run.start("local-cluster[2,1,1024]")
    run.wait_for_batches(1, "on a local cluster")
    for _ in range(3):
        with run.feeding(share / 3, 1.0):
            run.pick(lambda process: process.is_executor).kill()
            begun = time.monotonic()
            run.wait_for_batches(1)
        say(f"executor killed: the next batch was done after {time.monotonic() - begun:.1f} s")
    run.wait_for_orphans(run.kill())


def exchange_workers(run: Disturbed, share: float) -> None:
    with Standalone(run.directory / "standalone") as cluster:
        first = cluster.add_worker()
        settings = {"spark.executor.memory": "800m", "spark.executor.cores": "1", "spark.cores.max": "2"}
        run.start(cluster.address, settings=settings)
        run.feed(share / 3)
        run.wait_for_batches(1, "on a standalone cluster")
        cluster.add_worker()
        run.feed(share / 3)
        run.wait_for_batches(2)
        first.kill()
        first.wait()
        begun = time.monotonic()
        run.feed(share / 3)
        run.wait_for_batches(2)
        say(f"a worker joined, another left: two batches were done after {time.monotonic() - begun:.1f} s")
        run.wait_for_orphans(run.kill())


def compare_with_spark(run: Disturbed) -> None:
    """Runs the same plans on Spark, in this process, without any trouble."""
    plans = run.plans()
    directory = run.directory / "on-spark"
    with EmbeddedLog(directory / "log", sync="none") as log:
        for topic in run.log.topics():
            log.create_topic(topic, partitions=run.log.describe_topic(topic).partitions)
        shop.append(log, run.inputs)
        checkpoint = directory / "checkpoint"
        checkpoint.mkdir()
        saved = run.directory / shop.APPLICATION / "checkpoint" / "headrace.json"
        shutil.copy(saved, checkpoint)
        program = Program.on(log, shop.build(), shop.config(directory, "local[2]"))
        query = Query({"": program}, log, directory=directory / "state", checkpoint=checkpoint)
        query.run(Recorded(plans), on_batch=lambda report, tasks: None)
        count = checks.check_equal(run.log, log)
    say(f"Spark has written the same {count} records undisturbed")


def tell_times(run: Disturbed) -> None:
    for special in dict(run.restarts):
        times = sorted(seconds for what, seconds in run.restarts if what == special)
        median = statistics.median(times)
        say(
            f"start to first batch {special}: median {median:.1f} s, {times[0]:.1f} to {times[-1]:.1f} s ({len(times)})"
        )
    say(f"the last process of a killed application ended after {max(run.orphans, default=0):.1f} s at most")
    print(json.dumps({"restarts": run.restarts, "orphans": run.orphans}))


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
