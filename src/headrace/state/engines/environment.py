"""Environments: the engines of one task in one directory, written together.

LMDB (``state.engines.lmdb``) is always there; RocksDB (``state.engines.rocksdb``) comes with ``headrace[rocksdb]``.
Neither is loaded before an environment is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Final, Literal, Protocol, TypeAlias

from headrace.config import StreamsConfig
from headrace.errors import ConfigError
from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine
from headrace.state.stores.builder import StoreBuilder
from headrace.state.stores.suppliers import DiskEngine

OWN = "."
"""Name of the engine with rows that belong to no store, such as the offsets that a working copy has applied."""

IN_MEMORY: Final = "in_memory"
Kind: TypeAlias = DiskEngine | Literal["in_memory"]
"""Where a store is kept."""
DISK_ENGINES: tuple[DiskEngine, ...] = ("lmdb", "rocksdb")

SNAPSHOT_IS_OVER = "what was read is over: its iterator, or its store, is closed; ask again"
SNAPSHOT_ONLY_READS = "a view only reads; what a store keeps is changed by the processors of its topology"


class Snapshot(Protocol):
    """Engines of an environment that only read, all of them at the same moment: that of the last ``begin``."""

    def begin(self) -> None:
        """Looks at what is there now."""
        ...

    def end(self) -> None:
        """Stops looking, so that what was seen can be dropped."""
        ...

    def engine(self, name: str) -> Engine:
        """Returns the engine of that name, as far as it can be read; the same one serves after another ``begin``."""
        ...


class Environment(Protocol):
    """A directory with any number of named engines, whose changes are made together.

    A process that is killed leaves all changes of an ``apply`` behind, or none. One thread writes; others may read
    snapshots.
    """

    @property
    def kind(self) -> str:
        """Which engine it is."""
        ...

    def engine(self, name: str) -> Engine:
        """Returns the engine of that name, the same one each time; it is made if it is not there."""
        ...

    def names(self) -> list[str]:
        """Returns the names of all engines that are there, in order."""
        ...

    def apply(self, *steps: Mapping[str, Changes]) -> None:
        """Makes changes of several engines, by name, one step after the other: all of them or none."""
        ...

    def apply_if(self, key: bytes, value: bytes, *steps: Mapping[str, Changes]) -> bool:
        """Does the same as ``apply`` if a row of ``OWN`` has this value; returns whether it had, and it was done."""
        ...

    def snapshot(self) -> Snapshot:
        """Returns a snapshot that has not begun."""
        ...

    def pin(self) -> None:
        """Promises that nobody writes until ``unpin``; reads may be faster then."""
        ...

    def unpin(self) -> None:
        """Ends what ``pin`` has begun."""
        ...

    def flush(self) -> None:
        """Forces everything to the disk. Until then a crash of the machine, but not of the process, loses changes."""
        ...

    def disk_bytes(self) -> int:
        """Returns how many bytes the files have."""
        ...

    def metrics(self) -> dict[str, float]:
        """Returns figures by Kafka Streams' names; those of one store as ``name/store``."""
        ...

    def close(self) -> None:
        """Gives resources back; its engines and snapshots cannot be used afterwards."""
        ...


def disk_engine(builder: StoreBuilder, config: StreamsConfig) -> DiskEngine | None:
    """Returns the engine on disk in which a store is kept; None: it is kept in memory.

    >>> from headrace.state import Stores
    >>> builder = Stores.key_value_store_builder(Stores.persistent_key_value_store("ages"))
    >>> disk_engine(builder, StreamsConfig()), disk_engine(builder, StreamsConfig(default_dsl_store="rocksdb"))
    ('lmdb', 'rocksdb')
    """
    if not builder.persistent:
        return None
    return builder.supplier.disk_engine or ("rocksdb" if config.default_dsl_store == "rocksdb" else "lmdb")


def store_kind(builder: StoreBuilder, config: StreamsConfig) -> Kind:
    """Returns where a store is kept."""
    return disk_engine(builder, config) or IN_MEMORY


def open_store(kind: Kind, directory: str | PathLike[str], config: StreamsConfig) -> Environment:
    """Opens the environment of a kind; one in memory needs no directory."""
    if kind != IN_MEMORY:
        return open_environment(kind, directory, config)
    from headrace.state.engines.memory import MemoryEnvironment

    return MemoryEnvironment()


def open_environment(kind: DiskEngine, directory: str | PathLike[str], config: StreamsConfig) -> Environment:
    """Opens the environment in a directory, with the application's settings.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     environment = open_environment("lmdb", directory, StreamsConfig())
    ...     environment.apply({"counts": Changes(rows={b"a": b"1"}), OWN: Changes(rows={b"offset": b"7"})})
    ...     print(environment.names(), environment.engine("counts").get(b"a"))
    ...     environment.close()
    ['.', 'counts'] b'1'
    """
    if kind == "rocksdb":
        return _open_rocksdb(directory, config)
    # Loaded only by those who keep stores on disk.
    from headrace.state.engines.lmdb import LmdbEnvironment

    return LmdbEnvironment(directory)


def _open_rocksdb(directory: str | PathLike[str], config: StreamsConfig) -> Environment:
    try:
        from headrace.state.engines.rocksdb import RocksDbEnvironment
    except ModuleNotFoundError as error:
        if error.name != "rocksdict":
            raise
        message = (
            "stores in RocksDB need the package 'rocksdict', which is missing; run `pip install 'headrace[rocksdb]'` "
            "wherever tasks run, or set default_dsl_store='lmdb'"
        )
        raise ConfigError(message) from error
    setter = config.rocksdb_config_setter
    return RocksDbEnvironment(
        directory,
        cache_max_bytes=config.rocksdb_cache_max_bytes,
        set_config=getattr(setter, "set_config", setter),
        configs=config.to_mapping(),
        # As in Kafka Streams: counting every access costs a little.
        statistics=config.metrics_recording_level != "INFO",
    )
