"""Snapshots: an application as one of its micro-batches has left it, copied to topics under a name.

``<name>-snapshot-<topic>`` has the records of an internal topic, ``<name>-snapshot`` those of all tasks and, last, the
manifest. A snapshot without a manifest was interrupted; it is made anew. An application that runs is not disturbed: its
changelogs are copied as they are, and then, once, what has come since up to exactly the end of a batch.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from headrace.app.description import Description
from headrace.errors import ChangeRefusedError, OffsetOutOfRangeError, UnknownTopicError, did_you_mean
from headrace.topics.journal import ApplicationCut, DurableLog, TaskRecord
from headrace.topics.log import Offsets, Output, Raw, TopicLog, TopicPartition

Tell: TypeAlias = Callable[[str], object]
"""Gets a line for every step."""

_FORMAT = 1
_MANIFEST = b"manifest"
_SUFFIX = "-snapshot"
_CONFIGS: Mapping[str, object] = {
    "cleanup.policy": "delete",
    "retention.ms": -1,
    "retention.bytes": -1,
    "message.timestamp.type": "CreateTime",
}
_NAME = re.compile(r"[a-zA-Z0-9._-]{1,100}")
_PAGE_RECORDS = 50_000
_PAGE_BYTES = 16 << 20
_PASSES = 5
_NEAR = 10_000
"""Records that may be left for the cut, which has them in memory."""


@dataclass(frozen=True)
class Snapshot:
    """Content of a snapshot."""

    name: str
    application: str
    batch_id: int
    taken_ms: int
    positions: Offsets
    topics: Mapping[str, str]
    """The application's internal topics, and where their records are."""
    configs: Mapping[str, Mapping[str, str]]
    """Settings of the internal topics."""
    description: bytes
    """Of the application, as the log had it."""

    def pack(self) -> bytes:
        content = {
            "format": _FORMAT,
            "application": self.application,
            "batch_id": self.batch_id,
            "taken_ms": self.taken_ms,
            "positions": [[*target, at] for target, at in self.positions.items()],
            "topics": dict(self.topics),
            "configs": {topic: dict(configs) for topic, configs in self.configs.items()},
            "description": self.description.decode(),
        }
        return json.dumps(content).encode()

    @classmethod
    def unpack(cls, name: str, data: bytes) -> Snapshot:
        # Any: JSON that another version may have written.
        found: Any = json.loads(data)
        if found["format"] != _FORMAT:
            message = f"snapshot '{name}' is of another version of Headrace (format {found['format']!r}); use that one"
            raise ChangeRefusedError(message)
        return cls(
            name,
            found["application"],
            found["batch_id"],
            found["taken_ms"],
            {(topic, partition): at for topic, partition, at in found["positions"]},
            found["topics"],
            found["configs"],
            found["description"].encode(),
        )


def take_snapshot(application: str, log: DurableLog, name: str, *, tell: Tell = lambda _line: None) -> Snapshot:
    """Copies an application, which may run, under a name; raises ChangeRefusedError if it cannot be done."""
    if not _NAME.fullmatch(name) or _SUFFIX in name:
        message = (
            f"a snapshot's name has 1 to 100 letters, digits, dots, underscores, hyphens, and no '{_SUFFIX}'; found "
            f"'{name}'; choose another one"
        )
        raise ChangeRefusedError(message)
    started = time.monotonic()
    known = _describable(application, log)
    if find_snapshot(log, name) is not None:
        message = f"there is a snapshot '{name}'; choose another name, or delete it: `headrace snapshots delete {name}`"
        raise ChangeRefusedError(message)
    _delete_topics(log, name)
    copies = {topic: f"{name}{_SUFFIX}-{topic.removeprefix(f'{application}-')}" for topic in known.internal_topics}
    counts = {topic: log.partitions_of(topic) for topic in copies}
    for topic, copy in copies.items():
        log.create_topic(copy, partitions=counts[topic], configs=_CONFIGS)
    log.create_topic(f"{name}{_SUFFIX}", configs=_CONFIGS)
    changelogs = [topic for topic in copies if topic.endswith("-changelog")]
    starts = _copy_changelogs(log, {topic: copies[topic] for topic in changelogs}, counts, tell)
    # What back edges carry is needed as far as it is not read.
    edges = [(topic, n) for topic in copies if topic not in changelogs for n in range(counts[topic])]
    cut = log.cut_application(application, {**starts, **dict.fromkeys(edges)})
    if cut is None:
        message = f"application '{application}' has committed nothing yet: there is nothing to take a snapshot of"
        raise ChangeRefusedError(message)
    for (topic, partition), records in cut.tails.items():
        _append(log, copies[topic], partition, records)
    snapshot = Snapshot(
        name,
        application,
        cut.batch_id,
        time.time_ns() // 1_000_000,
        cut.positions,
        copies,
        {topic: log.describe_topic(topic).configs for topic in copies},
        log.application_description(application) or b"",
    )
    _write(log, snapshot, cut)
    tell(f"snapshot '{name}' has batch {cut.batch_id} of application '{application}'")
    tell(f"done in {time.monotonic() - started:.1f} s")
    return snapshot


