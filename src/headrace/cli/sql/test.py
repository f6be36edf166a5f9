"""``headrace sql test``: the cases of statements, from files."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.case_files import case_paths
from headrace.cli.common_options import common_options
from headrace.cli.outcomes import tell_outcomes
from headrace.cli.printing import json_option
from headrace.cli.sql.case_files import SqlCaseFile, is_sql_case_file
from headrace.errors import missing_package


@click.command()
@click.argument("paths", metavar="FILE|DIR...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--verbose", "-v", is_flag=True, help="Name the cases that pass, too.")
@json_option
@common_options()
@click.pass_context
def test(context: click.Context, paths: tuple[Path, ...], *, verbose: bool, as_json: bool) -> None:
    """Run the cases in FILEs of JSON, and in those that lie in DIRs.

    A case carries out statements, puts rows in, and compares the rows that come out, in this process: no server, no
    log, no Spark. Exit code 1 says that one failed, and the first difference is printed. The format:

    \b
      {
        "script": "orders.sql",                     statements of a file, beside this one
        "statements": ["CREATE STREAM ..."],        and more of them; one of the two may be left out
        "settings": {"ksql.functions...": 1},       may be left out
        "cases": [{
          "name": "only dear orders",
          "input":  [{"source": "ORDERS", "row": {"ID": 1, "PRICE": 12.5}, "timestamp_ms": 5}],
          "output": [{"source": "DEAR", "row": {"ID": 1, "PRICE": 12.50}}]
        }, {
          "name": "a mistake",
          "statements": ["CREATE STREAM X AS SELECT * FROM NOWHERE;"],
          "error": "NOWHERE does not exist"            words of the message
        }]
      }

    Outputs are all rows that their source was given, in order, for every source that the case mentions there. A column
    that a row does not name is NULL. "deleted": true is a row that is deleted, "window": [0, 10000] the window of its
    key; timestamps and windows are compared if they are given. Instead of statements, input, output and error a case
    may have "steps", a list of objects with those fields.
    """
    try:
        from headrace.cli.sql.cases import run_sql_file
    except ImportError as error:
        raise missing_package(error, "SQL", "sql") from error
    files = [SqlCaseFile.read(path) for path in case_paths(paths, is_sql_case_file, "statements or a script")]
    found = ((file.path, outcome) for file in files for outcome in run_sql_file(file))
    tell_outcomes(context, found, verbose=verbose, as_json=as_json)
