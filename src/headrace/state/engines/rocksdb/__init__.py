"""Engines on disk in RocksDB. The only package that imports it.

Each engine is a column family, with options of its own; all of them share one write-ahead log, so that changes of
several engines are one atomic write. Block cache and write buffers of all environments of a process share one bound.
"""

from headrace.state.engines.rocksdb.environment import RocksDbEnvironment
from headrace.state.engines.rocksdb.options import StoreOptions

__all__ = ["RocksDbEnvironment", "StoreOptions"]
