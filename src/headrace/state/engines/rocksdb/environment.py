"""The engines of one task in one RocksDB database."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any, ClassVar, TypeAlias
from weakref import WeakSet

from rocksdict import Options, Rdict, RdictIter, WriteBatch, WriteOptions

from headrace.arguments.signatures import describe_function
from headrace.errors import ConfigError, ProcessorStateError
from headrace.private_directory import make_directories
from headrace.state.engines.changes import Changes
from headrace.state.engines.environment import OWN
from headrace.state.engines.rocksdb.options import (
    DEFAULT_CACHE_BYTES,
    SHARED,
    StoreOptions,
    database_options,
    default_options,
)
from headrace.state.engines.rocksdb.rocksdb_engine import RocksDbEngine
from headrace.state.engines.rocksdb.snapshot import RocksDbSnapshot
from headrace.state.stores.suppliers import DiskEngine

# RocksDB keeps the name "default" for itself, but a store may be called so.
_FAMILY = "engine-"

# Kafka Streams took RocksDB's own names.
_STORE_METRICS = (
    "estimate-num-keys",
    "cur-size-active-mem-table",
    "cur-size-all-mem-tables",
    "size-all-mem-tables",
    "num-immutable-mem-table",
    "total-sst-files-size",
    "live-sst-files-size",
    "estimate-pending-compaction-bytes",
    "estimate-table-readers-mem",
)
# What counts as a hit, and as a miss.
_RATIOS = {
    "memtable-hit-ratio": ("rocksdb.memtable.hit", "rocksdb.memtable.miss"),
    "block-cache-data-hit-ratio": ("rocksdb.block.cache.data.hit", "rocksdb.block.cache.data.miss"),
    "block-cache-index-hit-ratio": ("rocksdb.block.cache.index.hit", "rocksdb.block.cache.index.miss"),
    "block-cache-filter-hit-ratio": ("rocksdb.block.cache.filter.hit", "rocksdb.block.cache.filter.miss"),
}
_TOTALS = {"bytes-written-total": "rocksdb.bytes.written", "bytes-read-total": "rocksdb.bytes.read"}
_COUNT = re.compile(r"^(\S+) COUNT : (\d+)", re.MULTILINE)

SetConfig: TypeAlias = Callable[[str, StoreOptions, Mapping[str, Any]], Any]


class RocksDbEnvironment:
    """A directory with any number of named engines, whose changes can be written together.

    One process at a time has it open. What was written survives the process; a crash of the machine may lose the
    last changes, whole ones, unless ``sync`` is True. ``set_config`` may change the options of each store; it is
    called with the store's name, the options, and ``configs``.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     environment = RocksDbEnvironment(directory)
    ...     counts = environment.engine("counts")
    ...     environment.apply({"counts": Changes(rows={b"a": b"1"})})
    ...     print(counts.get(b"a"))
    ...     environment.close()
    b'1'
    """

    kind: ClassVar[DiskEngine] = "rocksdb"

    def __init__(
        self,
        directory: str | PathLike[str],
        *,
        cache_max_bytes: int = DEFAULT_CACHE_BYTES,
        set_config: SetConfig | None = None,
        configs: Mapping[str, Any] | None = None,
        statistics: bool = False,
        sync: bool = False,
    ) -> None:
        self._directory = fspath(directory)
        self._set_config = set_config
        self._configs = configs or {}
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._engines: dict[str, RocksDbEngine] = {}
        self._snapshots: WeakSet[RocksDbSnapshot] = WeakSet()
        self._statistics = statistics
        self._write_options = WriteOptions()
        self._write_options.sync = sync
        SHARED.allow(cache_max_bytes)
        self._options = database_options(statistics=statistics)
        try:
            make_directories(Path(directory))
            names = self._names_there()
            families = {_FAMILY + name: self._store_options(name) for name in names}
            self._database = Rdict(self._directory, self._options, families)
        except ConfigError:
            raise
        except Exception as error:
            raise ProcessorStateError(_cannot_open(self._directory, error)) from error
        for name in names:
            self._engines[name] = self._open_engine(name)

    def _names_there(self) -> list[str]:
        if not (Path(self._directory) / "CURRENT").exists():
            return []
        families = Rdict.list_cf(self._directory, self._options)
        return [family.removeprefix(_FAMILY) for family in families if family.startswith(_FAMILY)]

    def _store_options(self, name: str) -> Options:
        options = default_options()
        if self._set_config is not None and name != OWN:
            try:
                self._set_config(name, options, self._configs)
            except Exception as error:
                message = (
                    f"store '{name}': rocksdb_config_setter {describe_function(self._set_config)} has failed with "
                    f"{type(error).__name__}: {error}; its options are those of rocksdict's class Options"
                )
                raise ConfigError(message) from error
        return options.finish()

    def _open_engine(self, name: str) -> RocksDbEngine:
        family = _FAMILY + name
        engine = RocksDbEngine(
            self._database.get_column_family(family),
            self._database.get_column_family_handle(family),
            self._write,
            self._failure,
        )
        SHARED.share_with(engine)
        return engine

    def names(self) -> list[str]:
        """Returns the names of all engines that are there, in order."""
        return sorted(self._engines)

    def engine(self, name: str) -> RocksDbEngine:
        """Returns the engine of that name, the same one each time."""
        engine = self._engines.get(name)
        if engine is None:
            self._check_process()
            options = self._store_options(name)
            try:
                self._database.create_column_family(_FAMILY + name, options)
                engine = self._open_engine(name)
            except Exception as error:
                raise self._failure(error) from error
            with self._lock:
                self._engines[name] = engine
        return engine

    def apply(self, *steps: Mapping[str, Changes]) -> None:
        """Makes changes of several engines, by name, one step after the other in one write."""
        batch = WriteBatch(raw_mode=True)
        for changes in steps:
            for name, each in changes.items():
                self.engine(name).add_to(batch, each)
        self._write(batch)

    def apply_if(self, key: bytes, value: bytes, *steps: Mapping[str, Changes]) -> bool:
        # No other process can have it open, so nobody writes in between.
        if self.engine(OWN).get(key) != value:
            return False
        self.apply(*steps)
        return True

    def _write(self, batch: WriteBatch) -> None:
        # Iterators of several families see one moment because nobody writes while they are made.
        with self._lock:
            self._check_process()
            try:
                self._database.write(batch, self._write_options)
            except Exception as error:
                raise self._failure(error) from error
        SHARED.make_room()

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            message = (
                f"the state directory '{self._directory}' was opened by process {self._process}, of which this one, "
                f"{os.getpid()}, is a fork; RocksDB allows only one process; open it after the fork"
            )
            raise ProcessorStateError(message)

    def snapshot(self) -> RocksDbSnapshot:
        """Returns engines that read what is there at one moment, while others write."""
        snapshot = RocksDbSnapshot(self._look, self.engine, self._failure)
        self._snapshots.add(snapshot)
        return snapshot

    def _look(self) -> dict[str, RdictIter]:
        with self._lock:
            try:
                return {name: engine.family.iter() for name, engine in self._engines.items()}
            except Exception as error:
                raise self._failure(error) from error

    def pin(self) -> None:
        """Does nothing: reads need no transaction."""

    def unpin(self) -> None:
        """Does nothing."""

    def flush(self) -> None:
        """Forces everything to the disk."""
        try:
            self._database.flush_wal(sync=True)
        except Exception as error:
            raise self._failure(error) from error

    def disk_bytes(self) -> int:
        """Returns how many bytes the files have."""
        total = 0
        with os.scandir(self._directory) as files:
            for file in files:
                try:
                    total += file.stat().st_size
                except FileNotFoundError:
                    # A compaction has just deleted it.
                    continue
        return total

    def metrics(self) -> dict[str, float]:
        """Returns figures by Kafka Streams' names; those of one store as ``name/store``.

        The block cache is that of the process. Ratios and totals count from the opening, and need ``statistics``.
        """
        figures: dict[str, float] = {
            f"{metric}/{name}": self._engines[name].figure(metric)
            for name in self.names()
            for metric in _STORE_METRICS
            if name != OWN
        }
        figures |= {
            "block-cache-capacity": SHARED.max_bytes,
            "block-cache-usage": SHARED.cache.get_usage(),
            "block-cache-pinned-usage": SHARED.cache.get_pinned_usage(),
            "write-buffer-usage": SHARED.write_buffers.get_usage(),
            "disk-bytes": self.disk_bytes(),
        }
        if self._statistics:
            counts = {name: int(count) for name, count in _COUNT.findall(self._options.get_statistics() or "")}
            for metric, (hits, misses) in _RATIOS.items():
                asked = counts.get(hits, 0) + counts.get(misses, 0)
                figures[metric] = counts.get(hits, 0) / asked if asked else 0.0
            figures |= {metric: counts.get(name, 0) for metric, name in _TOTALS.items()}
        return figures

    def _failure(self, error: Exception) -> Exception:
        """Returns what is raised for an error of RocksDB, which has no types of its own."""
        if isinstance(error, TypeError | ValueError):
            return error
        message = (
            f"the state directory '{self._directory}' cannot be used: {error}; check that its disk has room; "
            "what is there can be deleted and restored"
        )
        return ProcessorStateError(message)

    def close(self) -> None:
        with self._lock:
            for snapshot in self._snapshots:
                snapshot.end()
            for engine in self._engines.values():
                engine.release()
            self._engines.clear()
            self._database.close()


def _cannot_open(directory: str, error: Exception) -> str:
    found = str(error)
    remedy = "choose a directory that can be written; what is there can be deleted and restored"
    if "lock hold by current process" in found:
        found, remedy = "it is open in this process already", "close it first"
    elif "While lock file" in found:
        found = "another process has it open, and RocksDB allows only one"
        remedy = "stop that one, or give each process a directory of its own"
    return f"the state directory '{directory}' cannot be opened: {found}; {remedy}"
