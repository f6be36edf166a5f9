"""The file format of cases: read, and checked field by field, so that a typing error is not a case that passes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from headrace.cli.formats import FormatName
from headrace.errors import StreamsError, did_you_mean


class CaseError(StreamsError, ValueError):
    """A file of cases is not written as the format wants it. The message names the place."""


@dataclass(frozen=True)
class Step:
    """Records that go in, and those that come out of them."""

    advance_ms: int
    input: tuple[Mapping[str, Any], ...]
    output: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Case:
    name: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class CaseFile:
    """A topology with its cases; see ``cases`` for the format."""

    path: Path
    topology: str
    config: Mapping[str, Any]
    topics: Mapping[str, Mapping[str, str]]
    """Formats of keys and values by topic."""
    cases: tuple[Case, ...]

    @classmethod
    def read(cls, path: Path) -> CaseFile:
        """Reads a file; raises an error that names the wrong field."""
        where = f"'{path}'"
        top = object_of(read_json(path), where, required=("topology", "cases"), optional=("config", "topics"))
        topics = object_of(top.get("topics", {}), f"{where}: topics")
        for topic, formats in topics.items():
            for name in object_of(formats, f"{where}: topics: {topic}", optional=("key", "value")).values():
                FormatName().convert(name, None, None)
        return cls(
            path,
            typed(str, top["topology"], f"{where}: topology"),
            object_of(top.get("config", {}), f"{where}: config"),
            topics,
            tuple(_cases(top["cases"], where)),
        )


def case_paths(paths: Iterable[Path], is_cases: Callable[[Path], bool], what: str) -> Iterator[Path]:
    """Returns the files of cases among given paths: files as they are, and those that lie in directories."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = [each for each in sorted(path.rglob("*.json")) if is_cases(each)]
        if not found:
            message = f"there are no cases in '{path}': no file of JSON with {what}, and cases"
            raise click.ClickException(message)
        yield from found


def is_case_file(path: Path) -> bool:
    """Tells whether a file in a searched directory is one of cases; others may lie beside them."""
    return {"topology", "cases"} <= fields_of(path)


def fields_of(path: Path) -> set[str]:
    """Returns the names of what a file has at its top; none if it is no object in JSON."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    return set(found) if isinstance(found, dict) else set()


# Any: whatever JSON has.
def read_json(path: Path, **options: Any) -> Any:
    """Reads a file, with options of ``json.loads``."""
    try:
        return json.loads(path.read_text(encoding="utf-8"), **options)
    except ValueError as error:
        message = f"'{path}' is no JSON: {error}"
        raise CaseError(message) from error


def _cases(found: Any, where: str) -> Iterator[Case]:
    for number, item in enumerate(typed(list, found, f"{where}: cases"), 1):
        here = f"{where}: case {number}"
        case = object_of(item, here, required=("name", "steps"))
        name = typed(str, case["name"], f"{here}: name")
        here = f"{where}: case '{name}'"
        steps = [
            _step(step, f"{here}, step {position}")
            for position, step in enumerate(typed(list, case["steps"], f"{here}: steps"), 1)
        ]
        yield Case(name, tuple(steps))


def _step(found: Any, where: str) -> Step:
    step = object_of(found, where, optional=("advance_ms", "input", "output"))
    advance_ms = typed(int, step.get("advance_ms", 0), f"{where}: advance_ms")
    inputs, outputs = (
        tuple(_record(item, f"{where}: {side}") for item in typed(list, step.get(side, []), f"{where}: {side}"))
        for side in ("input", "output")
    )
    return Step(advance_ms, inputs, outputs)


def _record(found: Any, where: str) -> Mapping[str, Any]:
    fields = ("key", "value", "timestamp_ms", "headers", "partition")
    record = object_of(found, where, required=("topic",), optional=fields)
    typed(str, record["topic"], f"{where}: topic")
    if "timestamp_ms" in record:
        typed(int, record["timestamp_ms"], f"{where}: timestamp_ms")
    for value in object_of(record.get("headers", {}), f"{where}: headers").values():
        typed(str, value, f"{where}: headers")
    return record


def object_of(
    found: Any, where: str, *, required: Collection[str] = (), optional: Collection[str] = ()
) -> Mapping[str, Any]:
    """Returns an object; if fields are named, it has those and no others."""
    checked: Mapping[str, Any] = typed(dict, found, where)
    known = [*required, *optional]
    for name in checked if known else ():
        if name not in known:
            message = f"{where}: there is no field '{name}'{did_you_mean(name, known)}; fields are {', '.join(known)}"
            raise CaseError(message)
    for name in required:
        if name not in checked:
            message = f"{where}: '{name}' is missing"
            raise CaseError(message)
    return checked


_NAMES = {str: "a text", int: "a whole number", bool: "true or false", list: "a list", dict: "an object"}


# Any: what JSON has given, of the kind that was asked for.
def typed(kind: type, found: Any, where: str) -> Any:
    """Returns what was found if it is of a kind."""
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        message = f"{where} must be {_NAMES[kind]}; found {json.dumps(found, ensure_ascii=False, default=str)}"
        raise CaseError(message)
    return found
