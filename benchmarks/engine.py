"""How fast is the engine, next to native PySpark queries and to hand-written loops?

Six programs over the same records: on the engine from an embedded log, as native Structured Streaming queries over
Parquet files where there is a target for it, and as a loop on one core that reads from the log and appends to it. Each
measurement has a process of its own; they take turns. Rates are those after the warm-up. The answers are compared, so
that a fast wrong one fails. What is and is not equal between the sides is in ``benchmarks/README.md``.

    python -m benchmarks.engine [--only abd] [--sides headrace,native,loop] [--variants] [--records 2000000] …
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.engine_load import START_MS, Load, comparison_options, written_load
from benchmarks.engine_loops import LOOPS
from benchmarks.engine_measure import Batch, Measured, answer_in, check_answers, inputs_of, read_load, steady
from benchmarks.engine_programs import PROGRAMS, Program
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.log import TopicLog

SIDES = ("headrace", "native", "loop")
VARIANTS = ("b, not parsed", "b, state on the heap", "d, state on the heap")


@contextmanager
def output(log: TopicLog, program: Program, load: Load) -> Iterator[str]:
    """Gives a new topic, and takes it away afterwards."""
    topic = f"out-{program.name}"
    if topic in log.topics():
        log.delete_topic(topic)
    log.create_topic(topic, partitions=load.partitions)
    try:
        yield topic
    finally:
        log.delete_topic(topic)


def warm_up(program: Program, load: Load) -> int:
    """Returns how many records of all inputs belong to the warm-up."""
    share = {"customers": load.keys, "payments": load.warm_up // 2, "purchases": load.warm_up}
    return sum(share[topic] for topic in program.inputs)


def run_loop(directory: Path, program: Program, load: Load) -> Measured:
    """Runs the hand-written loop in this process."""
    with EmbeddedLog(directory / "log") as log, output(log, program, load) as out:
        if program.changes_key:
            runs = [LOOPS[program.name]()] * load.partitions
        else:
            runs = [LOOPS[program.name]() for _ in range(load.partitions)]
        targets = [(topic, partition) for topic in program.inputs for partition in range(load.partitions)]
        starts = dict.fromkeys(targets, 0)
        ends = log.end_offsets(targets)
        step_ms = max(1, (load.end_ms - START_MS) * load.batch // load.total)
        batches = []
        for until_ms in range(START_MS + step_ms, load.end_ms + step_ms, step_ms):
            began = time.perf_counter()
            found = log.offsets_for_time(dict.fromkeys(targets, until_ms))
            stops = {target: ends[target] if offset is None else offset for target, offset in found.items()}
            for partition, run in enumerate(runs):
                batch = {
                    topic: log.read(
                        topic, partition, starts[topic, partition], stops[topic, partition], max_bytes=1 << 40
                    )
                    for topic in program.inputs
                }
                log.append(out, run(batch))
            ended = time.perf_counter()
            batches.append(Batch(sum(stops.values()) - sum(starts.values()), ended, (ended - began) * 1000))
            starts = stops
        answer = answer_in(log, out, program)
        return steady(batches, warm_up(program, load), inputs_of(log, program), answer)


def run_headrace(directory: Path, program: Program, load: Load) -> Measured:
    """Runs the topology on the engine, in a process of its own."""
    from benchmarks.engine_run import Task, backfill  # the other sides also run where Spark's engine does not

    application = f"bench-{program.name}"
    shutil.rmtree(directory / "state" / application, ignore_errors=True)
    with EmbeddedLog(directory / "log") as log, output(log, program, load) as out:
        log.reset_application(application)
        for topic in log.topics():
            if topic.startswith(f"{application}-"):
                log.delete_topic(topic)
        task = Task(
            program=program.name,
            application=application,
            directory=str(directory),
            out=out,
            max_batch_records=load.batch,
        )
        batches = [Batch(seen.records, seen.at, seen.duration_ms) for seen in backfill(task)]
        answer = answer_in(log, out, program)
        measured = steady(batches, warm_up(program, load), inputs_of(log, program), answer)
    shutil.rmtree(directory / "state" / application, ignore_errors=True)
    return measured


def in_a_process(*arguments: str) -> Measured:
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr)
        message = f"{' '.join(arguments)} failed"
        raise SystemExit(message)
    return Measured.of_json(json.loads(done.stdout.splitlines()[-1]))


def measure(directory: Path, program: Program, load: Load, side: str) -> Measured:
    if side == "native":
        return in_a_process("benchmarks.engine_native", str(directory), program.name)
    if side == "loop":
        return in_a_process("benchmarks.engine", "--loop", program.name, "--directory", str(directory))
    return run_headrace(directory, program, load)


def verdicts(program: Program, found: dict[str, Measured]) -> list[str]:
    """Says for each target of a program whether it is met."""
    ours = found.get("headrace")
    said = []
    if ours is not None and program.wanted is not None:
        said.append(f"{'met' if ours.rate >= program.wanted else 'MISSED'}: {program.wanted:,} records/s")
    if ours is not None and program.native_factor is not None and "native" in found:
        met = ours.rate >= program.native_factor * found["native"].rate
        said.append(f"{'met' if met else 'MISSED'}: {program.native_factor:g} × native")
    return said


def line(program: Program, found: dict[str, Measured]) -> str:
    """Returns a line of the table."""
    ours = found.get("headrace")
    rates = "".join(f"{found[side].rate:>12,.0f}" if side in found else f"{'–':>12}" for side in SIDES)
    ratios = "".join(
        f"{ours.rate / found[side].rate:>9.2f}" if ours is not None and side in found else f"{'–':>9}"
        for side in ("native", "loop")
    )
    shape = f"{ours.batch_records:>10,} in {ours.batch_ms:>5,.0f} ms" if ours is not None else f"{'–':>22}"
    return f"({program.name}) {program.title:<24}{rates}{ratios}{shape}  {'; '.join(verdicts(program, found))}"


def compare(directory: Path, load: Load, names: str, sides: list[str], rounds: int) -> bool:
    """Prints the table; returns whether all targets are met."""
    print(f"{load.records:,} records after {load.warm_up:,} of warm-up, {load.keys:,} keys, ", end="")
    print(f"{load.partitions} partitions, native batches of {load.batch:,}; records/s, best of {rounds}")
    head = "".join(f"{side:>12}" for side in SIDES)
    print(f"{'':<28}{head}{'/native':>9}{'/loop':>9}{'batch':>22}  targets", flush=True)
    all_met = True
    for name in names:
        program = PROGRAMS[name]
        found: dict[str, Measured] = {}
        for _ in range(rounds):
            for side in sides:
                if side == "native" and not program.has_native:
                    continue
                measured = measure(directory, program, load, side)
                if side not in found or measured.rate > found[side].rate:
                    found[side] = measured
        check_answers(name, {side: measured.answer for side, measured in found.items()})
        print(line(program, found), flush=True)
        all_met = all_met and not any(said.startswith("MISSED") for said in verdicts(program, found))
    return all_met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    # So many that two million are measured in whole batches; what remains after them is left out.
    comparison_options(parser, records=3_000_000, only="abcdef", sides=SIDES)
    parser.add_argument("--rounds", type=int, default=1, help="take the best of so many turns")
    parser.add_argument("--variants", action="store_true", help="also run the variants of the native queries")
    parser.add_argument("--loop", choices=sorted(LOOPS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.loop:
        load = read_load(options.directory)
        print(json.dumps(run_loop(options.directory, PROGRAMS[options.loop], load).to_json()))
        return
    with written_load(options) as (directory, load):
        met = compare(directory, load, options.only, options.sides.split(","), options.rounds)
        for variant in VARIANTS if options.variants else ():
            rate = in_a_process("benchmarks.engine_native", str(directory), variant).rate
            print(f"native ({variant}): {rate:,.0f} records/s", flush=True)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
