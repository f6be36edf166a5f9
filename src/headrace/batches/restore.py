"""State restore: changelogs are read from where a working copy is to where the log says that the task is."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.batches.layout import Layout, TaskPlace
from headrace.batches.reports import StoreRestore
from headrace.batches.working_copy import Applied, WorkingCopy
from headrace.runtime.gc_pause import collector_paused
from headrace.state.engines.changes import Changes
from headrace.state.engines.environment import IN_MEMORY
from headrace.state.engines.overlay import OverlayEngine
from headrace.topics.journal import TaskCommitState, TaskJournal
from headrace.topics.log import Raw, ReadableLog, TopicPartition

logger = logging.getLogger(__name__)

_AT_ONCE = 100_000
"""Records that are restored in one transaction."""
_TOMBSTONES_MS = 24 * 3600 * 1000
"""The usual time."""

Clocks = Mapping[str, Mapping[bytes, bytes]]
"""By store: rows that no changelog has."""


@dataclass(frozen=True)
class _Part:
    """One store of the task, and the range of its changelog to read."""

    store: str
    target: TopicPartition
    topic_id: str
    begin: int
    end: int


def restore_task(
    layout: Layout, place: TaskPlace, head: TaskCommitState, log: ReadableLog, copy: WorkingCopy, clocks: Clocks
) -> list[StoreRestore]:
    """Brings a copy to the last commit of its task; returns the restores of stores that lacked records.

    ``clocks`` are known from the task's record. They are set first, so that rows which have expired are not restored.
    """
    parts = _parts(layout, place, head, log)
    copy.belong_to("" if head.record is None else head.record.lineage)
    starts = _starts(parts, copy, log)
    counts: dict[str, int] = {}
    try:
        for part, _, count in _restore(layout, parts, starts, log, copy, clocks):
            counts[part.store] = counts.get(part.store, 0) + count
    finally:
        copy.note_restoring(0)
    for store in place.changelogs:
        rows = clocks.get(store)
        if rows:
            copy.engine(store).apply(Changes(rows=dict(rows)))
    copy.note({part.store: Applied(part.topic_id, part.end) for part in parts})
    copy.note_current()
    return [
        _progress(part, starts, part.end, counts.get(part.store, 0)) for part in parts if starts[part.store] < part.end
    ]


def find_restores(
    layout: Layout, place: TaskPlace, journal: TaskJournal, log: ReadableLog, copy: WorkingCopy
) -> list[StoreRestore]:
    """Returns what a copy lacks of the changelogs as they end now; one that cannot be used is emptied."""
    parts, starts = _plan_ahead(layout, place, journal, log, copy)
    return [_progress(part, starts, starts[part.store]) for part in parts if starts[part.store] < part.end]


def follow_changelogs(
    layout: Layout, place: TaskPlace, journal: TaskJournal, log: ReadableLog, copy: WorkingCopy
) -> Iterator[StoreRestore]:
    """Brings a copy to the ends of its changelogs, page by page; yields how far the store of each page is."""
    if all(copy.applied(part.store) == Applied(part.topic_id, part.end) for part in _parts(layout, place, None, log)):
        copy.note_current()
        return
    parts, starts = _plan_ahead(layout, place, journal, log, copy)
    try:
        for part, reached, count in _restore(layout, parts, starts, log, copy, {}):
            yield _progress(part, starts, reached, count)
        copy.note_current()
    finally:
        copy.note_restoring(0)


def _plan_ahead(
    layout: Layout, place: TaskPlace, journal: TaskJournal, log: ReadableLog, copy: WorkingCopy
) -> tuple[list[_Part], dict[str, int]]:
    """Returns what a task that runs elsewhere, or not yet, is restored from, and from where each of that is to be read.

    Its lineage is looked at first: what a reset cuts off meanwhile can then not be taken for what comes after it.
    """
    record = journal.read_record()
    if record is None:
        return [], {}
    copy.belong_to(record.lineage)
    parts = _parts(layout, place, None, log)
    return parts, _starts(parts, copy, log)


def count_unfollowed(layout: Layout, place: TaskPlace, log: ReadableLog) -> int:
    """Returns how many records a task reads for stores of which no copy can be kept by following changelogs."""
    targets = [
        (topic, place.id.partition) for store, topic in place.changelogs.items() if not _is_followed(layout, store)
    ]
    if not targets:
        return 0
    begins, ends = log.begin_offsets(targets), log.end_offsets(targets)
    return sum(ends[target] - begins[target] for target in targets)


def _is_followed(layout: Layout, store: str) -> bool:
    """Returns whether a copy can follow: rows in memory end with their process, and a topic that is read runs ahead."""
    return store in layout.changelogs and layout.kinds[store] != IN_MEMORY


def _progress(part: _Part, starts: Mapping[str, int], position: int, records: int = 0) -> StoreRestore:
    return StoreRestore(part.store, *part.target, starts[part.store], position, part.end, records)


def _starts(parts: Sequence[_Part], copy: WorkingCopy, log: ReadableLog) -> dict[str, int]:
    """Returns from where each changelog is to be read; what cannot be used of a copy is emptied."""
    copy.wipe([part.store for part in parts if not _is_usable(copy, part, log)])
    return {part.store: min(_start(copy, part), part.end) for part in parts}


def _restore(
    layout: Layout,
    parts: Sequence[_Part],
    starts: Mapping[str, int],
    log: ReadableLog,
    copy: WorkingCopy,
    clocks: Clocks,
) -> Iterator[tuple[_Part, int, int]]:
    """Reads pages into a copy; yields the store of each page, the offset behind it, and how many records it had."""
    left = sum(part.end - starts[part.store] for part in parts)
    for part in parts:
        for records, reached in _pages(log, part, starts[part.store]):
            _apply(layout, copy, part, records, clocks.get(part.store, {}))
            copy.note({part.store: Applied(part.topic_id, reached)})
            copy.write()
            left -= len(records)
            copy.note_restoring(max(1, left))
            yield part, reached, len(records)


def _parts(layout: Layout, place: TaskPlace, head: TaskCommitState | None, log: ReadableLog) -> list[_Part]:
    """Returns what a task is restored from, up to its head; without a head, to the ends of its own changelogs."""
    targets = {
        store: (topic, place.id.partition)
        for store, topic in place.changelogs.items()
        if head is not None or _is_followed(layout, store)
    }
    # Before the offsets: those of a topic that is made anew meanwhile must not be taken for the old one's.
    ids = {target: log.topic_id(target[0]) for target in targets.values()}
    begins = log.begin_offsets(targets.values())
    ends = log.end_offsets(targets.values()) if head is None else head.ends
    record = None if head is None else head.record
    positions = {} if record is None else {(topic, n): offset for topic, n, offset in record.positions}
    found = []
    for store, target in targets.items():
        # A table that is restored from the topic it reads has in it what the task has read.
        end = ends[target] if store in layout.changelogs else positions.get(target, begins[target])
        if head is not None and record is None:
            end = begins[target]
        found.append(_Part(store, target, ids[target], begins[target], end))
    return found


def _start(copy: WorkingCopy, part: _Part) -> int:
    applied = copy.applied(part.store)
    return part.begin if applied is None else applied.offset


def _is_usable(copy: WorkingCopy, part: _Part, log: ReadableLog) -> bool:
    applied = copy.applied(part.store)
    if applied is None or applied == Applied(part.topic_id, part.begin):
        # Rows that nobody has counted would be kept, and so would those that a reset has cut off at the front.
        return not any(True for _ in copy.engine(part.store).scan())
    if applied.topic_id != part.topic_id or not part.begin <= applied.offset <= max(part.end, part.begin):
        return False
    if applied.offset >= part.end:
        return True
    away_ms = time.time_ns() // 1_000_000 - copy.current_ms(part.store)
    # Compaction forgets deletions, and the copy would keep what they deleted.
    return away_ms < tombstones_ms(log, part.target[0])


def tombstones_ms(log: ReadableLog, topic: str) -> int:
    """Returns for how long compaction leaves deletions in a topic."""
    return int(log.describe_topic(topic).configs.get("delete.retention.ms", _TOMBSTONES_MS))


def _pages(log: ReadableLog, part: _Part, start: int) -> Iterator[tuple[list[Raw], int]]:
    """Returns records with the offset behind them."""
    while start < part.end:
        records = log.read(*part.target, start, part.end, max_records=_AT_ONCE)
        start = records[-1][0] + 1 if records else part.end
        yield records, start


def _apply(layout: Layout, copy: WorkingCopy, part: _Part, records: list[Raw], clock: Mapping[bytes, bytes]) -> None:
    config = layout.config
    engine = copy.engine(part.store)
    engine.apply(Changes(rows=dict(clock)))
    # Any: what a builder builds depends on its kind.
    store: Any = (
        layout.topology.store_builders[part.store]
        .unlimited()
        .build(
            OverlayEngine(engine),
            default_key_serde=config.default_key_serde,
            default_value_serde=config.default_value_serde,
            topic=part.target[0],
        )
    )
    with collector_paused():
        store.restore([(key, value, time_ms) for _, time_ms, key, value, _ in records if key is not None])
        store.flush_writes()
    overlay: OverlayEngine = store.engine
    overlay.commit()
