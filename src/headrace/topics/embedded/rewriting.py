"""Exchanging a run of neighbouring blobs for others with the same offsets, and putting small ones together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from headrace.topics.blob import BLOB_BYTES, pack_gaps
from headrace.topics.embedded.environment import Environment
from headrace.topics.embedded.tables import Entry, PartitionState, Tables, read_tables, write_tables
from headrace.topics.log import Raw

STEP_BYTES = 1 << 20
"""What one transaction of the cleaner touches: others wait for the lock a few milliseconds."""

ENTRY_COST = 512
"""What looking at an entry counts, besides its bytes."""

_SMALL = BLOB_BYTES // 4
_MANY = 256
_SKIP = 1024
# Offsets inside a blob have 32 bits.
_MAX_SPAN = 1 << 31


class Extent(NamedTuple):
    """An entry without its view, to be kept while others are written."""

    base: int
    end: int
    latest_ms: int
    cleaned_ms: int
    size: int


def extent(entry: Entry) -> Extent:
    """Returns the metadata of an entry, without reading its records."""
    return Extent(entry.base, entry.base + entry.info().span, entry.latest_ms, entry.cleaned_ms, entry.size)


def fits(run: Sequence[Extent | Entry], entry: Entry) -> bool:
    """Returns whether the entry can be in one blob with the run."""
    return not run or entry.base + entry.info().span - run[0].base < _MAX_SPAN


def replace(
    tables: Tables,
    number: int,
    partition: int,
    state: PartitionState,
    run: Sequence[Extent],
    kept: Sequence[Raw],
    cleaned_ms: int,
) -> None:
    """Puts the kept records into the place of a run; the caller writes the state."""
    for old in run:
        tables.delete_entry(number, partition, state, old.base, old.size)
    pieces = list(_pieces(kept))
    for index, piece in enumerate(pieces):
        base = piece[0][0] if index else run[0].base
        end = pieces[index + 1][0][0] if index + 1 < len(pieces) else run[-1].end
        blob = pack_gaps(piece, base, end - base)
        tables.put_entry(number, partition, state, base, run[-1].latest_ms, cleaned_ms, blob)


def _pieces(records: Sequence[Raw]) -> Iterator[list[Raw]]:
    piece: list[Raw] = []
    size = 0
    for record in records:
        cost = len(record[2] or b"") + len(record[3] or b"") + 16
        if piece and size + cost > BLOB_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(record)
        size += cost
    if piece:
        yield piece


def merge_step(environment: Environment, number: int, partition: int) -> tuple[int, int]:
    """Puts one run of small blobs together; returns the bytes touched and freed.

    A producer that appends record by record makes a blob of each. Reading a blob costs more than reading its record.
    """
    if not read_tables(environment, lambda tables: _pays_off(tables, number, partition)):
        return 0, 0
    return write_tables(environment, lambda tables: _merge(tables, number, partition), reserve=True)


def _pays_off(tables: Tables, number: int, partition: int) -> bool:
    _, run, passed = _small_run(tables, number, partition)
    return bool(run) or passed >= _SKIP // 2


def _merge(tables: Tables, number: int, partition: int) -> tuple[int, int]:
    at, run, passed = _small_run(tables, number, partition)
    extents = [extent(entry) for entry in run]
    records = [record for entry in run for record in entry.records()]
    state = tables.state(number, partition)
    before = state.size
    if extents:
        replace(tables, number, partition, state, extents, records, 0)
        at = extents[-1].end
    state.merged_to = at
    tables.put_state(number, partition, state)
    return sum(old.size for old in extents) + (len(run) + passed) * ENTRY_COST, before - state.size


def _small_run(tables: Tables, number: int, partition: int) -> tuple[int, list[Entry], int]:
    """Returns up to where nothing is to be done, a run worth merging behind it, and how many blobs were passed."""
    state = tables.state(number, partition)
    at = max(state.begin, state.merged_to)
    run: list[Entry] = []
    size = passed = 0
    for entry in tables.entries(number, partition, at):
        if entry.size > _SMALL or not fits(run, entry):
            if len(run) > 1:
                return at, run, passed
            run, size = [], 0
            at = entry.base + entry.info().span
            passed += 1
            if passed == _SKIP:
                return at, run, passed
            continue
        run.append(entry)
        size += entry.size
        if size >= BLOB_BYTES // 2:
            return at, run, passed
    # The end: what is there will be merged when there is more of it, so that nothing is copied again and again.
    return at, run if len(run) >= _MANY else [], passed
