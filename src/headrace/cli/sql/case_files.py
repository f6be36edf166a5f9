"""The file format of SQL cases: read, and checked field by field, so that a typing error is not a case that passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from headrace.cli.case_files import CaseError, fields_of, object_of, read_json, typed


@dataclass(frozen=True)
class Row:
    """A row that goes in, or one that comes out."""

    source: str
    # Any: what JSON holds.
    columns: Mapping[str, Any]
    timestamp_ms: int | None
    """None in an output: whatever it is."""
    window: tuple[int, int] | None
    deleted: bool


@dataclass(frozen=True)
class Step:
    """Statements, rows that go in, and those that come out of them."""

    statements: str
    input: tuple[Row, ...]
    output: tuple[Row, ...]
    error: str | None
    """Words of the message with which the statements fail."""


@dataclass(frozen=True)
class SqlCase:
    name: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class SqlCaseFile:
    """Statements with their cases."""

    path: Path
    statements: str
    settings: Mapping[str, Any]
    cases: tuple[SqlCase, ...]

    @classmethod
    def read(cls, path: Path) -> SqlCaseFile:
        """Reads a file; raises an error that names the wrong field."""
        where, found = f"'{path}'", read_json(path, parse_float=Decimal)
        top = object_of(found, where, required=("cases",), optional=("script", "statements", "settings"))
        statements = _statements(top, where)
        if "script" in top:
            script = path.parent / typed(str, top["script"], f"{where}: script")
            statements = f"{script.read_text(encoding='utf-8')}\n{statements}"
        settings = typed(dict, top.get("settings", {}), f"{where}: settings")
        return cls(path, statements, settings, tuple(_cases(top["cases"], where)))


def is_sql_case_file(path: Path) -> bool:
    """Tells whether a file in a searched directory is one of cases; others may lie beside them."""
    found = fields_of(path)
    return "cases" in found and bool({"script", "statements"} & found)


def _cases(found: Any, where: str) -> Iterator[SqlCase]:
    for number, item in enumerate(typed(list, found, f"{where}: cases"), 1):
        parts = ("steps", "statements", "input", "output", "error")
        case = object_of(item, f"{where}: case {number}", required=("name",), optional=parts)
        name = typed(str, case["name"], f"{where}: case {number}: name")
        here = f"{where}: case '{name}'"
        if "steps" not in case:
            only = {key: value for key, value in case.items() if key != "name"}
            yield SqlCase(name, (_step(only, here),))
            continue
        if len(case) > 2:
            message = f"{here}: it has steps, so everything else stands in them"
            raise CaseError(message)
        steps = typed(list, case["steps"], f"{here}: steps")
        yield SqlCase(name, tuple(_step(step, f"{here}, step {place}") for place, step in enumerate(steps, 1)))


def _step(found: Any, where: str) -> Step:
    step = object_of(found, where, optional=("statements", "input", "output", "error"))
    error = step.get("error")
    if error is not None:
        typed(str, error, f"{where}: error")
        if "statements" not in step:
            message = f"{where}: an error comes of statements; this step has none"
            raise CaseError(message)
    inputs, outputs = (
        tuple(_row(item, f"{where}: {side}") for item in typed(list, step.get(side, []), f"{where}: {side}"))
        for side in ("input", "output")
    )
    for row in inputs:
        if row.window is not None:
            message = f"{where}: input: rows cannot be inserted into a windowed source"
            raise CaseError(message)
    return Step(_statements(step, where), inputs, outputs, error)


def _row(found: Any, where: str) -> Row:
    row = object_of(found, where, required=("source", "row"), optional=("timestamp_ms", "window", "deleted"))
    window = row.get("window")
    if window is not None:
        window = tuple(typed(int, bound, f"{where}: window") for bound in typed(list, window, f"{where}: window"))
        if len(window) != 2:
            message = f"{where}: window must be [start, end], in milliseconds"
            raise CaseError(message)
    time = row.get("timestamp_ms")
    return Row(
        typed(str, row["source"], f"{where}: source"),
        typed(dict, row["row"], f"{where}: row"),
        None if time is None else typed(int, time, f"{where}: timestamp_ms"),
        window,
        typed(bool, row.get("deleted", False), f"{where}: deleted"),
    )


def _statements(found: Mapping[str, Any], where: str) -> str:
    given = found.get("statements", [])
    if isinstance(given, str):
        return given
    parts = [typed(str, each, f"{where}: statements") for each in typed(list, given, f"{where}: statements")]
    # One with its semicolon and one without it are equally good.
    return "\n".join(f"{part.rstrip().rstrip(';')};" for part in parts)
