"""Command of the simulation: runs histories for a time, or one again with a trace of its steps.

python -m tests.simulation --seconds 3600
python -m tests.simulation --log kafka --seed 4711
python -m tests.simulation --switch run-again --histories 200
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import random
import sys
import time
import traceback
from collections.abc import Iterator

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
        _tell(logs[0], result, options.switch)
        return result.violation is not None
    first = options.first
    if first is None:
        first = random.randrange(1 << 40) if switch is None else switch.first
    print(f"seeds from {first}, logs: {', '.join(logs)}", flush=True)
    begun, violations = time.monotonic(), 0
    for number, log in enumerate(logs):
        # The embedded log has fewer steps between which anything can happen.
        share = 1.0 if len(logs) == 1 else (0.8, 0.2)[number]
        until = math.inf if options.seconds is None else time.monotonic() + share * options.seconds
        violations += _run(log, first, until, options)
    print(f"{time.monotonic() - begun:.0f} s, violations: {violations}", flush=True)
    return violations > 0


def _run(log: str, first: int, until: float, options: argparse.Namespace) -> int:
    switch = None if options.switch is None else BY_NAME[options.switch]
    begun, count, steps, batches, violations = time.monotonic(), 0, 0, 0, 0
    told = begun
    for result in run_histories(log, _seeds(first, until, options.histories), switch):
        count, steps, batches = count + 1, steps + result.steps, batches + result.batches
        if result.violation is not None:
            violations += 1
            _tell(log, result, options.switch)
            if violations >= _MOST_VIOLATIONS or options.until_found:
                break
        if time.monotonic() - told > _TELL_EVERY_S:
            told = time.monotonic()
            print(f"  {log}: {count} histories so far, {violations} violations", flush=True)
    minutes = (time.monotonic() - begun) / 60
    print(
        f"{log}: {count} histories, {count / minutes:.0f} a minute; {batches} micro-batches, {steps} steps; "
        f"{violations} violations",
        flush=True,
    )
    return violations


def _seeds(first: int, until: float, most: int | None) -> Iterator[int]:
    number = 0
    while time.monotonic() < until and (most is None or number < most):
        yield first + number
        number += 1


def _tell(log: str, result: Result, switch: str | None) -> None:
    if result.violation is None:
        print(f"seed {result.seed} on {log}: {result.batches} micro-batches, {result.steps} steps, nothing wrong")
        return
    option = "" if switch is None else f" --switch {switch}"
    print(f"seed {result.seed} on {log}: {type(result.violation).__name__}: {result.violation}")
    if not isinstance(result.violation, Violation):
        traceback.print_exception(result.violation, limit=-8)
    print(f"  again, with its steps: python -m tests.simulation --log {log}{option} --seed {result.seed}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seconds", type=float, default=None, help="how long histories are run")
    parser.add_argument("--histories", type=int, help="how many are run at the most, on each log")
    parser.add_argument("--until-found", action="store_true", help="stop at the first violation")
    parser.add_argument("--first", type=int, help="the first seed; a random one otherwise")
    parser.add_argument("--seed", type=int, help="run this history only, and print its steps")
    parser.add_argument("--log", action="append", choices=sorted(RUNS), help="by default all of them")
    parser.add_argument("--switch", choices=sorted(BY_NAME), help="do not keep this rule")
    return parser


if __name__ == "__main__":
    sys.exit(main())
