"""Runs golden cases: topologies whose answers were recorded from Apache Kafka Streams.

    python conformance/golden.py ../shared/golden/cases.jsonl ../shared/golden/scenarios.jsonl
    python conformance/golden.py --engine spark --sample 300 ../shared/golden/cases.jsonl

Lists each failing case with its first difference and ends with ``N passed, M failed``; exit status 1 if any failed.

Engines: ``driver`` and ``disk`` are the test driver, with stores in memory and on disk; ``batched`` is the test driver
with micro-batches. ``spark`` is Spark, many cases in one job; ``tasks`` runs the same tasks without Spark, and
``tasks-restarted`` lets them start anew from the committed state every few micro-batches. A run of micro-batches may
differ from the recorded one within the rules of ``golden_cases/rules.py``: then it must be exactly that of the batched
driver, and this one must give all that was recorded once the rule's cause is taken away. How many cases fell under
which rule, and how many of the topics and stores they touch still end in the recorded table, is printed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from golden_cases.case import case_lines, functions_path, left_out, load_functions, parse
from golden_cases.drive import ENGINES
from golden_cases.judge import Verdict, judge_case, summary
from quiet import quiet

_CHUNK = 25
_PACKED = ("spark", "tasks", "tasks-restarted")


@dataclass(frozen=True)
class _Chunk:
    """Some cases of one file and how to run them."""

    lines: tuple[str, ...]
    functions: Path
    engine: str
    describe_only: bool
    strict: bool


def _run_chunk(chunk: _Chunk) -> list[tuple[str, Verdict]]:
    return [_run_line(line, chunk) for line in chunk.lines]


def _run_line(line: str, chunk: _Chunk) -> tuple[str, Verdict]:
    case = parse(line)
    try:
        verdict = judge_case(
            case,
            load_functions(chunk.functions),
            engine=chunk.engine,
            describe_only=chunk.describe_only,
            strict=chunk.strict,
        )
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        verdict = Verdict(text)
    return str(case["id"]), verdict


def _lines(options: argparse.Namespace, skipped: set[str]) -> dict[Path, list[str]]:
    """Returns the cases to run, by file; a sample has cases from all over the files."""
    wanted = set(options.ids.split(",")) if options.ids else None
    found: list[tuple[Path, str]] = []
    for path in options.files:
        for line in case_lines(path):
            case_id = str(parse(line)["id"])
            # A case that is asked for by its id runs even if it is left out.
            if case_id in wanted if wanted is not None else case_id not in skipped:
                found.append((path, line))
    if options.sample is not None and options.sample < len(found):
        found = [found[number * len(found) // options.sample] for number in range(options.sample)]
    lines: dict[Path, list[str]] = {}
    for path, line in found:
        lines.setdefault(path, []).append(line)
    return lines


def _chunks(options: argparse.Namespace, lines: Mapping[Path, list[str]]) -> Iterator[_Chunk]:
    for path, several in lines.items():
        for start in range(0, len(several), _CHUNK):
            yield _Chunk(
                tuple(several[start : start + _CHUNK]),
                functions_path(path),
                options.engine,
                options.describe_only,
                options.strict,
            )


def _run_here(options: argparse.Namespace, lines: Mapping[Path, list[str]]) -> list[tuple[str, Verdict]]:
    chunks = list(_chunks(options, lines))
    if options.jobs > 1 and len(chunks) > 1:
        with multiprocessing.Pool(options.jobs) as pool:
            return [result for done in pool.imap(_run_chunk, chunks) for result in done]
    return [result for chunk in chunks for result in _run_chunk(chunk)]


def _run_packed(options: argparse.Namespace, lines: Mapping[Path, list[str]]) -> list[tuple[str, Verdict]]:
    # An import here: the other engines need no pyspark.
    from golden_cases.packs import run_packs

    cases = [(line, functions_path(path)) for path, several in lines.items() for line in several]
    verdicts: dict[str, Verdict] = {}
    packs = run_packs(cases, engine=options.engine, strict=options.strict, jobs=options.jobs)
    for packed in packs:
        if packed.not_run:
            print(f"not run ({len(packed.not_run)}): {', '.join(packed.not_run)}")
        if packed.batches:
            print(f"{len(packed.verdicts)} runs in {packed.batches} micro-batches, {packed.seconds:.0f} s", flush=True)
        for case_id, verdict in packed.verdicts:
            verdicts[case_id] = verdicts.get(case_id, Verdict(None)) & verdict
    return list(verdicts.items())


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run golden cases recorded from Apache Kafka Streams.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="cases as .jsonl or .jsonl.gz")
    parser.add_argument(
        "--engine", choices=[*sorted(ENGINES), *_PACKED], default="driver", help="what runs the topologies"
    )
    parser.add_argument("--ids", help="only these cases, separated by commas")
    parser.add_argument("--sample", type=int, metavar="N", help="only so many cases, spread over all of them")
    parser.add_argument("--describe-only", action="store_true", help="build and describe the topologies, run nothing")
    parser.add_argument("--strict", action="store_true", help="compare dropped counts of windowed topologies, too")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases that the command line names; returns the exit status."""
    options = _options(arguments)
    reasons = left_out()
    lines = _lines(options, set(reasons))
    with quiet():
        run = _run_packed if options.engine in _PACKED else _run_here
        results = run(options, lines)
    failed = [(case_id, verdict) for case_id, verdict in results if verdict.difference is not None]
    for case_id, verdict in failed:
        print(f"{case_id}: {verdict.difference}")
    for line in summary(verdict for _, verdict in results):
        print(line)
    if reasons and not options.ids:
        print(f"left out ({len(reasons)}): {', '.join(reasons)}")
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
