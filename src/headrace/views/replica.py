"""Copies of stores on the disk of this instance, with the position they are at in the same transaction."""

from __future__ import annotations

import json
import logging
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headrace.batches.working_copy import boot_id
from headrace.config import StreamsConfig
from headrace.errors import InvalidStateStoreError
from headrace.private_directory import make_directories
from headrace.state.engines.changes import Changes
from headrace.state.engines.environment import Snapshot
from headrace.state.engines.lmdb import LmdbEnvironment
from headrace.state.engines.overlay import OverlayEngine
from headrace.topics.log import Raw
from headrace.views.position import Position
from headrace.views.viewed_stores import Part, ViewedStore

logger = logging.getLogger(__name__)

_OWN = "."
_STATE = b"state"
_BOOT, _CLEAN = "boot", "clean"
# Readers keep the map from growing, so it is as large as a view may get; only what is used takes room.
_MAP_SIZE = 1 << 38
_MAX_READERS = 1024
_NOTE_TIME_MS = 60_000
"""How often it is noted that the copy is up to date, although nothing has changed."""


@dataclass(frozen=True)
class PartState:
    """Position of the copy of one partition."""

    offset: int
    """The next record of its changelog to read."""
    ready: bool = False
    """Whether it is at the end of a commit; while a long backlog is applied in pieces, it is not."""
    probe: tuple[int, int] | None = None
    """Offset and checksum of the record applied last: another one there means another history."""


@dataclass(frozen=True)
class ReplicaState:
    """State of the copy, as of one transaction."""

    parts: Mapping[Part, PartState]
    position: Position
    """Input offsets of the application that the rows here reflect."""
    batch_id: int = -1
    """The last micro-batch that is known to be in it."""
    written_ms: int = 0
    topics: Mapping[str, str] = field(default_factory=dict)
    """The ids of the topics that it was read from, where the log has ids."""

    def pack(self) -> bytes:
        parts = [[*part, each.offset, each.ready, each.probe] for part, each in self.parts.items()]
        position = [[*target, offset] for target, offset in self.position]
        return json.dumps([1, parts, position, self.batch_id, self.written_ms, dict(self.topics)]).encode()

    @classmethod
    def unpack(cls, data: bytes) -> ReplicaState:
        version, parts, position, batch_id, written_ms, topics = json.loads(data)
        if version != 1:
            message = f"a view of format {version} cannot be read"
            raise ValueError(message)
        return cls(
            {
                (store, partition): PartState(offset, ready, None if probe is None else (probe[0], probe[1]))
                for store, partition, offset, ready, probe in parts
            },
            Position({(topic, partition): offset for topic, partition, offset in position}),
            batch_id,
            written_ms,
            topics,
        )


_EMPTY = ReplicaState({}, Position())


def probe_of(raw: Raw) -> tuple[int, int]:
    """Returns what a record is recognised by."""
    offset, timestamp_ms, key, value, _ = raw
    return offset, zlib.crc32(value or b"", zlib.crc32(key or b"", timestamp_ms & 0xFFFFFFFF))


