"""Runs ksqlDB's cases of the HTTP API: statements and queries to a real server, and what it answers.

    python conformance/rest.py ../shared/ksqldb/rest.jsonl
    python conformance/rest.py --no-registry --only 'insert-values' ../shared/ksqldb/rest.jsonl

Lists each failing case with its first difference and ends with ``N passed, M failed``; exit status 1 if any failed.
Every case has a server of its own on a port of this machine, with a log of its own. The statements before the first
SELECT go to ``/ksql`` in one request, each SELECT to ``/query``; records are written when the statements are carried
out, or when the push query is there if the case says so. An answer may have more fields than a case expects; the order
of rows is not compared, and rows that are not expected are a difference.

The servers have ksqlDB's limits (``ksql.query.pull.extensions.enabled=false``), because cases expect the errors of
what ksqlDB cannot: without it pull queries on tables may have JOIN, GROUP BY, HAVING, aggregates, ORDER BY and OFFSET,
and those cases would be answered. Table scans and push queries of the second kind are on, as in ksqlDB's own run.

Engines: ``driver`` runs the tasks of persistent queries in the process of the server, ``spark`` on Spark.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import re
import sys
import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from pathlib import Path

from qtt_cases.case import case_lines, parse
from rest_cases.judge import judge
from rest_cases.serving import spark_kept_open

_PATIENCE = {"driver": timedelta(seconds=20), "spark": timedelta(seconds=120)}


def _run_line(line: str, engine: str) -> tuple[str, str | None]:
    logging.getLogger("headrace").setLevel(logging.CRITICAL + 1)
    case = parse(line)
    try:
        return case["id"], judge(case, engine, _PATIENCE[engine])
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return case["id"], f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run ksqlDB's cases of the HTTP API.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="cases as .jsonl")
    parser.add_argument("--engine", choices=["driver", "spark"], default="driver", help="what runs persistent queries")
    parser.add_argument("--only", metavar="REGEX", help="only cases whose id matches somewhere")
    parser.add_argument("--no-registry", action="store_true", help="only cases that need no schema registry")
    parser.add_argument("--sample", type=int, metavar="N", help="only N of the cases, spread over all of them")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write id and difference of every case to a file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    return parser.parse_args(arguments)


def _lines(options: argparse.Namespace) -> list[str]:
    wanted = re.compile(options.only) if options.only else None
    lines: list[str] = []
    for path in options.files:
        for line in case_lines(path):
            case = json.loads(line)
            if wanted is not None and not wanted.search(case["id"]):
                continue
            if case["needsSchemaRegistry"] and (options.no_registry or options.engine == "spark"):
                # The registry is one in memory, which the processes of Spark do not share.
                continue
            lines.append(line)
    if options.sample is None or options.sample >= len(lines):
        return lines
    return [lines[number * len(lines) // options.sample] for number in range(options.sample)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases that the command line names; returns the exit status."""
    options = _options(arguments)
    lines = _lines(options)
    run = partial(_run_line, engine=options.engine)
    if options.engine == "driver" and options.jobs > 1 and len(lines) > 10:
        with multiprocessing.Pool(options.jobs) as pool:
            results = list(pool.imap(run, lines, chunksize=4))
    else:
        with spark_kept_open() if options.engine == "spark" else nullcontext():
            results = [run(line) for line in lines]
    failed = [(case_id, difference) for case_id, difference in results if difference is not None]
    for case_id, difference in failed:
        print(f"{case_id}: {difference}")
    if options.json is not None:
        options.json.write_text(json.dumps(dict(results), indent=1), encoding="utf-8")
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
