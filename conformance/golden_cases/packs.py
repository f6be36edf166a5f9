"""Golden cases on Spark: hundreds of cases side by side, judged when all have ended."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from golden_cases.case import Case, load_functions, parse
from golden_cases.compare import Variant, building_difference, optimizations, variant
from golden_cases.effects import EffectFile
from golden_cases.judge import Again, Verdict, judge_run
from golden_cases.spark import SparkRun, run_together
from headrace.topology.levels import back_edges, levels

_CASES_PER_PACK = 100
_RESTART_EVERY = 3


@dataclass(frozen=True)
class Wanted:
    """One run of one case."""

    line: str
    functions: Path
    optimization: str


@dataclass(frozen=True)
class Pack:
    """Runs that share jobs."""

    runs: tuple[Wanted, ...]
    engine: str
    strict: bool


@dataclass(frozen=True)
class Packed:
    """What a pack gave."""

    verdicts: list[tuple[str, Verdict]]
    seconds: float
    batches: int
    not_run: tuple[str, ...] = ()
    """Cases that are neither passed nor failed."""


def run_packs(cases: Sequence[tuple[str, Path]], *, engine: str, strict: bool, jobs: int) -> Iterator[Packed]:
    """Runs cases, given as lines and the files of their functions."""
    built: list[tuple[str, Verdict]] = []
    shapes: dict[int, list[Wanted]] = {}
    not_run: list[str] = []
    for line, functions in cases:
        case_id, verdict = _judge_building(line, functions)
        case = parse(line)
        if verdict.difference is not None or "build_error" in case:
            built.append((case_id, verdict))
            continue
        if not _can_run(case, engine):
            not_run.append(case_id)
            continue
        for wanted, run in _variants(line, functions):
            shapes.setdefault(_shape(run), []).append(wanted)
    yield Packed(built, 0.0, 0, tuple(not_run))
    # The deepest take longest, so they go first.
    packs = [
        Pack(several, engine, strict=strict)
        for _, runs in sorted(shapes.items(), reverse=True)
        for several in _evenly(runs)
    ]
    if jobs > 1 and len(packs) > 1:
        # A process that is forked would share the JVM of this one, if it has one.
        spawn = multiprocessing.get_context("spawn")
        # An executor, not a Pool: that would wait for ever for a process that has died.
        with ProcessPoolExecutor(min(jobs, len(packs)), mp_context=spawn, initializer=_be_quiet) as pool:
            for done in as_completed([pool.submit(run_pack, pack) for pack in packs]):
                yield done.result()
    else:
        yield from map(run_pack, packs)


def _be_quiet() -> None:
    """Silences the log of a process, as the command silences its own: many cases raise on purpose."""
    logging.getLogger("headrace").setLevel(logging.CRITICAL + 1)


def _can_run(case: Case, engine: str) -> bool:
    # This processor counts in a list of its own; nobody gives that back to a task that starts anew.
    forgetful = any(node.get("processor") == "two_ticks" for node in case["nodes"])
    return not (forgetful and engine == "tasks-restarted")


def _judge_building(line: str, functions: Path) -> tuple[str, Verdict]:
    case = parse(line)
    return str(case["id"]), Verdict(building_difference(case, load_functions(functions)))


def _variants(line: str, functions: Path) -> Iterator[tuple[Wanted, Variant]]:
    case = parse(line)
    for optimization in optimizations(case):
        yield Wanted(line, functions, optimization), variant(case, load_functions(functions), [], optimization)


def _shape(run: Variant) -> int:
    """Returns what runs of a pack should have in common: it is as deep as its deepest, as long as its longest."""
    depth = len(levels(run.topology))
    # A step with back edges takes several micro-batches.
    return 4 if depth > 3 else 3 if back_edges(run.topology) else depth


def _evenly(runs: Sequence[Wanted]) -> Iterator[tuple[Wanted, ...]]:
    """Divides runs into as few packs as possible, all about as large."""
    packs = -(-len(runs) // _CASES_PER_PACK)
    for number in range(packs):
        yield tuple(runs[number * len(runs) // packs : (number + 1) * len(runs) // packs])


def run_pack(pack: Pack) -> Packed:
    """Runs and judges a pack in this process."""
    begun = perf_counter()
    with TemporaryDirectory(prefix="golden-") as folder:
        directory = Path(folder)
        runs = [_make(wanted, directory / f"effects-{number}") for number, wanted in enumerate(pack.runs)]
        on_spark = pack.engine == "spark"
        restart_every = _RESTART_EVERY if pack.engine == "tasks-restarted" else 0
        batches = run_together([spark for _, spark in runs], directory, on_spark=on_spark, restart_every=restart_every)
    verdicts = [
        (str(run.case["id"]), _judge(run, spark, wanted, strict=pack.strict))
        for (run, spark), wanted in zip(runs, pack.runs, strict=True)
    ]
    return Packed(verdicts, perf_counter() - begun, batches)


def _make(wanted: Wanted, effects_path: Path) -> tuple[Variant, SparkRun]:
    case: Case = parse(wanted.line)
    effects = EffectFile(effects_path)
    run = variant(case, load_functions(wanted.functions), effects, wanted.optimization)
    return run, SparkRun(case, run.topology, run.config, effects)


def _judge(run: Variant, spark: SparkRun, wanted: Wanted, *, strict: bool) -> Verdict:
    again = Again(run.case, load_functions(wanted.functions), wanted.optimization)
    return judge_run(run, spark.observed, again, strict=strict)
