"""Notes of running push-query topologies, for the cleanup after a process that was killed."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from pathlib import Path

from headrace.errors import StreamsError, UnknownTopicError
from headrace.private_directory import make_directories
from headrace.sql.hosting.host import QueryHost
from headrace.topics.log import TopicLog

logger = logging.getLogger(__name__)


class OrphanedQueries:
    """A file for each such topology, in a directory that no other process has, from before it starts until it is gone.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     notes = OrphanedQueries(Path(directory))
    ...     notes.note("transient_S_1f", "topic")
    ...     print(notes.noted())
    ...     notes.forget("transient_S_1f")
    ...     print(notes.noted())
    {'transient_S_1f': 'topic'}
    {}
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def note(self, query_id: str, topic: str) -> None:
        """Writes down that a query is about to start, and the topic that it makes for itself."""
        make_directories(self._directory)
        self._file(query_id).write_text(json.dumps([query_id, topic]), encoding="utf-8")

    def forget(self, query_id: str) -> None:
        """Strikes out a query of which nothing is left."""
        self._file(query_id).unlink(missing_ok=True)

    def noted(self) -> dict[str, str]:
        """Returns the topics of all queries that are noted."""
        found: dict[str, str] = {}
        for path in sorted(self._directory.glob("*.json")):
            try:
                query_id, topic = json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                # Killed while it was written: the query had not begun.
                path.unlink(missing_ok=True)
                continue
            found[query_id] = topic
        return found

    def clean_up(self, host: QueryHost, log: TopicLog) -> None:
        """Deletes what queries have left that nobody has ended."""
        for query_id, topic in self.noted().items():
            try:
                host.forget(query_id)
                with suppress(UnknownTopicError):
                    log.delete_topic(topic)
            except StreamsError as error:
                logger.warning("what the push query %s has left could not be deleted: %s", query_id, error)
                continue
            self.forget(query_id)

    def _file(self, query_id: str) -> Path:
        # The name of a source may have letters that a file's may not.
        return self._directory / f"{query_id.rpartition('_')[2]}.json"
