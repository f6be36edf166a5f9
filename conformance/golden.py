"""Runs golden cases: topologies whose answers were recorded from Apache Kafka Streams.

    python conformance/golden.py ../shared/golden/cases.jsonl ../shared/golden/scenarios.jsonl

Lists each failing case with its first difference and ends with ``N passed, M failed``; exit status 1 if any failed.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from golden_cases.case import case_lines, functions_path, left_out, load_functions, parse
from golden_cases.compare import first_difference
from golden_cases.drive import ENGINES

_CHUNK = 25


@dataclass(frozen=True)
class _Chunk:
    """Some cases of one file and how to run them."""

    lines: tuple[str, ...]
    functions: Path
    engine: str
    describe_only: bool
    strict: bool


def _run_chunk(chunk: _Chunk) -> list[tuple[str, str | None]]:
    return [_run_line(line, chunk) for line in chunk.lines]


def _run_line(line: str, chunk: _Chunk) -> tuple[str, str | None]:
    case = parse(line)
    try:
        difference = first_difference(
            case,
            load_functions(chunk.functions),
            engine=chunk.engine,
            describe_only=chunk.describe_only,
            strict=chunk.strict,
        )
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        difference = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
    return str(case["id"]), difference


def _chunks(options: argparse.Namespace, skipped: set[str]) -> Iterator[_Chunk]:
    wanted = set(options.ids.split(",")) if options.ids else None
    for path in options.files:
        lines = []
        for line in case_lines(path):
            case_id = str(parse(line)["id"])
            # A case that is asked for by its id runs even if it is left out.
            if case_id in wanted if wanted is not None else case_id not in skipped:
                lines.append(line)
        for start in range(0, len(lines), _CHUNK):
            yield _Chunk(
                tuple(lines[start : start + _CHUNK]),
                functions_path(path),
                options.engine,
                options.describe_only,
                options.strict,
            )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run golden cases recorded from Apache Kafka Streams.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="cases as .jsonl or .jsonl.gz")
    parser.add_argument("--engine", choices=sorted(ENGINES), default="driver", help="what runs the topologies")
    parser.add_argument("--ids", help="only these cases, separated by commas")
    parser.add_argument("--describe-only", action="store_true", help="build and describe the topologies, run nothing")
    parser.add_argument("--strict", action="store_true", help="compare dropped counts of windowed topologies, too")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    return parser.parse_args(arguments)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences the log: many cases raise on purpose, and the differences that are printed say all that matters."""
    logger = logging.getLogger("headrace")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases that the command line names; returns the exit status."""
    options = _options(arguments)
    reasons = left_out()
    chunks = list(_chunks(options, set(reasons)))
    with _quiet():
        if options.jobs > 1 and len(chunks) > 1:
            with multiprocessing.Pool(options.jobs) as pool:
                results = [result for done in pool.imap(_run_chunk, chunks) for result in done]
        else:
            results = [result for chunk in chunks for result in _run_chunk(chunk)]
    failed = [(case_id, difference) for case_id, difference in results if difference is not None]
    for case_id, difference in failed:
        print(f"{case_id}: {difference}")
    if reasons and not options.ids:
        print(f"left out ({len(reasons)}): {', '.join(reasons)}")
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
