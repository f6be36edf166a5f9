"""All views of a process: opened when a table is first asked for, followed while somebody asks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from headrace.errors import StreamsError, UnknownTopicError
from headrace.sql.catalog import SourceDefinition
from headrace.sql.errors import SqlStatementError
from headrace.sql.reading.tables.expiry import Expiry, RecordTime
from headrace.sql.reading.tables.view import TableView
from headrace.topics.log import TopicLog
from headrace.views.changelog_follower import wall_clock_ms
from headrace.views.replica import discard

logger = logging.getLogger(__name__)

_Name = tuple[str, bool, Expiry | None]
"""A topic, whether headers are kept beside its values, and when rows or windows expire: each is a view of its own."""

_STEP_S = 1.0
_FOLLOWED_S = 600.0
"""So long after the last question a view is still kept up to date; a later question brings it up to date itself."""


class SqlTables:
    """The views of tables. ``view`` returns one that has everything that was committed before it was asked for."""

    def __init__(self, log: TopicLog, directory: Path, *, clock: Callable[[], int] = wall_clock_ms) -> None:
        self._log = log
        self._clock = clock
        self._directory = directory
        self._lock = threading.Lock()
        self._views: dict[_Name, TableView] = {}
        self._asked: dict[_Name, float] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def view(
        self, table: SourceDefinition, expiry: Expiry | None = None, record_time: RecordTime | None = None
    ) -> TableView:
        """Returns the view of a table's topic, up to date.

        ``expiry`` says which rows and windows are kept, ``record_time`` is for one that goes by a column.
        """
        name = table.topic, bool(table.schema.headers), expiry
        try:
            partitions = self._log.partitions_of(table.topic)
        except UnknownTopicError as error:
            message = f"the topic '{table.topic}' of table {table.name} does not exist; was it deleted?"
            raise SqlStatementError(message) from error
        with self._lock:
            found = self._views.get(name)
            if found is not None and found.partitions != partitions:
                # The topic was deleted, and made anew with other partitions.
                found.close()
                found = None
            if found is None:
                found = self._views[name] = self._open_view(name, record_time)
            self._asked[name] = time.monotonic()
            self._start()
        found.catch_up()
        return found

    def _open_view(self, name: _Name, record_time: RecordTime | None) -> TableView:
        topic, with_headers, expiry = name
        place = self._place(name)
        return TableView(self._log, topic, place, expiry, record_time, self._clock, with_headers=with_headers)

    def _place(self, name: _Name) -> Path:
        topic, with_headers, expiry = name
        kinds = ["headers"] * with_headers + ([] if expiry is None else [quote(expiry.name, safe="")])
        return self._directory / quote(topic, safe="") / ("-".join(kinds) or "rows")

    def forget(self, topic: str) -> None:
        """Deletes the views of a topic, if there are any."""
        with self._lock:
            for name in [each for each in self._views if each[0] == topic]:
                self._views.pop(name).close()
                self._asked.pop(name, None)
            discard(self._directory / quote(topic, safe=""))

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._follow, name="headrace-sql-views", daemon=True)
            self._thread.start()

    def _follow(self) -> None:
        while not self._stopping.wait(_STEP_S):
            since = time.monotonic() - _FOLLOWED_S
            with self._lock:
                views = [self._views[name] for name, asked in self._asked.items() if asked > since]
            for view in views:
                try:
                    view.catch_up()
                except StreamsError as error:
                    # Who asks next is told.
                    logger.warning("the view of topic '%s' is behind: %s", view.topic, error)

    def close(self) -> None:
        """Stops following, and gives the files back."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            views, self._views = list(self._views.values()), {}
            self._asked.clear()
        for view in views:
            view.close()
