"""The page of statements: syntax from docstrings, and examples with what a server has answered to them."""

from __future__ import annotations

import io
import re
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout

from headrace.cli.sql.client import SqlClient
from headrace.cli.sql.embedded import embedded_server
from headrace.cli.sql.screen import Screen
from headrace.cli.sql.session import Session
from headrace.sql.syntax import statements as of
from headrace.sql.syntax.parser import parse, split
from headrace.sql.syntax.statements import Statement
from tools.sql_reference.notes import SECTIONS, Note

_INTRODUCTION = """\
# Statements of SQL

<!-- made by tools/sql_reference from the code: run `make docs` -->

The dialect is ksqlDB's. Every statement ends with a semicolon. Words may be written in any case; names are folded to
upper case unless they stand in backticks. `--` begins a comment, `/* */` encloses one. In the syntax below `[ ]` may
be left out, `|` separates choices, and everything in lower case is a name or a value. A mistake is answered with its
line and column, and the text at that place.

The examples form one session, from the first to the last: what they print is what `headrace sql` has printed. Where
nothing follows, nothing is printed, or the example needs something from outside.
"""
_SYNTAX = re.compile(r"``([A-Z][^`]*)``")


def statements_page() -> str:
    """Returns the page."""
    missing = {kind.__name__ for kind in _kinds()} - {
        kind.__name__ for _, notes in SECTIONS for note in notes for kind in note.kinds
    }
    assert not missing, f"tools/sql_reference/notes.py has nothing about {missing}"
    lines = [_INTRODUCTION]
    with tempfile.TemporaryDirectory() as directory, embedded_server({"state.dir": directory}, "process") as reached:
        session = Session(SqlClient(reached.address, token=reached.token), Screen(), settle=reached.settle)
        for title, notes in SECTIONS:
            lines += [f"## {title}", ""]
            for note in notes:
                lines += [*_note(note, session), ""]
    return "\n".join(lines).rstrip() + "\n"


def _kinds() -> list[type[Statement]]:
    return [kind for kind in vars(of).values() if isinstance(kind, type) and Statement in kind.__bases__]


def _note(note: Note, session: Session) -> Iterator[str]:
    yield f"### {note.title}"
    yield ""
    yield "```text"
    yield note.syntax or "\n".join(line for kind in note.kinds for line in _syntax(kind))
    yield "```"
    yield ""
    yield textwrap.fill(note.words, 120, break_long_words=False, break_on_hyphens=False)
    yield ""
    if not note.runs:
        found = parse(note.example, testing=True)
        assert any(isinstance(each, note.kinds) for each in found), f"{note.title}: the example is another statement"
        yield f"```sql\n{note.example}\n```"
        return
    parts = split(note.example)
    waiting: list[str] = []
    for number, part in enumerate(parts):
        waiting.append(f"{part};")
        printed = _printed(session, part)
        if printed or number == len(parts) - 1:
            yield "```sql\n" + "\n".join(waiting) + "\n```"
            waiting = []
        if printed:
            yield f"\n```text\n{printed}\n```\n" if number < len(parts) - 1 else f"\n```text\n{printed}\n```"


def _syntax(kind: type[Statement]) -> list[str]:
    words = " ".join((kind.__doc__ or "").split())
    # Behind the first sentence they are values of fields.
    found = _SYNTAX.findall(words.split("``. ")[0] + "``" if "``. " in words else words)
    return [each for each in found if " " in each]


def _printed(session: Session, text: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        session.run(text)
    return out.getvalue().rstrip()
