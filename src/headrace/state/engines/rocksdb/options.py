"""Options of RocksDB, and the memory that all stores of a process share."""

from __future__ import annotations

import threading
from typing import Any, Protocol
from weakref import WeakSet

from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    DataBlockIndexType,
    DBCompressionType,
    Options,
    WriteBufferManager,
)

DEFAULT_CACHE_BYTES = 256 * 1024 * 1024
# As in Kafka Streams; larger ones are slower to write and to read.
_WRITE_BUFFER_BYTES = 16 * 1024 * 1024
_WAL_BYTES = 128 * 1024 * 1024
_BLOOM_BITS = 10
_WRITE_BUFFER_BLOOM = 0.02
# What the first row of a store takes; 1 MB otherwise, and an application may have hundreds of small stores.
_ARENA_BLOCK_BYTES = 128 * 1024
_INDEX_BLOCK_BYTES = 16 * 1024
_LEAST_FLUSH_BYTES = 1024 * 1024


class StoreOptions:
    """Options of one store, with all setters of rocksdict's ``Options``: what ``rocksdb_config_setter`` is given.

    Those that belong to a whole database, such as the number of background jobs, do nothing here.

    >>> options = default_options()
    >>> options.set_write_buffer_size(16 * 1024 * 1024)
    >>> options.table_format_config().set_block_size(16 * 1024)
    """

    def __init__(self, options: Options, table: BlockBasedOptions) -> None:
        self._options = options
        self._table = table

    def table_format_config(self) -> BlockBasedOptions:
        """Returns the options of the table's format, to change them: block size, bloom filter, another cache."""
        return self._table

    def set_block_based_table_factory(self, table: BlockBasedOptions) -> None:
        """Takes a table format of one's own, which does not know the block cache that all stores share."""
        self._table = table

    # Any: rocksdict has some 140 setters.
    def __getattr__(self, name: str) -> Any:
        return getattr(self._options, name)

    def finish(self) -> Options:
        """Returns the options for RocksDB."""
        self._options.set_block_based_table_factory(self._table)
        return self._options


class Buffered(Protocol):
    """An engine with rows in a write buffer."""

    def figure(self, metric: str) -> int: ...

    def flush(self) -> None: ...


class SharedMemory:
    """Block cache and write buffers of a process. What write buffers have is taken off the cache."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._engines: WeakSet[Buffered] = WeakSet()
        self.max_bytes = 0
        self.cache = Cache(0)
        self.write_buffers = WriteBufferManager.new_write_buffer_manager_with_cache(1, False, self.cache)  # noqa: FBT003

    def allow(self, max_bytes: int) -> None:
        """Sets the bound, unless somebody in this process has asked for a larger one."""
        with self._lock:
            if max_bytes > self.max_bytes:
                self.max_bytes = max_bytes
                self.cache.set_capacity(max_bytes)
                # From here on RocksDB writes the buffers of whoever writes into files, in the background.
                self.write_buffers.set_buffer_size(max_bytes // 4)

    def share_with(self, engine: Buffered) -> None:
        """Counts an engine among those that make room."""
        with self._lock:
            self._engines.add(engine)

    def make_room(self) -> None:
        """Waits until write buffers have half of the memory at most: also those of stores that nobody writes to.

        RocksDB itself would only let the writer wait, for ever if idle stores have it all.
        """
        if self.write_buffers.get_usage() <= self.max_bytes // 2:
            return
        with self._lock:
            sizes = [(engine.figure("cur-size-active-mem-table"), engine) for engine in self._engines]
            for size, engine in sorted(sizes, key=lambda pair: pair[0], reverse=True):
                # What an iterator still sees stays in memory; small files would not help.
                if size < _LEAST_FLUSH_BYTES or self.write_buffers.get_usage() <= self.max_bytes // 2:
                    return
                engine.flush()


SHARED = SharedMemory()
"""That of this process."""


def default_options() -> StoreOptions:
    """Returns the options of a store that nobody has tuned."""
    options = Options(raw_mode=True)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_write_buffer_size(_WRITE_BUFFER_BYTES)
    # A filter for the rows that are not in files yet: most keys that are asked for are not among them.
    options.set_memtable_whole_key_filtering(True)
    options.set_memtable_prefix_bloom_ratio(_WRITE_BUFFER_BLOOM)
    options.set_arena_block_size(_ARENA_BLOCK_BYTES)
    table = BlockBasedOptions()
    table.set_block_cache(SHARED.cache)
    table.set_bloom_filter(_BLOOM_BITS, block_based=False)
    table.set_data_block_index_type(DataBlockIndexType.binary_and_hash())
    # Indexes and filters are in the cache as well, or the bound would be none: in pieces, so that those of a large
    # state do not push its rows out.
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    table.set_index_type(BlockBasedIndexType.two_level_index_search())
    table.set_partition_filters(True)
    table.set_metadata_block_size(_INDEX_BLOCK_BYTES)
    table.set_pin_top_level_index_and_filter(True)
    return StoreOptions(options, table)


def database_options(*, statistics: bool) -> Options:
    """Returns the options of a whole environment."""
    options = default_options().finish()
    options.create_if_missing(True)  # noqa: FBT003 - its own signature
    options.create_missing_column_families(True)  # noqa: FBT003
    options.set_write_buffer_manager(SHARED.write_buffers)
    # Otherwise it is kept until the store that is written least has filled its buffer, and is read at each start.
    options.set_max_total_wal_size(_WAL_BYTES)
    options.set_keep_log_file_num(2)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    if statistics:
        options.enable_statistics()
    return options
