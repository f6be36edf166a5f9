"""Command of the simulation: runs histories for a time, or one again with a trace of its steps.

python -m tests.simulation --seconds 3600 --processes 2
python -m tests.simulation --log kafka --seed 4711
python -m tests.simulation --switch run-again --histories 200
"""

from __future__ import annotations

import argparse
import logging
import math
import multiprocessing
import os
import random
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import NamedTuple

from tests.simulation.invariants import Violation
from tests.simulation.rules import BY_NAME, EMBEDDED_SWITCHES
from tests.simulation.run_history import RUNS, Result, run_histories, run_history

_MOST_VIOLATIONS = 10
_SECONDS = 60.0
_TELL_EVERY_S = 60.0


def main() -> int:
    """Returns 1 if a violation was found."""
    options = _parser().parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Sets are iterated in the order of hashes: only with the same ones is a seed the same history.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])
    logging.disable(logging.CRITICAL)
    switch = None if options.switch is None else BY_NAME[options.switch]
    logs = options.log or (["embedded"] if switch in EMBEDDED_SWITCHES else list(RUNS) if switch is None else ["kafka"])
    if options.seed is None and options.seconds is None and options.histories is None:
        options.seconds = _SECONDS
    if options.seed is not None:
        result = run_history(logs[0], options.seed, switch, print)
        if result.violation is None:
            told = f"{result.batches} micro-batches, {result.steps} steps, nothing wrong"
            print(f"seed {result.seed} on {result.log}: {told}")
        else:
            print(_describe(result, options.switch))
        return result.violation is not None
    first = options.first
    if first is None:
        first = random.randrange(1 << 40) if switch is None else switch.first
    until = math.inf if options.seconds is None else time.monotonic() + options.seconds
    work = _Work(logs, first, until, options.histories, options.switch, options.processes)
    print(f"seeds from {first}, logs: {', '.join(logs)}, processes: {options.processes}", flush=True)
    return _tell_all(work, stop_at=1 if options.until_found else _MOST_VIOLATIONS) > 0


@dataclass(frozen=True)
class _Work:
    """Which histories are run: those of all seeds from the first on, on each log."""

    logs: Sequence[str]
    first: int
    until: float
    most: int | None
    switch: str | None
    processes: int

    def share(self, process: int) -> Iterator[_Ended]:
        """Runs the seeds of one of the processes."""
        switch = None if self.switch is None else BY_NAME[self.switch]
        for each in run_histories(self.logs, self._seeds(process), switch):
            violation = "" if each.violation is None else _describe(each, self.switch)
            yield _Ended(each.log, violation, each.steps, each.batches, each.seconds)

    def _seeds(self, process: int) -> Iterator[int]:
        number = process
        while time.monotonic() < self.until and (self.most is None or number < self.most):
            yield self.first + number
            number += self.processes


class _Ended(NamedTuple):
    """A history that is over."""

    log: str
    violation: str
    steps: int
    batches: int
    seconds: float


def _run(work: _Work) -> Iterator[_Ended]:
    if work.processes == 1:
        yield from work.share(0)
        return
    context = multiprocessing.get_context("fork")
    running: dict[Connection, ForkProcess] = {}
    for number in range(work.processes):
        receiver, sender = context.Pipe(duplex=False)
        running[receiver] = context.Process(target=_send_share, args=(work, number, sender), daemon=True)
        running[receiver].start()
        # Then its end is told when the process is over, however that comes about.
        sender.close()
    processes = list(running.values())
    try:
        while running:
            for ready in wait(list(running)):
                assert isinstance(ready, Connection), "nothing else was given"
                try:
                    yield ready.recv()
                except EOFError:
                    process = running.pop(ready)
                    process.join()
                    if process.exitcode:
                        message = f"a process of the simulation has ended with exit code {process.exitcode}"
                        raise RuntimeError(message) from None
    finally:
        for process in processes:
            process.terminate()


def _send_share(work: _Work, number: int, sender: Connection) -> None:
    for each in work.share(number):
        sender.send(each)


def _tell_all(work: _Work, stop_at: int) -> int:
    """Runs histories and prints what they come to; returns how many violations there are."""
    begun = told = time.monotonic()
    ended: dict[str, list[_Ended]] = {log: [] for log in work.logs}
    violations = 0
    for each in _run(work):
        ended[each.log].append(each)
        if each.violation:
            violations += 1
            print(each.violation, flush=True)
            if violations >= stop_at:
                break
        if time.monotonic() - told > _TELL_EVERY_S:
            told = time.monotonic()
            counts = ", ".join(f"{log}: {len(found)}" for log, found in ended.items())
            print(f"  {counts} histories so far, {violations} violations", flush=True)
    minutes = (time.monotonic() - begun) / 60
    for log, found in ended.items():
        busy = sum(each.seconds for each in found) / 60 / work.processes
        wrong = sum(bool(each.violation) for each in found)
        print(
            f"{log}: {len(found)} histories, {len(found) / max(busy, 1e-9):.0f} a minute while they ran; "
            f"{sum(each.batches for each in found)} micro-batches, {sum(each.steps for each in found)} steps; "
            f"{wrong} violations"
        )
    count = sum(map(len, ended.values()))
    print(
        f"{minutes * 60:.0f} s, {count} histories, {count / minutes:.0f} a minute, violations: {violations}", flush=True
    )
    return violations


def _describe(result: Result, switch: str | None) -> str:
    option = "" if switch is None else f" --switch {switch}"
    lines = [f"seed {result.seed} on {result.log}: {type(result.violation).__name__}: {result.violation}"]
    if result.violation is not None and not isinstance(result.violation, Violation):
        lines += map(str.rstrip, traceback.format_exception(result.violation, limit=-8))
    lines.append(f"  again, with its steps: python -m tests.simulation --log {result.log}{option} --seed {result.seed}")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seconds", type=float, default=None, help="how long histories are run")
    parser.add_argument("--histories", type=int, help="how many are run at the most, on each log")
    parser.add_argument("--processes", type=int, default=1, help="how many run histories at the same time")
    parser.add_argument("--until-found", action="store_true", help="stop at the first violation")
    parser.add_argument("--first", type=int, help="the first seed; a random one otherwise")
    parser.add_argument("--seed", type=int, help="run this history only, and print its steps")
    parser.add_argument("--log", action="append", choices=sorted(RUNS), help="by default all of them")
    parser.add_argument("--switch", choices=sorted(BY_NAME), help="do not keep this rule")
    return parser


if __name__ == "__main__":
    sys.exit(main())
