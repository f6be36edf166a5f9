"""The queries whose rows somebody reads right now: found by their ids, ended from anywhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from weakref import WeakSet

from headrace.sql.reading.results import ResultRow
from headrace.sql.server.errors import BAD_REQUEST, SHUTTING_DOWN, TOO_MANY_PUSH_QUERIES, RequestError
from headrace.sql.types.schema import Schema

_MOST_PUSH_QUERIES = 1000


@dataclass(eq=False)
class OpenQuery:
    """A query whose rows are being read."""

    id: str
    schema: Schema
    rows: Iterator[ResultRow]
    final_message: Callable[[], str | None]
    """Asked when the rows have ended."""
    end: Callable[[], None]
    """Gives back what the query needs; may take a while."""
    is_push: bool
    text: str = ""
    sources: tuple[str, ...] = ()
    from_beginning: bool = False
    """Whether a push query reads what there was before it."""
    _close_listeners: list[Callable[[], None]] = field(default_factory=list)
    _is_closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def when_closed(self, tell: Callable[[], None]) -> None:
        """Has whoever sends the rows told when the query is ended: they may come from a function that hangs."""
        with self._lock:
            self._close_listeners.append(tell)
            is_closed = self._is_closed
        if is_closed:
            tell()

    def close(self) -> None:
        """Ends the query, from any thread."""
        with self._lock:
            self._is_closed = True
            told, self._close_listeners = self._close_listeners, []
        for tell in told:
            tell()
        self.end()


class OpenQueries:
    """All of them; any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, OpenQuery] = {}
        self._closing: set[threading.Thread] = set()
        self._printing: WeakSet[threading.Event] = WeakSet()
        self._is_ended = False

    def add(self, query: OpenQuery) -> None:
        """Takes a query in; raises ``RequestError``, and ends it, if there are too many or the server stops."""
        with self._lock:
            full = query.is_push and sum(each.is_push for each in self._open.values()) >= _MOST_PUSH_QUERIES
            ended = self._is_ended
            if not full and not ended:
                self._open[query.id] = query
        if ended:
            query.close()
            raise RequestError(SHUTTING_DOWN, "The server is stopping; ask again when it is back")
        if full:
            query.close()
            message = f"Maximum number of push queries exceeded: {_MOST_PUSH_QUERIES}; close some first"
            raise RequestError(TOO_MANY_PUSH_QUERIES, message)

    def printing(self) -> threading.Event:
        """Returns what ends a PRINT when it is set: by its reader, or here when all ends."""
        stopping = threading.Event()
        with self._lock:
            if self._is_ended:
                stopping.set()
            self._printing.add(stopping)
        return stopping

    def find(self, query_id: str) -> OpenQuery | None:
        """Returns a query by its id, which statements may write in any case."""
        with self._lock:
            named = (each for each in self._open.values() if each.id.upper() == query_id.upper())
            return self._open.get(query_id) or next(named, None)

    def push_queries(self) -> tuple[OpenQuery, ...]:
        with self._lock:
            return tuple(each for each in self._open.values() if each.is_push)

    def close(self, query_id: str) -> OpenQuery:
        """Ends a query; returns when all is gone that it needed. Raises ``RequestError`` if there is none."""
        found = self.find(query_id)
        if found is None:
            raise RequestError(BAD_REQUEST, f"No query with id {query_id}")
        self._forget(found)
        found.close()
        return found

    def closed(self, query: OpenQuery) -> None:
        """Ends a query whose reader has gone, and waits for nothing."""
        self._forget(query)
        if not query.is_push:
            query.close()
            return
        thread = threading.Thread(target=self._close, args=(query,), name="headrace-sql-closing", daemon=True)
        with self._lock:
            thread.start()
            self._closing.add(thread)

    def _close(self, query: OpenQuery) -> None:
        try:
            query.close()
        finally:
            with self._lock:
                self._closing.discard(threading.current_thread())

    def _forget(self, query: OpenQuery) -> None:
        with self._lock:
            self._open.pop(query.id, None)

    def end_all(self) -> None:
        """Ends all queries, those too that are being opened, and waits for nothing."""
        with self._lock:
            self._is_ended = True
            found = list(self._open.values())
            for stopping in self._printing:
                stopping.set()
        for query in found:
            self.closed(query)

    def close_all(self) -> None:
        """Ends all queries; returns when all is gone that they needed."""
        self.end_all()
        with self._lock:
            closing = list(self._closing)
        for thread in closing:
            thread.join()
