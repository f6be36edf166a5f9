"""Engines on disk in LMDB, with its limits hidden. Below the topic log, the only module that imports it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from os import PathLike, fspath
from pathlib import Path
from struct import Struct
from typing import ClassVar, NoReturn, TypeVar

import lmdb

from headrace.errors import InvalidStateStoreError, ProcessorStateError
from headrace.private_directory import make_directories
from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Row, after_prefix, in_chunks
from headrace.state.engines.environment import OWN, SNAPSHOT_IS_OVER, SNAPSHOT_ONLY_READS
from headrace.state.stores.suppliers import DiskEngine

T = TypeVar("T")

# LMDB takes keys of 1 to 511 bytes. A longer one is kept under its first bytes and a digest, with the whole key in the
# value; only such rows have a name of 511 bytes, and those that share their first bytes are sorted when they are read.
_LONG = 511
_DIGEST = 32
_STEM = _LONG - _DIGEST
_LENGTH = Struct(">I")

Transaction = lmdb.Transaction


class LmdbEnvironment:
    """A directory with any number of named engines, whose changes can be committed together.

    Rows are not forced to the disk at each commit unless ``sync`` is True: a working copy can be rebuilt.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     environment = LmdbEnvironment(directory)
    ...     counts = environment.engine("counts")
    ...     environment.apply({"counts": Changes(rows={b"a": b"1"})})
    ...     print(counts.get(b"a"))
    ...     environment.close()
    b'1'
    """

    kind: ClassVar[DiskEngine] = "lmdb"

    def __init__(
        self,
        directory: str | PathLike[str],
        *,
        map_size: int = 1 << 24,
        max_engines: int = 1024,
        max_readers: int = 126,
        sync: bool = False,
    ) -> None:
        self._directory = fspath(directory)
        try:
            make_directories(Path(directory))
            self._env = lmdb.open(
                self._directory,
                map_size=map_size,
                max_dbs=max_engines,
                max_readers=max_readers,
                sync=sync,
                metasync=sync,
                readahead=False,
                mode=0o600,
            )
        except (lmdb.Error, OSError) as error:
            message = (
                f"the state directory '{self._directory}' cannot be opened: {error}; choose a directory that can be "
                "written and that nobody else has open"
            )
            raise ProcessorStateError(message) from error
        # Readers that died without a goodbye would keep old pages alive for ever.
        self._env.reader_check()
        self._engines: dict[str, LmdbEngine] = {}
        self.pinned: Transaction | None = None
        """The one transaction in which everything is read between ``pin`` and ``unpin``."""

    @property
    def file(self) -> Path:
        """The file that has all the rows."""
        return Path(self._directory) / "data.mdb"

    def pin(self) -> None:
        """Reads in one transaction from now on, several times faster; nobody may write until ``unpin``."""
        self.unpin()
        self.pinned = self._env.begin()

    def unpin(self) -> None:
        """Ends what ``pin`` has begun."""
        pinned, self.pinned = self.pinned, None
        if pinned is not None:
            pinned.abort()

    def snapshot(self) -> LmdbSnapshot:
        """Returns engines that read what is there at one moment, while others write."""
        return LmdbSnapshot(self)

    def begin(self) -> Transaction:
        """Returns a transaction that reads what is there now until it is aborted: for one who looks while others write.

        Pages that it sees are not used again meanwhile; and the map cannot grow, so it must be large from the start.
        """
        return self._retry(self._env.begin)

    def flush(self) -> None:
        """Forces everything to the disk."""
        self._env.sync(True)  # noqa: FBT003 - its own signature

    def names(self) -> list[str]:
        """Returns the names of all engines that are there, in order."""
        return self.read(lambda transaction: [bytes(key).decode() for key, _ in transaction.cursor()])

    def engine(self, name: str) -> LmdbEngine:
        """Returns the engine of that name, the same one each time."""
        engine = self._engines.get(name)
        if engine is None:
            database = self._retry(lambda: self._env.open_db(name.encode()))
            engine = self._engines[name] = LmdbEngine(self, database)
        return engine

    def apply(self, *steps: Mapping[str, Changes]) -> None:
        """Makes changes of several engines, by name, one step after the other in one transaction."""
        self._apply(lambda transaction: True, steps)

    def apply_if(self, key: bytes, value: bytes, *steps: Mapping[str, Changes]) -> bool:
        own = self.engine(OWN).database
        return self._apply(lambda transaction: transaction.get(key, db=own) == value, steps)

    def _apply(self, check: Callable[[Transaction], bool], steps: Sequence[Mapping[str, Changes]]) -> bool:
        engines = {name: self.engine(name) for changes in steps for name in changes}

        def write(transaction: Transaction) -> bool:
            if not check(transaction):
                return False
            for changes in steps:
                for name, each in changes.items():
                    engines[name].write(transaction, each)
            return True

        return self.write(write)

    def write(self, action: Callable[[Transaction], T]) -> T:
        """Runs ``action`` in a write transaction, again with a larger map if it does not fit."""

        def attempt() -> T:
            with self._env.begin(write=True) as transaction:
                return action(transaction)

        return self._retry(attempt)

    def read(self, action: Callable[[Transaction], T]) -> T:
        """Runs ``action`` in a read transaction, which must be short: old pages stay alive as long as it runs."""
        if self.pinned is not None:
            return action(self.pinned)

        def attempt() -> T:
            with self._env.begin() as transaction:
                return action(transaction)

        return self._retry(attempt)

    def _retry(self, attempt: Callable[[], T]) -> T:
        while True:
            try:
                return attempt()
            except lmdb.MapFullError:
                self._env.set_mapsize(self._env.info()["map_size"] * 2)
            except lmdb.MapResizedError:
                # Another process has enlarged the map: take over its size.
                self._env.set_mapsize(0)
            except lmdb.Error as error:
                message = (
                    f"the state directory '{self._directory}' cannot be used: {error}; check that its disk has room; "
                    "what is there can be deleted and restored"
                )
                raise ProcessorStateError(message) from error

    def disk_bytes(self) -> int:
        """Returns how many bytes the file has."""
        return self.file.stat().st_size

    def metrics(self) -> dict[str, float]:
        """Returns how many rows each store has, as ``name/store``, and the size of the file."""
        rows: dict[str, float] = {
            f"estimate-num-keys/{name}": self.engine(name).count() for name in self.names() if name != OWN
        }
        return rows | {"disk-bytes": self.disk_bytes()}

    def close(self) -> None:
        self.unpin()
        self._engines.clear()
        self._env.close()


class LmdbEngine:
    """One named map of an ``LmdbEnvironment``. Single writes are transactions of their own: use ``apply`` for many."""

    __slots__ = ("_database", "_environment")

    def __init__(self, environment: LmdbEnvironment | LmdbSnapshot, database: lmdb._Database) -> None:
        self._environment = environment
        self._database = database

    @property
    def database(self) -> lmdb._Database:
        """Its handle in the environment."""
        return self._database

    def get(self, key: bytes) -> bytes | None:
        name = _name(key)
        pinned = self._environment.pinned
        if pinned is not None:
            value = pinned.get(name, None, self._database)
        else:
            value = self._environment.read(lambda transaction: transaction.get(name, db=self._database))
        if value is None:
            return None
        return bytes(value) if len(name) < _LONG else _unpack(bytes(value))[1]

    def put(self, key: bytes, value: bytes) -> None:
        self.apply(Changes(rows={key: value}))

    def delete(self, key: bytes) -> None:
        self.apply(Changes(rows={key: None}))

    def delete_range(self, start: bytes, stop: bytes) -> None:
        self.apply(Changes(ranges=((start, stop),)))

    def apply(self, changes: Changes) -> None:
        self._environment.write(lambda transaction: self.write(transaction, changes))

    def write(self, transaction: Transaction, changes: Changes) -> None:
        """Makes the changes as part of a larger transaction."""
        for start, stop in changes.ranges:
            self._delete_range(transaction, start, stop)
        rows = changes.rows
        if not rows:
            return
        # In the order of the tree, and in one call: both make many rows several times cheaper.
        keys = sorted(rows)
        plain = bisect_left(keys, b"\1")
        puts: list[Row] = []
        if len(max(keys, key=len)) > _STEM:
            plain = len(keys)
        for key in keys[:plain]:
            name, value = _name(key), rows[key]
            if value is None:
                transaction.delete(name, db=self._database)
            else:
                puts.append((name, value if len(name) < _LONG else _LENGTH.pack(len(key)) + key + value))
        # Most keys are their names.
        for key in keys[plain:]:
            value = rows[key]
            if value is None:
                transaction.delete(key, db=self._database)
            else:
                puts.append((key, value))
        with transaction.cursor(db=self._database) as cursor:
            cursor.putmulti(puts)

    def _delete_range(self, transaction: Transaction, start: bytes, stop: bytes) -> None:
        end = _after(stop)
        with transaction.cursor(db=self._database) as cursor:
            there = cursor.set_range(_stem(start))
            while there and (end is None or bytes(cursor.key()) < end):
                key, _ = _row(bytes(cursor.key()), bytes(cursor.value()))
                # Deleting moves on to the next row.
                there = cursor.delete() and bool(cursor.key()) if start <= key < stop else cursor.next()

    def scan(self, start: bytes | None = None, stop: bytes | None = None, *, reverse: bool = False) -> Iterator[Row]:
        return in_chunks(self._read, start, stop, reverse=reverse)

    def _read(self, start: bytes | None, stop: bytes | None, reverse: bool, limit: int) -> list[Row]:  # noqa: FBT001
        return self._environment.read(
            lambda transaction: self._read_from(transaction, start, stop, reverse=reverse, limit=limit)
        )

    def _read_from(
        self, transaction: Transaction, start: bytes | None, stop: bytes | None, *, reverse: bool, limit: int
    ) -> list[Row]:
        chunk: list[Row] = []
        with transaction.cursor(db=self._database) as cursor:
            for key, value in _sorted_within_stems(_walk(cursor, start, stop, reverse=reverse), reverse=reverse):
                before, behind = start is not None and key < start, stop is not None and key >= stop
                if before if reverse else behind:
                    break
                if before or behind:
                    # Shares its first bytes with the bound at which the scan begins.
                    continue
                chunk.append((key, value))
                if len(chunk) == limit:
                    break
        return chunk

    def count(self) -> int:
        return self._environment.read(lambda transaction: transaction.stat(self._database)["entries"])

    def clear(self) -> None:
        self._environment.write(lambda transaction: transaction.drop(self._database, delete=False))

    def close(self) -> None:
        """Does nothing: the environment holds the resources."""


class LmdbSnapshot:
    """Engines of an environment that only read, all of them at the same moment: that of the last ``begin``.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     environment = LmdbEnvironment(directory)
    ...     environment.engine("counts").put(b"a", b"1")
    ...     snapshot = environment.snapshot()
    ...     seen = snapshot.engine("counts")
    ...     snapshot.begin()
    ...     environment.engine("counts").put(b"a", b"2")
    ...     print(seen.get(b"a"))
    ...     snapshot.end()
    ...     environment.close()
    b'1'
    """

    __slots__ = ("_environment", "pinned")

    def __init__(self, environment: LmdbEnvironment) -> None:
        self._environment = environment
        self.pinned: Transaction | None = None
        """What everything is read in; the engines look for it under this name."""

    def begin(self) -> None:
        """Looks at what is there now."""
        self.end()
        self.pinned = self._environment.begin()

    def end(self) -> None:
        """Stops looking; what was seen may be overwritten."""
        pinned, self.pinned = self.pinned, None
        if pinned is not None:
            pinned.abort()

    def engine(self, name: str) -> LmdbEngine:
        """Returns the engine of that name, as far as it can be read."""
        return LmdbEngine(self, self._environment.engine(name).database)

    def read(self, action: Callable[[Transaction], T]) -> T:
        if self.pinned is None:
            raise InvalidStateStoreError(SNAPSHOT_IS_OVER)
        return action(self.pinned)

    def write(self, action: Callable[[Transaction], T]) -> NoReturn:
        raise InvalidStateStoreError(SNAPSHOT_ONLY_READS)


def _walk(cursor: lmdb.Cursor, start: bytes | None, stop: bytes | None, *, reverse: bool) -> Iterator[Row]:
    """Returns rows with their names, from where the range begins at the latest."""
    if not reverse:
        there = cursor.first() if start is None else cursor.set_range(_stem(start))
        rows = cursor.iternext() if there else iter(())
    else:
        end = None if stop is None else _after(stop)
        there = cursor.last() if end is None or not cursor.set_range(end) else cursor.prev()
        rows = cursor.iterprev() if there else iter(())
    return ((bytes(name), bytes(value)) for name, value in rows)


def _sorted_within_stems(rows: Iterator[Row], *, reverse: bool) -> Iterator[Row]:
    """Gives each row its key, and rows with long keys the order of their keys instead of their digests."""
    group: list[Row] = []
    stem = b""
    for name, value in rows:
        is_long = len(name) == _LONG
        if group and not (is_long and name[:_STEM] == stem):
            yield from sorted(group, reverse=reverse)
            group = []
        if is_long:
            stem = name[:_STEM]
            group.append(_unpack(value))
        else:
            yield _row(name, value)
    yield from sorted(group, reverse=reverse)


def _name(key: bytes) -> bytes:
    # LMDB has no empty keys: the empty one becomes a zero byte, and one that begins with a zero byte gets another.
    name = b"\0" + key if not key or not key[0] else key
    return name if len(name) <= _STEM else name[:_STEM] + blake2b(key, digest_size=_DIGEST).digest()


def _stem(key: bytes) -> bytes:
    """Returns a name that is not above that of any key from ``key`` on."""
    return _name(key)[:_STEM]


def _after(key: bytes) -> bytes | None:
    """Returns a name that is above those of all keys before ``key``, None if there is none."""
    name = _name(key)
    return name if len(name) < _LONG else after_prefix(name[:_STEM])


def _row(name: bytes, value: bytes) -> Row:
    if len(name) == _LONG:
        return _unpack(value)
    return (name if name[0] else name[1:]), value


def _unpack(value: bytes) -> Row:
    (length,) = _LENGTH.unpack_from(value)
    return value[4 : 4 + length], value[4 + length :]
