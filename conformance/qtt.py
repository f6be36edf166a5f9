"""Runs ksqlDB's query translation cases: statements, records in, records out.

    python conformance/qtt.py ../shared/ksqldb/qtt.jsonl
    python conformance/qtt.py --no-registry --only 'joins' ../shared/ksqldb/qtt.jsonl
    python conformance/qtt.py --engine spark --sample 200 ../shared/ksqldb/qtt.jsonl

Lists each failing case with its first difference and ends with ``N passed, M failed``; exit status 1 if any failed.
Every case runs as strictly as the corpus allows: one record at a time, all records of a topic in one order, keys,
values by the scale of their numbers, timestamps, windows, headers, the columns and formats of the sources, and that no
repartition topic was planned where none is allowed. A case that expects no records has to write none.

Engines: ``driver`` is the test driver; ``spark`` is Spark, many cases in one query, each with one record in every
micro-batch; ``tasks`` runs the same tasks without Spark.

``qtt_left_out.json`` has the ids of cases that are left out, with the reasons.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from qtt_cases.case import case_lines, left_out, parse
from qtt_cases.driving import run_on_driver
from qtt_cases.judge import judge
from quiet import quiet

_SECONDS = 60
"""After so long a case has failed."""


def _run_line(line: str) -> tuple[str, str | None]:
    case = parse(line)
    try:
        with suppress(ValueError):
            signal.signal(signal.SIGALRM, _too_long)
            signal.alarm(_SECONDS)
        return case["id"], judge(case, run_on_driver)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return case["id"], f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
    finally:
        signal.alarm(0)


def _too_long(number: int, frame: FrameType | None) -> None:
    message = f"not done after {_SECONDS} s"
    raise TimeoutError(message)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run ksqlDB's query translation cases.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="cases as .jsonl")
    parser.add_argument(
        "--engine", choices=["driver", "spark", "tasks"], default="driver", help="what runs the topologies"
    )
    parser.add_argument("--only", metavar="REGEX", help="only cases whose id matches somewhere")
    parser.add_argument("--no-registry", action="store_true", help="only cases that need no schema registry")
    parser.add_argument("--no-test-functions", action="store_true", help="only cases that need no test-only function")
    parser.add_argument("--sample", type=int, metavar="N", help="only so many cases, spread over all of them")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write id and difference of every case to a file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    return parser.parse_args(arguments)


def _lines(options: argparse.Namespace, skipped: set[str]) -> list[str]:
    wanted = re.compile(options.only) if options.only else None
    lines: list[str] = []
    for path in options.files:
        for line in case_lines(path):
            case = json.loads(line)
            if case["id"] in skipped or (wanted is not None and not wanted.search(case["id"])):
                continue
            if (options.no_registry and case["needsSchemaRegistry"]) or (
                options.no_test_functions and case["needsTestUdf"]
            ):
                continue
            lines.append(line)
    if options.sample is not None and options.sample < len(lines):
        lines = [lines[number * len(lines) // options.sample] for number in range(options.sample)]
    return lines


def _run_packed(options: argparse.Namespace, lines: list[str]) -> list[tuple[str, str | None]]:
    # An import here: the other engine needs no pyspark.
    from qtt_cases.packs import run_packs

    cases = [parse(line) for line in lines]
    if options.engine == "spark":
        # The registry is one in memory, which the processes of Spark do not share.
        left = [case["id"] for case in cases if case["needsSchemaRegistry"]]
        cases = [case for case in cases if not case["needsSchemaRegistry"]]
        if left:
            print(f"not run, because they need a schema registry: {len(left)}")
    return run_packs(cases, on_spark=options.engine == "spark", told=lambda text: print(text, flush=True))


def _run(options: argparse.Namespace, lines: list[str]) -> list[tuple[str, str | None]]:
    if options.engine != "driver":
        return _run_packed(options, lines)
    if options.jobs > 1 and len(lines) > 20:
        with multiprocessing.Pool(options.jobs) as pool:
            return list(pool.imap(_run_line, lines, chunksize=10))
    return [_run_line(line) for line in lines]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases that the command line names; returns the exit status."""
    options = _options(arguments)
    reasons = left_out()
    lines = _lines(options, set(reasons))
    with quiet():
        results = _run(options, lines)
    failed = [(case_id, difference) for case_id, difference in results if difference is not None]
    for case_id, difference in failed:
        print(f"{case_id}: {difference}")
    if options.json is not None:
        options.json.write_text(json.dumps(dict(results), indent=1), encoding="utf-8")
    if reasons:
        print(f"left out ({len(reasons)}): {', '.join(reasons)}")
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
