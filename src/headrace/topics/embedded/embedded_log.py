"""``EmbeddedLog``: the topic log in a directory."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from headrace.errors import BatchError, ConfigError, LogError, TopicError, TopicExistsError, describe_value
from headrace.topics.blob import pack_all
from headrace.topics.configs import check_growth, new_topic
from headrace.topics.consumer_group import GroupMember, GroupOffset
from headrace.topics.embedded.cleaning import Cleaned, Cleaner
from headrace.topics.embedded.committing import committed, publish
from headrace.topics.embedded.environment import give_back, open_environment
from headrace.topics.embedded.journal import EmbeddedJournal, EmbeddedTaskJournal
from headrace.topics.embedded.reading import Scan, latest_time, offset_after, offset_for_time, read_range, scan_range
from headrace.topics.embedded.staged_append import StagedAppend
from headrace.topics.embedded.staging import StagingArea
from headrace.topics.embedded.tables import Application, StoredTopic, Tables, read_tables, write_tables
from headrace.topics.journal import ApplicationCut, TaskRecord
from headrace.topics.log import Committed, Offsets, Output, Raw, Topic, TopicPartition, Written
from headrace.topics.record_partitioning import Sticky, spread

T = TypeVar("T")

_POLL_FIRST = 0.001
_POLL_LAST = 0.02


class EmbeddedLog:
    """Topics in a directory of this machine, for any number of processes and threads at once; see ``TopicLog``.

    ``sync="commit"`` acknowledges a write when it is on the disk. ``"none"`` leaves that to the operating system: the
    log survives a crash of any process all the same, but a crash of the machine may damage it. ``max_size`` limits the
    file, in bytes; without it the disk is the limit. Removed records make room for new ones; the file does not shrink.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory, EmbeddedLog(directory) as log:
    ...     users = log.create_topic("users", partitions=2)
    ...     log.append("users", [(None, 1_000, b"alice", b"hello", ()), (None, 2_000, b"alice", b"bye", ())])
    ...     log.read("users", 1, 0)
    {1: (0, 2)}
    [(0, 1000, b'alice', b'hello', ()), (1, 2000, b'alice', b'bye', ())]
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        sync: Literal["commit", "none"] = "commit",
        map_size: int = 1 << 30,
        max_size: int | None = None,
    ) -> None:
        if sync not in ("commit", "none"):
            message = f"the log's sync must be 'commit' or 'none'; found {describe_value(sync)}"
            raise ConfigError(message)
        self.directory = os.path.realpath(directory)
        self._settings: dict[str, Any] = {"sync": sync, "map_size": map_size, "max_size": max_size}
        self._environment = open_environment(
            self.directory, sync=sync == "commit", map_size=min(map_size, max_size or map_size), max_size=max_size
        )
        self._staging = StagingArea(self.directory)
        self._cleaner = Cleaner(self._environment)
        self._sticky: dict[str, Sticky] = {}
        self._partition_counts: tuple[int, dict[str, int]] = (-1, {})
        """With the version at which they were read: a hundred applications poll, and mostly nothing was written."""
        self._is_open = True

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replicas: int | None = None,
        configs: Mapping[str, object] | None = None,
    ) -> Topic:
        """Makes a topic; all its partitions are empty."""
        topic = new_topic(name, partitions, configs)

        def create(tables: Tables) -> None:
            found = tables.find_topic(name)
            if found is not None:
                message = (
                    f"topic '{name}' is there already, with {found.topic.partitions} partitions; use it, delete it "
                    "first, or choose another name"
                )
                raise TopicExistsError(message)
            tables.put_topic(StoredTopic(tables.new_number(), topic))

        self._write(create)
        return topic

    def topics(self) -> list[str]:
        """Returns the names of all topics in their order."""
        return self._read(lambda tables: [stored.topic.name for stored in tables.topics()])

    def describe_topic(self, name: str) -> Topic:
        """Returns a topic's partitions and settings."""
        return self._read(lambda tables: tables.topic(name)).topic

    def topic_id(self, name: str) -> str:
        """Returns what tells a topic from one of the same name that was deleted before."""
        return str(self._read(lambda tables: tables.topic(name)).number)

    def partition_counts(self) -> dict[str, int]:
        """Returns all topics in their order, and how many partitions each has."""
        self._check_open()
        # Read first: what is written meanwhile is found the next time.
        version = self._environment.version()
        if version != self._partition_counts[0]:
            found = self._read(lambda tables: {each.topic.name: each.topic.partitions for each in tables.topics()})
            self._partition_counts = version, found
        return dict(self._partition_counts[1])

    def partitions_of(self, topic: str) -> int:
        """Returns how many partitions a topic has."""
        return self.describe_topic(topic).partitions

    def delete_topic(self, name: str) -> None:
        """Removes a topic at once; ``clean`` gives its room back."""
        self._write(lambda tables: tables.drop_topic(tables.topic(name)))

    def grow_topic(self, name: str, partitions: int) -> None:
        """Gives a topic so many partitions, those that are added empty; nothing happens if it has them."""

        def grow(tables: Tables) -> None:
            found = tables.topic(name)
            check_growth(found.topic, partitions)
            tables.put_topic(StoredTopic(found.number, replace(found.topic, partitions=partitions)))

        self._write(grow)

    def append(self, topic: str, records: Iterable[Output]) -> Written:
        """Writes records in one transaction: all of them are there when it returns, or none."""
        outputs = records if isinstance(records, Sequence) else list(records)
        while True:
            stored = self._read(lambda tables: tables.topic(topic))
            sticky = self._sticky.setdefault(topic, Sticky(random.randrange(1 << 16)))
            # Packed before the lock is taken; the topic may have been exchanged meanwhile.
            blobs = [
                (topic, partition, blob)
                for partition, part in spread(stored.topic, outputs, sticky)
                for blob in pack_all(part)
            ]
            written = self._write(
                lambda tables, stored=stored, blobs=blobs: (  # type: ignore[misc]  # bound early, as a loop needs it
                    publish(tables, blobs) if tables.find_topic(topic) == stored else None
                )
            )
            if written is not None:
                return {partition: bounds for (_, partition), bounds in written.items()}

    def read(
        self,
        topic: str,
        partition: int,
        start: int,
        stop: int | None = None,
        *,
        max_records: int = 1 << 40,
        max_bytes: int = 64 << 20,
    ) -> list[Raw]:
        """Returns records of a partition in the order of their offsets."""
        return self._read(lambda tables: read_range(tables, (topic, partition), start, stop, max_records, max_bytes))

    def scan(
        self, topic: str, partition: int, start: int, stop: int, times_ms: tuple[int, int], *, max_bytes: int = 8 << 20
    ) -> Scan:
        """Takes a step through records with start ≤ offset < stop and first ≤ timestamp ≤ last.

        Blobs outside of the times are not unpacked; the step says how many. Go on at its ``next_offset``.

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as directory, EmbeddedLog(directory) as log:
        ...     users = log.create_topic("users")
        ...     for time_ms in (1_000, 2_000, 3_000):
        ...         written = log.append("users", [(None, time_ms, b"alice", b"hello", ())])
        ...     step = log.scan("users", 0, 0, 3, (2_000, 2_500))
        >>> [offset for offset, *_ in step.records], step.next_offset, step.blobs, step.skipped
        ([1], 3, 1, 2)
        """
        return self._read(lambda tables: scan_range(tables, (topic, partition), start, stop, times_ms, max_bytes))

    def staged_append(self, name: str) -> StagedAppend:
        """Returns an append by several processes that is committed as a whole; ``name`` is its own."""
        return StagedAppend(self._write, self._staging, self.describe_topic, name)

    def begin_offsets(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Returns the offsets of the first records, all at one moment."""
        return self._read(lambda tables: {target: tables.partition(target)[1].begin for target in partitions})

    def end_offsets(self, partitions: Iterable[TopicPartition], *, stable: bool = True) -> Offsets:
        """Returns the offsets after the last records, all at one moment. Everything in this log is stable."""
        return self._read(lambda tables: {target: tables.partition(target)[1].end for target in partitions})

    def sizes(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Returns how many bytes the records of partitions take."""
        return self._read(lambda tables: {target: tables.partition(target)[1].size for target in partitions})

    def offsets_for_time(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Returns the first offsets whose records have these times or later ones; None if there are none."""
        return self._read(
            lambda tables: {target: offset_for_time(tables, target, time_ms) for target, time_ms in times_ms.items()}
        )

    def latest_time(self, topic: str, partition: int, start: int, stop: int) -> int | None:
        """Returns the largest timestamp in a range of offsets."""
        return self._read(lambda tables: latest_time(tables, (topic, partition), start, stop))

    def offset_after(self, topic: str, partition: int, start: int, stop: int, time_ms: int) -> int | None:
        """Returns the first offset in a range whose record is later than the time."""
        return self._read(lambda tables: offset_after(tables, (topic, partition), start, stop, time_ms))

    def record_bytes(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Returns the average size of a record as it is stored, gaps counted as records."""

        def average(tables: Tables, target: TopicPartition) -> int:
            state = tables.partition(target)[1]
            return state.size // max(1, state.end - state.begin)

        return self._read(lambda tables: {target: average(tables, target) for target in partitions})

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Forgets what lies before the offsets, at once; ``clean`` gives the room back."""
        self._write(lambda tables: tables.delete_records(before))

    def wait_for_data(self, positions: Mapping[TopicPartition, int], timeout: timedelta) -> bool:
        """Waits until one of the positions has a record; returns whether one has."""
        deadline = time.monotonic() + timeout.total_seconds()
        pause, seen = _POLL_FIRST, -1
        while True:
            version = self._environment.version()
            # Looking costs a transaction; the version tells whether anybody has written since.
            if version != seen:
                seen = version
                ends = self.end_offsets(positions)
                if any(ends[target] > position for target, position in positions.items()):
                    return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(pause * 2, _POLL_LAST)

    def application_description(self, application: str) -> bytes | None:
        """Returns what an application has said of itself."""
        found = self._application(application)
        return None if found is None or not found.description else found.description

    def describe_application(self, application: str, description: bytes) -> None:
        """Keeps what an application says of itself."""

        def describe(tables: Tables) -> None:
            found = tables.application(_name(application)) or Application()
            found.description = description
            tables.put_application(_name(application), found)

        self._write(describe)

    def cut_application(self, application: str, starts: Mapping[TopicPartition, int | None]) -> ApplicationCut | None:
        """Returns an application as it is in one transaction."""

        def look(tables: Tables) -> ApplicationCut | None:
            found = tables.application(_name(application))
            if found is None or found.batch_id < 0:
                return None
            positions = {(topic, partition): offset for topic, partition, offset in found.positions}
            states = {target: tables.partition(target)[1] for target in starts}
            tails = {}
            for target, start in starts.items():
                at = positions.get(target, 0) if start is None else start
                tails[target] = read_range(tables, target, max(at, states[target].begin), None, 1 << 40, 1 << 40)
            records = {task: TaskRecord.unpack(data) for task, data in tables.task_records(_name(application)).items()}
            ends = {target: state.end for target, state in states.items()}
            return ApplicationCut(found.batch_id, positions, records, ends, tails)

        return self._read(look)

    def open_journal(self, application: str, tasks: Sequence[str]) -> EmbeddedJournal:
        """Opens the journal of an application; fences former owners, which can commit nothing more."""
        return EmbeddedJournal(self._write, self._staging, _name(application))

    def task_journal(
        self, application: str, incarnation: int, task: str, changelogs: Sequence[TopicPartition]
    ) -> EmbeddedTaskJournal:
        """Opens a task's side of an application's journal."""
        return EmbeddedTaskJournal(
            self._read, self._staging, self.describe_topic, application, incarnation, task, changelogs
        )

    def group_offsets(self, application: str) -> dict[TopicPartition, GroupOffset]:
        """Returns nothing: there are no consumer groups."""
        return {}

    def commit_group_offsets(self, application: str, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
        """Refuses: this log has no consumer groups."""
        message = f"application '{application}': the embedded log has no consumer groups; use topics in Kafka"
        raise LogError(message)

    def group_members(self, application: str) -> list[GroupMember]:
        """Returns no members: this log has no consumer groups."""
        return []

    def applications(self) -> list[str]:
        """Returns the names of the applications that the log knows."""
        return self._read(
            lambda tables: [
                name
                for name in tables.applications()
                if (found := tables.application(name)) is not None and found.has_begun
            ]
        )

    def last_batch(self, application: str) -> Committed | None:
        """Returns what the application has committed last."""
        found = self._application(application)
        return None if found is None or found.batch_id < 0 else committed(found)

    def positions(self, application: str) -> Offsets:
        """Returns up to where the application has consumed its inputs."""
        found = self._application(application)
        return {} if found is None else {(topic, partition): offset for topic, partition, offset in found.positions}

    def _application(self, application: str) -> Application | None:
        return self._read(lambda tables: tables.application(_name(application)))

    def begin_at(self, application: str, positions: Mapping[TopicPartition, int]) -> None:
        """Lets an application that has committed no batch begin at these positions."""

        def begin(tables: Tables) -> None:
            found = tables.application(_name(application)) or Application()
            if found.batch_id >= 0:
                message = (
                    f"application '{application}' has committed batch {found.batch_id}, so it goes on behind that; "
                    "reset it before it can begin elsewhere"
                )
                raise BatchError(message)
            found.positions = [(*target, offset) for target, offset in positions.items()]
            tables.put_application(_name(application), found)

        self._write(begin)

    def reset_application(self, application: str, internal_topics: Iterable[str] = ()) -> None:
        """Forgets batches, positions and task records of an application, and deletes its internal topics, at once."""
        name = _name(application)

        def forget(tables: Tables) -> int:
            # The number goes on: a driver from before the reset must never be taken for one that comes after it.
            incarnation = (tables.application(name) or Application()).incarnation + 1
            tables.delete_task_records(name)
            tables.put_application(name, Application(incarnation))
            for topic in internal_topics:
                found = tables.find_topic(topic)
                if found is not None:
                    tables.drop_topic(found)
            return incarnation

        self._staging.discard(name, self._write(forget))

    def forget_application(self, application: str) -> None:
        """Forgets even the number of its last driver."""
        self._write(lambda tables: tables.delete_application(_name(application)))

    def clean(self, *, max_bytes: int = 8 << 20, now_ms: int | None = None) -> Cleaned:
        """Does a bounded part of the cleaning: retention, compaction, deleted topics, small blobs.

        Call it now and then, and again while it says that there is ``more`` to do. One process cleans at a time; the
        others find nothing to do.
        """
        self._check_open()
        return self._cleaner.clean(max_bytes, int(time.time() * 1000) if now_ms is None else now_ms)

    def flush(self) -> None:
        """Forces everything to the disk, also with ``sync="none"``."""
        self._check_open()
        self._environment.flush()

    def used_bytes(self) -> int:
        """Returns how large the log's file has become."""
        self._check_open()
        return self._environment.used_bytes()

    def close(self) -> None:
        """Gives the log back; the last handle of the process closes its files."""
        if self._is_open:
            self._is_open = False
            give_back(self._environment)

    def _read(self, action: Callable[[Tables], T]) -> T:
        self._check_open()
        return read_tables(self._environment, action)

    def _write(self, action: Callable[[Tables], T]) -> T:
        self._check_open()
        return write_tables(self._environment, action)

    def _check_open(self) -> None:
        if not self._is_open:
            message = f"the log in '{self.directory}' is closed; open it again: EmbeddedLog('{self.directory}')"
            raise LogError(message)

    def __reduce__(self) -> tuple[Callable[..., EmbeddedLog], tuple[str, dict[str, Any]]]:
        return _reopen, (self.directory, self._settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _reopen(directory: str, settings: dict[str, Any]) -> EmbeddedLog:
    return EmbeddedLog(directory, **settings)


def _name(application: str) -> str:
    if not 1 <= len(application.encode()) <= 400:
        message = f"an application id has 1 to 400 bytes; found {describe_value(application)}; choose another one"
        raise TopicError(message)
    return application
