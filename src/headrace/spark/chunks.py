"""The state of a task as Spark keeps it: a log of chunks, each with what one micro-batch has changed.

The log is cleaned like a log-structured file: when it holds much more than the live rows, each batch moves those of the
oldest chunks forward that are still valid, in proportion to what it writes itself. No batch pays for the whole state.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from secrets import token_hex
from typing import NamedTuple, Protocol
from zlib import crc32

from headrace.errors import ProcessorStateError
from headrace.state.changes import Changes

CHUNK_ROWS = 20_000
"""A batch that changes more rows writes several chunks: none takes long to move."""

_SLACK = 2_000
"""So many rows may be garbage before anything is moved, however small the state is."""
_TOLERANCE = 1.5
"""Beyond the slack, so many times the live rows may be kept: less would be moved all the time."""
_EFFORT = 3
"""So many old rows are looked at for each row that is written."""
_HASTE = 12
"""The same when more than half is garbage."""

StoreChanges = Mapping[str, Changes]


def digest_of(changes: StoreChanges) -> str:
    """Returns a digest that is the same in whatever order the rows were changed.

    >>> one, other = Changes(rows={b"a": b"1", b"b": None}), Changes(rows={b"b": None, b"a": b"1"})
    >>> digest_of({"counts": one}) == digest_of({"counts": other}) != digest_of({"counts": Changes(rows={b"a": b"2"})})
    True
    """
    total = 0
    for store, each in changes.items():
        name = crc32(store.encode())
        total += sum(crc32(stop, crc32(start, name)) for start, stop in each.ranges)
        total += sum(
            crc32(b"-" if value is None else b"+" + value, crc32(key, name)) for key, value in each.rows.items()
        )
    return f"{total & 0xFFFFFFFFFFFFFFFF:x}"


class Version(NamedTuple):
    """A point in the history of a task's state: the last chunk and its random id, which no other history has."""

    sequence: int
    id: str


EMPTY = Version(0, "")


@dataclass(frozen=True)
class Chunk:
    """Changes of stores by name."""

    id: str
    previous: str
    """Id of the chunk before."""
    changes: dict[str, bytes]
    """Packed, by store."""
    rows: int

    def pack(self) -> bytes:
        return pickle.dumps((self.id, self.previous, self.changes, self.rows), protocol=5)

    @classmethod
    def unpack(cls, data: bytes) -> Chunk:
        return cls(*pickle.loads(data))

    def unpacked(self) -> dict[str, Changes]:
        return {store: Changes.unpack(data) for store, data in self.changes.items()}

    @property
    def weight(self) -> int:
        """What it counts for when garbage is reckoned: empty chunks count, too, or there would be ever more of them."""
        return self.rows + 1


class Head(NamedTuple):
    """The one value beside the chunks."""

    first: int = 1
    """Number of the oldest chunk that is kept."""
    last: int = 0
    id: str = ""
    """Id of the last chunk."""
    weight: int = 0
    """Of all chunks together."""
    stamp: str = ""
    """Random, new in every batch that has changed anything: who knows it has seen that batch."""
    remembered: bytes = b""
    """What besides the stores decides later results."""


class Cells(Protocol):
    """Where Spark keeps the state of one task: one small value and a map from numbers to bytes."""

    def read_head(self) -> Head | None: ...
    def write_head(self, head: Head) -> None: ...
    def read(self, sequence: int) -> bytes | None: ...
    def write(self, sequence: int, data: bytes) -> None: ...
    def remove(self, sequence: int) -> None: ...


