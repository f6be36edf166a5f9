"""Commands of the prompt itself, such as ``help`` and ``spool``, which take no semicolon."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import click

from headrace.cli.sql.client import SqlRequestError
from headrace.cli.sql.session import Session

HELP = """\
Statements end with a semicolon and may have several lines: SELECT, CREATE,
INSERT, SHOW, DESCRIBE, EXPLAIN, PRINT, DROP, TERMINATE, SET, DEFINE ...
Ctrl-C ends a query, or the text that is being written; Ctrl-D ends the
session; Tab completes; Ctrl-R searches the history.

Without a semicolon:
  help                      this text
  run script 'FILE'         carries out the statements of a file
  spool 'FILE' | spool off  writes a copy of all results to a file, or stops
  output [json|table]       how results are printed
  set cli wrap on|off       long values take several lines, or are cut off
  set cli column-width N    how wide a column may be; 0: as wide as it needs
  server [URL]              names the server, or goes to another one
  version                   of the server
  history                   what was entered
  clear                     empties the screen
  exit | quit               ends the session"""


class SessionEnds(Exception):
    """The user has said so."""


def builtin(text: str, session: Session, history: Callable[[], list[str]]) -> bool:
    """Carries out a command of the prompt; returns False if the text is none."""
    line = " ".join(text.strip().rstrip(";").split())
    for pattern, run in _COMMANDS:
        if found := pattern.fullmatch(line):
            run(session, *found.groups(""), *([history] if run is _history else []))
            return True
    return False


def is_builtin(text: str) -> bool:
    """Tells whether a text is a command of the prompt.

    >>> is_builtin("output json"), is_builtin("SHOW STREAMS"), is_builtin("run script 'a.sql'")
    (True, False, True)
    """
    line = " ".join(text.strip().rstrip(";").split())
    return any(pattern.fullmatch(line) for pattern, _ in _COMMANDS)


def _help(session: Session) -> None:
    session.screen.line(HELP)


def _exit(_session: Session) -> None:
    raise SessionEnds


def _script(session: Session, path: str) -> None:
    session.run_script(Path(path))


def _spool_off(session: Session) -> None:
    session.screen.end_spool()


def _spool(session: Session, path: str) -> None:
    session.screen.spool(Path(path))
    session.screen.note(f"a copy of all results goes to '{path}'")


def _output(session: Session, name: str) -> None:
    if name:
        session.screen.as_json = name.lower() == "json"
    session.screen.note(f"results are printed as {'json' if session.screen.as_json else 'table'}")


def _wrap(session: Session, state: str) -> None:
    session.screen.wrap = state.lower() == "on"


def _column_width(session: Session, width: str) -> None:
    session.screen.column_width = int(width) or None


def _server(session: Session, url: str) -> None:
    if url:
        other = session.client.of(url)
        other.info()
        session.client = other
    session.screen.note(session.client.url)


def _version(session: Session) -> None:
    try:
        info = session.client.info()
    except SqlRequestError as error:
        session.screen.error(str(error))
        return
    session.screen.line(f"{session.client.url}: version {info.get('version')}, service {info.get('ksqlServiceId')}")


def _history(session: Session, history: Callable[[], list[str]]) -> None:
    for entry in history():
        session.screen.line(entry)


def _clear(session: Session) -> None:
    click.clear()


_FILE = r"'([^']+)'"
_COMMANDS: tuple[tuple[re.Pattern[str], Callable[..., None]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), run)
    for pattern, run in (
        (r"help|\?", _help),
        (r"exit|quit", _exit),
        (rf"run script {_FILE}", _script),
        (r"spool off", _spool_off),
        (rf"spool {_FILE}", _spool),
        (r"output(?: (json|table|tabular))?", _output),
        (r"set cli wrap (on|off)", _wrap),
        (r"set cli column-width (\d+)", _column_width),
        (r"server(?: '?([^'\s]+)'?)?", _server),
        (r"version", _version),
        (r"history", _history),
        (r"clear", _clear),
    )
)
