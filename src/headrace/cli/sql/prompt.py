"""The prompt: lines with completion and history, results below them."""

from __future__ import annotations

import os
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.filters import completion_is_selected, has_focus
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import Output
from pygments.lexers.sql import SqlLexer

from headrace.cli.sql.builtin import SessionEnds, builtin, is_builtin
from headrace.cli.sql.completer import Names, SqlCompleter
from headrace.cli.sql.session import Session, error_text, first_word, is_complete
from headrace.errors import StreamsError

PROMPT, MORE = "sql> ", "...> "
_CHANGES = frozenset({"CREATE", "DROP", "ALTER", "TERMINATE", "INSERT", "RUN", "ASSERT"})


class Prompt:
    """Reads statements until the user has enough. An error, or Ctrl-C, ends what is done and not the session."""

    def __init__(self, session: Session, *, source: Input | None = None, output: Output | None = None) -> None:
        self._session = session
        self._names = Names()
        self._prompt: PromptSession[str] = PromptSession(
            history=_history(),
            completer=SqlCompleter(self._names),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            multiline=True,
            prompt_continuation=lambda width, _line, wrapped: " " * width if wrapped else MORE,
            key_bindings=_bindings(),
            lexer=PygmentsLexer(SqlLexer),
            enable_history_search=True,
            input=source,
            output=output,
        )

    def run(self) -> None:
        """Asks until the end of the input, or ``exit``."""
        self._names.refresh(self._session.client)
        while True:
            try:
                text = self._prompt.prompt(PROMPT)
            except KeyboardInterrupt:
                # What was being written is thrown away.
                continue
            except EOFError:
                return
            try:
                self._run(text)
            except SessionEnds:
                return
            except KeyboardInterrupt:
                self._session.screen.note("interrupted")
            except (StreamsError, OSError) as error:
                self._session.screen.error(error_text(error))

    def _run(self, text: str) -> None:
        if not text.strip():
            return
        if builtin(text, self._session, self._read_entry):
            return
        try:
            self._session.run(text)
        finally:
            if _may_change(text):
                self._names.refresh(self._session.client)

    def _read_entry(self) -> list[str]:
        return list(self._prompt.history.get_strings())


def _may_change(text: str) -> bool:
    try:
        return first_word(text) in _CHANGES or ";" in text.strip().rstrip(";")
    except StreamsError:
        return False


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter", filter=has_focus("DEFAULT_BUFFER") & ~completion_is_selected)
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = buffer.text
        if not text.strip() or is_builtin(text) or is_complete(text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @bindings.add("enter", filter=has_focus("DEFAULT_BUFFER") & completion_is_selected)
    def choose(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    return bindings


def _history() -> History:
    """Returns the history of this user; without a place for it, one that is forgotten."""
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    file = home / "headrace" / "sql_history"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
