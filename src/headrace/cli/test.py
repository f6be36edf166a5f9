"""``headrace test``: the cases of topologies, from files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from headrace.app.engine import spark_engine
from headrace.cli.case_files import CaseFile, case_paths, is_case_file
from headrace.cli.cases import Outcome, run_file
from headrace.cli.common_options import common_options
from headrace.cli.engine_log import EngineLog
from headrace.cli.outcomes import tell_outcomes
from headrace.cli.printing import json_option, note


@click.command(short_help="Run the cases of topologies in files of JSON.")
@click.argument("paths", metavar="FILE|DIR...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--engine", type=click.Choice(["driver", "spark"]), default="driver", show_default=True)
@click.option("--verbose", "-v", is_flag=True, help="Name the cases that pass, too.")
@json_option
@common_options()
@click.pass_context
def test(context: click.Context, paths: tuple[Path, ...], engine: str, *, verbose: bool, as_json: bool) -> None:
    """Run the cases in FILEs of JSON, and in those that lie in DIRs.

    A case pipes records into a topology and compares what comes out. Exit code 1 says that one failed, and the first
    difference is printed. The format:

    \b
      {
        "topology": "../word_count.py:build",           relative to the file, or a module
        "config": {"statestore.cache.max.bytes": 0},    settings; may be left out
        "topics": {"odd": {"key": "bytes"}},            formats that do not follow from the topology
        "cases": [{
          "name": "a word is counted",
          "steps": [{
            "advance_ms": 1000,                         moves the wall clock first; starts at 0
            "input":  [{"topic": "lines", "key": null, "value": "to be", "timestamp_ms": 5}],
            "output": [{"topic": "word-counts", "key": "to", "value": 1},
                       {"topic": "word-counts", "key": "be", "value": 1}]
          }]
        }]
      }

    Of an output only the fields are compared that it has: key, value, timestamp_ms, headers. Outputs are all that their
    step gives, in order, for every topic that the case mentions.

    With --engine spark all cases run in one Spark query, each with topics and a clock of its own, a micro-batch per
    record: seconds for the start, then tenths of a second per record of the longest case. Caches are off there unless
    the config sets them, because a cache makes one update of all those of a row in a micro-batch.
    """
    files = [CaseFile.read(path) for path in case_paths(paths, is_case_file, "a topology")]
    tell_outcomes(context, _run(files, engine), verbose=verbose, as_json=as_json)


def _run(files: list[CaseFile], engine: str) -> Iterator[tuple[Path, Outcome]]:
    if engine == "driver":
        for file in files:
            for outcome in run_file(file):
                yield file.path, outcome
        return
    # Says what is missing, and is an application's way to Spark.
    spark_engine()
    from headrace.cli.cases_on_spark import run_files_on_spark

    with EngineLog(note) as log, _spinner(log):
        found = list(run_files_on_spark(files))
    yield from ((file.path, outcome) for file, outcome in found)


@contextmanager
def _spinner(log: EngineLog) -> Iterator[None]:
    """Shows that something is going on, on a terminal: a start of Spark takes seconds."""
    if not sys.stderr.isatty():
        yield
        return
    spinner = Spinner("dots")

    def render() -> Spinner:
        spinner.update(text=Text(log.last or "loading Spark"))
        return spinner

    with Live(console=Console(stderr=True), get_renderable=render, transient=True, refresh_per_second=8):
        yield
