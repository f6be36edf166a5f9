"""Session of the prompt: its settings and variables, and the execution of statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from headrace.cli.sql.answers import print_answer
from headrace.cli.sql.client import Answer, SqlClient, SqlRequestError
from headrace.cli.sql.screen import LiveTable, Screen
from headrace.errors import StreamsError
from headrace.sql.errors import SqlError, SqlParseError
from headrace.sql.syntax.dialect import Kind, tokenize
from headrace.sql.syntax.parser import parse, parse_statement, split
from headrace.sql.syntax.statements import (
    DefineVariable,
    RunScript,
    SetProperty,
    Statement,
    UndefineVariable,
    UnsetProperty,
)
from headrace.sql.syntax.variables import substitute

_QUERIES = ("SELECT", "PRINT")
_LOCAL = ("SET", "UNSET", "DEFINE", "UNDEFINE")
_EMITS = re.compile(r"\bEMIT\s+(CHANGES|FINAL)\b", re.IGNORECASE)
_DEEPEST = 16
"""How many scripts may run each other."""


@dataclass
class Session:
    """Carries out statements on a server; settings and variables last as long as it does."""

    client: SqlClient
    screen: Screen
    settings: dict[str, object] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    settle: Callable[[], None] | None = None
    """Called before a pull query: waits until persistent queries have read what is there."""
    _last_command: int | None = None
    """The command that the server must have carried out before the next statement: another one may answer."""
    _depth: int = 0

    def run(self, text: str) -> None:
        """Carries out statements one after the other, until one fails; raises what is wrong with it."""
        for part in split(text):
            self._run_one(part)

    def run_script(self, path: Path) -> None:
        """Carries out the statements of a file."""
        if self._depth >= _DEEPEST:
            message = f"'{path}': scripts run each other without an end"
            raise SqlRequestError(message)
        self._depth += 1
        try:
            self.run(path.expanduser().read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            message = f"'{path}' is no text in UTF-8: {error}"
            raise SqlRequestError(message) from error
        finally:
            self._depth -= 1

    def define(self, name: str, value: str) -> None:
        """Defines a variable, as DEFINE does."""
        self.variables[name.upper()] = value

    def _run_one(self, part: str) -> None:
        word = first_word(part)
        if word in _LOCAL:
            self._set(parse_statement(substitute(part, self.variables)))
        elif word == "RUN":
            for statement in parse(substitute(part, self.variables), testing=True):
                assert isinstance(statement, RunScript), "nothing else begins with this word"
                self.run_script(Path(statement.path))
        elif word in _QUERIES:
            self._query(f"{part};")
        else:
            self._execute(f"{part};")

    def _set(self, statement: Statement) -> None:
        match statement:
            case SetProperty(system=True):
                self._execute(f"{statement.text};")
                return
            case SetProperty():
                self.client.check_property(statement.name)
                self.settings[statement.name] = statement.value
                told = f"'{statement.name}' is '{statement.value}' in this session"
            case UnsetProperty():
                self.settings.pop(statement.name, None)
                told = f"'{statement.name}' is as the server has it"
            case DefineVariable():
                self.define(statement.name, statement.value)
                told = ""
            case UndefineVariable():
                if self.variables.pop(statement.name.upper(), None) is None:
                    message = f"Cannot undefine variable '{statement.name}' which was never defined"
                    raise SqlParseError(message, position=statement.position, statement=statement.text)
                told = ""
            case _:
                raise AssertionError(statement)
        if told and not self.screen.as_json:
            self.screen.note(told)

    def _execute(self, text: str) -> None:
        try:
            entities = self.client.execute(
                text, settings=self.settings, variables=self.variables, after_command=self._last_command
            )
        except SqlRequestError as error:
            for entity in error.entities:
                print_answer(entity, self.screen)
            raise
        for entity in entities:
            self._last_command = entity.get("commandSequenceNumber", self._last_command)
            print_answer(entity, self.screen)

    def _query(self, text: str) -> None:
        emits = _EMITS.search(text) is not None
        if self.settle is not None and not emits:
            self.settle()
        if emits and self.screen.width is not None:
            self.screen.note("Ctrl-C ends the query")
        with self.client.query(text, settings=self.settings, variables=self.variables) as answer:
            try:
                if answer.is_text:
                    for line in answer.lines():
                        self.screen.line(line)
                elif self.screen.as_json:
                    for pieces in answer.pieces():
                        for piece in pieces:
                            self.screen.line(piece.text)
                else:
                    self._print_rows(answer)
            except KeyboardInterrupt:
                self.screen.note("query ended")

    def _print_rows(self, answer: Answer) -> None:
        table: LiveTable | None = None
        for pieces in answer.pieces():
            rows = [piece for piece in pieces if "row" in piece.content]
            for piece in pieces:
                if "header" in piece.content:
                    table = LiveTable(self.screen, column_names(piece.content["header"]["schema"]))
            if table is not None and rows:
                table.rows(rows)
            for piece in pieces:
                if "finalMessage" in piece.content:
                    self.screen.note(piece.content["finalMessage"])
        if table is not None:
            table.end()


def first_word(text: str) -> str:
    """Returns the word with which a statement begins, in upper case.

    >>> first_word("-- why\\n select 1"), first_word("'x'")
    ('SELECT', '')
    """
    token = tokenize(text)[0]
    return token.text if token.kind is Kind.WORD else ""


def is_complete(text: str) -> bool:
    """Tells whether a text ends with the end of a statement.

    >>> is_complete("SELECT ';'"), is_complete("SHOW STREAMS; -- all"), is_complete("PRINT 'a;")
    (False, True, False)
    """
    try:
        tokens = tokenize(text)
    except SqlError:
        return False
    return len(tokens) > 1 and tokens[-2].kind is Kind.SIGN and tokens[-2].text == ";"


def column_names(schema: str) -> list[str]:
    """Returns the names of the columns of a schema.

    >>> column_names("`ID` INTEGER KEY, `S` STRUCT<`A` INTEGER, `B``,` MAP<STRING, DECIMAL(4, 2)>>, `x y` STRING")
    ['ID', 'S', 'x y']
    """
    return [_name(part) for part in _columns(schema)]


def _columns(schema: str) -> Iterator[str]:
    depth, start, quoted = 0, 0, False
    for index, letter in enumerate(schema):
        if letter == "`":
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "<(":
            depth += 1
        elif letter in ">)":
            depth -= 1
        elif letter == "," and depth == 0:
            yield schema[start:index].strip()
            start = index + 1
    if schema[start:].strip():
        yield schema[start:].strip()


def _name(column: str) -> str:
    if not column.startswith("`"):
        return column.split()[0]
    end = 1
    while (end := column.index("`", end)) + 1 < len(column) and column[end + 1] == "`":
        end += 2
    return column[1:end].replace("``", "`")


def error_text(error: BaseException) -> str:
    """Returns what went wrong as a person reads it."""
    if isinstance(error, SqlError):
        return error.message
    if isinstance(error, OSError) and error.filename is not None:
        return f"'{error.filename}': {error.strerror}"
    return str(error) if isinstance(error, StreamsError) else f"{type(error).__name__}: {error}"
