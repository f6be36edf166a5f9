"""Outcomes of test cases, printed one by one with a summary and an exit code."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import click

from headrace.cli.printing import plural, print_json


class Outcome(Protocol):
    """Outcome of a case."""

    @property
    def case(self) -> str: ...
    @property
    def difference(self) -> str | None: ...


def tell_outcomes(
    context: click.Context, found: Iterable[tuple[Path, Outcome]], *, verbose: bool, as_json: bool
) -> None:
    """Prints outcomes as they come, and their number; the exit code is 1 if a case failed."""
    outcomes: list[dict[str, str | None]] = []
    for path, outcome in found:
        failed = outcome.difference is not None
        outcomes.append({"file": str(path), "case": outcome.case, "failure": outcome.difference})
        if not as_json and (failed or verbose):
            click.echo(f"{'FAILED' if failed else 'ok'}  {path}: {outcome.case}")
            if failed:
                click.echo(f"        {outcome.difference}")
    failures = sum(each["failure"] is not None for each in outcomes)
    if as_json:
        print_json(outcomes)
    else:
        click.echo(f"{plural(len(outcomes) - failures, 'case')} passed, {failures} failed")
    if failures:
        context.exit(1)
