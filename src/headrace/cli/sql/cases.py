"""SQL cases on the test driver, each on an engine of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.cli.sql.case_files import Row, SqlCase, SqlCaseFile, Step
from headrace.errors import StreamsError
from headrace.sql.driver import SqlTestDriver, TestRow
from headrace.sql.errors import SqlError


@dataclass(frozen=True)
class Outcome:
    """A case, and the first difference; None if it passes."""

    case: str
    difference: str | None


def run_sql_file(file: SqlCaseFile) -> Iterator[Outcome]:
    """Yields what came of each case."""
    for case in file.cases:
        try:
            yield Outcome(case.name, _difference(file, case))
        except StreamsError as error:
            yield Outcome(case.name, f"{type(error).__name__}: {error}")


def _difference(file: SqlCaseFile, case: SqlCase) -> str | None:
    # Rows of the file's own INSERTs come with the first step that looks at their source.
    with SqlTestDriver(file.statements, settings=file.settings) as driver:
        sources = dict.fromkeys(row.source for step in case.steps for row in step.output)
        for number, step in enumerate(case.steps, 1):
            found = _run(driver, step, list(sources))
            if found is not None:
                return f"step {number}: {found}" if len(case.steps) > 1 else found
    return None


def _run(driver: SqlTestDriver, step: Step, sources: Sequence[str]) -> str | None:
    failed = _execute(driver, step)
    if failed is not None:
        return failed
    for row in step.input:
        write = driver.delete if row.deleted else driver.insert
        write(row.source, row.columns, timestamp_ms=row.timestamp_ms or 0)
    for source in sources:
        if driver.engine.catalog.find(source) is None and driver.engine.catalog.find(source.upper()) is None:
            # A later step creates it.
            continue
        expected = [row for row in step.output if row.source == source]
        found = _compare_rows(source, driver.rows(source), expected)
        if found is not None:
            return found
    unknown = next((row.source for row in step.output if _is_unknown(driver, row.source)), None)
    return None if unknown is None else f"there is no stream or table {unknown}"


def _is_unknown(driver: SqlTestDriver, name: str) -> bool:
    return driver.engine.catalog.find(name) is None and driver.engine.catalog.find(name.upper()) is None


def _execute(driver: SqlTestDriver, step: Step) -> str | None:
    try:
        driver.execute(step.statements)
    except SqlError as error:
        if step.error is None:
            raise
        return None if step.error in error.message else f"the error is {error.message!r} instead of {step.error!r}"
    return None if step.error is None else f"no error instead of {step.error!r}"


def _compare_rows(source: str, found: Sequence[TestRow], expected: Sequence[Row]) -> str | None:
    for number, (row, wanted) in enumerate(zip(found, expected, strict=False), 1):
        difference = _compared_row(row, wanted)
        if difference is not None:
            return f"{source}, row {number}: {difference}"
    if len(found) != len(expected):
        more = (
            f"; the first superfluous one is {_text(found[len(expected)].columns)}"
            if len(found) > len(expected)
            else ""
        )
        return f"{source}: {len(found)} rows instead of {len(expected)}{more}"
    return None


def _compared_row(found: TestRow, expected: Row) -> str | None:
    if found.deleted != expected.deleted:
        became = "deleted instead of written" if found.deleted else "written instead of deleted"
        return f"{_text(found.columns)} was {became}"
    unknown = [name for name in expected.columns if _column(name) not in found.columns]
    if unknown:
        return f"it has no column {unknown[0]}; it has {', '.join(found.columns)}"
    # Columns that are not named are NULL.
    wanted = dict.fromkeys(found.columns) | {_column(name): value for name, value in expected.columns.items()}
    for name, value in found.columns.items():
        if value != wanted[name]:
            return f"{name} is {_text(value)} instead of {_text(wanted[name])}, in {_text(found.columns)}"
    if expected.timestamp_ms is not None and found.timestamp_ms != expected.timestamp_ms:
        return f"timestamp {found.timestamp_ms} instead of {expected.timestamp_ms}"
    if expected.window is not None and found.window != expected.window:
        return f"window {found.window} instead of {expected.window}"
    return None


def _column(name: str) -> str:
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] == "`" else name.upper()


# Any: what JSON holds.
def _text(value: Mapping[str, Any] | Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)
