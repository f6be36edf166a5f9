"""Making room: retention, compaction, deleted topics and small blobs, in steps that hold the lock only for moments.

Offsets never change. Retention removes whole blobs from the beginning of a partition. Compaction works in rounds, as
Kafka's cleaner does: when enough of a partition is new, the last offset of each new key is noted, then all blobs up to
there are rewritten without the records that have a successor. A round is spread over many calls and lives in memory; if
it is lost, the next one starts anew, and nothing is wrong meanwhile.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from headrace.topics.configs import Cleanup
from headrace.topics.embedded.compaction import Round, is_due, map_step, rewrite_step
from headrace.topics.embedded.environment import Environment, explain
from headrace.topics.embedded.rewriting import ENTRY_COST, STEP_BYTES, Extent, extent, merge_step
from headrace.topics.embedded.tables import Tables, read_tables, write_tables


@dataclass(frozen=True)
class Cleaned:
    """Result of a call of ``clean``."""

    touched_bytes: int
    """Bytes that were read, rewritten or removed."""
    freed_bytes: int
    more: bool
    """There was more to do than the call was allowed."""


class _Job(NamedTuple):
    """A partition to look after, or a deleted topic, which has no cleanup."""

    number: int
    partition: int
    """Of a deleted topic: how many it had."""
    cleanup: Cleanup | None


class Cleaner:
    """Cleans a log step by step, starting each time where it stopped."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._rounds: dict[tuple[int, int], Round] = {}
        self._next = 0

    def clean(self, max_bytes: int, now_ms: int) -> Cleaned:
        with _try_lock(Path(self._environment.directory) / "cleaner.lock") as is_alone:
            if not is_alone:
                return Cleaned(0, 0, more=False)
            self._environment.forget_dead_readers()
            jobs = read_tables(self._environment, _jobs)
            wanted = {(job.number, job.partition) for job in jobs}
            self._rounds = {key: value for key, value in self._rounds.items() if key in wanted}
            touched = freed = 0
            first = self._next
            for turn in range(len(jobs)):
                self._next = (first + turn) % len(jobs)
                while touched < max_bytes:
                    cost, gain = self._step(jobs[self._next], now_ms)
                    freed += gain
                    if not cost:
                        break
                    touched += cost
                else:
                    return Cleaned(touched, freed, more=True)
            return Cleaned(touched, freed, more=False)

    def _step(self, job: _Job, now_ms: int) -> tuple[int, int]:
        """Does one thing for a partition; returns the bytes touched and freed, nothing if nothing is to be done."""
        number, partition, cleanup = job
        if cleanup is None:
            return write_tables(self._environment, lambda tables: _drop_step(tables, number, partition), reserve=True)
        # Looking first leaves the lock to others when there is nothing to do, which is the usual case.
        if read_tables(self._environment, lambda tables: _find_expired(tables, number, partition, cleanup, now_ms)):
            return write_tables(
                self._environment, lambda tables: _trim_step(tables, number, partition, cleanup, now_ms), reserve=True
            )
        if cleanup.compact:
            return self._compact(number, partition, cleanup, now_ms)
        return merge_step(self._environment, number, partition)

    def _compact(self, number: int, partition: int, cleanup: Cleanup, now_ms: int) -> tuple[int, int]:
        key = number, partition
        current = self._rounds.get(key)
        if current is None:
            state = read_tables(self._environment, lambda tables: tables.state(number, partition))
            if not is_due(state, cleanup, now_ms):
                return 0, 0
            current = self._rounds[key] = Round(max(state.begin, state.cleaned_to))
        if current.horizon is None:
            cost = read_tables(
                self._environment, lambda tables: map_step(tables, number, partition, current, cleanup, now_ms)
            )
            state = read_tables(self._environment, lambda tables: tables.state(number, partition))
            if current.horizon is not None and not current.latest and not 0 < state.tombstones_due_ms <= now_ms:
                # Everything new is still too young.
                del self._rounds[key]
                return 0, 0
            return max(cost, 1), 0
        step = write_tables(
            self._environment,
            lambda tables: rewrite_step(tables, number, partition, current, cleanup, now_ms),
            reserve=True,
        )
        current.advance(step)
        if step.is_last:
            del self._rounds[key]
        return step.cost, step.freed


def _jobs(tables: Tables) -> list[_Job]:
    jobs = [_Job(number, partitions, None) for number, partitions in tables.dropped()]
    for number, topic in tables.topics():
        cleanup = Cleanup.of(topic.configs)
        jobs += (_Job(number, partition, cleanup) for partition in range(topic.partitions))
    return jobs


def _find_expired(tables: Tables, number: int, partition: int, cleanup: Cleanup, now_ms: int) -> list[Extent]:
    """Returns blobs at the beginning of a partition that are to go, as many as one step removes."""
    state = tables.state(number, partition)
    expired: list[Extent] = []
    size, cost = state.size, 0
    oldest_ms = now_ms - cleanup.retention_ms
    for entry in tables.entries(number, partition, 0):
        head = entry.info()
        is_old = cleanup.retention_ms >= 0 and head.max_timestamp_ms < oldest_ms
        is_too_much = cleanup.retention_bytes >= 0 and size - entry.size >= cleanup.retention_bytes
        is_gone = entry.base + head.span <= state.begin
        if cost >= STEP_BYTES or not (is_gone or (cleanup.delete and (is_old or is_too_much))):
            break
        expired.append(extent(entry))
        size -= entry.size
        cost += entry.size + ENTRY_COST
    return expired


def _trim_step(tables: Tables, number: int, partition: int, cleanup: Cleanup, now_ms: int) -> tuple[int, int]:
    expired = _find_expired(tables, number, partition, cleanup, now_ms)
    state = tables.state(number, partition)
    for old in expired:
        tables.delete_entry(number, partition, state, old.base, old.size)
        state.begin = max(state.begin, old.end)
        if old.end <= state.cleaned_to:
            state.clean_size = max(0, state.clean_size - old.size)
    tables.put_state(number, partition, state)
    freed = sum(old.size for old in expired)
    return freed + len(expired) * ENTRY_COST, freed


def _drop_step(tables: Tables, number: int, partitions: int) -> tuple[int, int]:
    """Removes some blobs of a deleted topic, and the last traces of it when there are none left."""
    freed = cost = 0
    for partition in range(partitions):
        state = tables.state(number, partition)
        doomed: list[Extent] = []
        for entry in tables.entries(number, partition, 0):
            doomed.append(extent(entry))
            cost += entry.size + ENTRY_COST
            if cost >= STEP_BYTES:
                break
        for old in doomed:
            tables.delete_entry(number, partition, state, old.base, old.size)
            freed += old.size
        if cost >= STEP_BYTES:
            tables.put_state(number, partition, state)
            return cost, freed
    tables.forget_dropped(number, partitions)
    # Told apart from a step that has nothing to do: there is none after this one.
    return 0, freed


@contextmanager
def _try_lock(path: Path) -> Iterator[bool]:
    """Gives True to one process or thread at a time; its end, however it comes, lets the next one in."""
    try:
        file = path.open("wb")
    except OSError as error:
        raise explain(str(path.parent), error, "cleaned") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