class ChunkLog:
    """The chunks of one task. What is appended and removed is committed by Spark with the batch, or not at all."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._head = cells.read_head() or Head()
        self._first, self._last, self._id, self.weight, self.stamp, self.remembered = self._head

    @property
    def version(self) -> Version:
        """What a working copy must be at."""
        return Version(self._last, self._id)

    def after(self, version: Version) -> Iterator[tuple[Version, Chunk]] | None:
        """Returns the chunks that follow a version, or None if it is no version of this history, or too old."""
        if version.sequence < self._first - 1 or version.sequence > self._last:
            return None
        if version.sequence == self._last:
            return iter(()) if version.id == self._id else None
        following = self._read(version.sequence + 1)
        # Before the first chunk of all there is only the empty copy.
        known = version == EMPTY if version.sequence == 0 else following.previous == version.id
        return self._from(version.sequence + 1) if known else None

    def rows_after(self, version: Version) -> int:
        """Returns about how many rows follow a version: as if all chunks had the same number of them."""
        kept = self._last - self._first + 1
        return self.weight * (self._last - version.sequence) // kept if kept > 0 else 0

    def everything(self) -> Iterator[tuple[Version, Chunk]]:
        """Returns all chunks: what an empty copy needs."""
        return self._from(self._first)

    def _from(self, start: int) -> Iterator[tuple[Version, Chunk]]:
        for sequence in range(start, self._last + 1):
            chunk = self._read(sequence)
            yield Version(sequence, chunk.id), chunk

    def _read(self, sequence: int) -> Chunk:
        data = self._cells.read(sequence)
        if data is None:
            message = (
                f"chunk {sequence} of the state is missing from Spark's checkpoint, which has {self._first} to "
                f"{self._last}; restore the checkpoint from a copy, or reset the application"
            )
            raise ProcessorStateError(message)
        return Chunk.unpack(data)

    def append(self, changes: StoreChanges, *, live_rows: int, current: Callable[[str, bytes], bytes | None]) -> None:
        """Writes the changes of a batch, and cleans a part of what is old.

        ``live_rows`` is how many rows the stores have, ``current`` looks up the row of a store as it is now.
        """
        written = sum(len(each.rows) for each in changes.values())
        # Rows that expire together, as those of old windows do, leave much behind at once.
        effort = _EFFORT if self.weight <= 2 * live_rows + _SLACK else _HASTE
        moved = self._clean(changes, live_rows, effort * (written + 1), current)
        for part, rows in _parts({store: _with(each, moved.get(store)) for store, each in _all(changes, moved)}):
            chunk = Chunk(token_hex(8), self._id, part, rows)
            self._last += 1
            self._id = chunk.id
            self.weight += chunk.weight
            self._cells.write(self._last, chunk.pack())

    def save(self, remembered: bytes) -> None:
        """Writes the head, if anything is new."""
        before = self._head
        head = Head(self._first, self._last, self._id, self.weight, before.stamp, remembered)
        if head != before:
            self.stamp = token_hex(8)
            self._head = head._replace(stamp=self.stamp)
            self._cells.write_head(self._head)

    def _clean(
        self, changes: StoreChanges, live_rows: int, effort: int, current: Callable[[str, bytes], bytes | None]
    ) -> dict[str, dict[bytes, bytes | None]]:
        """Removes the oldest chunks and returns those of their rows that are still valid."""
        moved: dict[str, dict[bytes, bytes | None]] = {}
        while effort > 0 and self._first <= self._last and self.weight > _TOLERANCE * live_rows + _SLACK:
            chunk = self._read(self._first)
            for store, each in chunk.unpacked().items():
                rewritten = changes[store].rows if store in changes else {}
                # Nothing older could bring back what this chunk deletes, so only the rows that it sets can matter.
                for key, value in each.rows.items():
                    if value is not None and key not in rewritten and current(store, key) == value:
                        moved.setdefault(store, {})[key] = value
            self._cells.remove(self._first)
            self._first += 1
            self.weight -= chunk.weight
            effort -= chunk.weight
        return moved


def _all(changes: StoreChanges, moved: Mapping[str, object]) -> Iterator[tuple[str, Changes]]:
    for store in dict.fromkeys([*changes, *moved]):
        yield store, changes.get(store, Changes())


def _with(changes: Changes, moved: dict[bytes, bytes | None] | None) -> Changes:
    return changes if not moved else Changes(changes.ranges, {**moved, **changes.rows})


def _parts(changes: StoreChanges) -> Iterator[tuple[dict[str, bytes], int]]:
    """Splits changes so that no part has too many rows."""
    small: dict[str, bytes] = {}
    count = 0
    for store, each in changes.items():
        ranges, rows = each.ranges, iter(each.rows.items())
        while True:
            piece = dict(islice(rows, CHUNK_ROWS - count))
            if piece or ranges:
                small[store] = Changes(ranges, piece).pack()
                ranges, count = (), count + len(piece)
            if count < CHUNK_ROWS:
                break
            yield small, count
            small, count = {}, 0
    if small:
        yield small, count
