"""Append by several processes: each stages its part, and one transaction makes all parts visible, or none is."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from headrace.topics.embedded.committing import publish
from headrace.topics.embedded.environment import explain
from headrace.topics.embedded.staging import StageWriter, StagingArea
from headrace.topics.embedded.tables import Tables
from headrace.topics.journal import Receipt, TaskRecord
from headrace.topics.log import Output, Topic, TopicPartition

_PREFIX = "append "
"""Before the names of appends among those of applications, which cannot have it."""
_OVER = ".over"
_ABANDONED_S = 7 * 24 * 3600.0


class StagedAppend:
    """An append that is committed or given up as a whole.

    >>> from tempfile import TemporaryDirectory
    >>> from headrace import EmbeddedLog
    >>> with TemporaryDirectory() as directory, EmbeddedLog(directory) as log:
    ...     users = log.create_topic("users")
    ...     append = log.staged_append("a1")
    ...     append.begin()
    ...     parts = [append.stage(f"{n}", "users", [[(None, n, b"alice", b"hello", ())]]) for n in range(2)]
    ...     before = log.end_offsets([("users", 0)])
    ...     append.commit(parts)
    ...     before, log.end_offsets([("users", 0)])
    {('users', 0): (0, 2)}
    ({('users', 0): 0}, {('users', 0): 2})
    """

    def __init__(
        self,
        write: Callable[[Callable[[Tables], Any]], Any],
        staging: StagingArea,
        topic: Callable[[str], Topic],
        name: str,
    ) -> None:
        self._write = write
        self._staging = staging
        self._topic = topic
        self._name = _PREFIX + name

    def begin(self) -> None:
        """Makes the folder in which parts are staged. Without it they are refused: the append is over."""
        folder = self._staging.folder(self._name)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise explain(str(folder), error, "written") from error

    def stage(self, part: str, topic: str, records: Iterable[Sequence[Output]]) -> Receipt:
        """Keeps records of one process beside the log; the receipt is what ``commit`` needs of them."""
        record = TaskRecord(0, "", [], None, b"")
        stage = StageWriter(self._staging, self._topic, self._name, 0, part, record, make_folder=False)
        try:
            for outputs in records:
                stage.write(topic, outputs)
            return stage.finish()
        except BaseException:
            stage.discard()
            raise

    def commit(self, parts: Sequence[Receipt]) -> dict[TopicPartition, tuple[int, int]]:
        """Adds all parts to the log in one transaction, in their order; returns which offsets they got."""

        def add(tables: Tables) -> dict[TopicPartition, tuple[int, int]]:
            return publish(tables, (frame for part in parts for frame in self._staging.frames(self._name, part)))

        written: dict[TopicPartition, tuple[int, int]] = self._write(add)
        self.discard()
        return written

    def discard(self) -> None:
        """Deletes the staged files, and those of others that were not committed within a week."""
        folder = self._staging.folder(self._name)
        over = folder.with_name(f"{folder.name}{_OVER}")
        # Moved first: a process that learns of the end too late finds no place for another file.
        with suppress(FileNotFoundError):
            folder.rename(over)
        shutil.rmtree(over, ignore_errors=True)
        first = self._staging.folder(_PREFIX)
        for folder in first.parent.glob(f"{first.name}*"):
            # Somebody else may be faster.
            with suppress(FileNotFoundError):
                if time.time() - folder.stat().st_mtime > _ABANDONED_S:
                    shutil.rmtree(folder, ignore_errors=True)
