"""Script of the console: its statements in order, as a stream of events with answers, rows and errors."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from headrace.sql.errors import Position, SqlError
from headrace.sql.server.errors import BAD_STATEMENT, RequestError
from headrace.sql.server.json_rows import cell_writer
from headrace.sql.server.printing import Printed
from headrace.sql.server.querying import OpenQuery, QueryEndpoint
from headrace.sql.server.routes.answers import as_request_error
from headrace.sql.server.session import Session
from headrace.sql.server.statements import Statements
from headrace.sql.syntax.dialect import Text
from headrace.sql.syntax.parser import parse_statement, pieces
from headrace.sql.syntax.statements import (
    DefineVariable,
    Describe,
    Explain,
    InsertValues,
    PrintTopic,
    SelectQuery,
    SetProperty,
    ShowList,
    Statement,
    UndefineVariable,
    UnsetProperty,
)
from headrace.sql.syntax.variables import substitute

# Any: what JSON holds.
Event = dict[str, Any]

_QUERIES = (SelectQuery, PrintTopic)
_HARMLESS = (*_QUERIES, ShowList, Describe, Explain, SetProperty, UnsetProperty, DefineVariable, UndefineVariable)


@dataclass(frozen=True)
class _Piece:
    """One statement of the text, and where it stands in it."""

    text: str
    position: Position

    @property
    def has_variables(self) -> bool:
        return "${" in self.text

    def place_of(self, position: Position | None) -> Position:
        """Returns a place of the statement as a place of the whole text.

        What a variable stands for has moved everything behind it, so then it is where the statement begins.
        """
        if position is None or self.has_variables:
            return self.position
        column = position.column + self.position.column - 1 if position.line == 1 else position.column
        return Position(self.position.line + position.line - 1, column)


class Script:
    """A text that is carried out while its events are read; any thread may stop it.

    An event has one key. ``statement`` says what the following ones belong to: ``entity`` is an answer, ``columns``
    come before every ``row``, ``print`` before every ``line`` of PRINT, ``done`` is the end. ``error`` ends everything
    but ``session``, which has what is set from now on.
    """

    def __init__(
        self, text: str, session: Session, statements: Statements, endpoint: QueryEndpoint, *, accepts: bool
    ) -> None:
        self._text = text
        self._session = session
        self._statements = statements
        self._endpoint = endpoint
        self._accepts = accepts
        self._lock = threading.Lock()
        self._end: Callable[[], None] | None = None
        self._is_stopped = False
        self._is_ended_elsewhere = False
        self._told: Callable[[], None] = _do_nothing

    def stop(self) -> None:
        """Ends the query that runs; statements behind it are not carried out."""
        self._is_stopped = True
        self._end_query()

    def when_ended_elsewhere(self, tell: Callable[[], None]) -> None:
        """Has whoever reads the events told if a query is ended by others: no event may come of a function that hangs.

        Then ``last_events`` are what is left to be shown.
        """
        with self._lock:
            self._told = tell
            is_ended = self._is_ended_elsewhere
        if is_ended:
            tell()

    def last_events(self) -> Iterator[Event]:
        """Yields the end of a script whose query others have ended; nothing of any other."""
        if self._is_ended_elsewhere:
            yield {"done": "ended elsewhere"}
            yield self._take_settled()

    def events(self) -> Iterator[Event]:
        """Yields what happens. If the grammar of one statement is wrong, none is carried out."""
        place = Text(self._text)
        try:
            found = [_Piece(text, place.position(start)) for start, text in pieces(self._text)]
        except SqlError as error:
            yield _error(error, _Piece("", Position(1, 1)))
            return
        for piece in found:
            try:
                # Its variables may be defined by a statement before it.
                if not piece.has_variables:
                    parse_statement(piece.text)
            except SqlError as error:
                yield _error(error, piece)
                return
        for index, piece in enumerate(found):
            if self._is_stopped:
                return
            yield {"statement": {"index": index, "of": len(found), "text": piece.text, "line": piece.position.line}}
            try:
                yield from self._carried_out(piece)
            except Exception as error:
                yield _error(error, piece)
                break
        yield self._take_settled()

    def _take_settled(self) -> Event:
        return {"session": {"settings": self._session.settings, "variables": self._session.variables}}

    def _carried_out(self, piece: _Piece) -> Iterator[Event]:
        statement = parse_statement(substitute(piece.text, self._session.variables))
        if not self._accepts and not _only_looks(statement):
            message = "This server runs the statements of a file and takes no others; queries can be read here"
            raise RequestError(BAD_STATEMENT, message)
        if not isinstance(statement, _QUERIES):
            for entity in self._statements.run(piece.text, self._session):
                yield {"entity": entity.to_json()}
            yield {"done": _said(statement)}
            return
        opened = self._endpoint.open(piece.text, self._session)
        if isinstance(opened, Printed):
            assert isinstance(statement, PrintTopic), "nothing else is printed"
            found, end = _lines(opened, statement), opened.stopping.set
        else:
            query = opened
            found, end = _rows(query), lambda: self._endpoint.closed(query)
        with self._lock:
            self._end = end
        if not isinstance(opened, Printed):
            opened.when_closed(lambda: self._closing_guard(end))
        try:
            # Somebody may have stopped it while the query was being opened.
            if not self._is_stopped:
                yield from found
        finally:
            self._end_query()

    def _closing_guard(self, end: Callable[[], None]) -> None:
        with self._lock:
            # Otherwise it was this script that has ended the query.
            if self._end is not end:
                return
            self._end = None
            self._is_stopped = self._is_ended_elsewhere = True
            told = self._told
        told()

    def _end_query(self) -> None:
        with self._lock:
            end, self._end = self._end, None
        if end is not None:
            end()


def _do_nothing() -> None:
    """Nobody reads the events yet."""


def _only_looks(statement: Statement) -> bool:
    is_for_all = isinstance(statement, SetProperty) and statement.system
    return isinstance(statement, _HARMLESS) and not is_for_all


def _lines(printed: Printed, statement: PrintTopic) -> Iterator[Event]:
    yield {"print": statement.topic, "from_beginning": statement.from_beginning}
    for line in printed.lines:
        yield {"line": line}
    yield {"done": None}


def _rows(query: OpenQuery) -> Iterator[Event]:
    columns = [{"name": column.name, "type": str(column.type)} for column in query.schema]
    reads = {"sources": list(query.sources), "from_beginning": query.from_beginning}
    yield {"columns": columns, "push": query.is_push, "query_id": query.id, **(reads if query.is_push else {})}
    write = cell_writer(query.schema)
    for row in query.rows:
        cells = write(row.columns)
        yield {"row": cells, "tombstone": True} if row.tombstone else {"row": cells}
    yield {"done": query.final_message()}


def _said(statement: Statement) -> str | None:
    """Returns what to say of a statement that has no answer of its own."""
    match statement:
        case InsertValues():
            return "One row written"
        case SetProperty() if not statement.system:
            return f"{statement.name} is {statement.value} in this page"
        case UnsetProperty():
            return f"{statement.name} is what the server has"
        case DefineVariable():
            return f"{statement.name} is {statement.value} in this page"
        case UndefineVariable():
            return f"{statement.name} is forgotten"
        case _:
            return None


def _error(error: Exception, piece: _Piece) -> Event:
    failure = as_request_error(error)
    cause = error if isinstance(error, SqlError) else error.__cause__
    known = cause.position if isinstance(cause, SqlError) else None
    place = piece.place_of(known)
    # The page shows the statement itself.
    message = failure.message.partition("\nStatement: ")[0]
    if known is not None:
        written = rf"\b{known}\b|\bLine: {known.line}, Col: {known.column}\b"
        message = re.sub(written, str(place), message)
    return {"error": {"message": message, "line": place.line, "column": place.column}}
