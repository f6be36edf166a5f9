"""Compaction of one partition: a round notes the last offset of each new key, then rewrites what lies before."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from headrace.topics.blob import BLOB_BYTES
from headrace.topics.configs import Cleanup
from headrace.topics.embedded.rewriting import ENTRY_COST, STEP_BYTES, Extent, extent, fits, replace
from headrace.topics.embedded.tables import PartitionState, Tables
from headrace.topics.log import Raw

_MAX_KEYS = 1 << 20
_SHORT = 32


@dataclass(slots=True)
class Round:
    """Progress of a round. ``horizon`` is where it ends; None while keys are still being noted."""

    at: int
    latest: dict[bytes | None, int] = field(default_factory=dict)
    horizon: int | None = None
    clean_size: int = 0
    tombstones_due_ms: int = 0

    def advance(self, step: Step) -> None:
        self.at = step.at
        self.clean_size += step.stays
        if step.tombstones_due_ms:
            self.tombstones_due_ms = min(self.tombstones_due_ms or step.tombstones_due_ms, step.tombstones_due_ms)


class Step(NamedTuple):
    """Result of one transaction of a round; the round takes it over once it is committed."""

    cost: int
    freed: int = 0
    at: int = 0
    stays: int = 0
    tombstones_due_ms: int = 0
    is_last: bool = False


def is_due(state: PartitionState, cleanup: Cleanup, now_ms: int) -> bool:
    """Returns whether a round pays off: enough is new, or tombstones have been there long enough."""
    dirty = state.size - state.clean_size
    if state.end > state.cleaned_to and dirty > 0 and dirty >= cleanup.min_dirty_ratio * state.size:
        return True
    return 0 < state.tombstones_due_ms <= now_ms


def map_step(tables: Tables, number: int, partition: int, current: Round, cleanup: Cleanup, now_ms: int) -> int:
    """Notes the keys of some new blobs; returns the bytes read. Sets the horizon when it is done."""
    cost = 0
    newest_ms = now_ms - cleanup.min_compaction_lag_ms if cleanup.min_compaction_lag_ms else None
    for entry in tables.entries(number, partition, current.at):
        head = entry.info()
        is_young = newest_ms is not None and head.max_timestamp_ms > newest_ms
        if is_young or len(current.latest) >= _MAX_KEYS:
            break
        current.latest.update((_name(record[2]), record[0]) for record in entry.records())
        current.at = entry.base + head.span
        cost += entry.size + ENTRY_COST
        if cost >= STEP_BYTES:
            return cost
    current.horizon = current.at
    current.at = 0
    return cost


def rewrite_step(tables: Tables, number: int, partition: int, current: Round, cleanup: Cleanup, now_ms: int) -> Step:
    """Rewrites some blobs without the records that have a successor."""
    assert current.horizon is not None, "keys are noted first"
    state = tables.state(number, partition)
    run = _select_latest(tables, number, partition, current, cleanup, now_ms)
    if not run.extents:
        # Another process may have finished a later round meanwhile.
        if current.horizon >= state.cleaned_to:
            state.cleaned_to = current.horizon
            state.clean_size = current.clean_size
            state.tombstones_due_ms = current.tombstones_due_ms
            tables.put_state(number, partition, state)
        return Step(1, is_last=True)
    size = sum(old.size for old in run.extents)
    cost = size + len(run.extents) * ENTRY_COST
    end = run.extents[-1].end
    mark = 0
    # A tombstone stays for some time, counted from the moment at which nothing before it is left: from this round on.
    if run.marks and end <= current.horizon:
        mark = now_ms if 0 in run.marks else max(run.marks)
    due_ms = mark + cleanup.delete_retention_ms if mark else 0
    is_marked_now = mark > 0 and 0 in run.marks
    is_scattered = len(run.extents) > 2 * (size // BLOB_BYTES + 1)
    if not run.dropped and not is_marked_now and not is_scattered:
        return Step(cost, 0, end, size, due_ms)
    before = state.size
    replace(tables, number, partition, state, run.extents, run.kept, mark)
    tables.put_state(number, partition, state)
    freed = before - state.size
    return Step(cost, freed, end, size - freed, due_ms)


@dataclass(slots=True)
class _Run:
    extents: list[Extent] = field(default_factory=list)
    kept: list[Raw] = field(default_factory=list)
    dropped: int = 0
    marks: set[int] = field(default_factory=set)
    """Cleaning times of the blobs that keep tombstones."""


def _select_latest(tables: Tables, number: int, partition: int, current: Round, cleanup: Cleanup, now_ms: int) -> _Run:
    latest = current.latest.get
    run = _Run()
    cost = 0
    for entry in tables.entries(number, partition, current.at):
        if entry.base >= (current.horizon or 0) or cost >= STEP_BYTES or not fits(run.extents, entry):
            break
        records = entry.records()
        kept = [record for record in records if latest(_name(record[2]), -1) <= record[0]]
        tombstones = [record for record in kept if record[3] is None]
        if tombstones and 0 < entry.cleaned_ms <= now_ms - cleanup.delete_retention_ms:
            kept = [record for record in kept if record[3] is not None]
        elif tombstones:
            run.marks.add(entry.cleaned_ms)
        run.extents.append(extent(entry))
        run.kept += kept
        run.dropped += len(records) - len(kept)
        cost += entry.size + ENTRY_COST
    return run


def _name(key: bytes | None) -> bytes | None:
    # Long keys as a digest, longer than any short key, so that no key can be made to look like another one's.
    if key is None or len(key) <= _SHORT:
        return key
    return b"#" + blake2b(key, digest_size=_SHORT).digest()