class Replica:
    """Any number of partitions of stores in one directory. One thread writes; any number read."""

    def __init__(
        self, directory: Path, stores: Mapping[str, ViewedStore], config: StreamsConfig, *, parts: int
    ) -> None:
        self.directory = directory
        self._stores = stores
        self._config = config
        _discard_if_unsafe(directory)
        self._environment = LmdbEnvironment(
            directory, map_size=_MAP_SIZE, max_engines=parts + len(stores) + 8, max_readers=_MAX_READERS
        )
        (directory / _BOOT).write_text(boot_id(), encoding="ascii")
        (directory / _CLEAN).unlink(missing_ok=True)
        self._own = self._environment.engine(_OWN)
        self._writers: dict[Part, tuple[OverlayEngine, Any]] = {}
        self.state = self._read_state()
        # A garbage collection may end an iterator, and with it a reader, inside of any other call.
        self.lock = threading.RLock()
        self._idle: list[Reader] = []
        self._leases = 0
        self._closed = False

    def _read_state(self) -> ReplicaState:
        data = self._own.get(_STATE)
        try:
            return _EMPTY if data is None else ReplicaState.unpack(data)
        except (ValueError, TypeError):
            logger.warning("the view in '%s' is of another version of Headrace; it is built anew", self.directory)
            return _EMPTY

    def build(self, store: ViewedStore, engine: Any) -> Any:
        """Makes a store above an engine, without a cache."""
        return store.builder.build(
            engine,
            default_key_serde=self._config.default_key_serde,
            default_value_serde=self._config.default_value_serde,
            topic=store.topic,
        )

    def engine(self, part: Part) -> Any:
        """Returns where a part keeps its rows."""
        return self._environment.engine(engine_name(part))

    def hold(self, part: Part, offset: int) -> None:
        """Begins to keep a part, from this offset if nothing of it is there."""
        if part not in self.state.parts:
            # Rows of a part that was given up, if the process ended before they were deleted.
            self.engine(part).clear()
            self._writers.pop(part, None)
            self.save({part: PartState(offset)})
        if part not in self._writers:
            overlay = OverlayEngine(self.engine(part))
            self._writers[part] = overlay, self.build(self._stores[part[0]], overlay)

    def forget(self, part: Part) -> None:
        """Gives a part up."""
        if part in self.state.parts:
            parts = {each: state for each, state in self.state.parts.items() if each != part}
            # First the state, then the rows: a crash in between leaves rows that nobody looks at.
            self._write_state(replace(self.state, parts=parts))
            self.engine(part).clear()
        self._writers.pop(part, None)

    def apply(
        self,
        records: Mapping[Part, Sequence[Raw]],
        states: Mapping[Part, PartState],
        *,
        position: Position | None = None,
        batch_id: int | None = None,
        now_ms: int = 0,
        extra: Mapping[str, Changes] | None = None,
    ) -> None:
        """Writes records of changelogs, and where that leads to, in one transaction."""
        changes: dict[str, Changes] = dict(extra or {})
        touched = []
        for part, raws in records.items():
            overlay, store = self._writers[part]
            store.restore([(key, value, time_ms) for _, time_ms, key, value, _ in raws if key is not None])
            changes[engine_name(part)] = overlay.changes()
            touched.append(overlay)
            # Whoever asks meanwhile waits for the interpreter, at most as long as one part takes.
            time.sleep(0)
        state = ReplicaState(
            {**self.state.parts, **states},
            self.state.position if position is None else position,
            self.state.batch_id if batch_id is None else batch_id,
            now_ms,
            self.state.topics,
        )
        is_old = now_ms - self.state.written_ms > _NOTE_TIME_MS
        if not changes and not is_old and replace(state, written_ms=self.state.written_ms) == self.state:
            return
        try:
            self._write_state(state, changes)
        finally:
            for overlay in touched:
                overlay.rollback()

    def wipe(self) -> None:
        """Forgets everything."""
        parts = list(self.state.parts)
        self._write_state(_EMPTY)
        for part in parts:
            self.engine(part).clear()
        for name, store in self._stores.items():
            if store.is_global:
                self.engine((name, -1)).clear()
        self._writers.clear()

    def save(self, parts: Mapping[Part, PartState]) -> None:
        """Notes where parts are."""
        self._write_state(replace(self.state, parts={**self.state.parts, **parts}))

    def note_topics(self, topics: Mapping[str, str]) -> None:
        """Notes which topics it is read from."""
        self._write_state(replace(self.state, topics=topics))

    def _write_state(self, state: ReplicaState, changes: Mapping[str, Changes] | None = None) -> None:
        self._environment.apply(changes or {}, {_OWN: Changes(rows={_STATE: state.pack()})})
        self.state = state

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Gives a reader for as long as the context lasts."""
        reader = self.acquire()
        try:
            yield reader
        finally:
            reader.release()

    def acquire(self) -> Reader:
        """Returns a reader of a snapshot of now; the caller releases it."""
        with self.lock:
            if self._closed:
                message = (
                    "the view is closed: the application, or the process that kept it, has stopped; ask another one"
                )
                raise InvalidStateStoreError(message)
            reader = self._idle.pop() if self._idle else Reader(self, self._environment.snapshot())
            self._leases += 1
        try:
            reader.begin()
        except BaseException:
            self.give_back(None)
            raise
        return reader

    def give_back(self, reader: Reader | None) -> None:
        """Takes a reader that is not used any more."""
        with self.lock:
            self._leases -= 1
            if self._closed and self._leases == 0:
                self._environment.close()
            elif reader is not None and not self._closed:
                self._idle.append(reader)

    @property
    def is_closed(self) -> bool:
        return self._closed

    def viewed(self, name: str) -> ViewedStore:
        return self._stores[name]

    def close(self) -> None:
        """Ends the use of the files; iterators that are open end them."""
        with self.lock:
            if self._closed:
                return
            self._closed = True
            self._idle.clear()
            self._environment.flush()
            (self.directory / _CLEAN).touch()
            if self._leases == 0:
                self._environment.close()


class Reader:
    """Sees all parts of a replica at one moment. It is used by one thread at a time, and then by another."""

    __slots__ = ("_count", "_fresh", "_own", "_packed", "_replica", "_snapshot", "_stores", "state")

    def __init__(self, replica: Replica, snapshot: Snapshot) -> None:
        self._replica = replica
        self._snapshot = snapshot
        self._own = snapshot.engine(_OWN)
        self._packed: bytes | None = None
        self._stores: dict[Part, Any] = {}
        self._fresh: set[Part] = set()
        self._count = 0
        self.state = _EMPTY

    def begin(self) -> None:
        self._snapshot.begin()
        self._fresh.clear()
        self._count = 1
        packed = self._own.get(_STATE)
        if packed != self._packed:
            self.state = _EMPTY if packed is None else ReplicaState.unpack(packed)
            self._packed = packed

    def store(self, part: Part) -> Any:
        """Returns the store of a part, as it was when the reader began."""
        store = self._stores.get(part)
        if store is None:
            viewed = self._replica.viewed(part[0])
            store = self._stores[part] = self._replica.build(viewed, self._snapshot.engine(engine_name(part)))
        elif part not in self._fresh:
            store.reload()
        self._fresh.add(part)
        return store

    def keep(self) -> Callable[[], None]:
        """Adds a user of the reader, such as an iterator; returns the function that releases it."""
        self._count += 1
        return self.release

    def release(self) -> None:
        """Ends one use; the last one closes the snapshot."""
        with self._replica.lock:
            self._count -= 1
            if self._count == 0:
                self._snapshot.end()
                self._replica.give_back(self)


def engine_name(part: Part) -> str:
    """Returns the name of the engine that has a part's rows."""
    return f"{part[0]}/{part[1]}"


def _discard_if_unsafe(directory: Path) -> None:
    """Rows are not forced to the disk, so files that a crash of the machine may have damaged are thrown away."""
    try:
        is_safe = (directory / _CLEAN).exists() or (directory / _BOOT).read_text(encoding="ascii") == boot_id()
    except FileNotFoundError:
        is_safe = False
    if not is_safe and directory.exists():
        for name in ("data.mdb", "lock.mdb", _CLEAN, _BOOT):
            (directory / name).unlink(missing_ok=True)
    make_directories(directory)


def discard(directory: Path) -> None:
    """Deletes a replica that no process has open."""
    shutil.rmtree(directory, ignore_errors=True)
