"""Texts of statements, whole and damaged: parsed, written again, and carried out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from headrace.sql.driver import SqlTestDriver
from headrace.sql.errors import SqlError, SqlParseError
from headrace.sql.sql_engine import SqlEngine
from headrace.sql.syntax.formatter import statement_text
from headrace.sql.syntax.parser import parse, parse_statement, split
from headrace.sql.syntax.variables import substitute
from tests.fuzz.mutation import damaged_text
from tests.fuzz.statements import SOURCES, WORDS, statement

_SECONDS = 10.0
_ROWS: tuple[dict[str, Any], ...] = (
    {"k": "a", "v": 1, "d": 1.25, "a": [1, 2], "m": {"a": "b"}, "st": {"x": 1, "y": "z"}, "t": "1970-01-01T00:00:01"},
    {"k": "a", "v": None},
    {"k": None, "v": -5, "a": [], "m": {}, "st": None},
    {"k": "it's", "v": 2147483647, "d": -0.01, "a": [None, 3], "m": {"a": None}},
)


@contextmanager
def opened(_directory: Path) -> Iterator[Callable[[Random], str]]:
    yield _trial


def _trial(random: Random) -> str:
    text = statement(random)
    if random.random() < 0.7:
        text = damaged_text(text, random, WORDS)
    begun = time.monotonic()
    outcome = _refused(lambda: _parsed(text)) or _carried_out(text)
    assert time.monotonic() - begun < _SECONDS, f"it took too long: {text!r}"
    return outcome


def _parsed(text: str) -> None:
    split(text)
    substitute(text, {"X": "1"})
    for one in parse(text):
        # What is written means the same, or is no statement for writing.
        try:
            written = statement_text(one)
        except (TypeError, NotImplementedError, SqlError):
            continue
        again = statement_text(parse_statement(written))
        assert again == written, f"{text!r} is written as {written!r}, and that as {again!r}"


def _refused(action: Callable[[], object]) -> str:
    """Returns how something was refused; an empty text if it was not. Errors of other kinds go through."""
    try:
        action()
    except SqlError as error:
        found = error
    else:
        return ""
    assert str(found)
    if not isinstance(found, SqlParseError):
        return "refused"
    assert found.position is None or found.position.line >= 1
    return "no statement"


def _carried_out(text: str) -> str:
    if any(word in text.upper() for word in ("RUN ", "FUNCTION")):
        return "left alone"
    refusal = _refused(lambda: SqlEngine().execute(SOURCES + text))
    if refusal:
        return refusal
    driver = SqlTestDriver(SOURCES)

    def run() -> None:
        driver.execute(text)
        if any(query.sink_topic in ("s", "u") for query in driver.engine.catalog.queries.values()):
            # It feeds itself, and has no end.
            return
        for row in _ROWS:
            driver.insert("s", row)
        driver.insert("u", {"k": "a", "n": 1, "w": "x"})

    return _refused(run) or "carried out"