def find_snapshot(log: TopicLog, name: str) -> Snapshot | None:
    """Returns a snapshot that is complete."""
    for _, _, key, value, _ in _read_all(log, f"{name}{_SUFFIX}"):
        if key == _MANIFEST and value is not None:
            return Snapshot.unpack(name, value)
    return None


def existing_snapshot(log: TopicLog, name: str) -> Snapshot:
    """Returns a snapshot, or says which there are."""
    found = find_snapshot(log, name)
    if found is None:
        known = [each.name for each in list_snapshots(log)]
        there = f"; known are {', '.join(known)}" if known else ""
        message = f"there is no snapshot '{name}'{did_you_mean(name, known) or there}"
        raise ChangeRefusedError(message)
    return found


def task_records(log: TopicLog, snapshot: Snapshot) -> dict[str, TaskRecord]:
    """Returns the records of all tasks in a snapshot."""
    return {
        key.decode(): TaskRecord.unpack(value)
        for _, _, key, value, _ in _read_all(log, f"{snapshot.name}{_SUFFIX}")
        if key is not None and key != _MANIFEST and value is not None
    }


def list_snapshots(log: TopicLog) -> list[Snapshot]:
    """Returns all snapshots that are complete, by name."""
    names = [topic.removesuffix(_SUFFIX) for topic in log.topics() if topic.endswith(_SUFFIX)]
    return [found for name in names if (found := find_snapshot(log, name)) is not None]


def delete_snapshot(log: TopicLog, name: str) -> None:
    """Deletes a snapshot, complete or not."""
    if f"{name}{_SUFFIX}" not in log.topics():
        existing_snapshot(log, name)
    _delete_topics(log, name)


def _describable(application: str, log: DurableLog) -> Description:
    known = Description.read(log, application)
    if known is None or known.is_resetting:
        others = log.applications()
        message = f"nothing is known of an application '{application}' in this log{did_you_mean(application, others)}"
        raise ChangeRefusedError(message)
    if known.change is not None:
        known.change.refuse_start(application)
    return known


def _copy_changelogs(
    log: DurableLog, copies: Mapping[str, str], counts: Mapping[str, int], tell: Tell
) -> dict[TopicPartition, int]:
    """Copies changelogs until little is left, because the application may go on; returns how far that is.

    What compaction removes meanwhile was written anew behind it, and is copied from there.
    """
    targets = [(topic, partition) for topic in copies for partition in range(counts[topic])]
    at: dict[TopicPartition, int] = log.begin_offsets(targets)
    for _ in range(_PASSES):
        ends = log.end_offsets(targets)
        left = {target: (at[target], end) for target, end in ends.items() if at[target] < end}
        if sum(end - start for start, end in left.values()) <= _NEAR:
            break
        copied = 0
        for (topic, partition), (start, end) in left.items():
            for page in _pages(log, (topic, partition), start, end):
                _append(log, copies[topic], partition, page)
                copied += len(page)
            at[topic, partition] = end
        tell(f"copied {copied:,} records of {len(copies)} changelogs")
    return at


def _pages(log: TopicLog, target: TopicPartition, start: int, end: int) -> Iterator[list[Raw]]:
    while start < end:
        try:
            page = log.read(*target, start, end, max_records=_PAGE_RECORDS, max_bytes=_PAGE_BYTES)
        except OffsetOutOfRangeError as error:
            if start >= error.begin:
                raise
            # Rows that have expired were cut off.
            start = error.begin
            continue
        if not page:
            return
        start = page[-1][0] + 1
        yield page


def _append(log: TopicLog, topic: str, partition: int, records: list[Raw]) -> None:
    outputs: list[Output] = [(partition, time_ms, key, value, headers) for _, time_ms, key, value, headers in records]
    if outputs:
        log.append(topic, outputs)


def _write(log: DurableLog, snapshot: Snapshot, cut: ApplicationCut) -> None:
    topic, now_ms = f"{snapshot.name}{_SUFFIX}", snapshot.taken_ms
    log.append(topic, [(0, now_ms, task.encode(), record.pack(), ()) for task, record in cut.records.items()])
    log.append(topic, [(0, now_ms, _MANIFEST, snapshot.pack(), ())])


def _read_all(log: TopicLog, topic: str) -> Iterator[Raw]:
    try:
        begin, end = log.begin_offsets([(topic, 0)])[topic, 0], log.end_offsets([(topic, 0)])[topic, 0]
    except UnknownTopicError:
        return
    for page in _pages(log, (topic, 0), begin, end):
        yield from page


def _delete_topics(log: TopicLog, name: str) -> None:
    for topic in log.topics():
        # The manifest goes first: what is left without it is no snapshot.
        if topic == f"{name}{_SUFFIX}":
            log.delete_topic(topic)
    for topic in log.topics():
        if topic.startswith(f"{name}{_SUFFIX}-"):
            with suppress(UnknownTopicError):
                log.delete_topic(topic)
