"""The long version of the fault tests: ``python -m tests.spark.faults.soak --kills 60``.

The application is killed with -9 at random moments, from its first second on, and started again, at once or when its
last process has ended. Meanwhile its input grows, functions fail, workers and executors are killed or sleep and wake up
late, all of it is frozen and deposed by another one, working copies are damaged, the disk is full for a while, and a
standalone cluster loses a worker and gets another one. With ``--log kafka`` its broker is away, once for 50 s, which it
must survive, others leave transactions open, and machines come and are lost that share no directory, with standby
copies and with warm-up copies alone. In the end its output is compared with that of a run that nobody disturbs, and
with what Python finds itself.
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
from collections.abc import Callable
from pathlib import Path

from tests.spark.faults import shop
from tests.spark.faults.disturbed import Disturbed
from tests.spark.faults.machines import why_there_are_none
from tests.spark.faults.processes import Process, no_room
from tests.spark.faults.standalone import Standalone

_ORDERS_PER_RUN = 250
_OTHER_RUNS = 5
_SHARES = 0.6
"""Of the input; the rest is fed by the way, a little with each kind of trouble."""
_WAYS = ("delete", "garbage", "truncate")
_AWAY_S = (50.0, 10.0)
"""How long the broker is away, the first times; later ones are drawn."""


_KILLS_FOR_ALL = 24
"""After so many the broker was away as often as there are times."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Disturbs an application, and checks that nobody can tell.")
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--log", choices=["embedded", "kafka"], default="embedded")
    parser.add_argument("--skip-clusters", action="store_true", help="leave out executors and standalone workers")
    options = parser.parse_args()
    say(f"seed {options.seed}, {options.kills} kills, {options.log} log")
    directory = Path(tempfile.mkdtemp(prefix="headrace-soak-"))
    orders = _ORDERS_PER_RUN * (options.kills + _OTHER_RUNS)
    with Disturbed(directory, orders=orders, seed=options.seed, kafka=options.log == "kafka") as run:
        share = _SHARES / (options.kills + _OTHER_RUNS)
        run.feed(share)
        for number in range(options.kills):
            kill_once(run, number, share)
        if not options.skip_clusters:
            lose_executors(run, share)
            exchange_workers(run, share)
            if run.has_broker and why_there_are_none() is None:
                lose_machines(run, share)
        run.feed_rest()
        run.start(until_end=True)
        run.wait_for_end()
        say(run.check())
        if run.has_broker and options.kills >= _KILLS_FOR_ALL:
            assert set(_AWAY_S) <= set(run.outages), run.outages
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
        if number % 7 == 6:
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
    kinds.append("another one took over while it was frozen")
    if run.has_broker:
        kinds += ["the broker was stopped for a while", "somebody left a transaction open"]
    kind = kinds[number % len(kinds)]
    if kind == "the broker was stopped for a while":
        times = len(run.outages)
        away_s = _AWAY_S[times] if times < len(_AWAY_S) else run.chance.uniform(0, 10)
        lose_broker(run, away_s)
        kind = f"the broker was stopped for {away_s:.1f} s"
    elif kind == "somebody left a transaction open":
        with run.foreign_transaction(15):
            time.sleep(run.chance.uniform(0, 5))
    elif kind == "a worker was killed":
        run.pick(lambda process: process.is_worker).kill()
    elif kind == "working copies were damaged":
        run.damage_copies(*_WAYS)
    elif kind == "another one took over while it was frozen":
        depose(run)
    elif kind == "the JVM died":
        run.pick(lambda process: process.is_driver).kill()
        run.feed(0.002)
        say(f"  {run.wait_for_failure('its Java process has ended')[:300]}")
    elif kind == "the disk was full":
        # All of it, the working copies, or the log.
        parts: list[Callable[[Process], bool]] = [
            lambda process: True,
            lambda process: process.is_python,
            lambda process: process.pid == run.pid,
        ]
        choice = number // 5 % len(parts)
        with no_room([process for process in run.processes() if parts[choice](process)], 4096):
            run.feed(0.002)
            if choice == 1 or run.has_broker:
                # A copy that is not written yet, and a log that is elsewhere, need no room.
                time.sleep(run.chance.uniform(0, 5))
            else:
                say(f"  {run.wait_for_failure()[:300]}")
    if kind != "nothing else":
        run.feed(0.002)
        run.wait_for_batches(1)
    return kind


def lose_broker(run: Disturbed, away_s: float) -> None:
    """Takes the broker away while there is something to do; the application must wait for it, and go on by itself."""
    run.feed(0.002)
    before = len(run.events())
    # Who feeds has no such patience.
    with run.not_feeding():
        run.stop_broker()
        time.sleep(away_s)
        run.start_broker()
    run.outages.append(away_s)
    run.feed(0.002)
    run.wait_for_batches(1)
    # Functions fail now and then, which is told as well.
    missed = [event["error"] for event in run.events()[before:] if event["event"] == "failure"]
    assert not [error for error in missed if "Kafka at" in error], missed


def depose(run: Disturbed) -> None:
    """Lets another instance take over, on another machine, while all of this one sleeps; then wakes it up."""
    run.freeze()
    run.start(settings={"state.dir": str(run.directory / "elsewhere"), "log.dir": str(run.directory / "log")})
    run.wait_for_batches(1, "on another machine")
    run.feed(0.002)
    end = run.thaw()
    assert end.startswith("FencedError: "), end
    run.feed(0.002)


def lose_executors(run: Disturbed, share: float) -> None:
    run.start("local-cluster[2,1,1024]")
    run.wait_for_batches(1, "on a local cluster")
    for _ in range(3):
        with run.feeding(share / 3, 1.0):
            run.pick(lambda process: process.is_executor).kill()
            begun = time.monotonic()
            run.feed(share / 30)
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


def lose_machines(run: Disturbed, share: float) -> None:
    """Loses an executor's machine, then the driver's, and processes the rest of the input on another one.

    No machine sees a directory of another one.
    """
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "600m",
        "spark.executor.cores": "1",
        "spark.cores.max": "3",
        "acceptable.recovery.lag": "100",
        "probing.rebalance.interval.ms": "1000",
    }
    part = share / 6
    with Standalone(run.directory / "standalone") as cluster:
        first = cluster.add_machine(run.directory)
        cluster.add_machine(run.directory)
        run.feed(part)
        run.start(cluster.remote_address, own_machine=True, settings={**settings, "num.standby.replicas": "1"})
        run.wait_for_batches(1, "on machines of their own")
        with run.feeding(part, 1.0):
            run.wait_for_batches(2)
            first.kill()
            begun = time.monotonic()
        run.feed(part)
        run.wait_for_batches(1)
        say(f"a machine was lost: the next batch was done after {time.monotonic() - begun:.1f} s")
        cluster.add_machine(run.directory)
        with run.feeding(part, 3.0):
            run.wait_for_batches(2)
        run.wait_for_orphans(run.kill())
        run.start(cluster.remote_address, own_machine=True, settings=settings)
        run.feed(part)
        run.wait_for_batches(1, "with an empty directory")
        cluster.add_machine(run.directory)
        with run.feeding(part, 5.0):
            run.wait_for_batches(2)
        run.feed_rest()
        run.wait_until_idle()
        run.wait_for_orphans(run.kill())


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
