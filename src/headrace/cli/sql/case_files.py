"""The file format of SQL cases: read, and checked field by field, so that a typing error is not a case that passes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from headrace.cli.case_files import CaseError
from headrace.errors import did_you_mean


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
        """Reads a file, or says what is wrong with it."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
        except ValueError as error:
            message = f"'{path}' is no JSON: {error}"
            raise CaseError(message) from error
        where = f"'{path}'"
        top = _object(found, where, required=("cases",), optional=("script", "statements", "settings"))
        statements = _statements(top, where)
        if "script" in top:
            script = path.parent / _typed(str, top["script"], f"{where}: script")
            statements = f"{script.read_text(encoding='utf-8')}\n{statements}"
        settings = _typed(dict, top.get("settings", {}), f"{where}: settings")
        return cls(path, statements, settings, tuple(_cases(top["cases"], where)))


def is_sql_case_file(path: Path) -> bool:
    """Tells whether a file in a searched directory is one of cases; others may lie beside them."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and "cases" in found and bool({"script", "statements"} & found.keys())


def _cases(found: Any, where: str) -> Iterator[SqlCase]:
    for number, item in enumerate(_typed(list, found, f"{where}: cases"), 1):
        parts = ("steps", "statements", "input", "output", "error")
        case = _object(item, f"{where}: case {number}", required=("name",), optional=parts)
        name = _typed(str, case["name"], f"{where}: case {number}: name")
        here = f"{where}: case '{name}'"
        if "steps" not in case:
            only = {key: value for key, value in case.items() if key != "name"}
            yield SqlCase(name, (_step(only, here),))
            continue
        if len(case) > 2:
            message = f"{here}: it has steps, so everything else stands in them"
            raise CaseError(message)
        steps = _typed(list, case["steps"], f"{here}: steps")
        yield SqlCase(name, tuple(_step(step, f"{here}, step {place}") for place, step in enumerate(steps, 1)))


def _step(found: Any, where: str) -> Step:
    step = _object(found, where, optional=("statements", "input", "output", "error"))
    error = step.get("error")
    if error is not None:
        _typed(str, error, f"{where}: error")
        if "statements" not in step:
            message = f"{where}: an error comes of statements; this step has none"
            raise CaseError(message)
    inputs, outputs = (
        tuple(_row(item, f"{where}: {side}") for item in _typed(list, step.get(side, []), f"{where}: {side}"))
        for side in ("input", "output")
    )
    for row in inputs:
        if row.window is not None:
            message = f"{where}: input: rows cannot be inserted into a windowed source"
            raise CaseError(message)
    return Step(_statements(step, where), inputs, outputs, error)


def _row(found: Any, where: str) -> Row:
    row = _object(found, where, required=("source", "row"), optional=("timestamp_ms", "window", "deleted"))
    window = row.get("window")
    if window is not None:
        window = tuple(_typed(int, bound, f"{where}: window") for bound in _typed(list, window, f"{where}: window"))
        if len(window) != 2:
            message = f"{where}: window must be [start, end], in milliseconds"
            raise CaseError(message)
    time = row.get("timestamp_ms")
    return Row(
        _typed(str, row["source"], f"{where}: source"),
        _typed(dict, row["row"], f"{where}: row"),
        None if time is None else _typed(int, time, f"{where}: timestamp_ms"),
        window,
        _typed(bool, row.get("deleted", False), f"{where}: deleted"),
    )


def _statements(found: Mapping[str, Any], where: str) -> str:
    given = found.get("statements", [])
    if isinstance(given, str):
        return given
    parts = [_typed(str, each, f"{where}: statements") for each in _typed(list, given, f"{where}: statements")]
    # One with its semicolon and one without it are equally good.
    return "\n".join(f"{part.rstrip().rstrip(';')};" for part in parts)


def _object(
    found: Any, where: str, *, required: Collection[str] = (), optional: Collection[str] = ()
) -> Mapping[str, Any]:
    checked: Mapping[str, Any] = _typed(dict, found, where)
    known = [*required, *optional]
    for name in checked:
        if name not in known:
            message = f"{where}: there is no field '{name}'{did_you_mean(name, known)}; fields are {', '.join(known)}"
            raise CaseError(message)
    for name in required:
        if name not in checked:
            message = f"{where}: '{name}' is missing"
            raise CaseError(message)
    return checked


# Any: what JSON has given, of the kind that was asked for.
def _typed(kind: type, found: Any, where: str) -> Any:
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        names = {dict: "an object", list: "a list", str: "a text", int: "a whole number", bool: "true or false"}
        message = f"{where} must be {names[kind]}; found {json.dumps(found, default=str)}"
        raise CaseError(message)
    return found
